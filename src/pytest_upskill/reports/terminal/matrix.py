"""Many skills on many models at a glance: rows skills, columns models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..._util.texts import harmless, points
from ...results.verdict import Verdict
from .columns import cut_inside, padded, width_of, wrapped
from .marks import Marks
from .tables import Paint, lift_cell

_SKILL_AT_MOST: Final = 28
_MODEL_AT_MOST: Final = (60, 24)  # the second where not all models would fit beside each other
_BETWEEN: Final = "  "
_MISSING: Final = "!"


def matrix_lines(verdicts: Sequence[Verdict], width: int, marks: Marks, paint: Paint) -> list[str]:
    """As many matrices below each other as the models need, and how to read them."""
    of = {(verdict.summary.skill, verdict.summary.model): verdict for verdict in verdicts}
    skills = {skill: cut_inside(harmless(skill), _SKILL_AT_MOST, marks.cut) for skill, _ in of}
    first = max(map(width_of, ("skill", *skills.values())))
    for most in _MODEL_AT_MOST:
        # Like the cells below it a head ends with a column that is for the mark.
        heads = {model: cut_inside(harmless(model), most, marks.cut) + " " for _, model in of}
        broad = {model: width_of(head) for model, head in heads.items()}
        for (_, model), verdict in of.items():
            broad[model] = max(broad[model], _cell_width(verdict, marks))
        groups = list(_that_fit(broad, width - first))
        if len(groups) == 1:
            break
    lines: list[str] = []
    for models in groups:
        head = [padded("skill", first), *(padded(heads[m], broad[m], right=True) for m in models)]
        top = _BETWEEN.join(head).rstrip()
        lines += [*([""] if lines else []), top, marks.rule * width_of(top)]
        for skill, name in skills.items():
            cells = [_cell(of.get((skill, model)), broad[model], marks, paint) for model in models]
            lines.append(_BETWEEN.join([padded(name, first), *cells]).rstrip())
    legend = "Pass rates in %, without and with the skill, and the lift"
    if any(verdict.word == "incomplete" for verdict in verdicts):
        legend += f"; {_MISSING} is incomplete"
    return [*lines, "", *wrapped(f"{legend}.", width, rest="  ")]


def _that_fit(broad: Mapping[str, int], room: int) -> Iterator[list[str]]:
    """The models in groups, each at most as broad as the room, but at least one."""
    group: list[str] = []
    for model in broad:
        taken = sum(len(_BETWEEN) + broad[one] for one in [*group, model])
        if group and taken > room:
            yield group
            group = []
        group.append(model)
    yield group


def _rates(verdict: Verdict, marks: Marks) -> str:
    row = verdict.summary
    known = [rate for rate in (row.baseline_rate, row.skill_rate) if rate is not None]
    return marks.arrow.join(str(round(100 * rate)) for rate in known) or "-"


def _cell_width(verdict: Verdict, marks: Marks) -> int:
    lift = verdict.summary.lift
    return width_of(_rates(verdict, marks)) + (len(points(lift)) + 2 if lift is not None else 1)


def _cell(verdict: Verdict | None, broad: int, marks: Marks, paint: Paint) -> str:
    if verdict is None:
        return padded("- ", broad, right=True)
    mark = paint(_MISSING, red=True) if verdict.word == "incomplete" else " "
    text = " " * (broad - _cell_width(verdict, marks)) + _rates(verdict, marks)
    if verdict.summary.lift is None:
        return f"{text}{mark}"
    lift = lift_cell(verdict)
    shown = paint(lift.text, **lift.style) if lift.style else lift.text
    return f"{text} {shown}{mark}"
