"""--skill-against: a skill compared with itself at a git ref."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_upskill.skills.context import require_ref
from support.kit import BODY, case, skill_with_a_past, write_script, write_skill
from support.loopback import LoopbackServer, Reply
from support.runs import SkillRun, run_skills

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

OLD = "Nobody knows how the gate opens."
NINE = [case(f"Gate {n}?", "gate up", id=f"c{n}") for n in range(9)]


@pytest.fixture(autouse=True)
def fresh_refs() -> None:
    require_ref.cache_clear()


def changed_skill(folder: Path, *, old: str = OLD, new: str = BODY) -> Path:
    return skill_with_a_past(folder, NINE, old=old, new=new)


def against(pytester: pytest.Pytester, *args: str) -> SkillRun:
    model = write_script(pytester.path / "a.json")
    return run_skills(pytester, model, "--skill-against", "main", *args)


def test_old_and_new_are_asked_in_pairs_and_compared(
    pytester: pytest.Pytester, workers: str
) -> None:
    changed_skill(pytester.path)
    before = subprocess.check_output(["git", "status", "--short"], cwd=pytester.path)
    run = against(pytester, "--skill-no-worse", "-n", workers)
    assert run.outcomes["passed"] == 9
    assert [record["arm"] for record in run.records[:3]] == [
        "baseline",
        "previous",
        "skill",
    ]
    old = {record["outcome"] for record in run.records if record["arm"] == "previous"}
    assert old == {"failed"}
    row = run.summary
    assert row["arms"]["previous"]["rate"] == 0
    since = row["comparisons"]["previous"]
    assert (since["lift"]["lift"], since["fallen"]) == (1, None)
    assert since["lift"]["low"] > 0
    assert since["lift"]["p_value"] < 0.05
    (skill,) = run.report["skills"]
    assert skill["against"] == "main"
    assert skill["text"] == (pytester.path / "skills/gate/SKILL.md").read_text()
    assert skill["previous_text"] == skill["text"].replace(BODY, OLD)
    assert run.gate["passed"]
    after = subprocess.check_output(["git", "status", "--short"], cwd=pytester.path)
    assert after.splitlines()[: len(before.splitlines())] == before.splitlines()


def test_a_skill_that_got_worse_does_not_pass_the_gate(
    pytester: pytest.Pytester,
) -> None:
    changed_skill(pytester.path, old=BODY, new=OLD)
    run = against(pytester, "--skill-no-worse", "-o", "skill_case_threshold=0.01")
    assert run.status == 1
    assert "with the skill at main: passed" in run.screen
    since = run.summary["comparisons"]["previous"]
    assert (since["lift"]["lift"], len(since["fallen"]["fell"])) == (-1, 9)
    assert not run.gate["passed"]
    assert len(run.gate["reasons"]) == 1


def test_without_a_baseline_old_and_new_are_compared(pytester: pytest.Pytester) -> None:
    changed_skill(pytester.path)
    run = against(pytester, "--skill-no-baseline")
    assert len(run.records) == 18
    assert list(run.summary["comparisons"]) == ["previous"]
    assert run.summary["comparisons"]["previous"]["lift"]["lift"] == 1


def test_what_did_not_change_is_asked_once(pytester: pytest.Pytester) -> None:
    changed_skill(pytester.path, old=BODY)
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        run_skills(pytester, server, "--skill-against", "HEAD")
    assert len(server.asked) == 18


def test_a_skill_that_is_new_since_the_ref_is_not_compared(
    pytester: pytest.Pytester,
) -> None:
    changed_skill(pytester.path)
    write_skill(pytester.path / "skills/door")
    run = against(pytester, "--skill-no-worse")
    assert run.outcomes == {"passed": 10}
    assert "door is new since main" in run.screen
    arms = {row["skill"]: list(row["arms"]) for row in run.report["summary"]}
    assert arms == {
        "door": ["baseline", "skill"],
        "gate": ["baseline", "previous", "skill"],
    }


def test_tests_in_python_run_with_the_previous_text_too(
    pytester: pytest.Pytester,
) -> None:
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
    run = run_skills(pytester, model, "--skill-against", "main", skill="")
    assert run.outcomes == {"passed": 1}
    outcomes = [(record["arm"], record["outcome"]) for record in run.records]
    assert outcomes == [
        ("baseline", "failed"),
        ("previous", "failed"),
        ("skill", "passed"),
    ]
    wrong = run_skills(pytester, model, "--skill-against", "nowhere", skill="")
    assert "--skill-against nowhere: no such ref" in wrong.screen
