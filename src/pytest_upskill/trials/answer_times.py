"""When answers were given: arms that are compared must have been
asked at about the same time.

A model may change from one day to the next. If the arms of a case are of different
days, that change looks like an effect of the skill.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from .answer import Answer
from .trial import Question

T = TypeVar("T")


def dated(answer: Answer) -> Answer:
    """An answer that has just been given."""
    return replace(answer, asked_at=int(time.time()))


def are_apart(times: Iterable[int | None], max_age: float) -> bool:
    """Whether answers are too far apart to be compared;
    times that are not known don't count.
    """
    known = [asked_at for asked_at in times if asked_at is not None]
    return bool(known) and max(known) - min(known) > max_age


def outdated(
    times: Mapping[T, int | None], max_age: float, now: float | None = None
) -> list[T]:
    """Whose stored answers to ask again before they are compared with each other.

    The time is None where there is none. If one has none, or two are too far
    apart, that is everything that is not of today: also what has a time in the
    future, where a clock was wrong.
    """
    if None not in times.values() and not are_apart(times.values(), max_age):
        return []
    today = time.time() if now is None else now
    return [
        key
        for key, asked_at in times.items()
        if asked_at is not None and abs(today - asked_at) > max_age
    ]


def find_outdated(
    questions: Iterable[Question],
    asked_at: Callable[[Question], int | None],
    max_age: float,
) -> set[str]:
    """The keys of the questions whose stored answer is too old to be compared."""
    groups: dict[Hashable, dict[str, Question]] = {}
    for question in questions:
        groups.setdefault(question.compared, {})[question.key] = question
    keys: set[str] = set()
    for group in groups.values():
        if len(group) > 1:
            times = {key: asked_at(question) for key, question in group.items()}
            keys |= set(outdated(times, max_age))
    return keys
