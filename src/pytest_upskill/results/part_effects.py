"""Parts of a skill: what each one gains, what it costs, and which could go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import computed_field

from .._util.texts import counted, one_line, points, span, unsigned_points
from ..skills.skill_parts import By, PartKind
from ..stats import Lift
from ..trials.number_types import Flag, Number, Share, Whole
from ..trials.subject import CHAT, WithPair
from .arm_comparison import span_words
from .effects import MARGIN, Effect, LiftValue, LossStanding, StudyTotals, loss_standing, loss_words

_LONGEST_NAME: Final = 80
_MOST_NAMES: Final = 6
_LEAST_LOSS: Final = 0.001  # below that, tokens per point mean nothing


@dataclass(frozen=True)
class SavedTokens:
    """Tokens of an answer, and of what was asked, that leaving a part out saves: a mean."""

    tokens: Number
    low: Number | None  # of the 95 % interval; None if there are too few cases
    high: Number | None


@dataclass(frozen=True)
class PartEffect:
    """A part of a skill, and what leaving it out does."""

    name: str  # a heading, the first words of a paragraph, or a path
    kind: PartKind
    line: Whole  # in SKILL.md; 0 for a file
    tokens: Whole
    effect: Effect  # of leaving it out: below 0 if it is missed
    could_go: Flag = False  # a loss that counts is ruled out, and the whole skill is shown to help
    saved: SavedTokens | None = None  # as the model counts; None if it does not

    @property
    def change(self) -> Lift | None:
        return self.effect.lift

    def standing(self, margin: float) -> LossStanding | Literal["incomplete"]:
        if self.effect.state == "incomplete" or self.change is None:
            return "incomplete"
        return loss_standing(self.change, margin)

    @computed_field
    @property
    def tokens_per_point(self) -> float | None:
        """What a point costs; None if leaving the part out loses none."""
        loss = -self.change.lift if self.change else 0.0
        return self.tokens / (100 * loss) if loss >= _LEAST_LOSS else None


@dataclass(frozen=True)
class ShorterVersion:
    """A shorter skill, measured on cases that no choice was based on."""

    tokens: Whole
    lift: LiftValue | None  # over the baseline
    change: LiftValue | None  # against the whole skill, adjusted if several were compared
    parts: tuple[str, ...] = ()  # that were left out
    folder: str = ""  # where it was written
    cases: Whole = 0  # that it was measured on
    cases_needed: Whole | None = None  # that would tell whether more than the margin is lost


@dataclass(frozen=True)
class Parts(StudyTotals, WithPair):
    """What the parts of a skill earn, for an agent on a model."""

    skill: str
    model: str
    tokens: Whole  # of the whole skill
    lift: LiftValue | None  # of the whole skill
    parts: tuple[PartEffect, ...]
    versions: tuple[ShorterVersion, ...] = ()  # shorter ones: of --apply, or the curve of distill
    held_out: LiftValue | None = None  # of the whole skill, on the cases of the versions
    margin: Share = MARGIN  # a loss of less does not count
    agent: str = CHAT
    by: By = "section"
    not_measured: Mapping[str, str] = field(default_factory=dict)  # parts, and why
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
        return all(part.standing(self.margin) != "incomplete" for part in self.parts)

    @property
    def could_go(self) -> list[PartEffect]:
        return [part for part in self.sorted if part.could_go]


def _dearness(part: PartEffect) -> tuple[int, float, int]:
    price = part.tokens_per_point
    if part.change is None:
        return 2, 0.0, part.line
    return (0, -part.tokens, part.line) if price is None else (1, -price, part.line)


# In words.


def part_sentence(part: PartEffect, margin: float) -> str:
    """``Troubleshooting (212 tokens): no loss shown (-4 to +6)``."""
    tokens = counted(part.tokens, "token")
    return f"{_name(part.name)} ({tokens}): {part_loss_words(part, margin)}"


def part_loss_words(part: PartEffect, margin: float) -> str:
    """What leaving out a part does, in a few words."""
    change, standing = part.change, part.standing(margin)
    if standing == "incomplete" or change is None:
        return "incomplete, as answers are missing"
    if standing == "loses":
        return span_words(change)
    if change.low > 0:
        return f"better without it, {span_words(change)}"
    if standing == "not known" and part.effect.cases_needed is None:
        bounds = span(change.low, change.high)
        return f"not known ({bounds}): no practical number of cases would tell"
    return loss_words(change, margin, part.effect.cases_needed)


def part_conclusions(study: Parts) -> list[str]:
    """What all parts come to: the last line is what to remember."""
    lines = [
        f"{_name(name)} was not left out: {reason}" for name, reason in study.not_measured.items()
    ]
    if study.parts:
        lines += _incomplete_words(study)
        if study.complete or study.could_go:
            lines.append(_what_could_go(study))
    return [*lines, *study.notes]


def _incomplete_words(study: Parts) -> list[str]:
    missing = [part for part in study.parts if part.standing(study.margin) == "incomplete"]
    if not missing:
        return []
    reason = f": {one_line(study.error, 200)}" if study.error else ""
    parts = f"{len(missing):,} of {counted(len(study.parts), 'part')}"
    return [f"Incomplete: {counted(study.errored, 'trial')} without an answer, in {parts}{reason}"]


def _what_could_go(study: Parts) -> str:
    margin = f"{unsigned_points(study.margin)} points"
    if not study.helps:
        return f"{_not_helping(study)}, so they can't tell which parts are missed"
    if going := study.could_go:
        each = " (each by itself)" if len(going) > 1 else ""
        return (
            f"Could go{each}: {_names(going)}; {_sizes(going, study)}. "
            f"A loss of {margin} or more is ruled out, a smaller one is not"
        )
    text = f"Nothing is shown to be free to go: no part rules out a loss of {margin}"
    cases = max((part.effect.cases for part in study.parts), default=0)
    needed = [part.effect.cases_needed for part in study.parts if part.effect.cases_needed]
    if needed:
        return f"{text} with {counted(cases, 'case')}; about {min(needed):,} would tell of one"
    return text


def _sizes(going: Sequence[PartEffect], study: Parts) -> str:
    """An agent has files beside the text; in a plain completion, all is one text."""
    files = [part for part in going if part.kind == "file" and study.agent != CHAT]
    text, beside = (
        sum(part.tokens for part in going if (part in files) == is_file)
        for is_file in (False, True)
    )
    total = f" of about {study.tokens:,}" if text <= study.tokens else ""
    sizes = [f"{counted(text, 'token')}{total}"] if text else []
    sizes += [f"{counted(beside, 'token')} of files beside it"] if files else []
    return ", ".join(sizes)


def _not_helping(study: Parts) -> str:
    if study.lift is None:
        return "The skill itself could not be measured on these cases"
    lift = study.lift
    words = f"{points(lift.lift)} points, {span(lift.low, lift.high)}"
    verdict = "hurts" if lift.high < 0 else "is not shown to help"
    return f"The skill itself {verdict} on these cases ({words})"


def _name(name: str) -> str:
    return one_line(name, _LONGEST_NAME)


def _names(parts: Sequence[PartEffect]) -> str:
    # Paragraphs have commas of their own.
    names = [(_name(part.name), part.kind) for part in parts[:_MOST_NAMES]]
    listed = [f'"{name}"' if kind == "paragraph" else name for name, kind in names]
    hidden = len(parts) - len(listed)
    return ", ".join([*listed, *([f"{hidden:,} more"] if hidden else [])])
