"""The JSON of a run: schema 1 written, and read back."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_upskill._util.json_forms import form_of
from pytest_upskill.errors import ResultsError
from pytest_upskill.results.run import Rerun, RunResults
from pytest_upskill.results.run_file import read_run, results_bytes, results_text
from pytest_upskill.settings import Gates
from pytest_upskill.skills.skill import UnseenFile
from pytest_upskill.trials.answer import AnswerFile
from pytest_upskill.trials.plan import Count, SkillInfo, Unmatched
from pytest_upskill.trials.records import Grade, Record
from pytest_upskill.trials.trial import Question, Trial
from support.agent_runs import agent_run
from support.made import accepted_count, made_record, made_run, made_triggers

# Others build on these keys: they never change.
KEYS = {
    "": "schema started seconds skills summary records gate",
    "skills": "name path digest tokens",
    "summary": (
        "skill model model_id cases runs baseline_rate skill_rate lift lift_low"
        " lift_high p_value detectable_lift baseline_tokens skill_tokens token_change"
        " baseline_cost skill_cost checks_passed checks_total errored verdict"
    ),
    "records": (
        "skill case model arm run outcome output input_tokens output_tokens"
        " cached_tokens seconds stored checks error"
    ),
    "checks": "check passed reason",
    "gate": "passed reasons",
}


FULL = SkillInfo(
    "gate",
    "skills/gate",
    "0" * 64,
    127,
    seen_files=("a.md",),
    unseen_files=(UnseenFile("b.md"), UnseenFile("c.png", "not a text")),
)


def half(number: int, _model: str, arm: str, run: int) -> bool:
    return arm == "skill" and (number + run) % 2 == 0


def written(results: RunResults, folder: Path) -> Path:
    file = folder / "run.json"
    file.write_bytes(results_bytes(results))
    return file


def test_the_report_has_all_keys_that_never_change() -> None:
    results = made_run(accepted={0: accepted_count(1)})
    report = json.loads(results_text(results))
    found = {
        "": report,
        "gate": report["gate"],
        "checks": report["records"][0]["checks"][0],
    }
    found |= {key: report[key][0] for key in ("skills", "summary", "records")}
    for name, keys in KEYS.items():
        assert found[name].keys() >= set(keys.split()), name
    assert form_of(Record).validate_python(report["records"][0]) == results.records[0]
    assert report["summary"][0]["lift"] == results.summaries[0].lift
    assert report["summary"][0]["skill_cost"] == pytest.approx(0.0015)
    accepted = report["tests"][0]["expected"]
    assert accepted["was"] == {"passes": 1, "runs": 1}


def test_nothing_private_is_in_the_report() -> None:
    made = made_run(cases=1)
    trial = Trial(
        "gate", "case-0", "haiku", "skill", 1, Question("haiku", "", (), 9, 1)
    )
    tests = tuple(
        replace(test, folder="/home/me", trials=(trial,)) for test in made.tests
    )
    report = json.loads(results_text(replace(made, tests=tests)))
    assert not {"trials", "folder", "siblings"} & report["tests"][0].keys()


def test_the_report_has_triggers_among_the_tests() -> None:
    results = made_triggers(["oox", "oEo"], ["---"], only=False)
    report = json.loads(results_text(results))
    (row,), (summary,) = report["trigger_summaries"], report["summary"]
    (found,) = results.trigger_summaries
    assert summary["recall"] == row["recall"]["rate"] == pytest.approx(5 / 6)
    assert summary["recall_low"] < summary["recall"] < summary["recall_high"]
    assert (summary["false_alarms"], row["errored"]) == (0, 1)
    assert row["sentence"] == found.sentence
    assert row["instead"] == row["queries"][0]["instead"] == {"docs-writer": 1}
    queries = {test["case"] for test in report["tests"] if test["is_trigger"]}
    assert queries == {"trigger-needs-0", "trigger-needs-1", "trigger-spares-0"}
    assert len(report["tests"]) == 6 + 3
    assert sum(record["case"] in queries for record in report["records"]) == 9
    assert {case["case"] for case in report["by_case"]} == {
        f"case-{n}" for n in range(6)
    }
    assert summary["cases"] == 6


def test_the_report_has_the_numbers_of_each_case_and_of_the_scores() -> None:
    report = json.loads(results_text(made_run(cases=2, runs=4, passes=half)))
    (shown,), (first, second) = report["summary"], report["by_case"]
    assert first["pass_hat_k"] == pytest.approx([0.5, 1 / 6, 0.0, 0.0])
    assert (first["flakiness"], second["flakiness"]) == pytest.approx((2 / 3, 2 / 3))
    assert shown["score_lift"] == 0.5
    assert shown["normalised_gain"] == pytest.approx(0.5)
    assert shown["skill_rate_low"] < 0.5 < shown["skill_rate_high"]


@pytest.mark.parametrize("third", ["previous", "trace"])
def test_the_third_arm_has_one_place_in_the_schema(third: str) -> None:
    results = made_run(
        arms=("baseline", third, "skill"), passes=lambda *trial: trial[2] == third
    )
    (row,) = json.loads(results_text(results))["summary"]
    assert (row["baseline_rate"], row["previous_rate"], row["skill_rate"]) == (0, 1, 0)
    assert (row["previous_tokens"], row["previous_cost"]) == (50, pytest.approx(0.0005))
    assert (row["change"], row["change_verdict"]) == (-1, "worse")


@pytest.mark.parametrize(
    "results",
    [
        made_run(),
        made_run(skills=("gate", "door"), models=("haiku", "local"), cases=7, runs=3),
        made_run(arms=("skill",), gates=Gates(min_pass_rate=0.5)),
        made_run(accepted={0: accepted_count(1), 5: accepted_count(0)}),
        made_run(gates=Gates(min_lift=0.9, confident=True), commit=None),
        made_run(arms=("baseline", "previous", "skill")),
        made_run(cases=0),
        replace(made_run(), skills=(FULL,)),
        made_triggers(
            ["oox", "oEo"], ["---"], gates=Gates(min_recall=0.5, max_false_alarms=0.1)
        ),
        made_triggers(
            only=False, models=("haiku", "claude/haiku"), skills=("gate", "door")
        ),
        made_triggers(accepted={"trigger-needs-2": accepted_count(9, 9)}),
        agent_run(
            cases=7,
            runs=2,
            opens=lambda case, run: case > run,
            also=("haiku", "loop/odd"),
        ),
    ],
)
def test_a_report_is_read_back_with_the_same_verdicts(
    results: RunResults, tmp_path: Path
) -> None:
    again = read_run(written(results, tmp_path))
    assert again.verdicts == results.verdicts
    assert again.trigger_summaries == results.trigger_summaries
    assert again.problems == results.problems
    assert again.skills == results.skills
    assert again.gate == results.gate
    assert again.questions == results.questions
    assert [test.nodeid for test in again.tests] == [
        test.nodeid for test in results.tests
    ]
    assert results_text(again) == results_text(results)


def test_agent_and_model_are_apart_in_the_file_and_one_label_inside(
    tmp_path: Path,
) -> None:
    was = Unmatched(
        "gate", "haiku", "old", Count(1, 1), "2026-01-01", "gone", agent="loop"
    )
    results = replace(agent_run(also=("haiku",)), unmatched=(was,))
    report = json.loads(results_text(results))
    assert {(row["agent"], row["model"]) for row in report["summary"]} == {
        ("loop", "haiku"),
        ("chat", "haiku"),
    }
    again = read_run(written(results, tmp_path))
    assert {(r.agent, r.label) for r in again.records} == {
        ("loop", "loop/haiku"),
        ("chat", "haiku"),
    }
    assert [test.agent for test in again.tests] == [
        test.agent for test in results.tests
    ]
    assert again.unmatched == results.unmatched
    assert again.model_ids == results.model_ids
    assert [r.activity for r in again.records] == [r.activity for r in results.records]


def test_the_report_of_agents_has_their_numbers() -> None:
    def passes(case: int, _model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and case < 8

    results = agent_run(cases=10, passes=passes, opens=lambda case, _: case < 9)
    (row,) = json.loads(results_text(results))["summary"]
    assert (row["baseline_turns"], row["skill_turns"]) == (4, pytest.approx(4.9))
    assert (row["baseline_tool_calls"], row["skill_tool_calls"]) == (
        3,
        pytest.approx(3.9),
    )
    assert (row["activated"], row["activated_trials"], row["activated_rate"]) == (
        9,
        10,
        0.9,
    )
    assert row["activated_low"] < 0.9 < row["activated_high"]
    effect = row["lift_per_opening"]
    assert effect == pytest.approx(row["lift"] / 0.9)
    assert row["lift_per_opening_low"] < effect <= row["lift_per_opening_high"]
    record = json.loads(results_text(results))["records"][1]
    activity = record["activity"]
    assert (activity["turns"], activity["tool_calls"], activity["activated"]) == (
        5,
        4,
        True,
    )
    assert activity["read"] == ["references/layout.md"]
    assert [file["path"] for file in record["files"]] == ["report.md", "data/out.bin"]


def test_transcripts_are_not_in_the_report_and_long_files_are_cut() -> None:
    results = agent_run(cases=1)
    files = tuple(AnswerFile.of(f"{n}.txt", b"x" * 900_000) for n in range(50))
    first, *rest = results.records
    text = results_text(replace(results, records=(replace(first, files=files), *rest)))
    assert len(text) < 150_000
    record = json.loads(text)["records"][0]
    assert not record["transcript"]
    assert [file["size"] for file in record["files"]] == [900_000] * 50
    assert "characters left out" in record["files"][0]["text"]


@pytest.mark.parametrize("value", [-1, 2**60, "many", 1.5])
def test_numbers_that_no_agent_can_have_are_rejected(
    value: object, tmp_path: Path
) -> None:
    report = json.loads(results_text(agent_run()))
    report["records"][0]["activity"]["turns"] = value
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(report))
    with pytest.raises(ResultsError, match="turns"):
        read_run(file)


@given(st.text(), st.text(), st.lists(st.text()))
def test_any_text_is_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory,
    answer: str,
    question: str,
    tags: list[str],
) -> None:
    made = made_run(cases=1)
    (test,) = made.tests
    results = replace(
        made,
        records=(
            made_record(
                "gate", "case-0", "haiku", "skill", 1, output=answer + "\ud800"
            ),
        ),
        questions={("gate", "case-0"): f"?{question}"},
        tests=(replace(test, tags=tuple(tags)),),
    )
    again = read_run(written(results, tmp_path_factory.mktemp("run")))
    assert again.records == results.records
    assert again.questions == results.questions
    assert again.tests[0].tags == tuple(tags)


@pytest.mark.parametrize(
    ("part", "damaged", "problem"),
    [
        (r"(?s),.*", "", "run.json:2:13: invalid JSON"),
        (r"(?s).+", "[]", "run.json:1: "),
        (r"(?s).+", "[" * 100_000, "nested too deeply"),
        ('"schema": 1', '"schema": 2', "run.json:2: schema: "),
        ('"arm": "skill"', '"arm": ""', "records[1].arm: "),
        ("T03:04:05Z", "T03:04:05", "run.json:3: started: a time without a time zone"),
        ('"run": 1', '"run": "one"', "records[0].run: must be a whole number"),
    ],
)
def test_an_invalid_file_is_an_error_with_its_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    damaged: str,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(made_run(), tmp_path)
    file.write_text(re.sub(part, damaged, file.read_text()))
    with pytest.raises(ResultsError) as caught:
        read_run(file)
    assert problem in str(caught.value)
    assert "Give a JSON report" in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no such file"):
        read_run(tmp_path / "run.json")


def test_a_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.results.run_file.LARGEST", 1000)
    file = tmp_path / "r.json.gz"
    file.write_bytes(gzip.compress(b" " * 1001))
    with pytest.raises(ResultsError, match="more than 1,000 bytes, unpacked"):
        read_run(file)


@pytest.mark.parametrize(
    "key", ["skills", "records", "tests", "unmatched", "studies", "lost"]
)
def test_one_wrong_item_is_enough_to_refuse_a_file(key: str) -> None:
    """Each error takes 300 times the room of its item."""
    values = {**json.loads(results_text(made_run())), key: [{}] * 1000}
    with pytest.raises(ValidationError) as caught:
        form_of(RunResults).validate_python(values)
    assert caught.value.error_count() < 50


def test_a_small_file_of_millions_of_values_is_not_parsed(tmp_path: Path) -> None:
    file = tmp_path / "r.json.gz"
    file.write_bytes(gzip.compress(b"[" + b"[]," * 2_600_000 + b"[]]"))
    with pytest.raises(ResultsError, match="more than 5,000,000 values"):
        read_run(file)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("input_tokens", -1),
        ("seconds", float("inf")),
        ("cost", float("nan")),
        ("cost", 1e300),
        ("score", "many"),
        ("run", 10**400),
    ],
)
def test_an_impossible_number_of_a_record_is_named(
    tmp_path: Path, key: str, value: object
) -> None:
    data = json.loads(results_text(made_run()))
    data["records"][0][key] = value
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(ResultsError, match=rf"records\[0\]\.{key}: "):
        read_run(tmp_path / "r.json")


def test_places_and_texts_of_skills_are_read_back(tmp_path: Path) -> None:
    made = made_run(cases=1)
    (skill,) = made.skills
    grades = (
        Grade("contains", passed=True, reason="", found=((0, 4), (7, 9))),
        Grade("not_contains", passed=False, reason="", unwanted=((2, 3),)),
    )
    rerun = Rerun(("--skill-runs", "3"), ("--model", "haiku"), "..")
    results = replace(
        made,
        skills=(replace(skill, text="# Gate", previous_text="# Gates"),),
        records=tuple(replace(one, checks=grades) for one in made.records),
        rerun=rerun,
    )
    again = read_run(written(results, tmp_path))
    assert [(one.found, one.unwanted) for one in again.records[0].checks] == [
        (((0, 4), (7, 9)), ()),
        ((), ((2, 3),)),
    ]
    assert (again.skills[0].text, again.skills[0].previous_text) == (
        "# Gate",
        "# Gates",
    )
    assert again.rerun == rerun
