"""Ctrl-C in the main thread, wherever it is, must not stop the engine's thread."""

import asyncio
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.models import Model
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.trial import Question

QUESTIONS = [Question("m", "", (("user", text),), 100, 1) for text in "ab"]


class Held:
    """A model that answers when it is let."""

    most_in_flight, endpoint, address = None, "m", ""

    def __init__(self) -> None:
        self.go = threading.Event()

    async def ask(self, _question: Question) -> Answer:
        while not self.go.is_set():
            await asyncio.sleep(0.001)
        return Answer("yes", Usage(1, 1, 0))

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("number", range(1, 12))
def test_a_lock_that_was_just_taken_does_not_stay_taken(number: int) -> None:
    """The lock of a reply, for example: its answer could not be told."""
    taken = 0

    def trace(frame: FrameType, _event: str, _value: object) -> Any:
        return (
            interrupt
            if frame.f_code is threading.Condition.__enter__.__code__
            else None
        )

    def interrupt(_frame: FrameType, event: str, _value: object) -> Any:
        nonlocal taken
        taken += event == "return"
        if event == "return" and taken == number:
            raise KeyboardInterrupt
        return interrupt

    async def open_model(_name: str) -> Model:
        return model

    model, before = Held(), sys.gettrace()
    engine = Engine(ModelFacts(open_model, lambda _: 60), concurrency=2)
    threading.Timer(0.1, model.go.set).start()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt):
            engine.ask(QUESTIONS)
    finally:
        sys.settrace(before)
    closing = threading.Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(60)  # so that it fails instead of hanging
    assert not closing.is_alive()
