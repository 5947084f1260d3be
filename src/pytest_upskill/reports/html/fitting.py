"""Cut answers evenly, so that the data of a page fits into it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...results.case_changes import Earlier
from ...results.run import RunResults
from .case_data import Beside, Limits, page_data
from .case_rows import CaseRow
from .markup import packed

_MOST_LOOKED_AT: Final = 20_000_000  # characters: more can't fit, however well they compress
_LEAST: Final = 200  # characters that every answer keeps while others are longer
_MARK: Final = 45  # characters of the note about what is left out
_TRIES: Final = 6
_NOTHING: Final = Limits(0, 0)


@dataclass(frozen=True)
class Fitted:
    """The data of a page, and how many of its answers are cut."""

    data: str
    cut: int
    answers: int


def fitted(
    results: RunResults, rows: Sequence[CaseRow], room: int, earlier: Earlier | None = None
) -> Fitted:
    """As much as fits into ``room`` characters; the numbers of trials are always kept."""
    lengths = _Lengths(results, rows)
    limits = lengths.limits(_MOST_LOOKED_AT)
    data = packed(page_data(results, rows, limits, earlier))
    if len(data) > room:
        bare = len(packed(page_data(results, rows, _NOTHING, earlier)))
        for _ in range(_TRIES):
            # Assume that characters compress as well as in the last try.
            share = (room - bare) / max(1, len(data) - bare)
            limits = lengths.limits(int(0.98 * lengths.kept(limits) * share))
            data = packed(page_data(results, rows, limits, earlier))
            if len(data) <= room or limits == _NOTHING:
                break
    return Fitted(data, lengths.cut(limits), lengths.answers)


class _Lengths:
    """The lengths of texts that may be cut; questions are cut last, with telling answers."""

    def __init__(self, results: RunResults, rows: Sequence[CaseRow]) -> None:
        self._ordinary: list[int] = []
        self._telling: list[int] = []
        # Texts that are cut too but don't count as answers.
        ordinary_beside: list[int] = []
        telling_beside = [len(question) for question in results.questions.values()]
        texts = [text for skill in results.skills for text in (skill.text, skill.previous_text)]
        telling_beside += [len(text) for text in texts if text]
        beside_answers = Beside(rows)
        for row in rows:
            answers = self._telling if row.is_telling else self._ordinary
            answers += [len(record.output) for record in row.records if record.output is not None]
            beside = telling_beside if row.is_telling else ordinary_beside
            beside += [len(record.output or "") for record in row.earlier or ()]
            beside += [len(text) for record in row.records for text in beside_answers.texts(record)]
        self.answers = len(self._ordinary) + len(self._telling)
        self._all_ordinary = [*self._ordinary, *ordinary_beside]
        self._all_telling = [*self._telling, *telling_beside]

    def limits(self, room: int) -> Limits:
        """The largest limits that keep at most ``room`` characters in total."""
        longest = max([0, *self._all_ordinary, *self._all_telling])
        least = min(_LEAST, longest)

        def at(step: int) -> Limits:
            """Growing: first a little of everything, then telling answers, then all."""
            if step <= least:
                return Limits(step, step)
            return Limits(max(least, least + step - longest), min(step, longest))

        steps = range(2 * longest - least + 1)
        found = bisect_right(steps, room, key=lambda step: self.kept(at(step)))
        return at(max(0, found - 1))

    def kept(self, limits: Limits) -> int:
        def kept(lengths: Sequence[int], limit: int) -> int:
            return sum(length if length <= limit else limit + _MARK for length in lengths)

        telling = kept(self._all_telling, limits.telling)
        return telling + kept(self._all_ordinary, limits.ordinary)

    def cut(self, limits: Limits) -> int:
        ordinary = sum(length > limits.ordinary for length in self._ordinary)
        return ordinary + sum(length > limits.telling for length in self._telling)
