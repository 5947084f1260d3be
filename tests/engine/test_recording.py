"""Recordings: answers in a file, written and read back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.recording import (
    Recorded,
    load_recording,
    recorded_lines,
    write_recording,
)
from pytest_upskill.errors import SettingsError
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.trial import Question, Trial
from support.folders import new_folder
from support.strategies import ANSWERS

QUESTION = Question("haiku", "", (("user", "q"),), 9, 1)
TRIAL = Trial("gate", "open", "haiku", "skill", 1, QUESTION)
LINE = (
    '{"skill": "gate", "folder": "", "case": "open", "model": "haiku", "arm": "skill",'
    ' "run": 1, "step": 0, "key": "k", "text": "gate up", "usage": {"input": 15,'
    ' "output": 15, "cached": 0}, "stop": "length", "seconds": 0.012}\n'
)


def test_a_recorded_line_is_read_and_written_the_same(tmp_path: Path) -> None:
    answer = Answer("gate up", Usage(15, 15, 0), "length", 0.012, stored=True)
    (tmp_path / "a.jsonl").write_text(LINE)
    assert load_recording(tmp_path / "a.jsonl") == {"k": answer}
    assert recorded_lines([Recorded(TRIAL, 0, "k", answer)]) == LINE


@given(st.lists(ANSWERS, max_size=3))
def test_recording_keeps_files_and_transcript(
    tmp_path_factory: pytest.TempPathFactory, answers: list[Answer]
) -> None:
    recorded = [
        Recorded(TRIAL, step, f"k{step}", one) for step, one in enumerate(answers)
    ]
    file = new_folder(tmp_path_factory) / "a.jsonl"
    file.write_text(recorded_lines(recorded))
    for loaded, answer in zip(load_recording(file).values(), answers, strict=True):
        assert loaded.seconds == round(answer.seconds or 0, 3)
        assert loaded == replace(answer, seconds=loaded.seconds, stored=True)


@pytest.mark.parametrize(
    "broken",
    [
        {"files": [{"path": "a"}]},
        {"files": 3},
        {"transcript": [{"kind": "new", "text": ""}]},
        {"transcript": ["text"]},
        {"usage": []},
        {"text": None},
        {"text": {"a": "gate"}},
        {"stop": None},
    ],
)
def test_invalid_line_is_reported_by_number(
    tmp_path: Path, broken: dict[str, object]
) -> None:
    line = json.dumps({**json.loads(LINE), **broken})
    (tmp_path / "a.jsonl").write_text(f"{LINE}{line}\n")
    with pytest.raises(SettingsError, match=r"a\.jsonl:2: not a recorded answer"):
        load_recording(tmp_path / "a.jsonl")


@pytest.mark.parametrize("key", ["text", "key"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    line = {name: value for name, value in json.loads(LINE).items() if name != key}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    with pytest.raises(
        SettingsError, match=rf":1: not a recorded answer \({key}: missing\)"
    ):
        load_recording(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-1", "1e300", "1" + "0" * 400, '"x"', "[1]"]
)
def test_an_odd_number_of_a_recording_is_unknown(tmp_path: Path, value: str) -> None:
    line = LINE.replace(": 15", f": {value}").replace("0.012", value)
    (tmp_path / "a.jsonl").write_text(line)
    [answer] = load_recording(tmp_path / "a.jsonl").values()
    assert (answer.usage, answer.seconds) == (Usage(None, None, 0), None)


@pytest.mark.parametrize(
    "line",
    [
        "1" * 5000,
        "[" * 100_000,
        "[]",
        "\0",
        '{"key": 1}',
        LINE.replace("15", "1" * 5000),
    ],
    ids=range(6),
)
def test_a_line_that_can_not_be_read_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(f"{LINE}{line}\n")
    for setting in ("replay_file", "record_file"):
        with pytest.raises(
            SettingsError, match=r"a\.jsonl:2: not a recorded answer"
        ) as caught:
            load_recording(tmp_path / "a.jsonl", setting)
        assert len(str(caught.value)) < 600


def test_a_recording_with_a_mark_and_other_line_ends_is_read(tmp_path: Path) -> None:
    other = LINE.replace('"open"', '"close"').replace('"k"', '"l"')
    data = b"\xef\xbb\xbf" + f"{LINE}{other}".replace("\n", "\r\n").encode()
    (tmp_path / "a.jsonl").write_bytes(data)
    assert list(load_recording(tmp_path / "a.jsonl")) == ["k", "l"]
    write_recording(
        tmp_path / "a.jsonl", [Recorded(TRIAL, 0, "new", Answer("gate up"))]
    )
    assert list(load_recording(tmp_path / "a.jsonl")) == ["l", "new"]


@pytest.mark.parametrize("size", ["NaN", "Infinity", "-1", "1e300", '"x"', "[1]"])
def test_an_odd_size_of_a_recorded_file_is_an_error(tmp_path: Path, size: str) -> None:
    file = f'{{"path": "a", "text": "", "size": {size}, "digest": ""}}'
    (tmp_path / "a.jsonl").write_text(
        LINE.replace('"stop"', f'"files": [{file}], "stop"')
    )
    with pytest.raises(SettingsError, match=r"a\.jsonl:1: not a recorded answer"):
        load_recording(tmp_path / "a.jsonl")
