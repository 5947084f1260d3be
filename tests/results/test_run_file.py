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
    "": "schema started seconds skills summary verdicts by_case records tests gate",
    "skills": "name path digest tokens",
    "summary": (
        "skill model model_id agent agent_version score cases runs samples all_cases"
        " arms comparisons verdict sentence saving signals detectable_lift cases_needed"
        " possible_lift activation accepted recall false_alarms errored not_run"
        " baseline_rate skill_rate lift lift_low lift_high p_value baseline_tokens"
        " skill_tokens token_change baseline_cost skill_cost checks_passed checks_total"
    ),
    "verdicts": (
        "skill verdict lift lift_low lift_high p_value models cases looks sentence"
        " saving cases_needed"
    ),
    "by_case": (
        "skill model agent case runs baseline_rate skill_rate signal signal_shown"
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


def written(results: RunResults, folder: Path) -> Path:
    file = folder / "run.json"
    file.write_bytes(results_bytes(results))
    return file


def test_report_has_all_keys_that_never_change() -> None:
    results = made_run(cases=12, accepted={0: accepted_count(1)})
    report = json.loads(results_text(results))
    found = {
        "": report,
        "gate": report["gate"],
        "checks": report["records"][0]["checks"][0],
    }
    for key in ("skills", "summary", "verdicts", "by_case", "records"):
        found[key] = report[key][0]
    for name, keys in KEYS.items():
        assert found[name].keys() >= set(keys.split()), name
    assert form_of(Record).validate_python(report["records"][0]) == results.records[0]
    assert report["tests"][0]["expected"]["was"] == {"passes": 1, "runs": 1}


def test_numbers_of_a_row_are_nested_and_flat() -> None:
    run = made_run(cases=12, arms=("baseline", "previous", "skill"))
    (row,) = json.loads(results_text(run))["summary"]
    over = row["comparisons"]["baseline"]
    assert row["arms"]["baseline"]["rate"] == row["baseline_rate"]
    assert row["arms"]["skill"]["count"] == {"passes": 10, "runs": 12}
    assert over["lift"] == {
        "lift": row["lift"],
        "low": row["lift_low"],
        "high": row["lift_high"],
        "p_value": row["p_value"],
    }
    assert over["changes"]["tokens"]["change"] == row["token_change"]
    assert set(row["comparisons"]) == {"baseline", "previous"}
    assert sum(row["signals"].values()) == 12


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


def test_report_has_triggers_among_the_tests() -> None:
    results = made_triggers(["oox", "oEo"], ["---"], only=False)
    report = json.loads(results_text(results))
    (row,) = report["trigger_summaries"]
    (summary,) = report["summary"]
    assert summary["recall"] == row["recall"]
    assert summary["recall"]["rate"] == pytest.approx(5 / 6)
    assert (summary["false_alarms"]["rate"], summary["cases"]) == (0, 6)
    assert row["instead"] == row["queries"][0]["instead"] == {"docs-writer": 1}
    queries = {test["case"] for test in report["tests"] if test["kind"] == "query"}
    assert queries == {"trigger-needs-0", "trigger-needs-1", "trigger-spares-0"}
    cases = {case["case"] for case in report["by_case"]}
    assert cases == {f"case-{number}" for number in range(6)}


@pytest.mark.parametrize(
    "results",
    [
        made_run(),
        made_run(skills=("gate", "door"), models=("haiku", "local"), cases=7, runs=3),
        made_run(arms=("skill",), gates=Gates(min_pass_rate=0.5)),
        made_run(accepted={0: accepted_count(1), 5: accepted_count(0)}),
        made_run(gates=Gates(min_lift=0.9, confident=True), commit=None),
        made_run(arms=("baseline", "previous", "skill")),
        replace(made_run(), looks={"gate": 3}, gone={"gate": ("case-9",)}),
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
def test_report_is_read_back_with_the_same_verdicts(
    results: RunResults, tmp_path: Path
) -> None:
    again = read_run(written(results, tmp_path))
    assert again.verdicts == results.verdicts
    assert again.summary == results.summary
    assert again.problems == results.problems
    assert again.skills == results.skills
    assert again.gate == results.gate
    assert again.questions == results.questions
    assert [test.nodeid for test in again.tests] == [
        test.nodeid for test in results.tests
    ]
    assert results_text(again) == results_text(results)


def test_agent_and_model_are_apart_in_the_file() -> None:
    was = Unmatched("gate", "haiku", "old", Count(1, 1), "gone", agent="loop")
    results = replace(agent_run(also=("haiku",)), unmatched=(was,))
    report = json.loads(results_text(results))
    for key in ("summary", "records", "tests"):
        subjects = {(row["agent"], row["model"]) for row in report[key]}
        assert subjects == {("loop", "haiku"), ("chat", "haiku")}
    activity = report["records"][1]["activity"]
    assert (activity["turns"], activity["activated"]) == (5, True)
    again = form_of(RunResults).validate_python(report)
    assert again.unmatched == results.unmatched
    assert [r.activity for r in again.records] == [r.activity for r in results.records]


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
def test_invalid_file_is_an_error_with_its_place(
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


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no such file"):
        read_run(tmp_path / "run.json")


def test_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(
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


def test_small_file_of_millions_of_values_is_not_parsed(tmp_path: Path) -> None:
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
def test_impossible_number_of_a_record_is_named(
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
