"""The turns of a transcript."""

import json

import pytest
from hypothesis import given

from pytest_upskill.trials.transcript import Turn
from support.strategies import TURNS


@given(TURNS)
def test_turn_round_trips_through_json(turn: Turn) -> None:
    assert Turn.from_json(json.loads(json.dumps(turn.to_json()))) == turn


def test_json_of_a_turn_leaves_defaults_out() -> None:
    assert Turn("user", "Hi").to_json() == {"kind": "user", "text": "Hi"}
    assert Turn("result", "no", "bash", failed=True).to_json() == {
        "kind": "result",
        "text": "no",
        "tool": "bash",
        "failed": True,
    }


@pytest.mark.parametrize("data", [{"kind": "shout", "text": ""}, {"kind": "user"}, {"text": "a"}])
def test_invalid_turn_is_rejected(data: dict[str, str]) -> None:
    with pytest.raises((ValueError, KeyError)):
        Turn.from_json(data)
