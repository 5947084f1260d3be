"""Answers to put into a store, and as they come out of it."""

from dataclasses import replace

from pytest_upskill.trials.answer import Answer, AnswerFile, Usage
from pytest_upskill.trials.transcript import Turn

ANSWER = Answer("gate up", Usage(10, 5, None), "end", 1.5)
WITH_EXTRAS = replace(
    ANSWER,
    files=(AnswerFile.of("a.txt", b"one"), AnswerFile.of("b.png", b"\0")),
    transcript=(Turn("call", "ls", "bash"), Turn("result", "", "bash", failed=True)),
)


def stored(answer: Answer) -> Answer:
    return replace(answer, stored=True)
