"""A replay finds answers of the versions that they were recorded with."""

from dataclasses import replace

from pytest_upskill.engine.recording import ReplayedAnswers, recorded_versions
from pytest_upskill.trials.answer import Answer, NoAnswer
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.trial import Question, Task


def asked(text: str, version: str) -> Question:
    task = Task("claude", version)
    return Question("haiku", "", (("user", text),), 100, 1, task=task)


def answer(text: str, version: str) -> Answer:
    return Answer(text, activity=Activity(1, agents=(("claude", version),)))


RECORDED = {
    asked("old", "2.1.320").key: answer("A", "2.1.320"),
    asked("new", "2.1.325").key: answer("B", "2.1.325"),
    Question("haiku", "", (("user", "plain"),), 100, 1).key: Answer("C"),
}


def test_a_recording_tells_its_versions() -> None:
    found = recorded_versions(RECORDED.values())
    assert found == [("claude", "2.1.320"), ("claude", "2.1.325")]


def test_answers_of_several_versions_are_found() -> None:
    replayed = ReplayedAnswers(RECORDED, "answers.jsonl", "…")
    for text, found in (("old", "A"), ("new", "B")):
        for version in ("2.1.320", "2.1.325", ""):
            reply = replayed.get(asked(text, version))
            assert isinstance(reply, Answer)
            assert reply.text == found
    other = asked("old", "2.1.325")
    assert other.task
    codex = replace(other, task=replace(other.task, agent="codex"))
    assert isinstance(replayed.get(codex), NoAnswer)
