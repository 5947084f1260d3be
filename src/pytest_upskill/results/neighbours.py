"""The matrix: what skills do to each other."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import computed_field

from .._util.texts import counted, one_line, span, unsigned_points
from ..stats import Lift
from ..trials.number_types import Runs, Whole
from ..trials.subject import WithSubject
from .arm_comparison import points_words
from .effects import Effect, LiftValue, StudyTotals

PairVerdict = Literal["hurts", "helps", "unknown", "incomplete"]

_LONGEST_NAME: Final = 60  # of a skill inside of a sentence
_MOST_NAMES: Final = 3
MATTERS: Final = 0.1  # the smallest change that nobody would want to miss


@dataclass(frozen=True)
class Openings:
    """Which skills were opened in trials of a skill, and which of them first."""

    trials: Whole = 0  # that tell
    opened: Mapping[str, Whole] = field(default_factory=dict)  # trials, by skill
    first: Mapping[str, Whole] = field(default_factory=dict)

    def share(self, skill: str) -> float:
        return self.opened.get(skill, 0) / self.trials if self.trials else 0.0

    def of(self, skill: str) -> str:
        """``6 of 10 trials``."""
        return f"{self.opened.get(skill, 0):,} of {counted(self.trials, 'trial')}"


@dataclass(frozen=True)
class Alone:
    """A skill on its own cases, without any other of the matrix."""

    skill: str
    lift: LiftValue | None
    cases: Whole
    runs: Whole
    openings: Openings = Openings()


@dataclass(frozen=True)
class Neighbour:
    """A skill on its own cases, with another installed in both arms."""

    skill: str
    other: str | None  # None: all others together
    effect: Effect  # its lift with the other, less its lift alone
    lift: LiftValue | None  # with the other
    openings: Openings = Openings()
    cases_to_tell: Whole | None = None  # whether it is a change that matters; None: too many

    @computed_field
    @property
    def verdict(self) -> PairVerdict:
        if self.effect.lift is None or self.effect.state == "incomplete":
            return "incomplete"
        if self.effect.state != "shown":
            return "unknown"
        return "helps" if self.effect.lift.lift > 0 else "hurts"


@dataclass(frozen=True)
class Matrix(StudyTotals, WithSubject):
    """All ordered pairs of skills, for an agent on a model."""

    agent: str
    model: str
    skills: tuple[str, ...]
    alone: tuple[Alone, ...]  # the skills with cases
    pairs: tuple[Neighbour, ...]
    listing: Mapping[str, Whole]  # by skill: tokens of its entry in every request, estimated
    listing_seen: Mapping[str, Whole]  # the same as the model counted, as far as trials tell
    not_measured: Mapping[str, str]  # skills that are only neighbours, and why
    most_runs: Runs = 1

    def pair(self, skill: str, other: str | None) -> Neighbour | None:
        pairs = (pair for pair in self.pairs if (pair.skill, pair.other) == (skill, other))
        return next(pairs, None)

    @property
    def columns(self) -> tuple[str | None, ...]:
        """The neighbours of any skill, then all together if that is another thing."""
        neighbours = {pair.other for pair in self.pairs}
        return tuple(name for name in (*self.skills, None) if name in neighbours)

    def pairs_that(self, *verdicts: PairVerdict) -> list[Neighbour]:
        """The pairs with one of these verdicts, the worst first."""
        pairs = [pair for pair in self.pairs if pair.verdict in verdicts]
        return sorted(pairs, key=lambda pair: pair.effect.lift.lift if pair.effect.lift else 0.0)

    def alone_of(self, skill: str) -> Alone | None:
        return next((row for row in self.alone if row.skill == skill), None)


def pair_name(skill: str, other: str | None) -> str:
    """The name of a contrast: quoted, so that no two pairs of names are the same."""
    beside = "all others" if other is None else json.dumps(other, ensure_ascii=False)
    return f"{json.dumps(skill, ensure_ascii=False)} with {beside}"


def matrix_sentences(matrix: Matrix, most: int | None = None) -> list[str]:
    """All that the matrix says, the worst first; of each kind, at most so many pairs."""
    return [
        *shown_sentences(matrix, most),
        *open_sentences(matrix, most),
        *neighbour_only(matrix),
        listing_sentence(matrix),
    ]


def shown_sentences(matrix: Matrix, most: int | None = None) -> list[str]:
    """A sentence for each pair that hurts or helps, the worst first."""
    pairs = matrix.pairs_that("hurts", "helps")
    lines = [_shown_sentence(matrix, pair) for pair in pairs[:most]]
    if hidden := pairs[len(lines) :]:
        lines.append(f"{counted(len(hidden), 'more pair')}: {_counted_verdicts(hidden)}")
    return lines


def open_sentences(matrix: Matrix, most: int | None = None) -> list[str]:
    """What is not known, and what it would take: at most so many pairs by themselves."""
    unknown = matrix.pairs_that("unknown")
    unknown.sort(key=lambda pair: pair.effect.cases_needed or 10**9)
    lines = [_unknown_sentence(pair) for pair in unknown[:most]]
    if hidden := len(unknown) - len(lines):
        lines.append(f"{counted(hidden, 'more pair')}: no change shown")
    return [*_incomplete_sentence(matrix, most), *lines]


def conclusion(matrix: Matrix) -> str:
    """What all pairs come to, for those who read one line."""
    total = counted(len(matrix.pairs), "pair")
    if matrix.pairs_that("hurts", "helps"):
        return f"Of {total}: {_counted_verdicts(matrix.pairs)}"
    caveat = "which does not mean that nothing happens"
    if missing := len(matrix.pairs_that("incomplete")):
        caveat = f"but answers are missing for {missing:,}"
    none = "The only pair is not" if len(matrix.pairs) == 1 else f"None of {total} is"
    return f"{none} shown to hurt or to help, {caveat}"


def _counted_verdicts(pairs: Sequence[Neighbour]) -> str:
    """``2 hurt, 1 helps``."""
    counts = Counter(pair.verdict for pair in pairs)
    plurals = {"hurts": "hurt", "helps": "help"}
    order: tuple[PairVerdict, ...] = ("hurts", "helps", "unknown", "incomplete")
    return ", ".join(
        f"{counts[verdict]:,} {plurals.get(verdict, verdict) if counts[verdict] > 1 else verdict}"
        for verdict in order
        if counts[verdict]
    )


def neighbour_only(matrix: Matrix) -> list[str]:
    """Skills that were not tested themselves."""
    reasons = matrix.not_measured.items()
    return [f"{_name(skill)} is only a neighbour: {reason}" for skill, reason in reasons]


def listing_sentence(matrix: Matrix) -> str:
    """What the list of skills costs every request."""
    total = sum(matrix.listing.values())
    text = (
        f"The list of {counted(len(matrix.listing), 'skill')} costs every request about "
        f"{counted(total, 'token')}"
    )
    seen = matrix.listing_seen
    if seen and len(seen) == len(matrix.listing):
        text += f" by our estimate, {sum(seen.values()):,} by the model's count"
    return text


def _name(skill: str) -> str:
    return one_line(skill, _LONGEST_NAME)


def _installed_words(matrix: Matrix, pair: Neighbour) -> str:
    if pair.other is None:
        number = len(matrix.skills) - 1
        return f"{'both' if number == 2 else f'all {number}'} others are installed"
    return f"{_name(pair.other)} is installed"


def _shown_sentence(matrix: Matrix, pair: Neighbour) -> str:
    lift = pair.effect.lift
    assert lift is not None
    verb, low, high = _gain_or_loss(lift)
    change = f"{verb} {_size(abs(lift.lift))} ({span(low, high, unsigned_points)})"
    text = f"{_name(pair.skill)} {change} when {_installed_words(matrix, pair)}"
    return text + _opening_words(matrix, pair)


def _gain_or_loss(lift: Lift) -> tuple[str, float, float]:
    if lift.lift > 0:
        return "gains", lift.low, lift.high
    return "loses", -lift.high, -lift.low


def _opening_words(matrix: Matrix, pair: Neighbour) -> str:
    """What was opened, which may explain the effect."""
    openings, alone = pair.openings, matrix.alone_of(pair.skill)
    if not openings.trials:
        return ""
    rivals = {name: count for name, count in openings.first.items() if name != pair.skill}
    if count := sum(rivals.values()):
        share = f"opened first in {count:,} of {openings.trials:,}"
        if pair.other is not None:
            return f": it is {share}"
        return f": another is {share} ({_counts(rivals)})"
    opened = f"{_name(pair.skill)} is opened in {openings.of(pair.skill)}"
    if alone is None or not alone.openings.trials:
        return f"; {opened}"
    return f"; {opened}, and in {alone.openings.of(pair.skill)} alone"


def _counts(by_name: Mapping[str, int]) -> str:
    names = sorted(by_name, key=lambda name: (-by_name[name], name))
    listed = [f"{_name(name)} {by_name[name]:,}" for name in names[:_MOST_NAMES]]
    hidden = sum(by_name[name] for name in names[_MOST_NAMES:])
    return ", ".join([*listed, *([f"others {hidden:,}"] if hidden else [])])


def _unknown_sentence(pair: Neighbour) -> str:
    lift, effect = pair.effect.lift, pair.effect
    assert lift is not None
    change = f"no change shown, {points_words(lift)} over {counted(effect.cases, 'case')}"
    if effect.state == "dropped":
        change += f", dropped after {counted(effect.runs, 'run')}"
    return f"{_pair_words(pair)}: {change}; {needed_words(pair)}"


def needed_words(pair: Neighbour) -> str:
    """How many cases it would take to know more."""
    effect = pair.effect
    if effect.cases_needed:
        return f"about {counted(effect.cases_needed, 'case')} would show one of this size"
    if pair.cases_to_tell is None:
        return "it would take more cases than is practical to tell"
    if pair.cases_to_tell <= effect.cases:
        return f"one of more than {_size(MATTERS)} is unlikely"
    cases = counted(pair.cases_to_tell, "case")
    return f"about {cases} would tell whether it is more than {_size(MATTERS)}"


def _incomplete_sentence(matrix: Matrix, most: int | None) -> list[str]:
    """One line for all pairs, since the cause is mostly the same."""
    pairs = [_pair_words(pair) for pair in matrix.pairs_that("incomplete")]
    if not pairs:
        return []
    hidden = len(pairs) - len(pairs[:most])
    names = ", ".join([*pairs[:most], *([f"{hidden:,} more"] if hidden else [])])
    reason = f": {one_line(matrix.error, 200)}" if matrix.error else ""
    return [f"Incomplete, as answers are missing{reason} ({names})"]


def _pair_words(pair: Neighbour) -> str:
    return f"{_name(pair.skill)} with {'all others' if pair.other is None else _name(pair.other)}"


def _size(share: float) -> str:
    number = round(100 * share)
    return f"{number:,} {'point' if number == 1 else 'points'}"
