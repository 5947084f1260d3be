"""report --transcripts: a file for each trial of an agent."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import form_of
from pytest_upskill.reports.record_files import safe_names, transcript_files
from pytest_upskill.reports.writers import REPORTS, Finished, write_all
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.kit import write_skill
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
    head, *turns = map(
        json.loads, files["gate/case-0[loop-haiku]/skill-1.jsonl"].splitlines()
    )
    assert head["agent"] == "loop"
    assert (head["skill"], head["case"], head["model"]) == ("gate", "case-0", "haiku")
    assert (head["arm"], head["run"], head["outcome"]) == ("skill", 1, "passed")
    did = head["activity"]
    assert (did["turns"], did["tool_calls"], did["activated"]) == (5, 4, True)
    record = next(one for one in results.records if one.arm == "skill")
    assert form_of(tuple[Turn, ...]).validate_python(turns) == record.transcript


def test_any_text_is_one_line_and_reads_back(tmp_path: Path) -> None:
    results = agent_run(cases=1)
    turns = (Turn("result", "a\nb\r\u2028\ud800\x00</script>", "bash"),)
    made = replace(
        results,
        records=tuple(replace(one, transcript=turns) for one in results.records),
    )
    report = REPORTS["transcripts_folder"]
    (path,) = report(tmp_path / "t", Finished(made, str, ()))
    assert path == tmp_path / "t"
    file, _ = sorted(path.rglob("*.jsonl"))
    _, line = file.read_bytes().splitlines()
    assert form_of(Turn).validate_python(json.loads(line)) == turns[0]


@pytest.mark.parametrize(
    ("folder", "results", "problem"),
    [
        ("t", made_run(), "only kept runs of agents have transcripts"),
        ("gate/new/t", agent_run(cases=1), "inside a skill, which agents get"),
    ],
)
def test_transcripts_are_of_agents_and_never_in_a_skill(
    tmp_path: Path, folder: str, results: RunResults, problem: str
) -> None:
    write_skill(tmp_path / "gate")
    run = Finished(results, str, ())
    done = write_all(
        [("x", lambda: REPORTS["transcripts_folder"](tmp_path / folder, run))]
    )
    assert problem in str(done.problems[0])
    assert not (tmp_path / folder).exists()


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
        results,
        records=tuple(replace(one, transcript=turns) for one in results.records),
    )
    REPORTS["transcripts_folder"](tmp_path, Finished(made, str, ()))
    texts = [file.read_text() for file in tmp_path.rglob("*.jsonl")]
    assert len(texts) == 2
    assert not any(key in text for text in texts)
