"""A recording grows: a run replaces the answers to what it asked, and nothing else."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill.engine.recording import Recorded, recorded_lines
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question, Trial

TRIAL = Trial(
    "gate", "open", "haiku", "skill", 1, Question("haiku", "", (("user", "q"),), 9, 1)
)


def recorded(
    text: str, folder: str = "skills/gate", step: int = 0, **place: Any
) -> Recorded:
    return Recorded(replace(TRIAL, **place), step, text, Answer(text), folder)


def texts_after(new: Recorded) -> list[str]:
    before = recorded_lines([recorded("before")]).splitlines()
    return [
        json.loads(line)["text"] for line in recorded_lines([new], before).splitlines()
    ]


def test_the_same_place_is_replaced() -> None:
    assert texts_after(recorded("new")) == ["new"]


@pytest.mark.parametrize(
    "place",
    [
        {"model": "opus"},
        {"run": 2},
        {"arm": "baseline"},
        {"case": "shut"},
        {"step": 1},
        {"folder": "skills/other/gate"},
    ],
    ids=str,
)
def test_what_was_not_asked_stays(place: dict[str, Any]) -> None:
    assert sorted(texts_after(recorded("new", **place))) == ["before", "new"]


def test_lines_are_sorted() -> None:
    arms = [(name, arm) for name in ("b", "a") for arm in ("skill", "baseline")]
    lines = recorded_lines(
        recorded(name + arm, case=name, arm=arm) for name, arm in arms
    )
    assert [json.loads(line)["text"] for line in lines.splitlines()] == sorted(
        name + arm for name, arm in arms
    )
