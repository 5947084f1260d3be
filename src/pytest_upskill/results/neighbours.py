"""The matrix: what skills do to each other."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from .._util.texts import counted, one_line
from ..stats import Lift
from .arm_comparison import points_words
from .effects import Effect

Word = Literal["hurts", "helps", "unknown", "incomplete"]

_LONGEST_NAME: Final = 60  # of a skill inside of a sentence
_MOST_NAMES: Final = 3
MATTERS: Final = 0.1  # of a change that nobody would want to miss


@dataclass(frozen=True)
class Openings:
    """Which skills were opened in trials of a skill, and which of them first."""

    trials: int = 0  # that tell
    opened: Mapping[str, int] = field(default_factory=dict)  # trials, by skill
    first: Mapping[str, int] = field(default_factory=dict)

    def share(self, skill: str) -> float:
        return self.opened.get(skill, 0) / self.trials if self.trials else 0.0

    def of(self, skill: str) -> str:
        """``6 of 10 trials``."""
        return f"{self.opened.get(skill, 0):,} of {counted(self.trials, 'trial')}"


@dataclass(frozen=True)
class Alone:
    """A skill on its own cases, without any other of the matrix."""

    skill: str
    lift: Lift | None
    cases: int
    runs: int
    openings: Openings = Openings()


@dataclass(frozen=True)
class Neighbour:
    """A skill on its own cases, with another installed in both arms."""

    skill: str
    other: str | None  # None: all others together
    effect: Effect  # its lift with the other, less its lift alone
    lift: Lift | None  # with the other
    openings: Openings = Openings()
    cases_to_tell: int | None = None  # whether it is a change that matters; None: too many

    @property
    def word(self) -> Word:
        if self.effect.lift is None or self.effect.state == "incomplete":
            return "incomplete"
        if self.effect.state != "shown":
            return "unknown"
        return "helps" if self.effect.lift.lift > 0 else "hurts"


@dataclass(frozen=True)
class Matrix:
    """All ordered pairs of skills, for an agent on a model."""

    agent: str
    model: str  # the label
    skills: tuple[str, ...]
    alone: tuple[Alone, ...]  # the skills with cases
    pairs: tuple[Neighbour, ...]
    listing: Mapping[str, int]  # by skill: tokens of its entry in every request, estimated
    listing_seen: Mapping[str, int]  # the same as the model counted, as far as trials tell
    not_measured: Mapping[str, str]  # skills that are only neighbours, and why
    trials: int = 0
    errored: int = 0  # of these
    error: str = ""  # why, mostly
    most_runs: int = 1
    cost: float | None = None

    def pair(self, skill: str, other: str | None) -> Neighbour | None:
        return next((one for one in self.pairs if (one.skill, one.other) == (skill, other)), None)

    @property
    def columns(self) -> tuple[str | None, ...]:
        """The neighbours of any skill, then all together if that is another thing."""
        others = {one.other for one in self.pairs}
        return tuple(one for one in (*self.skills, None) if one in others)

    def found(self, *words: Word) -> list[Neighbour]:
        """The pairs with one of these words, the worst first."""
        own = [one for one in self.pairs if one.word in words]
        return sorted(own, key=lambda one: one.effect.lift.lift if one.effect.lift else 0.0)

    def alone_of(self, skill: str) -> Alone | None:
        return next((one for one in self.alone if one.skill == skill), None)


def pair_name(skill: str, other: str | None) -> str:
    """The name of a contrast: quoted, so that no two pairs of names are the same."""
    beside = "all others" if other is None else json.dumps(other, ensure_ascii=False)
    return f"{json.dumps(skill, ensure_ascii=False)} with {beside}"


def sentences(matrix: Matrix, most: int | None = None) -> list[str]:
    """All that the matrix says, the worst first; of each kind, at most so many pairs."""
    return [
        *shown_sentences(matrix, most),
        *open_sentences(matrix, most),
        *neighbour_only(matrix),
        listing_sentence(matrix),
    ]


def shown_sentences(matrix: Matrix, most: int | None = None) -> list[str]:
    """A sentence for each pair that hurts or helps, the worst first."""
    found = matrix.found("hurts", "helps")
    lines = [_shown(matrix, one) for one in found[:most]]
    more = found[len(lines) :]
    rest = _counted_words(more)
    return [*lines, f"{counted(len(more), 'more pair')}: {rest}"] if more else lines


def open_sentences(matrix: Matrix, most: int | None = None) -> list[str]:
    """What is not known, and what it would take: at most so many pairs by themselves."""
    unknown = matrix.found("unknown")
    unknown.sort(key=lambda one: one.effect.cases_needed or 10**9)
    lines = [_unknown(one) for one in unknown[:most]]
    if more := len(unknown) - len(lines):
        lines.append(f"{counted(more, 'more pair')}: no change shown")
    return [*_incomplete(matrix, most), *lines]


def conclusion(matrix: Matrix) -> str:
    """What all pairs come to, for those who read one line."""
    total = counted(len(matrix.pairs), "pair")
    if matrix.found("hurts", "helps"):
        return f"Of {total}: {_counted_words(matrix.pairs)}"
    rest = "which does not mean that nothing happens"
    if missing := len(matrix.found("incomplete")):
        rest = f"but answers are missing for {missing:,}"
    none = "The only pair is not" if len(matrix.pairs) == 1 else f"None of {total} is"
    return f"{none} shown to hurt or to help, {rest}"


def _counted_words(pairs: Sequence[Neighbour]) -> str:
    """``2 hurt, 1 helps``."""
    found = Counter(one.word for one in pairs)
    some = {"hurts": "hurt", "helps": "help"}
    order: tuple[Word, ...] = ("hurts", "helps", "unknown", "incomplete")
    return ", ".join(
        f"{found[word]:,} {some.get(word, word) if found[word] > 1 else word}"
        for word in order
        if found[word]
    )


def neighbour_only(matrix: Matrix) -> list[str]:
    """Skills that were not tested themselves."""
    return [f"{_name(one)} is only a neighbour: {why}" for one, why in matrix.not_measured.items()]


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


def _with(matrix: Matrix, one: Neighbour) -> str:
    if one.other is None:
        number = len(matrix.skills) - 1
        return f"{'both' if number == 2 else f'all {number}'} others are installed"
    return f"{_name(one.other)} is installed"


def _shown(matrix: Matrix, one: Neighbour) -> str:
    lift = one.effect.lift
    assert lift is not None
    low, high = (lift.low, lift.high) if lift.lift > 0 else (-lift.high, -lift.low)
    size = _size(abs(lift.lift))
    span = f"({_plain(low)} to {_plain(high)})"
    did = "gains" if lift.lift > 0 else "loses"
    text = f"{_name(one.skill)} {did} {size} {span} when {_with(matrix, one)}"
    return text + _why(matrix, one)


def _why(matrix: Matrix, one: Neighbour) -> str:
    """What was opened, which may explain it."""
    here, alone = one.openings, matrix.alone_of(one.skill)
    if not here.trials:
        return ""
    others = {name: count for name, count in here.first.items() if name != one.skill}
    if count := sum(others.values()):
        if one.other is not None:
            return f": it is opened first in {count:,} of {here.trials:,}"
        return f": another is opened first in {count:,} of {here.trials:,} ({_counts(others)})"
    opened = f"{_name(one.skill)} is opened in {here.of(one.skill)}"
    if alone is None or not alone.openings.trials:
        return f"; {opened}"
    return f"; {opened}, and in {alone.openings.of(one.skill)} alone"


def _counts(by_name: Mapping[str, int]) -> str:
    names = sorted(by_name, key=lambda name: (-by_name[name], name))
    listed = [f"{_name(name)} {by_name[name]:,}" for name in names[:_MOST_NAMES]]
    more = sum(by_name[name] for name in names[_MOST_NAMES:])
    return ", ".join([*listed, *([f"others {more:,}"] if more else [])])


def _unknown(one: Neighbour) -> str:
    lift, effect = one.effect.lift, one.effect
    assert lift is not None
    what = f"no change shown, {points_words(lift)} over {counted(effect.cases, 'case')}"
    if effect.state == "dropped":
        what += f", dropped after {counted(effect.runs, 'run')}"
    return f"{_pair(one)}: {what}; {needed(one)}"


def needed(one: Neighbour) -> str:
    """What it would take to know more, in words."""
    effect = one.effect
    if effect.cases_needed:
        return f"about {counted(effect.cases_needed, 'case')} would show one of this size"
    if one.cases_to_tell is None:
        return "it would take more cases than is practical to tell"
    if one.cases_to_tell <= effect.cases:
        return f"one of more than {_size(MATTERS)} is unlikely"
    cases = counted(one.cases_to_tell, "case")
    return f"about {cases} would tell whether it is more than {_size(MATTERS)}"


def _incomplete(matrix: Matrix, most: int | None) -> list[str]:
    """One line for all pairs, since the cause is mostly the same."""
    found = [_pair(one) for one in matrix.found("incomplete")]
    if not found:
        return []
    more = len(found) - len(found[:most])
    names = ", ".join([*found[:most], *([f"{more:,} more"] if more else [])])
    why = f": {one_line(matrix.error, 200)}" if matrix.error else ""
    return [f"Incomplete, as answers are missing{why} ({names})"]


def _pair(one: Neighbour) -> str:
    return f"{_name(one.skill)} with {'all others' if one.other is None else _name(one.other)}"


def _size(share: float) -> str:
    number = round(100 * share)
    return f"{number:,} {'point' if number == 1 else 'points'}"


def _plain(share: float) -> str:
    """Points of a loss or gain, which has a sign only if it might be the other way."""
    return f"{round(100 * share):,}"
