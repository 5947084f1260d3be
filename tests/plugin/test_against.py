"""--skill-against: a skill compared with itself at a git ref."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.skills.at_ref import require_ref
from support.kit import (
    BODY,
    case,
    commit_all,
    gates,
    skill_with_a_past,
    write_script,
    write_skill,
)
from support.loopback import LoopbackServer, Reply

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

OLD = "Nobody knows how the gate opens."

NINE = [case(f"Gate {n}?", "gate up", id=f"c{n}") for n in range(9)]


@pytest.fixture(autouse=True)
def fresh_refs() -> None:
    require_ref.cache_clear()


def changed_skill(folder: Path, *, old: str = OLD, new: str = BODY) -> Path:
    return skill_with_a_past(folder, NINE, old=old, new=new)


def against(pytester: pytest.Pytester, *args: str, ref: str = "main") -> pytest.RunResult:
    model = write_script(pytester.path / "a.json")
    options = ["--skill", "skills", "--model", model, "--skill-json", "r.json"]
    return pytester.runpytest_inprocess(*options, "--skill-against", ref, *args)


def report(pytester: pytest.Pytester) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((pytester.path / "r.json").read_text())
    return data


def test_old_and_new_are_asked_in_pairs_and_compared(
    pytester: pytest.Pytester, workers: str
) -> None:
    changed_skill(pytester.path)
    before = subprocess.check_output(["git", "status", "--short"], cwd=pytester.path)
    result = against(pytester, "--skill-no-worse", "-n", workers)
    result.assert_outcomes(passed=9)
    result.stdout.fnmatch_lines(["model*without*main*with*", "  since main: better, +100*"])
    data = report(pytester)
    assert [r["arm"] for r in data["records"][:3]] == ["baseline", "previous", "skill"]
    assert {r["outcome"] for r in data["records"] if r["arm"] == "previous"} == {"failed"}
    (row,) = data["summary"]
    assert (row["previous_rate"], row["change"], row["change_verdict"]) == (0, 1, "better")
    assert row["change_low"] > 0
    assert row["change_p_value"] < 0.05
    assert data["skills"][0]["against"] == "main"
    (skill,) = data["skills"]
    assert skill["text"] == (pytester.path / "skills/gate/SKILL.md").read_text()
    assert skill["previous_text"] == skill["text"].replace(BODY, OLD)
    assert data["gate"]["passed"]
    after = subprocess.check_output(["git", "status", "--short"], cwd=pytester.path)
    assert after.splitlines()[: len(before.splitlines())] == before.splitlines()


def test_a_skill_that_got_worse_does_not_pass_the_gate(
    pytester: pytest.Pytester, workers: str
) -> None:
    changed_skill(pytester.path, old=BODY, new=OLD)
    result = against(pytester, "--skill-no-worse", "-n", workers, "--skill-case-threshold", "0.01")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "With the skill at main: passed",
            "  since main: worse, -100 points (*",
        ]
    )
    assert gates(result)[0].startswith("gate on scripted:a.json: since main: worse, -100 points")
    assert not report(pytester)["gate"]["passed"]


def test_without_a_baseline_old_and_new_are_compared(pytester: pytest.Pytester) -> None:
    changed_skill(pytester.path)
    result = against(pytester, "--skill-no-baseline")
    result.stdout.fnmatch_lines(["upskill: up to 18 calls: 9 tests × 2 arms × 1 run"])
    (row,) = report(pytester)["summary"]
    assert (row["lift"], row["change"]) == (None, 1)


def test_what_did_not_change_is_asked_once(pytester: pytest.Pytester) -> None:
    changed_skill(pytester.path, old=BODY)
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        url = ["--model", "m", "--skill-base-url", f"{server.url}/v1"]
        pytester.runpytest_inprocess("--skill", "skills", *url, "--skill-against", "HEAD")
    assert len(server.asked) == 18


def test_a_skill_that_is_new_since_the_ref_is_not_compared(
    pytester: pytest.Pytester,
) -> None:
    changed_skill(pytester.path)
    write_skill(pytester.path / "skills/door")
    result = against(pytester, "--skill-no-worse")
    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines(["door is new since main: nothing to compare."])
    rates = {row["skill"]: row["previous_rate"] for row in report(pytester)["summary"]}
    assert rates == {"door": None, "gate": 0}


def test_tests_in_python_run_with_the_previous_text_too(pytester: pytest.Pytester) -> None:
    changed_skill(pytester.path)
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_opens(ask):
            assert "gate up" in ask("How do I open the gate?")
        """
    )
    model = write_script(pytester.path / "a.json")
    args = ["--model", model, "--skill-against", "main", "--skill-json", "r.json"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1)
    outcomes = [(r["arm"], r["outcome"]) for r in report(pytester)["records"]]
    assert outcomes == [("baseline", "failed"), ("previous", "failed"), ("skill", "passed")]
    wrong = pytester.runpytest_inprocess("--model", model, "--skill-against", "nowhere")
    wrong.stdout.fnmatch_lines(["*--skill-against nowhere: no such ref*"])


@pytest.mark.parametrize(
    ("ref", "problem"),
    [
        ("nowhere", "nowhere: no such ref in the repository of "),
        ("main:skills", "main:skills: no such ref"),
        ("--help", "--help: not a git ref"),
    ],
)
def test_a_wrong_ref_is_a_usage_error(pytester: pytest.Pytester, ref: str, problem: str) -> None:
    changed_skill(pytester.path)
    args = ["--skill", "skills", "--model", "haiku", f"--skill-against={ref}"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: --skill-against {problem}" in result.stderr.str()


def test_a_skill_outside_of_git_and_git_missing_are_usage_errors(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(pytester.path.parent))
    write_skill(pytester.path / "skills/gate")
    result = against(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--skill-against main: * is in no git repository*"])
    commit_all(pytester.path)
    monkeypatch.setenv("PATH", "")
    result = against(pytester, ref="other")
    result.stderr.fnmatch_lines(["*--skill-against other: can't run git: *"])


def test_no_worse_needs_against(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    result = pytester.runpytest_inprocess("--skill", "skills", "--skill-no-worse")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --skill-no-worse: there is nothing to compare with", "*REF."]
    )
