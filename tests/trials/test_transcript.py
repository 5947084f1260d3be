"""The turns of a transcript."""

import json

import pytest
from hypothesis import given
from pydantic import ValidationError

from pytest_upskill._util.json_forms import form_of, json_values
from pytest_upskill.trials.transcript import Turn
from support.strategies import TURNS


@given(TURNS)
def test_turn_round_trips_through_json(turn: Turn) -> None:
    text = json.dumps(json_values(turn, brief=True))
    assert form_of(Turn).validate_python(json.loads(text)) == turn


def test_json_of_a_turn_leaves_defaults_out() -> None:
    assert json_values(Turn("user", "Hi"), brief=True) == {"kind": "user", "text": "Hi"}
    assert json_values(Turn("result", "no", "bash", failed=True), brief=True) == {
        "kind": "result",
        "text": "no",
        "tool": "bash",
        "failed": True,
    }


@pytest.mark.parametrize(
    "data", [{"kind": "shout", "text": ""}, {"kind": "user"}, {"text": "a"}]
)
def test_invalid_turn_is_rejected(data: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        form_of(Turn).validate_python(data)
