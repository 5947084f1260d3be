"""How much of the answers a page can hold: cut evenly, those that matter most last."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...results.run import RunResults
from .data import Limits, Row, page_data
from .shell import packed

_MOST_LOOKED_AT: Final = 20_000_000  # characters: what a page could hold of the most boring text
_LEAST: Final = 200  # characters of an answer, as long as others are longer
_MARK: Final = 45  # characters that say how many are left out
_TRIES: Final = 6
_NOTHING: Final = Limits(0, 0)


@dataclass(frozen=True)
class Fitted:
    """The data of a page, and how many of its answers are not whole."""

    data: str
    cut: int
    answers: int


def fitted(results: RunResults, rows: Sequence[Row], room: int) -> Fitted:
    """As much as fits into so many characters; the numbers of every trial, whatever they take."""
    lengths = _Lengths(results, rows)
    limits = lengths.limits(_MOST_LOOKED_AT)
    data = packed(page_data(results, rows, limits))
    if len(data) > room:
        bare = len(packed(page_data(results, rows, _NOTHING)))
        for _ in range(_TRIES):
            # What a character took in the last try is about what it takes in the next.
            share = (room - bare) / max(1, len(data) - bare)
            limits = lengths.limits(int(0.98 * lengths.kept(limits) * share))
            data = packed(page_data(results, rows, limits))
            if len(data) <= room or limits == _NOTHING:
                break
    return Fitted(data, lengths.cut(limits), lengths.answers)


class _Lengths:
    """How long the texts are that may be cut. Questions are the last to be, with the telling."""

    def __init__(self, results: RunResults, rows: Sequence[Row]) -> None:
        self._questions = [len(question) for question in results.questions.values()]
        self._ordinary: list[int] = []
        self._telling: list[int] = []
        for row in rows:
            answers = self._telling if row.is_telling else self._ordinary
            answers += [len(record.output) for record in row.records if record.output is not None]
        self.answers = len(self._ordinary) + len(self._telling)

    def limits(self, room: int) -> Limits:
        """The largest that keep at most so many characters in all."""
        longest = max([0, *self._ordinary, *self._telling, *self._questions])
        least = min(_LEAST, longest)

        def at(step: int) -> Limits:
            """From nothing upwards: a little of all, all of the telling, all of all."""
            if step <= least:
                return Limits(step, step)
            return Limits(max(least, least + step - longest), min(step, longest))

        steps = range(2 * longest - least + 1)
        found = bisect_right(steps, room, key=lambda step: self.kept(at(step)))
        return at(max(0, found - 1))

    def kept(self, limits: Limits) -> int:
        def kept(lengths: Sequence[int], limit: int) -> int:
            return sum(length if length <= limit else limit + _MARK for length in lengths)

        telling = kept(self._telling, limits.telling) + kept(self._questions, limits.telling)
        return telling + kept(self._ordinary, limits.ordinary)

    def cut(self, limits: Limits) -> int:
        ordinary = sum(length > limits.ordinary for length in self._ordinary)
        return ordinary + sum(length > limits.telling for length in self._telling)
