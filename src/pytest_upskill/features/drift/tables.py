"""The tables of skills on two models, for the terminal, Markdown and the page."""

from typing import Final

from ..._util.texts import counted, dollars, one_line, percent, points
from ...reports.study_tables import StudyTable
from ...results.contrasts import LiftValue, span_words
from ...trials.subject import CHAT
from .results import ChangeWord, ModelChange, SkillChange, SkillOnModel

_UNKNOWN: Final = "-"
# What needs attention comes first, and is the last to be folded.
_ORDER: Final[tuple[ChangeWord, ...]] = (
    *("hurts now", "hurts", "worse", "incomplete", "no longer needed", "not needed"),
    *("no longer helps", "lift fell", "helps now", "still helps", "helps", "better"),
    *("lift rose", "no effect", "no change shown", "unclear"),
)
_LEGEND: Final = (
    "Lifts are in points, over the same cases; the intervals of their changes hold for"
    ' all skills together. "now", "no longer", "fell" and "rose" mean that a change is'
    " shown; other verdicts are on the new model alone. The arms of a model are of one"
    " day, the two models may be of different ones"
)


def model_change_table(
    change: ModelChange, most: int | None = None, *, brief: bool = False
) -> StudyTable:
    """A row for each skill, what needs attention first; of more than ``most``,
    others are folded.

    If it is ``brief``, only the change has an interval.
    """
    every = sorted(change.skills, key=_rank)
    rows = every[:most]
    hidden = [row.word for row in every[len(rows) :]]
    counts = [f"{hidden.count(word):,} {word}" for word in dict.fromkeys(hidden)]
    folded = f"{len(hidden):,} more: {', '.join(counts)}" if hidden else ""
    if not rows:
        return StudyTable((), ())
    headers = ("skill", "lift, old", "lift, new", "change", "broke", "verdict")
    words = [row.word for row in rows]
    return StudyTable.of(headers, [_row(row, brief) for row in rows], words, folded)


def _rank(row: SkillChange) -> tuple[bool, int]:
    return not row.broken, _ORDER.index(row.word)


def _row(row: SkillChange, brief: bool) -> tuple[str, ...]:
    """``wick``, ``+60 (+33 to +87)``, ``+2``, ``-58 (-85 to -31)``, ``1 case``,
    ``helps``.
    """
    return (
        row.skill,
        _lift_or_score(row.old, brief),
        _lift_or_score(row.new, brief),
        _lift(row.change, brief=False),
        counted(len(row.broken), "case") if row.broken else _UNKNOWN,
        row.word,
    )


def _lift_or_score(side: SkillOnModel, brief: bool) -> str:
    return _lift(side.lift, brief) if side.word else _scores(side)


def _lift(lift: LiftValue | None, brief: bool) -> str:
    if lift is None:
        return _UNKNOWN
    return points(lift.lift) if brief else span_words(lift)


def score_table(change: ModelChange) -> StudyTable:
    """The scores behind the lifts: without the skill and with it, on both models."""
    headers = ("skill", "score, old", "score, new", "cases", "runs")
    rows = [
        (
            row.skill,
            _scores(row.old),
            _scores(row.new),
            f"{row.cases:,}",
            f"{row.runs:,}",
        )
        for row in sorted(change.skills, key=_rank)
    ]
    return StudyTable.of(headers, rows) if rows else StudyTable((), ())


def legend_of(change: ModelChange) -> str:
    """What the numbers are."""
    without = any(row.new.word is None for row in change.skills)
    return (
        f"{_LEGEND}. Where there is no skill, scores stand for lifts"
        if without
        else _LEGEND
    )


def _scores(side: SkillOnModel) -> str:
    """``0% → 100%``; ``60%`` without a baseline."""
    scores = (side.baseline_score, side.skill_score)
    return (
        " → ".join(percent(score) for score in scores if score is not None) or _UNKNOWN
    )


def facts_of(change: ModelChange) -> str:
    """``loop · 3 skills · 36 cases × 3 runs · 432 trials, $1.20``."""
    runs = max((row.runs for row in change.skills), default=0)
    size = f"{counted(change.cases, 'case')} × {counted(runs, 'run')}" if runs else ""
    spent = ", ".join(
        [
            counted(change.trials, "trial"),
            *([dollars(change.cost)] if change.cost else []),
        ]
    )
    agent = "" if change.agent == CHAT else one_line(change.agent, 60)
    skills = counted(len(change.skills), "skill")
    return " · ".join(filter(None, (agent, skills, size, spent)))
