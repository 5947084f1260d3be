"""Triggers on the page of a run: verdicts, numbers, and every query with its rates."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import counted, percent, shortened
from ...results.trigger_summary import QueryRate, TriggerSummary
from ..numbers import Number, instead_text, shown_trigger_numbers
from ..phrases import choice_note, query_text, size_words
from .markup import Header, breakable, table, text

_UNKNOWN: Final = "–"
_MOST_QUERIES: Final = 300  # of a skill
_LONGEST: Final = 400  # characters of a query


def trigger_section(rows: Sequence[TriggerSummary]) -> str:
    """Nothing if no query was tested."""
    if not rows:
        return ""
    note = choice_note(rows)
    facts = [text(size_words(rows)), *([text(note)] if note else [])]
    skills = dict.fromkeys(row.skill for row in rows)
    queries = (
        _queries(skill, [row for row in rows if row.skill == skill], titled=len(skills) > 1)
        for skill in skills
    )
    return (
        '<section id="triggers"><h2>Triggers</h2>'
        f'<p class="facts">{" · ".join(facts)}</p>'
        f'<ul class="verdicts">{"".join(_verdict(row, len(skills) > 1) for row in rows)}</ul>'
        f"{_numbers(rows)}{''.join(queries)}</section>"
    )


def _verdict(row: TriggerSummary, several: bool) -> str:
    name = f"{row.pair}" if several else row.label
    advice = "".join(f"<li>{text(line)}</li>" for line in row.advice)
    rates = [("recall", row.recall), ("false alarms", row.false_alarms)]
    numbers = [f"{name} {percent(share.rate)}" for name, share in rates if share]
    word = row.word or text(numbers[0])
    return (
        f'<li><span class="word {row.word}">{word}</span><div>'
        f"<p><b>{breakable(name)}</b> {text(row.sentence)}.</p>"
        f"{f'<ul>{advice}</ul>' if advice else ''}</div></li>"
    )


def _numbers(rows: Sequence[TriggerSummary]) -> str:
    numbers = shown_trigger_numbers(rows)
    several = len({row.skill for row in rows}) > 1
    headers: list[Header] = [("model", ""), *((number.header, "num") for number in numbers)]
    lines = []
    for row in rows:
        about = breakable(row.label) + (f"<small>{breakable(row.skill)}</small>" if several else "")
        lines.append((about, [_number(number, row) for number in numbers]))
    return table("numbers", "Triggers of each model", headers, lines)


def _number(number: Number, row: TriggerSummary) -> str:
    share, bounds = number.amount(row) if number.bar else None, number.bounds_text(row)
    number_text = text(number.text(row) or _UNKNOWN)
    drawn = f"{bar(share)} " if share is not None else ""
    return f"{drawn}{number_text}" + (f" <small>{text(bounds)}</small>" if bounds else "")


def bar(share: float, kind: str = "") -> str:
    """A share as a small bar; its number stands beside it."""
    return (
        f'<svg class="share-bar {kind}" width="64" height="8" aria-hidden="true">'
        f'<rect class="rail" width="64" height="8" rx="4"/>'
        f'<rect class="fill" width="{64 * share:.1f}" height="8" rx="4"/></svg>'
    )


def _queries(skill: str, rows: Sequence[TriggerSummary], titled: bool) -> str:
    """A row for each query, a column for each agent and model; wrong ones first."""
    by_case: dict[str, dict[str, QueryRate]] = {}
    for row in rows:
        for query in row.queries:
            by_case.setdefault(query.case, {})[row.label] = query
    order = sorted(by_case.values(), key=_rank)
    headers: list[Header] = [("query", ""), ("needs it", "")]
    headers += [(row.label, "rate") for row in rows]
    lines = []
    for by_model in order[:_MOST_QUERIES]:
        first = next(iter(by_model.values()))
        about = f"{text(shortened(first.query or first.case, _LONGEST))}"
        about += f"<small>{text(first.case)}</small>"
        cells = ["yes" if first.should_open else "no"]
        cells += [_rate(by_model.get(row.label)) for row in rows]
        lines.append((about, cells))
    hidden = len(order) - len(lines)
    note = (
        f'<p class="note">{counted(hidden, "more query")} in the JSON report.</p>' if hidden else ""
    )
    title = f"<h3>Queries of {breakable(skill)}</h3>" if titled else "<h3>Queries</h3>"
    return f"{title}{table('numbers queries', f'Queries of {skill}', headers, lines)}{note}"


def _rank(by_model: dict[str, QueryRate]) -> tuple[bool, bool]:
    wrong = any(query.right is False or query.errored for query in by_model.values())
    return not wrong, not next(iter(by_model.values())).should_open


def _rate(query: QueryRate | None) -> str:
    if query is None:
        return _UNKNOWN
    kind = {True: "right", False: "wrong", None: ""}[query.right]
    drawn = bar(query.rate, kind) if query.rate is not None else ""
    mark = {True: "✓", False: "✗", None: ""}[query.right]
    instead = instead_text(query.instead.items())
    small = f"<small>instead: {text(instead)}</small>" if instead else ""
    errors = f' <b class="down">{text(counted(query.errored, "error"))}</b>'
    count = text(query_text(query, errors=False))
    return f"{drawn} {count} {mark}{errors if query.errored else ''}{small}"
