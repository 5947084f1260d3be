"""report --csv: a row for each record, safe to open in a spreadsheet."""

import csv
import io
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill._util.json_forms import form_of
from pytest_upskill.reports.record_files import (
    COLUMNS,
    csv_text,
    safe_names,
    transcript_files,
)
from pytest_upskill.reports.writers import REPORTS, Finished, write_all
from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.records import Grade, Record
from pytest_upskill.trials.transcript import Turn
from support.agent_runs import agent_run
from support.kit import write_skill
from support.made import made_record, made_run


def rows(text: str) -> list[dict[str, str]]:
    before = csv.field_size_limit(10**7)
    try:
        return list(csv.DictReader(io.StringIO(text, newline="")))
    finally:
        csv.field_size_limit(before)


def one_row(**more: object) -> dict[str, str]:
    record = made_record("gate", "case-0", "haiku", "skill", 1, **more)  # type: ignore[arg-type]
    (row,) = rows(csv_text(replace(made_run(cases=1), records=(record,))))
    return row


def test_a_row_has_all_fields_of_a_record() -> None:
    grades = (
        Grade("contains", True, "fine"),
        Grade("words", False, "no"),
        Grade("regex", False, "no"),
    )
    assert one_row(
        checks=grades, score=1 / 3, passed=False, judge_calls=2, stored=True
    ) == {
        "skill": "gate",
        "case": "case-0",
        "model": "haiku",
        "model_id": "id-of-haiku",
        "arm": "skill",
        "run": "1",
        "outcome": "failed",
        "score": "0.3333333333333333",
        "input_tokens": "120",
        "output_tokens": "30",
        "cached_tokens": "0",
        "cost": "0.0015",
        "seconds": "1.25",
        "stored": "true",
        "checks_passed": "1",
        "checks_total": "3",
        "failed_checks": "words; regex",
        "judge_calls": "2",
        "error": "",
        "answer": "No idea.",
        "agent": "chat",
        "turns": "",
        "tool_calls": "",
        "activated": "",
        "tags": "even",
        "opened": "",
    }


def test_rows_of_agents_tell_what_they_did() -> None:
    baseline, skill = rows(csv_text(agent_run(cases=1)))
    assert (skill["agent"], skill["model"], skill["model_id"]) == (
        "loop",
        "haiku",
        "id-of-haiku",
    )
    assert (skill["turns"], skill["tool_calls"], skill["activated"]) == (
        "5",
        "4",
        "true",
    )
    assert (baseline["turns"], baseline["activated"]) == ("4", "")


def test_a_cost_has_no_exponent_and_no_float_noise() -> None:
    assert one_row(cost=8.272999999999999e-07)["cost"] == "0.0000008273"
    assert one_row(cost=None)["cost"] == ""


def test_the_form_is_that_of_rfc_4180() -> None:
    text = csv_text(made_run(cases=1))
    assert text.startswith("skill,case,model,")
    assert text.count("\r\n") == text.count("\n") == 3
    assert not csv_text(made_run(cases=0)).removeprefix(",".join(COLUMNS) + "\r\n")


def test_unknown_values_are_empty() -> None:
    row = one_row(
        input_tokens=None, cost=None, seconds=None, score=None, error="no network"
    )
    assert [row[name] for name in ("input_tokens", "cost", "seconds", "score")] == [
        ""
    ] * 4
    assert row["error"] == "no network"


@pytest.mark.parametrize("first", list("=+-@\t\r\n＝＋－＠"))
def test_no_text_of_a_model_is_a_formula(first: str) -> None:
    assert one_row(output=f"{first}1+1")["answer"] == f"'{first}1+1"
    assert one_row(output=f"1{first}1")["answer"] == f"1{first}1"


@pytest.mark.parametrize(
    "hidden", [" ", "\xa0", "\u3000", "\ufeff", "\u200b", " \u2060 "]
)
def test_a_formula_behind_what_nobody_sees_is_none(hidden: str) -> None:
    assert one_row(output=f"{hidden}=1+1")["answer"] == f"'{hidden}=1+1"
    assert one_row(output=f"{hidden}fine")["answer"] == f"{hidden}fine"


@pytest.mark.parametrize(
    "bad", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
)
def test_no_column_holds_a_formula(bad: str) -> None:
    others = ("checks", "cost", "activity")
    texts: dict[str, Any] = {
        field.name: bad for field in fields(Record) if field.name not in others
    }
    record = made_record("gate", "case-0", "haiku", "skill", 1)
    record = replace(record, **texts, checks=(Grade(bad, False, bad),))
    results = replace(
        made_run(cases=1), records=(record,), model_ids={f"{bad}/{bad}": bad}
    )
    (row,) = rows(csv_text(results))
    held = [name for name, cell in row.items() if cell == f"'{bad}"]
    assert {
        "skill",
        "case",
        "model",
        "model_id",
        "arm",
        "failed_checks",
        "error",
    } <= set(held)
    assert [
        name for name, cell in row.items() if cell.startswith(tuple("=+-@\t\r"))
    ] == []


@pytest.mark.parametrize("number", ["-0.25", "-5", "0", "1e-07", "-1.5e+20", "12.0"])
def test_a_number_stays_a_number(number: str) -> None:
    assert one_row(output=number)["answer"] == number
    assert one_row(seconds=float(number))["seconds"] == str(float(number))


@pytest.mark.parametrize(
    "number", ["-inf", "-1-1", "-1e9999", "+1", "--1", "-", "-1\n"]
)
def test_what_only_resembles_a_number_is_text(number: str) -> None:
    assert one_row(output=number)["answer"] == f"'{number}"


def test_numbers_of_ours_are_left_alone() -> None:
    assert one_row(cost=-0.5)["cost"] == "-0.5"


@pytest.mark.parametrize("letter", ["x", "🎉"])
def test_a_long_answer_is_cut_to_fit_a_cell(letter: str) -> None:
    answer = one_row(output=letter * 40_000)["answer"]
    kept = answer.count(letter)
    assert len(answer.encode("utf-16-le")) // 2 < 32_767
    assert answer.endswith(f"\n[… {40_000 - kept:,} more characters]")
    assert one_row(output="x" * 32_000)["answer"] == "x" * 32_000


@given(st.text(), st.text())
def test_no_text_breaks_a_row_or_is_a_formula(answer: str, error: str) -> None:
    row = one_row(output=answer + "\x00\ud800", error=error)
    assert list(row) == list(COLUMNS)
    assert row["answer"].endswith(r"\x00\ud800")
    for cell in (row["answer"], row["error"]):
        is_number = re.fullmatch(r"-[0-9.]+(e[0-9+-]+)?", cell)
        assert is_number or not cell.startswith(tuple("=+-@\t\r\n"))
        assert cell.encode("utf-8").count(b"\x00") == 0


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_other_text_is_read_back_as_it_was(answer: str) -> None:
    assert one_row(output=f"He said: {answer}")["answer"] == f"He said: {answer}"


def test_all_records_are_there() -> None:
    results: RunResults = made_run(
        skills=("gate", "door"), models=("a", "b"), cases=3, runs=2
    )
    assert len(rows(csv_text(results))) == len(results.records) == 48


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
