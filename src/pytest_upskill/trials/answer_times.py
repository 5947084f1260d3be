"""When answers were given: arms that are compared must have been asked at about the same time.

A model may change from one day to the next. If the arms of a case are of different days, that
change looks like an effect of the skill.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from .answer import Answer
from .trial import Question


def dated(answer: Answer) -> Answer:
    """An answer that has just been given."""
    return replace(answer, asked_at=int(time.time()))


def are_apart(times: Iterable[int | None], max_age: float) -> bool:
    """Whether answers are too far apart to be compared; times that are not known don't count."""
    known = [asked_at for asked_at in times if asked_at is not None]
    return bool(known) and max(known) - min(known) > max_age


def renewed(
    questions: Sequence[Question],
    asked_at: Callable[[Question], int | None],
    max_age: float,
) -> list[Question]:
    """The questions, with those marked whose stored answer is too old to be compared.

    ``asked_at`` is None if there is no stored answer. In a group of compared questions, if one has
    none, or two are too far apart, everything that is not of today is asked again: also what has a
    time in the future, where a clock was wrong.
    """
    groups: dict[Hashable, dict[str, Question]] = {}
    for question in questions:
        groups.setdefault(question.compared, {})[question.key] = question
    outdated, today = set[str](), time.time()
    for group in groups.values():
        if len(group) == 1:
            continue
        times = {key: asked_at(question) for key, question in group.items()}
        if None in times.values() or are_apart(times.values(), max_age):
            outdated |= {
                key
                for key, given_at in times.items()
                if given_at is not None and abs(today - given_at) > max_age
            }
    return [
        replace(question, renew=True) if question.key in outdated else question
        for question in questions
    ]
