"""Recordings: answers in a file, written and read back."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.recording import Recorded, load_recording, recorded_lines
from pytest_upskill.errors import SettingsError
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.trial import Question, Trial
from support.strategies import ANSWERS

QUESTION = Question("haiku", "", (("user", "q"),), 9, 1)
TRIAL = Trial("gate", "open", "haiku", "skill", 1, QUESTION)
# As version 0.1 wrote it.
OLD_LINE = (
    '{"skill": "gate", "case": "open", "model": "haiku", "arm": "skill", "run": 1, "step": 0, '
    '"key": "k", "text": "gate up", "usage": {"input": 15, "output": 15, "cached": 0}, '
    '"stop": "length", "seconds": 0.012}\n'
)


def test_recording_of_an_older_version_is_read_and_written_as_before(tmp_path: Path) -> None:
    answer = Answer("gate up", Usage(15, 15, 0), "length", 0.012, stored=True)
    (tmp_path / "a.jsonl").write_text(OLD_LINE)
    assert load_recording(tmp_path / "a.jsonl") == {"k": answer}
    assert recorded_lines([Recorded(TRIAL, 0, "k", answer)]) == OLD_LINE


@given(st.lists(ANSWERS, max_size=3))
def test_recording_keeps_files_and_transcript(
    tmp_path_factory: pytest.TempPathFactory, answers: list[Answer]
) -> None:
    recorded = [Recorded(TRIAL, step, f"k{step}", one) for step, one in enumerate(answers)]
    file = tmp_path_factory.mktemp("any") / "a.jsonl"
    file.write_text(recorded_lines(recorded))
    for loaded, answer in zip(load_recording(file).values(), answers, strict=True):
        assert loaded.seconds == round(answer.seconds, 3)
        assert loaded.to_json() == {**answer.to_json(), "seconds": loaded.seconds}
        assert loaded.stored


@pytest.mark.parametrize(
    "broken",
    [
        {"files": [{"path": "a"}]},
        {"files": 3},
        {"transcript": [{"kind": "new", "text": ""}]},
        {"transcript": ["text"]},
        {"usage": []},
    ],
)
def test_invalid_line_is_reported_by_number(tmp_path: Path, broken: dict[str, object]) -> None:
    line = json.dumps({**json.loads(OLD_LINE), **broken})
    (tmp_path / "a.jsonl").write_text(f"{OLD_LINE}{line}\n")
    with pytest.raises(SettingsError, match=r"a\.jsonl:2: not a recorded answer"):
        load_recording(tmp_path / "a.jsonl")
