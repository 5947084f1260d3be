"""The page of a run: its outcome, then verdicts, plots and numbers by skill, then all cases."""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

from ..._util.texts import counted, duration, one_line, percent
from ...results.arm_comparison import SCORE_WORDS, unit_of
from ...results.case_changes import Changes, Earlier, changes
from ...results.contrasts import Study
from ...results.run import RunResults
from ...results.run_notes import agent_lines
from ...results.summary import case_words
from ...results.summary_row import SummaryRow, row_of
from ...results.trigger_summary import TriggerSummary, size_words
from ...results.verdict import Verdict, signal_lines, sweet_choice, sweet_spot
from ...skills.case import OPENS, STAYS_CLOSED
from ...trials.plan import SkillInfo
from ..numbers import LIFT, WITH, WITHOUT, Number, cache_words, shown_numbers
from ..study_tables import StudyTable, arm_table, contrast_table, facts_of, legend_of
from .case_data import Fitted, fitted, shown_name, skill_anchor, word_of
from .case_rows import PageCase, rows_of
from .changes import changed_section
from .markup import (
    Header,
    breakable,
    commit_tag,
    figure,
    key,
    resource,
    shell,
    table,
    text,
    time_tag,
)
from .plots import dumbbell, frontier, points_of, score_title

_MOST: Final = 900_000  # characters of the file
_SCRIPTS: Final = (
    *("dom.js", "address.js", "data.js", "diff.js", "marks.js", "markdown.js", "agent.js"),
    *("case.js", "skill.js", "compare.js"),
    *("filters.js", "table.js", "grid.js", "keys.js", "bar.js"),
)
_UNKNOWN: Final = "–"
_MOST_CONTRASTS: Final = 24  # of a study
_LONGEST_NAME: Final = 80
_WORD_CLASSES: Final = {
    "no loss shown": "helps",
    "no change shown": "unknown",
    "not known": "unknown",
}
_OF_AGENTS: Final = (
    " Opened: the trials with the skill in which the agent opened it. The lift per opening is the "
    "lift by their share; no verdict goes by it."
)


def html_report(
    results: RunResults, notes: Sequence[str] = (), earlier: Earlier | None = None
) -> str:
    """The whole file. Text from models and files is escaped, or is data of the script.

    ``earlier`` is a run to compare with.
    """
    changed = changes(earlier, results) if earlier else None
    rows, style = rows_of(results, changed), resource("overview.css") + resource("opened.css")
    style += resource("studies.css") if results.studies else ""
    style += resource("changes.css") if changed else ""
    if results.only_studied:  # which all of the script is for
        body = _body(results, rows, notes, Fitted("", 0, 0), changed)
        return shell(_title(results), body, style=style)
    style += resource("grid.css")
    script = "\n".join(map(resource, _SCRIPTS))
    body = _body(results, rows, notes, Fitted("", 0, 0), changed)
    frame = shell(_title(results), body, script, style=style)
    content = fitted(results, rows, _MOST - len(frame.encode("utf-8", "replace")), earlier)
    body = _body(results, rows, notes, content, changed)
    return shell(_title(results), body, script, content.data, style)


def _title(results: RunResults) -> str:
    return f"{_skills(results)} · skill report"


def _skills(results: RunResults) -> str:
    names = [skill.name for skill in results.skills]
    return names[0] if len(names) == 1 else counted(len(names), "skill")


def _body(
    results: RunResults,
    rows: Sequence[PageCase],
    notes: Sequence[str],
    content: Fitted,
    changed: Changes | None,
) -> str:
    by_skill = [
        (next(skill for skill in results.skills if skill.name == name), list(group))
        for name, group in groupby(results.verdicts, key=lambda verdict: verdict.summary.skill)
    ]
    several = len(by_skill) > 1  # the name of an only skill is the title of the page
    return "\n".join(
        [
            _head(results, by_skill, changed),
            "<main>",
            "" if results.only_studied and not results.problems else _outcome(results, rows),
            changed_section(results, changed) if changed else "",
            _matrix(by_skill, list(results.model_ids)) if several else "",
            *(
                _section(skill, verdicts, skill.name if several else "Verdict")
                for skill, verdicts in by_skill
            ),
            _triggers(results.trigger_summaries),
            _part("studies", *map(_study_section, results.studies)),
            _cases(content) if not results.only_studied else "",
            "</main>",
            _foot(results, notes),
        ]
    )


