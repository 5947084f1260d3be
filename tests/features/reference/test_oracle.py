"""--skill-agent oracle: references pass, empty answers fail, and no model is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.measure.arm_maker import ArmMaker
from pytest_upskill.measure.open_run import open_run
from pytest_upskill.measure.requirements import require_agents_with_models
from pytest_upskill.results.history import default_folder, runs
from pytest_upskill.results.run_file import read_run
from pytest_upskill.settings import Settings
from pytest_upskill.skills.skill import load_skill
from support.kit import BODY, case, write_script, write_skill
from support.pages import page_words
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

ORACLE = ("--skill-agent", "oracle")
NO_MODEL = "haiku"  # whose key is missing
GOOD = case("How?", "gate up", id="good", reference="Type gate up.")
WRONG = case("Where?", "north", id="wrong", reference="In the south.")
EMPTY = {
    "id": "empty",
    "input": "Who?",
    "expected": {"not_contains": ["x"]},
    "reference": "I.",
}


def play(
    pytester: pytest.Pytester, *cases: dict[str, Any], args: tuple[str, ...] = ()
) -> SkillRun:
    write_skill(pytester.path / "skills/gate", cases)
    return run_skills(pytester, NO_MODEL, *ORACLE, *args)


def outcomes(run: SkillRun) -> dict[str, str]:
    return {
        one["nodeid"].partition("::")[2]: one["outcome"]
        for one in run.report["outcomes"]
    }


def test_a_sound_case_passes_without_a_model(pytester: pytest.Pytester) -> None:
    run = play(pytester, GOOD)
    assert (run.status, outcomes(run)) == (0, {"good[oracle]": "passed"})
    arms = {
        record["arm"]: (record["output"], record["outcome"]) for record in run.records
    }
    assert arms == {"baseline": ("", "failed"), "skill": ("Type gate up.", "passed")}
    row = run.summary
    assert (row["model"], row["agent"], row["verdict"], row["lift"]) == (
        *("oracle", "oracle", None, None),
    )
    assert row["sentence"] == "references pass: 1 of 1; empty answers fail: 1 of 1"
    assert run.ending[:2] == [
        "✔ gate: references pass: 1 of 1; empty answers fail: 1 of 1",
        "spent nothing: no model was asked",
    ]


def test_a_reference_that_fails_and_an_empty_answer_that_passes(
    pytester: pytest.Pytester,
) -> None:
    run = play(pytester, GOOD, WRONG, EMPTY)
    assert run.status == 1
    assert outcomes(run) == {
        "good[oracle]": "passed",
        "wrong[oracle]": "failed",
        "empty[oracle]": "failed",
    }
    reasons = {one["nodeid"][-14:]: one["reason"] for one in run.report["outcomes"]}
    assert reasons["::wrong[oracle]"[-14:]].startswith(
        "the reference fails: contains: "
    )
    assert reasons["::empty[oracle]"[-14:]].startswith("an empty answer passes")
    assert run.ending[0].startswith(
        "✘ gate: references pass: 2 of 3; empty answers fail: 2 of 3"
    )


def test_cases_that_no_reference_can_show_are_skipped(
    pytester: pytest.Pytester,
) -> None:
    none = case("Why?", "so", id="none")
    judged = {
        "id": "judged",
        "input": "Say.",
        "expected": {"judge": "Is kind."},
        "reference": "Hi",
    }
    opened = {
        "id": "opened",
        "input": "A",
        "expected": {"skill_activated": True},
        "reference": "B",
    }
    run = play(pytester, GOOD, none, judged, opened, args=("-rs",))
    assert run.outcomes == {"passed": 1, "skipped": 3}
    assert 'skipped by the oracle: no "reference"' in run.screen
    assert "add --skill-judge MODEL" in run.screen
    assert run.summary["cases"] == run.summary["all_cases"] == 1


def test_how_an_agent_works_is_not_asked_of_a_reference(
    pytester: pytest.Pytester,
) -> None:
    expected = {"contains": "gate up", "tools_used": "bash", "max_turns": 3}
    asks_more = {
        "id": "more",
        "input": "How?",
        "expected": expected,
        "reference": "gate up",
    }
    run = play(pytester, asks_more)
    assert run.outcomes == {"passed": 1}
    assert [check["check"] for check in run.record(arm="skill")["checks"]] == [
        "contains"
    ]


def test_files_of_a_reference_need_no_sandbox(pytester: pytest.Pytester) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "answers").mkdir()
    (folder / "answers/plan.md").write_text("Lift it.\n", encoding="utf-8")
    files = {
        "id": "plan",
        "input": "Write plan.md.",
        "context": {"files": {"log.txt": "shut"}},
        "expected": {
            "files": {"plan.md": {"contains": "Lift"}},
            "unchanged": "log.txt",
        },
        "reference": {"files": {"plan.md": {"file": "answers/plan.md"}}},
    }
    run = play(pytester, files, args=("--skill-sandbox", "bwrap", "-o", "skill_image="))
    assert run.outcomes == {"passed": 1}
    made = {file["path"]: file["change"] for file in run.record(arm="skill")["files"]}
    assert made == {"plan.md": "made"}
    assert run.record(arm="baseline")["files"] == []


def test_completions_beside_it_need_no_sandbox(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", [GOOD])
    model = write_script(pytester.path / "answers.json")
    run = run_skills(pytester, model, *ORACLE, "--skill-agent", "chat")
    assert len(outcomes(run)) == 2
    assert "sandbox:" not in run.screen


@needs_bwrap
def test_a_script_is_run_and_the_checks_decide(pytester: pytest.Pytester) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "solution").mkdir()
    script = (
        'cat "$(dirname "$0")/words.txt" > out.txt\necho "$MOOD" >> out.txt\nexit 3\n'
    )
    (folder / "solution/solve.sh").write_text(script, encoding="utf-8")
    (folder / "solution/words.txt").write_text("gate up\n", encoding="utf-8")
    reference = {"run": "solution/solve.sh", "env": {"MOOD": "calm"}}
    solved = {
        "id": "solved",
        "input": "Write out.txt.",
        "expected": {"files": {"out.txt": {"contains": ["gate up", "calm"]}}},
        "reference": reference,
    }
    failed = {
        **solved,
        "id": "failed",
        "expected": {"files": {"no.txt": {"exists": True}}},
    }
    run = play(pytester, solved, failed)
    assert outcomes(run) == {"solved[oracle]": "passed", "failed[oracle]": "failed"}
    assert "solve.sh: exit 3" in run.report["outcomes"][1]["reason"]
    baseline = [record for record in run.records if record["arm"] == "baseline"]
    assert [record["files"] for record in baseline] == [[], []]


def test_nothing_of_it_is_accepted_or_kept(pytester: pytest.Pytester) -> None:
    write_skill(
        pytester.path / "skills/gate", [{**GOOD, "xfail": "hard", "models": "other"}]
    )
    model = write_script(pytester.path / "answers.json")
    run = run_skills(pytester, NO_MODEL, *ORACLE, "-o", "skill_min_lift=0.9")
    assert run.outcomes == {"passed": 1}
    assert run.gate["passed"] is None
    assert runs(default_folder(pytester.path)) == []
    for option in (
        "--skill-accept",
        "--skill-min-lift=0.1",
        "--skill-aa",
        "--skill-against=HEAD",
    ):
        refused = run_skills(pytester, NO_MODEL, *ORACLE, option)
        assert refused.status == pytest.ExitCode.USAGE_ERROR
        assert "oracle" in refused.screen
    write_skill(pytester.path / "skills/gate", [GOOD])
    both = (
        "--skill-agent",
        "chat",
        *ORACLE,
        "--skill-accept",
        "--skill-min-pass-rate=1",
    )
    run = run_skills(pytester, model, *both)
    assert (run.status, run.outcomes) == (0, {"passed": 2})
    assert "not accepted" not in run.screen
    accepted = json.loads(
        (pytester.path / "skills/gate/skill_results.json").read_text("utf-8")
    )
    assert list(accepted) == [model]
    [kept] = runs(default_folder(pytester.path))
    assert set(read_run(kept.path).model_ids) == {model}


@needs_bwrap
def test_counts_are_of_what_was_graded(pytester: pytest.Pytester) -> None:
    """And Markdown says why the others were not, and nothing of a lift."""
    write_skill(pytester.path / "skills/gate")
    verifier = pytester.path / "skills/gate/tests/test.sh"
    verifier.parent.mkdir()
    verifier.write_text("echo hi\n", encoding="utf-8")
    broken = {
        "id": "broken",
        "input": "How?",
        "expected": {"verifier": {"run": "tests/test.sh"}},
    }
    run = play(
        pytester,
        *(GOOD, EMPTY, {**broken, "reference": "x"}),
        args=("--skill-markdown", "a.md", "--skill-score", "checks"),
    )
    assert (
        "references pass: 2 of 2; empty answers fail: 1 of 2" in run.summary["sentence"]
    )
    text = Path("a.md").read_text("utf-8")
    assert "lift" not in text
    assert "tests/test.sh: it wrote neither" in text


def test_reports_and_selection(pytester: pytest.Pytester) -> None:
    files = (
        "--skill-html",
        "a.html",
        "--skill-markdown",
        "a.md",
        "--junitxml",
        "a.xml",
    )
    run = play(pytester, GOOD, WRONG, args=files)
    assert run.outcomes == {"passed": 1, "failed": 1}
    assert '"agent": "oracle"' in page_words(Path("a.html").read_text("utf-8"))
    assert "the reference fails" in Path("a.md").read_text("utf-8")
    assert "wrong[oracle]" in Path("a.xml").read_text("utf-8")
    write_skill(
        pytester.path / "skills/gate", [GOOD, {**WRONG, "reference": "In the north."}]
    )
    run = run_skills(pytester, NO_MODEL, *ORACLE, "--lf")
    assert outcomes(run) == {"wrong[oracle]": "passed"}
    assert (
        run.summary["sentence"] == "references pass: 1 of 1; empty answers fail: 1 of 1"
    )
    run = run_skills(pytester, NO_MODEL, *ORACLE, "-k", "good")
    assert outcomes(run) == {"good[oracle]": "passed"}
    node = "skills/gate/skill_meta.json::good[oracle]"
    run = run_skills(pytester, NO_MODEL, node, skill="")
    assert outcomes(run) == {"good[oracle]": "passed"}


def test_other_agents_have_no_part_of_a_reference(pytester: pytest.Pytester) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "solution").mkdir()
    (folder / "solution/solve.sh").write_text("echo secret\n", encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests/test.sh").write_text("grep secret out.txt\n", encoding="utf-8")
    cases = [
        case("How?", "gate up", id="open", reference={"run": "solution/solve.sh"}),
        {
            "id": "shut",
            "input": "Shut it.",
            "expected": {"verifier": {"run": "tests/test.sh"}},
        },
    ]
    write_skill(folder, cases, body=BODY)
    *_, arm = ArmMaker(Settings()).arms(load_skill(folder / "SKILL.md"), agents=True)
    assert [file.path for file in arm.skills[0].files()] == ["SKILL.md"]


def test_a_skill_without_references_is_told_what_to_do(
    pytester: pytest.Pytester,
) -> None:
    run = play(pytester, case("Why?", "so"))
    assert (run.status, run.outcomes) == (0, {"skipped": 1})
    assert run.ending == [
        (
            "! nothing was tested of gate: no case has a reference that"
            " the oracle could carry out"
        ),
        'next: give cases a "reference", then the same command tries it',
    ]


def test_commands_about_skills_refuse_it_by_name(pytester: pytest.Pytester) -> None:
    with pytest.raises(SettingsError, match="oracle"):
        require_agents_with_models(open_run(Settings(agents=("oracle",))), print)
    with pytest.raises(SettingsError, match="oracle"):
        open_run(Settings(judge="oracle"))
    pytester.makepyfile(
        "import pytest\n@pytest.mark.skill('skills/gate')\n"
        "def test_it(ask):\n    ask('How?', agent='oracle')\n"
    )
    write_skill(pytester.path / "skills/gate", [GOOD])
    run = run_skills(pytester, write_script(pytester.path / "a.json"), skill="")
    assert run.outcomes == {"errors": 1}
    assert "a test in Python has no reference to play" in run.screen
