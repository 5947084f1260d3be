"""Rewards of verifiers, and what becomes of them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.snapshot import Snapshot, pack
from pytest_upskill.checks import grade, load_checked_cases, parse_checks
from pytest_upskill.checks.final_workspace import (
    IsFromStart,
    Verified,
    Verifier,
    Workspace,
)
from pytest_upskill.checks.kinds import kinds_of_skill
from pytest_upskill.checks.verifier_check import reward_in
from pytest_upskill.errors import CasesError, CheckError
from pytest_upskill.results.planned_cases import case_digest
from pytest_upskill.skills.case import Case
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.plan import score_of
from pytest_upskill.trials.records import Grade, make_record
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.trial import Question, Trial

SILENT = Answer("", activity=Activity(), workspace=pack(Snapshot()))
EXPECTED = {"verifier": {"run": "tests/test.sh", "timeout": 5}}


@pytest.mark.parametrize(
    ("name", "data", "reward"),
    [
        ("reward.txt", b"1", 1.0),
        ("reward.txt", b" 0.25\n", 0.25),
        ("reward.txt", b"1e-2", 0.01),
        ("reward.txt", b"1.0000000000000002", 1.0),
        ("reward.json", b'{"reward": 0.5, "speed": 9}', 0.5),
        ("reward.json", b'{"accuracy": 1}', 1.0),
        ("reward.json", b"0.75", 0.75),
    ],
)
def test_a_reward(name: str, data: bytes, reward: float) -> None:
    assert reward_in(Verified(rewards=((name, data),))) == reward


def test_a_reward_is_never_minus_0() -> None:
    assert str(reward_in(Verified(rewards=(("reward.txt", b"-0"),)))) == "0.0"


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("reward.txt", b"", "is empty"),
        ("reward.txt", b"NaN", "no number"),
        ("reward.txt", b"inf", "no number"),
        ("reward.txt", b"1e999", "no number"),
        ("reward.txt", b"1\n0", "no number"),
        ("reward.txt", b"1_0", "no number"),
        ("reward.txt", "١".encode(), "no number"),
        ("reward.txt", b"-1", "not from 0 to 1"),
        ("reward.txt", b"2.0", "not from 0 to 1"),
        ("reward.txt", b"\xff1", "no number"),
        ("reward.txt", None, "is no file"),
        ("reward.txt", b"1" + b" " * 100_000, "too long"),
        ("reward.json", b'{"reward": true}', "no number"),
        ("reward.json", b'{"reward": "1"}', "no number"),
        ("reward.json", b'{"reward": NaN}', "no number"),
        ("reward.json", b'{"reward": 1e999}', "no number"),
        ("reward.json", b'{"a": 1, "b": 1}', 'no "reward", but a, b'),
        ("reward.json", b"{}", 'no "reward", but nothing'),
        ("reward.json", b"[1]", "no number"),
        ("reward.json", b"[" * 90_000, "no JSON"),
    ],
)
def test_no_reward(name: str, data: bytes | None, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        reward_in(Verified(rewards=((name, data), ("reward.json", b"1"))))


def test_neither_file_is_there() -> None:
    with pytest.raises(ValueError, match=r"neither reward\.txt nor reward\.json"):
        reward_in(Verified())


def task(folder: Path, files: Mapping[str, str] = {"test.sh": "true"}) -> Path:
    for name, text in files.items():
        (folder / "tests").mkdir(exist_ok=True)
        (folder / "tests" / name).write_text(text)
    return folder


def graded(
    folder: Path, verified: Verified, answer: Answer = SILENT, script: str = "true"
) -> Grade:
    def verify(packed: bytes, verifier: Verifier, _: IsFromStart) -> Verified:
        assert packed
        assert verifier.name == f"{folder.name}/tests/test.sh"
        return verified

    checks = parse_checks(
        EXPECTED, kinds_of_skill(task(folder, {"test.sh": script})), ()
    )
    (only,) = grade(checks, answer, workspace=Workspace(answer, verify=verify))
    return only


def rewarded(text: str, output: str = "", **values: Any) -> Verified:
    return Verified(output, (("reward.txt", text.encode()),), **values)


def test_only_the_whole_reward_passes(tmp_path: Path) -> None:
    whole = graded(tmp_path, rewarded("1", "2 passed"))
    part = graded(tmp_path, rewarded("0.25", "1 failed\nE assert 3 == 4"))
    assert (whole.passed, whole.share, whole.output) == (True, 1.0, "")
    assert (part.passed, part.share, part.output) == (
        False,
        0.25,
        "1 failed\nE assert 3 == 4",
    )
    trial = Trial("x", "c", "m", "skill", 1, Question("m", "", (), 1, 1))
    assert make_record(trial, SILENT, (part,)).score == 0.25
    assert make_record(trial, SILENT, (part, whole)).score == 0.625
    assert make_record(trial, SILENT, (part,)).outcome == "failed"


def test_an_agent_that_was_stopped_is_graded_for_what_it_did(tmp_path: Path) -> None:
    late = replace(SILENT, stop="time", seconds=30.0)
    assert graded(tmp_path, rewarded("1"), late).passed
    assert "time limit" in graded(tmp_path, rewarded("0"), late).reason


@pytest.mark.parametrize(
    ("verified", "words"),
    [
        (
            rewarded("1", problem="no end within 5 s"),
            ["tests/test.sh: no end within 5 s"],
        ),
        (
            rewarded("1", unfinished="pytest did not report its end"),
            ["tests/test.sh: pytest did not report its end"],
        ),
        (
            rewarded("many", output="boom\nlast"),
            ["tests/test.sh: reward.txt", "many", "boom last"],
        ),
        (rewarded("0", missing="curl: not found"), ["tests/test.sh", "curl: not fou"]),
        (Verified(missing="curl: not found"), ["tests/test.sh", "curl: not found"]),
        (Verified("Killed"), ["tests/test.sh: it wrote neither", "Killed"]),
    ],
)
def test_what_a_verifier_can_not_say_is_an_error(
    tmp_path: Path, verified: Verified, words: list[str]
) -> None:
    with pytest.raises(CheckError) as error:
        graded(tmp_path, verified)
    for word in words:
        assert word in str(error.value)


def test_only_a_whole_reward_needs_a_report(tmp_path: Path) -> None:
    failed = graded(tmp_path, rewarded("0.5", unfinished="pytest reported exit 1"))
    assert (failed.passed, failed.share) == (False, 0.5)


def test_a_script_with_line_ends_of_windows_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="CR LF"):
        graded(tmp_path, Verified(), script="echo 1 > /logs/verifier/reward.txt\r\n")


def test_what_a_verifier_misses_is_no_matter_if_it_passes(tmp_path: Path) -> None:
    assert graded(tmp_path, rewarded("1", missing="curl: not found")).passed


def test_no_workspace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="not kept"):
        graded(tmp_path, rewarded("1"), replace(SILENT, workspace=b""))


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"run": "tests/other.sh"}, "not found"),
        ({"run": "test.sh"}, "not found"),
        ({"run": "../tests/test.sh"}, "test.sh"),
        ({"run": "tests/test.sh", "timeout": 0}, "timeout"),
        ({"timeout": 5}, "run"),
        ("tests/test.sh", "verifier"),
    ],
)
def test_a_verifier_that_is_not_there(tmp_path: Path, form: Any, problem: str) -> None:
    file = task(tmp_path) / "skill_meta.json"
    file.write_text(json.dumps([{"input": "q", "expected": {"verifier": form}}]))
    with pytest.raises(CasesError, match=problem):
        load_checked_cases(file).require_all()


def test_an_edited_verifier_is_another_case(tmp_path: Path) -> None:
    case = Case("c", "q", EXPECTED)
    before = case_digest(case, task(tmp_path, {"test.sh": "true", "data.csv": "1"}))
    assert case_digest(case, tmp_path) == before
    assert case_digest(case, task(tmp_path, {"data.csv": "2"})) != before


def test_tasks_are_compared_by_their_rewards() -> None:
    assert score_of(None, [Case("c", "q", is_task=True)]) == "checks"
    assert score_of("pass", [Case("c", "q", is_task=True)]) == "pass"