def _head(
    results: RunResults,
    by_skill: Sequence[tuple[SkillInfo, list[Verdict]]],
    changed: Changes | None,
) -> str:
    models = list(results.model_ids)
    models_text = text(models[0]) if len(models) == 1 else counted(len(models), "model")
    facts = [time_tag(results.started)]
    tests = f"{counted(len(results.tests), 'test')} on "
    facts.append(f"{'' if results.only_studied else tests}{models_text}")
    facts.append(f"took {duration(results.seconds)}")
    if results.commit:
        facts.append(commit_tag(results.commit))
    facts += [text(line) for line in agent_lines(results)]
    facts += filter(None, [cache_words(results.prompt_cache_saved)])
    parts = {
        "Overview": by_skill or results.triggers,
        "Changed": changed is not None,
        "Triggers": results.triggers,
        "Studies": results.studies,
        "Cases": not results.only_studied,
    }
    links = "".join(f'<a href="#{name.lower()}">{name}</a>' for name, own in parts.items() if own)
    return (
        '<header id="overview"><p class="kind">Skill report</p>'
        f'<h1>{breakable(_skills(results))}</h1><p class="facts">{" · ".join(facts)}</p>'
        f'<nav aria-label="Parts">{links}</nav></header>'
    )


def _part(name: str, *sections: str) -> str:
    """Sections that the head links to by one name; they stay children of ``main``, for the CSS."""
    shown = "".join(sections)
    return f'<div id="{name}"></div>{shown}' if shown else ""


def _outcome(results: RunResults, rows: Sequence[PageCase]) -> str:
    """Whether the run passed, and if not, why."""
    if reasons := results.problems or results.withheld:
        listed = "".join(f"<li>{_problem(results, reason)}</li>" for reason in reasons)
        title = results.outcome().capitalize()
        return f'<section class="outcome bad"><h2>{title}</h2><ul>{listed}</ul></section>'
    gates = "all gates passed" if results.gate.passed is not None else "no gates were set"
    skipped = sum("not run" in row.states for row in rows)
    failed = sum("failed" in row.states for row in rows)
    counts = f"{len(rows) - skipped - failed:,} of {counted(len(rows), 'test')} passed"
    expected = _to_cases(f"{failed:,} failed as expected", outcome="failed as expected")
    counts += f", {expected}" if failed else ""
    counts += f", {_to_cases(f'{skipped:,} skipped', outcome='not run')}" if skipped else ""
    return f'<section class="outcome good"><h2>Passed</h2><p>{counts}; {gates}.</p></section>'


def _to_cases(words: str, kind: str = "", **filters: str) -> str:
    """A link to the table of cases; the script makes it one to those that fit."""
    query = urlencode({key: shown_name(value) for key, value in filters.items()})
    about = f' class="{kind}"' if kind else ""
    return f'<a{about} href="#cases" data-filters="{escape(query)}">{text(words)}</a>'


def _problem(results: RunResults, reason: str) -> str:
    """Why the run fails, with a link to the tests or the skill that it is about."""
    if results.failed and reason == results.problems[0]:
        return _to_cases(reason, outcome="failed")
    named = [
        verdict.summary.skill
        for verdict in results.verdicts
        if reason.startswith((f"{verdict.summary.skill} on ", f"{verdict.summary.skill}: "))
    ]
    if not named:
        return text(reason)
    skill = max(named, key=len)
    rest_html = text(reason.removeprefix(skill))
    return f'<a href="#{skill_anchor(skill)}">{text(skill)}</a>{rest_html}'


def _cases(content: Fitted) -> str:
    cut = ""
    if content.cut:
        cut = (
            f"To keep this file small, {content.cut:,} of {counted(content.answers, 'answer')} "
            "are cut, those of failed cases last. The JSON report has all."
        )
    return (
        '<section id="cases"><h2>Cases</h2>'
        f'<p class="note">{cut}</p>'
        "<noscript><p>The table of cases needs JavaScript, which is part of this file; "
        "nothing is fetched.</p></noscript>"
        '<div id="table"><p class="note loading">Loading the cases…</p></div></section>'
    )


def _foot(results: RunResults, notes: Sequence[str]) -> str:
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    versions = " · ".join(f"{text(name)} {text(of)}" for name, of in results.versions.items())
    listed = f'<ul class="notes">{items}</ul>' if items else ""
    agents = _OF_AGENTS if any(row.activation for row in results.summaries) else ""
    return (
        f"<footer>{listed}"
        "<p>Rates and shares of checks are means over cases; a lift is their difference in "
        "points, with its 95 % interval. If an answer is missing, the other arm's is not counted "
        f"either.{agents}</p>"
        f"<p>{versions}</p></footer>"
    )


