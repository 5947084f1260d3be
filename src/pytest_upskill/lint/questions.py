"""Questions of a file of cases side by side: near-duplicates, and how many there are."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from ..skills.cases import Case
from ..stats.distributions import normal_quantile
from ..stats.intervals import LEVEL
from ..stats.planning import POWER, fewest_cases

_ALIKE: Final = 0.9  # the share of their words that near-duplicates have in common, in order
_SHARED: Final = 0.8  # and the least share of the set of both's words that they then have
_WORDS_COMPARED: Final = 2000  # comparing takes time by the square of them
_WORDS: Final = re.compile(r"\w+|[^\w\s]")


def near_duplicates(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Each case that is much like one before it, with that one.

    Two questions about different files, or in different conversations, are different.
    """
    words = [_WORDS.findall(case.input.casefold())[:_WORDS_COMPARED] for case in cases]
    sets = [frozenset(one) for one in words]
    frequency = Counter(word for one in sets for word in one)
    seen: dict[tuple[object, ...], list[int]] = {}
    for number, case in enumerate(cases):
        same_around = (case.system, case.files, case.earlier)
        rare = sorted(sets[number], key=lambda word: (frequency[word], word))
        # Sets that share so much of their words share one of so few of the rarest of them, too:
        # only these are compared.
        marks = rare[: len(rare) - math.ceil(_SHARED * len(rare)) + 1]
        before = dict.fromkeys(
            other for mark in marks for other in seen.get((*same_around, mark), ())
        )
        close = (other for other in before if _share_most(sets[other], sets[number]))
        twin = next((other for other in close if _alike(words[other], words[number])), None)
        if twin is not None:
            yield cases[twin], case
            continue  # the first of many that are alike stands for all
        for mark in marks:
            seen.setdefault((*same_around, mark), []).append(number)


def _share_most(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= _SHARED * (len(one) + len(other) - shared)


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE


def cases_needed(lift: float) -> tuple[int, int]:
    """How many cases show this lift with a power of 80 %: if none gets worse, and at the worst.

    Each case gives a difference of -1, 0 or 1, of which the lift is the mean. A two-sided test at
    5 % needs n = (z_alpha/2 + z_power)² · variance / lift² of them (Miller 2024, without the part
    of the runs). With a share q of cases that differ, the variance is q - lift²: q is the lift
    itself if the skill makes no case worse, and 1 at the worst.
    """
    reach = (normal_quantile((1 + LEVEL) / 2) + normal_quantile(POWER)) ** 2 / lift**2
    needed = [math.ceil(reach * (share - lift**2)) for share in (lift, 1.0)]
    return max(needed[0], fewest_cases()), max(needed[1], fewest_cases())


def asked(cases: Iterable[Case]) -> int:
    return sum(case.skip is None for case in cases)
