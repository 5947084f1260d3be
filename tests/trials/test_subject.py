"""Who carries out a case, and the label of that."""

import pytest

from pytest_upskill.trials.subject import Subject


@pytest.mark.parametrize(
    ("agent", "model", "label"),
    [
        ("chat", "haiku", "haiku"),
        ("loop", "haiku", "loop/haiku"),
        ("loop", "hf:org/name", "loop/hf:org/name"),
        ("loop", "loop/haiku", "loop/loop/haiku"),
        ("chat", "loop/haiku", "loop/haiku"),
    ],
)
def test_the_label_of_an_agent_on_a_model(agent: str, model: str, label: str) -> None:
    assert Subject(agent, model).label == label