def _triggers(rows: Sequence[TriggerSummary]) -> str:
    """How often skills are opened; the table of cases has every query."""
    if not rows:
        return ""
    several = len({row.skill for row in rows}) > 1
    verdicts = []
    for row in rows:
        rates = [f"{name} {percent(share.rate)}" for name, share in row.shares.items()]
        advice = "".join(f"<li>{text(line)}</li>" for line in row.advice)
        verdicts.append(
            f'<li><span class="word {row.word}">{text(row.word or rates[0])}</span><div>'
            f"<p><b>{breakable(f'{row.pair}' if several else row.label)}</b> "
            f"{text(row.sentence)}.</p>{f'<ul>{advice}</ul>' if advice else ''}</div></li>"
        )
    kinds = [_to_cases(f"all with the tag {tag}", tag=tag) for tag in (OPENS, STAYS_CLOSED)]
    return (
        '<section id="triggers"><h2>Triggers</h2>'
        f'<p class="facts">{text(size_words(rows))} · {", ".join(kinds)}</p>'
        f'<ul class="verdicts">{"".join(verdicts)}</ul></section>'
    )


# One skill.


def _section(skill: SkillInfo, verdicts: Sequence[Verdict], title: str) -> str:
    rows = [verdict.summary for verdict in verdicts]
    size = f"{case_words(rows)} × {counted(max(row.runs for row in rows), 'run')}"
    best = sweet_spot(verdicts)
    spot = f'<p class="sweet-spot"><b>Sweet spot:</b> {text(best)}</p>' if best else ""
    return (
        f'<section class="skill" id="{skill_anchor(skill.name)}"><h2>{breakable(title)}</h2>'
        f'<p class="facts">{size} · about {counted(skill.tokens, "token")} · '
        f"<code>{text(skill.path)}</code>{_scored(skill)}</p>"
        f'<ul class="verdicts">{"".join(map(_verdict, verdicts))}</ul>{spot}'
        f"{_plots(skill, verdicts)}{_numbers(verdicts)}"
        f'<div data-skill-file="{text(shown_name(skill.name))}"></div></section>'
    )


def _scored(skill: SkillInfo) -> str:
    return f" · lift and verdict are of the {SCORE_WORDS[skill.score]}" * (skill.score != "pass")


def _verdict(verdict: Verdict) -> str:
    since = [verdict.since] if verdict.since else []
    items = "".join(f"<li>{text(line)}</li>" for line in [*since, *signal_lines(verdict)])
    return (
        f"<li>{_word(verdict)}<div><p>{_worse(verdict)}<b>{breakable(verdict.summary.label)}</b> "
        f"{text(verdict.sentence)}.</p>{f'<ul>{items}</ul>' if items else ''}</div></li>"
    )


def _word(verdict: Verdict, href: str = "") -> str:
    """With a link to an ``href``, or to the cases that it is about."""
    word = word_of(verdict)
    kind = f"word {word.replace(' ', '-')}"
    if href:
        return f'<a class="{kind}" href="{href}">{word}</a>'
    about = verdict.summary
    return _to_cases(word, kind, skill=about.skill, model=about.label)


def _worse(verdict: Verdict) -> str:
    worse = verdict.worse_since
    return f'<span class="word hurts">{text(worse)}</span> ' if worse else ""


def _plots(skill: SkillInfo, verdicts: Sequence[Verdict]) -> str:
    if all(verdict.summary.scored("skill") is None for verdict in verdicts):
        return '<p class="note">Nothing to draw: there are no answers.</p>'
    score_name = score_title(skill.score)
    first = figure(score_name, dumbbell(verdicts), _arms(skill, verdicts))
    known_points, plane = points_of(verdicts), frontier(verdicts)
    if not plane or not known_points:
        return (
            f'<div class="plots">{first}<p class="note">Cost is not drawn: neither prices nor '
            "tokens of all models are known.</p></div>"
        )
    unit = "$ per 1000 answers" if known_points[1].is_cost else "tokens per answer"
    scale = ", logarithmic" if known_points[1].is_log else ""
    keys = [key("steps", "efficient frontier")]
    if known_points[1].is_cost and sweet_choice(verdicts):
        keys.append(key("ring", "sweet spot"))
    second = figure(f"{score_name} against {unit}{scale}", plane, keys)
    # A picture of one row is too low to stand beside the other one.
    kind = "plots" if len(verdicts) > 1 else "plots stacked"
    return f'<div class="{kind}">{first}{second}</div>'


