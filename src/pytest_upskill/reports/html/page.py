"""The report as a page: the outcome, what it amounts to for each skill, then all cases."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..._util.texts import counted
from ...results.run import RunResults
from ...results.verdict import Verdict
from ...trials.trial import SkillInfo
from .data import Row, rows_of
from .fitting import Fitted, fitted
from .overview import matrix, skill_section
from .shell import resource, shell, text

_MOST: Final = 900_000  # characters of the file
_SCRIPTS: Final = ("diff.js", "case.js", "table.js")


def html_report(results: RunResults, notes: Sequence[str] = ()) -> str:
    """The whole file. Everything from models and files is escaped, or is data of the script."""
    rows = rows_of(results)
    script = "\n".join(resource(name) for name in _SCRIPTS)
    style = resource("overview.css")
    body = _body(results, rows, notes, Fitted("", 0, 0))
    frame = shell(_title(results), body, script, style=style)
    content = fitted(results, rows, _MOST - len(frame.encode("utf-8", "replace")))
    body = _body(results, rows, notes, content)
    return shell(_title(results), body, script, content.data, style)


def _title(results: RunResults) -> str:
    names = [skill.name for skill in results.skills]
    return f"{names[0] if len(names) == 1 else counted(len(names), 'skill')} · skill report"


def _body(results: RunResults, rows: Sequence[Row], notes: Sequence[str], content: Fitted) -> str:
    by_skill = [
        (_skill(results, name), list(group))
        for name, group in groupby(results.verdicts, key=lambda verdict: verdict.summary.skill)
    ]
    sections = [  # the name of the only skill is the title of the page
        skill_section(skill, verdicts, skill.name if len(by_skill) > 1 else "What it amounts to")
        for skill, verdicts in by_skill
    ]
    return "\n".join(
        [
            _head(results, by_skill),
            "<main>",
            _outcome(results, rows),
            matrix(by_skill, list(results.model_ids)) if len(by_skill) > 1 else "",
            *sections,
            _cases(content),
            "</main>",
            _foot(results, notes),
        ]
    )


def _skill(results: RunResults, name: str) -> SkillInfo:
    return next(skill for skill in results.skills if skill.name == name)


def _head(results: RunResults, by_skill: Sequence[tuple[SkillInfo, list[Verdict]]]) -> str:
    names = [skill.name for skill in results.skills]
    title = names[0] if len(names) == 1 else counted(len(names), "skill")
    when = results.started.isoformat(timespec="seconds")
    day = f"{results.started.day} {results.started:%B %Y, %H:%M %Z}"
    facts = [f'<time datetime="{when}">{text(day)}</time>']
    facts.append(f"{counted(len(results.tests), 'test')} on {_models(results)}")
    facts.append(f"took {_duration(results.seconds)}")
    if results.commit:
        dirty = " with changes" if results.commit.dirty else ""
        facts.append(f"commit <code>{text(results.commit.id[:9])}</code>{dirty}")
    links = '<a href="#overview">Overview</a><a href="#cases">Cases</a>' if by_skill else ""
    return (
        f'<header id="overview"><p class="kind">Skill report</p><h1>{text(title)}</h1>'
        f'<p class="facts">{" · ".join(facts)}</p><nav aria-label="Parts">{links}</nav></header>'
    )


def _models(results: RunResults) -> str:
    names = list(results.model_ids)
    return text(names[0]) if len(names) == 1 else counted(len(names), "model")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _outcome(results: RunResults, rows: Sequence[Row]) -> str:
    """Whether the run passed, and if not, why."""
    kinds = [row.standing.kind for row in rows if row.standing]
    failed = sum(kind in ("failed", "regressed") for kind in kinds)
    errored = sum("errored" in row.states for row in rows)
    lost = sum("not run" in row.states for row in rows)
    reasons = [f"{counted(failed, 'test')} failed"] if failed else []
    reasons += [f"{counted(errored, 'test')} had errors"] if errored else []
    reasons += [f"{counted(lost, 'test')} did not run"] if lost else []
    reasons += results.gate or []
    if reasons:
        listed = "".join(f"<li>{text(reason)}</li>" for reason in reasons)
        return f'<section class="outcome bad"><h2>Not passed</h2><ul>{listed}</ul></section>'
    gates = "every gate held" if results.gate is not None else "no gates were set"
    passed = len(rows) - sum("failed" in row.states for row in rows)
    told = f"{passed:,} of {counted(len(rows), 'test')} passed"
    told += "" if passed == len(rows) else ", the others were expected to fail"
    return f'<section class="outcome good"><h2>Passed</h2><p>{told}; {gates}.</p></section>'


def _cases(content: Fitted) -> str:
    cut = ""
    if content.cut:
        cut = (
            f"To keep this file small, {content.cut:,} of {counted(content.answers, 'answer')} "
            "are cut; those of cases that failed last. <code>--skill-json</code> writes all."
        )
    return (
        '<section id="cases"><h2>Cases</h2>'
        f'<p class="note">{cut}</p>'
        "<noscript><p>The table of cases needs JavaScript, which is part of this file; "
        "nothing is fetched.</p></noscript>"
        '<div id="table"><p class="note loading">Loading the cases…</p></div></section>'
    )


def _foot(results: RunResults, notes: Sequence[str]) -> str:
    listed = "".join(f"<li>{text(note)}</li>" for note in notes)
    told = f'<ul class="notes">{listed}</ul>' if listed else ""
    made = " · ".join(f"{text(name)} {text(of)}" for name, of in results.versions.items())
    return (
        f"<footer>{told}<p>Rates are means over cases; the lift is their difference in points, "
        "with its 95 % interval. A trial without an answer takes its partner out of both.</p>"
        f"<p>{made}</p></footer>"
    )
