"""The check that only a judge can make: its rulings are looked up here, not asked for."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..trials.answer import Answer
from .check import AnyCheck, walk
from .kind import TEXTS, Given, Kind, Said


class ToJudge(NamedTuple):
    """Texts of a rubric, and how many votes are taken on them."""

    texts: tuple[str, ...]
    votes: int


def _judged(_: Answer, to_judge: ToJudge, given: Given) -> Iterator[Said]:
    for text in to_judge.texts:
        yield given.rulings[text]


JUDGE = Kind("judge", TEXTS, _judged)
KINDS = (JUDGE,)


def rubric_of(checks: Iterable[AnyCheck]) -> ToJudge:
    """The texts of all checks that need a judge, each once, and the most votes that one wants."""
    judged = [check.argument for check in walk(checks) if check.kind is JUDGE]
    texts = dict.fromkeys(text for to_judge in judged for text in to_judge.texts)
    return ToJudge(tuple(texts), max((to_judge.votes for to_judge in judged), default=1))
