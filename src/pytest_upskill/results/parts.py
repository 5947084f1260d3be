"""Parts of a skill: what each one gains, what it costs, and which could go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from .._util.texts import counted, one_line, points
from ..skills.skill_parts import By, PartKind
from ..stats import Lift
from ..trials.subject import CHAT
from .effects import Effect
from .losses import MARGIN, Standing, loss_words, standing_of

_LONGEST_NAME: Final = 80
_MOST_NAMES: Final = 6
_LEAST_LOSS: Final = 0.001  # below that, tokens per point mean nothing


class Saved(NamedTuple):
    """Tokens of an answer, and of what was asked, that leaving a part out saves: a mean."""

    tokens: float
    low: float | None  # of the 95 % interval; None if there are too few cases
    high: float | None


@dataclass(frozen=True)
class PartEffect:
    """A part of a skill, and what leaving it out does."""

    name: str  # a heading, the first words of a paragraph, or a path
    kind: PartKind
    line: int  # in SKILL.md; 0 for a file
    tokens: int
    effect: Effect  # of leaving it out: below 0 if it is missed
    could_go: bool = (
        False  # a loss that counts is ruled out, on cases that show what the skill is for
    )
    saved: Saved | None = None  # as the model counts; None if it does not

    @property
    def change(self) -> Lift | None:
        return self.effect.lift

    def standing(self, margin: float) -> Standing | Literal["incomplete"]:
        if self.effect.state == "incomplete" or self.change is None:
            return "incomplete"
        return standing_of(self.change, margin)

    @property
    def tokens_per_point(self) -> float | None:
        """What a point costs; None if leaving the part out loses none."""
        lost = -self.change.lift if self.change else 0.0
        return self.tokens / (100 * lost) if lost >= _LEAST_LOSS else None


@dataclass(frozen=True)
class Version:
    """A shorter skill, measured on cases that no choice was based on."""

    tokens: int
    lift: Lift | None  # over the baseline
    change: Lift | None  # against the whole skill, adjusted if several were compared
    parts: tuple[str, ...] = ()  # that were left out
    folder: str = ""  # where it was written
    cases: int = 0  # that it was measured on
    cases_needed: int | None = None  # that would tell whether more than the margin is lost


@dataclass(frozen=True)
class Parts:
    """What the parts of a skill earn, for an agent on a model."""

    skill: str
    model: str  # the label
    tokens: int  # of the whole skill
    lift: Lift | None  # of the whole skill
    parts: tuple[PartEffect, ...]
    versions: tuple[Version, ...] = ()  # shorter ones: of --apply, or the curve of distill
    held_out: Lift | None = None  # of the whole skill, on the cases of the versions
    margin: float = MARGIN  # a loss of less does not count
    trials: int = 0
    cost: float | None = None
    agent: str = CHAT
    by: By = "section"
    not_measured: Mapping[str, str] = field(default_factory=dict)  # parts, and why
    errored: int = 0  # trials without an answer
    error: str = ""  # why, mostly
    notes: tuple[str, ...] = ()  # what became of --apply

    @property
    def helps(self) -> bool:
        """Whether the whole skill is shown to help; else no part could be shown to be missed."""
        return self.lift is not None and self.lift.low > 0

    @property
    def sorted(self) -> list[PartEffect]:
        """The dearest points first; those that cost nothing but tokens before them."""
        return sorted(self.parts, key=_dearness)

    @property
    def complete(self) -> bool:
        return all(one.standing(self.margin) != "incomplete" for one in self.parts)

    @property
    def could_go(self) -> list[PartEffect]:
        return [one for one in self.sorted if one.could_go]


def _dearness(part: PartEffect) -> tuple[int, float, int]:
    price = part.tokens_per_point
    if part.change is None:
        return 2, 0.0, part.line
    return (0, -part.tokens, part.line) if price is None else (1, -price, part.line)


# In words.


def sentences(found: Parts) -> list[str]:
    """All that is known of the parts, one by one, then what they come to."""
    return [*(part_sentence(one, found.margin) for one in found.sorted), *conclusions(found)]


def part_sentence(part: PartEffect, margin: float) -> str:
    """``Troubleshooting (212 tokens): no loss shown (-4 to +6)``."""
    return f"{_name(part.name)} ({counted(part.tokens, 'token')}): {said_of(part, margin)}"


def said_of(part: PartEffect, margin: float) -> str:
    """What leaving out a part does, in a few words."""
    change, standing = part.change, part.standing(margin)
    if standing == "incomplete" or change is None:
        return "incomplete, as answers are missing"
    bounds = f"({points(change.low)} to {points(change.high)})"
    if standing == "loses":
        return f"{points(change.lift)} {bounds}"
    if change.low > 0:
        return f"better without it, {points(change.lift)} {bounds}"
    if standing == "not known" and part.effect.cases_needed is None:
        return f"not known {bounds}: no number of cases that anyone writes would tell"
    return loss_words(change, margin, part.effect.cases_needed)


def conclusions(found: Parts) -> list[str]:
    """What all parts come to: the last line is what to remember."""
    lines = [f"{_name(name)} was not left out: {why}" for name, why in found.not_measured.items()]
    if found.parts:
        lines += _missing(found)
        if found.complete or found.could_go:
            lines.append(_what_could_go(found))
    lines += found.notes
    return lines


def _missing(found: Parts) -> list[str]:
    missing = [one for one in found.parts if one.standing(found.margin) == "incomplete"]
    if not missing:
        return []
    why = f": {one_line(found.error, 200)}" if found.error else ""
    of = f"{len(missing):,} of {counted(len(found.parts), 'part')}"
    return [f"Incomplete: {counted(found.errored, 'trial')} without an answer, in {of}{why}"]


def _what_could_go(found: Parts) -> str:
    margin = f"{points(found.margin).lstrip('+')} points"
    if not found.helps:
        return f"{_not_helping(found)}, so they can't tell which parts are missed"
    if going := found.could_go:
        each = " (each by itself)" if len(going) > 1 else ""
        return (
            f"Could go{each}: {_names(going)}; {_sizes(going, found)}. "
            f"A loss of {margin} or more is ruled out, a smaller one is not"
        )
    text = f"Nothing is shown to be free to go: no part rules out a loss of {margin}"
    cases = max((one.effect.cases for one in found.parts), default=0)
    needed = [one.effect.cases_needed for one in found.parts if one.effect.cases_needed]
    if needed:
        return f"{text} with {counted(cases, 'case')}; about {min(needed):,} would tell of one"
    return text


def _sizes(going: Sequence[PartEffect], found: Parts) -> str:
    """An agent has files beside the text; in a plain completion, all is one text."""
    files = [one for one in going if one.kind == "file" and found.agent != CHAT]
    text, beside = (
        sum(one.tokens for one in going if (one in files) == is_file) for is_file in (False, True)
    )
    whole = f" of about {found.tokens:,}" if text <= found.tokens else ""
    sizes = [f"{counted(text, 'token')}{whole}"] if text else []
    sizes += [f"{counted(beside, 'token')} of files beside it"] if files else []
    return ", ".join(sizes)


def _not_helping(found: Parts) -> str:
    if found.lift is None:
        return "The skill itself could not be measured on these cases"
    lift = found.lift
    span = f"{points(lift.lift)} points, {points(lift.low)} to {points(lift.high)}"
    what = "hurts" if lift.high < 0 else "is not shown to help"
    return f"The skill itself {what} on these cases ({span})"


def _name(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


def _names(parts: Sequence[PartEffect]) -> str:
    # Paragraphs have commas of their own.
    names = [(_name(one.name), one.kind) for one in parts[:_MOST_NAMES]]
    listed = [f'"{name}"' if kind == "paragraph" else name for name, kind in names]
    more = len(parts) - len(listed)
    return ", ".join([*listed, *([f"{more:,} more"] if more else [])])