def _arms(skill: SkillInfo, verdicts: Sequence[Verdict]) -> list[str]:
    """The legend of the first picture: only what is drawn."""
    compared = any(verdict.summary.scored("baseline") is not None for verdict in verdicts)
    object_word = "it" if compared else "the skill"
    keys = [key("hollow", "without the skill")] if compared else []
    keys += [key("rhomb", f"with {object_word} at {skill.against}")] if skill.against else []
    return [*keys, key("filled", f"with {object_word}"), key("whisker", "95 % interval")]


def _numbers(verdicts: Sequence[Verdict]) -> str:
    """All numbers, those of the pictures too."""
    rows = [*map(row_of, verdicts)]
    numbers = shown_numbers(rows, details=True)
    names = [(number.header_of(rows), "num") for number in numbers]
    headers: list[Header] = [("model", ""), ("verdict", ""), *names]
    lines = []
    for verdict, row in zip(verdicts, rows, strict=True):
        words = f"{_word(verdict)} {_worse(verdict)}"
        cells = [words, *(_number(number, row) for number in numbers)]
        model, model_id = breakable(verdict.summary.label), breakable(verdict.summary.model_id)
        lines.append((f"{model}<small>{model_id}</small>", cells))
    about = f"Numbers of {verdicts[0].summary.skill} on each model"
    return table("numbers", about, headers, lines)


def _number(number: Number, row: SummaryRow) -> str:
    bounds = number.bounds_text(row) if number.interval_priority else None
    number_text = text(number.text(row) or _UNKNOWN)
    small = bounds or number.lift_text(row) or number.growth_text(row)
    return f"{number_text} <small>{text(small)}</small>" if small else number_text


# Many skills.


def _matrix(by_skill: Sequence[tuple[SkillInfo, list[Verdict]]], models: Sequence[str]) -> str:
    """A row for each skill, a column for each model."""
    rows = []
    for skill, verdicts in by_skill:
        by_model = {verdict.summary.label: verdict for verdict in verdicts}
        cells = [_matrix_cell(by_model.get(model)) for model in models]
        rows.append((f'<a href="#{skill_anchor(skill.name)}">{breakable(skill.name)}</a>', cells))
    headers = [(name, "") for name in ("skill", *models)]
    matrix = table("matrix", "All skills on all models", headers, rows)
    return f"<section><h2>Skills</h2>{matrix}</section>"


def _matrix_cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return _UNKNOWN
    row = row_of(verdict)
    rates = [rates_text for number in (WITHOUT, WITH) if (rates_text := number.text(row))]
    lift = f"<b>{words}</b> " if (words := LIFT.text(row)) else ""
    rates_text = (" → ".join(rates) or _UNKNOWN) + unit_of(row.score)
    word = _word(verdict, f"#{skill_anchor(verdict.summary.skill)}")
    return f"{lift}{word} {_worse(verdict)}<small>{rates_text}</small>"


# Studies.


def _study_section(study: Study) -> str:
    """What to remember, the contrasts, all arms folded, and the other sentences."""
    *sentences, last = study.conclusions or ("",)
    contrasts = contrast_table(study, _MOST_CONTRASTS)
    items = "".join(f"<li>{text(sentence)}.</li>" for sentence in sentences)
    listed = f'<ul class="said">{items}</ul>' if items else ""
    remember = f'<p class="conclusion">{text(last)}.</p>' if last else ""
    name = f"{study.title}, {study.label}"
    every = _folded(contrasts.folded, f"All contrasts: {name}", contrast_table(study))
    return (
        f'<section class="skill"><h2>{text(study.title)}</h2>'
        f'<p class="facts">{text(facts_of(study))}</p>{remember}'
        f"{_study_table(name, contrasts)}{every if contrasts.folded else ''}"
        f'<p class="note">{text(legend_of(study))}.</p>'
        f"{_folded('Numbers of each arm', f'Arms: {name}', arm_table(study, every=True))}"
        f"{listed}</section>"
    )


def _study_table(title: str, contents: StudyTable) -> str:
    headers: list[Header] = [
        (name, "num" if name in ("change", "tokens", "score") else "") for name in contents.headers
    ]
    rows = [
        (text(one_line(name, _LONGEST_NAME)), [*map(text, values)])
        for name, *values in contents.rows
    ]
    for (_, cells), word in zip(rows, contents.words, strict=False):
        cells[-1] = f'<span class="word {_WORD_CLASSES.get(word, word)}">{cells[-1]}</span>'
    return table("numbers", title, headers, rows) if rows else ""


def _folded(summary: str, title: str, contents: StudyTable) -> str:
    return f"<details><summary>{text(summary)}</summary>{_study_table(title, contents)}</details>"
