"""The summary for people who read a pull request, as Markdown of GitHub's kind."""

import html
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..texts import counted, harmless
from ..trials import SkillInfo
from ..verdict import Verdict, sweet_spot

_HEADERS: Final = ("model", "without", "with", "lift", "tokens", "$/1000", "verdict")
_UNKNOWN: Final = "–"


def markdown_summary(
    skills: Sequence[SkillInfo],
    verdicts: Sequence[Verdict],
    gate: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    failed: int = 0,
) -> str:
    """The verdict first, then a table for each skill.

    ``gate`` are the reasons not to pass; ``failed`` is how many tests failed or had errors.
    """
    failures = [f"{counted(failed, 'test')} failed or had errors"] if failed else []
    reasons = [*failures, *(gate or ())]
    blocks = ["## Skills", "**Not passed:**" if reasons else "**Passed.**"]
    blocks += [_list(reasons)] if reasons else []
    for name, group in groupby(verdicts, key=lambda verdict: verdict.summary.skill):
        skill = next(skill for skill in skills if skill.name == name)
        blocks += _skill(skill, list(group))
    blocks += [_list(notes)] if notes else []
    return "\n\n".join(blocks) + "\n"


def _skill(skill: SkillInfo, verdicts: Sequence[Verdict]) -> list[str]:
    rows = [verdict.summary for verdict in verdicts]
    cases, runs = max(row.cases for row in rows), max(row.runs for row in rows)
    size = f"{counted(cases, 'case')} × {counted(runs, 'run')}"
    title = f"### {escaped(skill.name)}\n\n{size}, about {counted(skill.tokens, 'token')}."
    told = [f"{verdict.summary.model}: {_told(verdict)}." for verdict in verdicts]
    spot = sweet_spot(verdicts)
    lines = [_row(_HEADERS), _row(["---"] * len(_HEADERS)), *map(_model, verdicts)]
    return [title, _list([*told, *([f"Sweet spot: {spot}"] if spot else [])]), "\n".join(lines)]


def _told(verdict: Verdict) -> str:
    word = f"{verdict.word}: " if verdict.word else ""
    return f"{word}{verdict.sentence}" + (f"; {verdict.since.sentence}" if verdict.since else "")


def _model(verdict: Verdict) -> str:
    row, lift = verdict.summary, verdict.lift
    cells = (
        escaped(row.model),
        _percent(row.baseline_rate),
        _percent(row.skill_rate),
        f"{_points(lift.lift)} ({_points(lift.low)} to {_points(lift.high)})" if lift else _UNKNOWN,
        _change(row.baseline_tokens, row.skill_tokens, ",.0f"),
        _change(_thousand(row.baseline_cost), _thousand(row.skill_cost), ".2g"),
        verdict.word or _UNKNOWN,
    )
    return _row(cells)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(text)}" for text in texts)


def _percent(rate: float | None) -> str:
    return _UNKNOWN if rate is None else f"{rate:.0%}"


def _points(share: float) -> str:
    return f"{round(share * 100):+d}" if round(share * 100) else "0"


def _change(before: float | None, after: float | None, form: str) -> str:
    known = [format(value, form) for value in (before, after) if value is not None]
    return " → ".join(known) or _UNKNOWN


def _thousand(cost: float | None) -> float | None:
    return None if cost is None else 1000 * cost


def escaped(text: str) -> str:
    """Text from outside as plain words: no markup, no HTML, no row of a table, no mention."""
    flat = " ".join(harmless(text).split())
    marked = re.sub(r"([\\`*_{}\[\]|~#!])", r"\\\1", html.escape(flat, quote=False))
    # An invisible character after them keeps a mention from calling people, a link from forming.
    return re.sub(r"@|://|www\.", lambda match: f"{match.group()}&#8203;", marked)
