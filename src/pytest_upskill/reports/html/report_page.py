"""The report as a page: the outcome, what it amounts to for each skill, then all cases."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..._util.texts import counted, dollars, points
from ...results.run import RunResults
from ...results.summary import Summary
from ...results.verdict import Verdict, signal_lines, sweet_spot
from ...trials.plan import SkillInfo
from ..terminal.tables import checks_text
from .case_data import Fitted, Row, anchor, fitted, rows_of
from .markup import Header, resource, shell, table, text
from .plots import dumbbell, frontier, points_of

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


_UNKNOWN: Final = "–"
_HEADERS: Final[Sequence[Header]] = (
    ("model", ""),
    ("without", "num"),
    ("with", "num"),
    ("lift", "num"),
    ("checks", "num"),
    ("tokens", "num"),
    ("$ per 1000", "num"),
    ("seconds", "num"),
    ("errors", "num"),
    ("verdict", ""),
)


def skill_section(skill: SkillInfo, verdicts: Sequence[Verdict], title: str) -> str:
    rows = [verdict.summary for verdict in verdicts]
    cases, runs = max(row.cases for row in rows), max(row.runs for row in rows)
    size = f"{counted(cases, 'case')} × {counted(runs, 'run')}"
    spot = sweet_spot(verdicts)
    told = f'<p class="spot-told"><b>Sweet spot:</b> {text(spot)}</p>' if spot else ""
    return (
        f'<section class="skill" id="{skill_anchor(skill.name)}"><h2>{text(title)}</h2>'
        f'<p class="facts">{size} · about {counted(skill.tokens, "token")} · '
        f"<code>{text(skill.path)}</code></p>"
        f'<ul class="verdicts">{"".join(map(_verdict, verdicts))}</ul>{told}'
        f"{_plots(skill, verdicts)}{_numbers(verdicts)}</section>"
    )


def skill_anchor(name: str) -> str:
    return f"skill-{anchor(name)}"


def _verdict(verdict: Verdict) -> str:
    since = [verdict.since] if verdict.since else []
    more = "".join(f"<li>{text(line)}</li>" for line in [*since, *signal_lines(verdict)])
    return (
        f"<li>{_word(verdict)}<div><p><b>{text(verdict.summary.model)}</b> "
        f"{text(verdict.sentence)}.</p>{f'<ul>{more}</ul>' if more else ''}</div></li>"
    )


def _word(verdict: Verdict) -> str:
    word = verdict.word or "no baseline"
    return f'<span class="word {word.replace(" ", "-")}">{word}</span>'


def _plots(skill: SkillInfo, verdicts: Sequence[Verdict]) -> str:
    if all(verdict.summary.arm("skill").rate is None for verdict in verdicts):
        return '<p class="note">Nothing was answered, so there is nothing to draw.</p>'
    first = _figure("Pass rate", dumbbell(verdicts), _arms(skill, verdicts))
    known, plane = points_of(verdicts), frontier(verdicts)
    if not plane or not known:
        return (
            f'<div class="plots">{first}<p class="note">Neither prices nor tokens of all models '
            "are known, so cost is not drawn.</p></div>"
        )
    unit = "$ per 1000 answers" if known[1].is_cost else "tokens per answer"
    scale = ", logarithmic" if known[1].is_log else ""
    keys = [_key("steps", "efficient frontier")]
    keys += [_key("ring", "sweet spot")] if sweet_spot(verdicts) and known[1].is_cost else []
    second = _figure(f"Pass rate against {unit}{scale}", plane, keys)
    # One row is too low to stand beside the other picture.
    kind = "plots" if len(verdicts) > 1 else "plots stacked"
    return f'<div class="{kind}">{first}{second}</div>'


def _arms(skill: SkillInfo, verdicts: Sequence[Verdict]) -> list[str]:
    """What the marks of the first picture are; only those that it has."""
    compared = any(verdict.summary.arm("baseline").rate is not None for verdict in verdicts)
    it = "it" if compared else "the skill"
    keys = [_key("hollow", "without the skill")] if compared else []
    keys += [_key("rhomb", f"with {it} at {skill.against}")] if skill.against else []
    return [*keys, _key("filled", f"with {it}"), _key("whisker", "95 % interval")]


def _figure(title: str, drawn: str, keys: Sequence[str]) -> str:
    legend = f'<p class="legend">{"".join(keys)}</p>'
    return f"<figure><figcaption>{title}</figcaption>{drawn}{legend}</figure>"


def _key(kind: str, told: str) -> str:
    return f'<span><i class="{kind}" aria-hidden="true"></i>{text(told)}</span>'


def _numbers(verdicts: Sequence[Verdict]) -> str:
    """What the pictures show, and more, in figures."""
    shown = [header for header in _HEADERS if header[0] != "$ per 1000" or _paid(verdicts)]
    rows = []
    for verdict in verdicts:
        row, cells = verdict.summary, _cells(verdict)
        told = [(name, cells[name], kind) for name, kind in shown[1:]]
        rows.append((f"{text(row.model)}<small>{text(row.model_id)}</small>", told))
    return table("numbers", "Numbers of each model", shown, rows)


def _paid(verdicts: Sequence[Verdict]) -> bool:
    return any(v.summary.arm("baseline").cost or v.summary.arm("skill").cost for v in verdicts)


def _cells(verdict: Verdict) -> dict[str, str]:
    row, lift = verdict.summary, verdict.lift
    told = _UNKNOWN
    if lift:
        told = f"{points(lift.lift)} <small>{points(lift.low)} to {points(lift.high)}</small>"
    costs = [cost and 1000 * cost for cost in (row.arm("baseline").cost, row.arm("skill").cost)]
    tokens = (row.arm("baseline").tokens, row.arm("skill").tokens)
    seconds = (row.arm("baseline").seconds, row.arm("skill").seconds)
    return {
        "without": _percent(row.arm("baseline").rate),
        "with": _percent(row.arm("skill").rate),
        "lift": told,
        "checks": checks_text(row) or _UNKNOWN,
        "tokens": _arrow([value and f"{value:,.0f}" for value in tokens]),
        "$ per 1000": _arrow([None if cost is None else dollars(cost) for cost in costs]),
        "seconds": _arrow([value and f"{value:.1f}" for value in seconds]),
        "errors": f"{row.errored:,}",
        "verdict": _word(verdict),
    }


def _percent(rate: float | None) -> str:
    return _UNKNOWN if rate is None else f"{rate:.0%}"


def _arrow(values: Sequence[object]) -> str:
    return " → ".join(str(value) for value in values if value is not None) or _UNKNOWN


def matrix(by_skill: Sequence[tuple[SkillInfo, list[Verdict]]], models: Sequence[str]) -> str:
    """Many skills at a glance: a row each, a column for each model."""
    rows = []
    for skill, verdicts in by_skill:
        known = {verdict.summary.model: verdict for verdict in verdicts}
        cells = [(model, _cell(known.get(model)), "") for model in models]
        rows.append((f'<a href="#{skill_anchor(skill.name)}">{text(skill.name)}</a>', cells))
    headers = [(name, "") for name in ("skill", *models)]
    drawn = table("matrix", "All skills on all models", headers, rows)
    return f"<section><h2>Skills</h2>{drawn}</section>"


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return _UNKNOWN
    row, lift = verdict.summary, verdict.lift
    rates = _arrow([rate if rate is None else f"{rate:.0%}" for rate in _rates(row)])
    told = f"<b>{points(lift.lift)}</b> " if lift else ""
    return f"{told}{_word(verdict)}<small>{rates}</small>"


def _rates(row: Summary) -> tuple[float | None, float | None]:
    return row.arm("baseline").rate, row.arm("skill").rate
