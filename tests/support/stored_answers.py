"""Answers to put into a store, and as they come out of it."""

import sqlite3
from dataclasses import replace
from pathlib import Path

from pytest_upskill.engine.store import Store
from pytest_upskill.trials.answer import Answer, AnswerFile, Usage
from pytest_upskill.trials.transcript import Turn

ANSWER = Answer("gate up", Usage(10, 5, None), "end", 1.5)
WITH_EXTRAS = replace(
    ANSWER,
    files=(AnswerFile.of("a.txt", b"one"), AnswerFile.of("b.png", b"\0")),
    transcript=(Turn("call", "ls", "bash"), Turn("result", "", "bash", failed=True)),
)


def age_store(root: Path, days: float) -> None:
    """As if all answers of a project had been given so many days earlier."""
    with sqlite3.connect(root / ".upskill/answers.sqlite") as store:
        store.execute("UPDATE answers SET created = created - ?", [days * 86_400])
    store.close()


def put(store: Store, key: str, model: str, answer: Answer) -> bool:
    """Write an answer at once; returns whether that worked."""
    store.put(key, model, answer)
    return store.save()


def stored(answer: Answer) -> Answer:
    return replace(answer, stored=True)
