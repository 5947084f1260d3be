"""Transcripts as files: a header, then a line for each turn; names that any file system takes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.export.transcripts import safe_names, transcript_files
from pytest_upskill.reports.writers import REPORTS, Finished, write_all
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.made import made_run


def test_a_file_for_each_trial_of_an_agent() -> None:
    results = agent_run(cases=2, runs=2, also=("haiku",))
    files = dict(transcript_files(results))
    assert list(files)[:4] == [
        "gate/case-0[loop-haiku]/baseline-1.jsonl",
        "gate/case-0[loop-haiku]/skill-1.jsonl",
        "gate/case-0[loop-haiku]/baseline-2.jsonl",
        "gate/case-0[loop-haiku]/skill-2.jsonl",
    ]
    assert len(files) == 8
    head, *turns = map(json.loads, files["gate/case-0[loop-haiku]/skill-1.jsonl"].splitlines())
    assert head["agent"] == "loop"
    assert (head["skill"], head["case"], head["model"]) == ("gate", "case-0", "haiku")
    assert (head["arm"], head["run"], head["outcome"]) == ("skill", 1, "passed")
    assert (head["turns"], head["tool_calls"], head["activated"]) == (5, 4, True)
    record = next(one for one in results.records if one.arm == "skill")
    assert tuple(map(Turn.from_json, turns)) == record.transcript


def test_any_text_is_one_line_and_reads_back(tmp_path: Path) -> None:
    results = agent_run(cases=1)
    turns = (Turn("result", "a\nb\r\u2028\ud800\x00</script>", "bash"),)
    made = replace(
        results, records=tuple(replace(one, transcript=turns) for one in results.records)
    )
    report = REPORTS["transcripts_folder"]
    (path,) = report.write(tmp_path / "t", Finished(made, str, ()))
    assert path == tmp_path / "t"
    (file, _) = sorted(path.rglob("*.jsonl"))
    _, line = file.read_bytes().splitlines()
    assert Turn.from_json(json.loads(line)) == turns[0]


def test_nothing_is_written_without_agents(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    run = Finished(made_run(), str, ())
    done = write_all([("x", lambda: REPORTS["transcripts_folder"].write(folder, run))])
    assert done.paths == []
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("case[loop/haiku]", "case[loop-haiku]"),
        ("../../etc/passwd", "-..-etc-passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("a\x00b\nc", "a-b-c"),
        ("NUL.txt", "_NUL.txt"),
        ("con", "_con"),
        ("console", "console"),
    ],
)
def test_names_are_safe(name: str, safe: str) -> None:
    assert safe_names([name]) == {name: safe}


@given(st.lists(st.text(max_size=200)))
def test_names_are_distinct_and_never_lead_out(names: list[str]) -> None:
    found = safe_names(names)
    assert len({name.casefold() for name in found.values()}) == len(set(names))
    for name in found.values():
        assert "/" not in name
        assert name not in ("", ".", "..")
        assert len(name) <= 90


def test_no_key_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-api03-0123456789abcdefghij"
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    results = agent_run(cases=1)
    turns = (Turn("result", f"ANTHROPIC_API_KEY={key}", key),)
    made = replace(
        results, records=tuple(replace(one, transcript=turns) for one in results.records)
    )
    REPORTS["transcripts_folder"].write(tmp_path, Finished(made, str, ()))
    texts = [file.read_text() for file in tmp_path.rglob("*.jsonl")]
    assert len(texts) == 2
    assert not any(key in text for text in texts)
