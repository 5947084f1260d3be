"""--skill-score: what lift and verdict are of."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pytest_upskill.plugin.pytest_options import OPTIONS
from support.judges import judge_says
from support.kit import BODY, case, write_script, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.words import HELPS, TOO_FEW

WORDS: Final = ("gate", "up", "please", "now", "thanks", "slowly", "never")


def answer_or_judge(asked: Asked) -> Reply:
    """A model that says all words but one with the skill, and one word without it."""
    if asked.system.startswith("You grade"):
        answer = asked.question.split("<answer ")[1].split("</answer ")[0]
        criteria = (
            asked.question.split("The criteria:\n")[1].split("\n\n")[0].split("\n")
        )
        verdicts = [
            {
                "criterion": number,
                "quote": "",
                "reason": "as I read it",
                "verdict": "pass" if text.split("says ")[1] in answer else "fail",
            }
            for number, text in enumerate(criteria, start=1)
        ]
        return Reply(judge_says(asked.question, verdicts))
    return Reply(" ".join(WORDS[:-1]) if BODY in asked.system else WORDS[0])


def write_evals(folder: Path, evals: int = 6) -> None:
    write_skill(folder)
    (folder / "skill_meta.json").unlink()
    (folder / "evals").mkdir(exist_ok=True)
    asserted = [f"It says {word}" for word in WORDS]
    written = [
        {"id": n, "prompt": f"How, {n}?", "assertions": asserted}
        for n in range(1, evals + 1)
    ]
    data = {"skill_name": folder.name, "evals": written}
    (folder / "evals/evals.json").write_text(json.dumps(data))


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer_or_judge) as server:
        yield server


def run(pytester: pytest.Pytester, server: LoopbackServer, *more: str) -> SkillRun:
    return run_skills(pytester, server, "--skill-judge", "judge", *more)


def test_evals_are_scored_by_checks_unless_the_option_chooses(
    pytester: pytest.Pytester, server: LoopbackServer, workers: str
) -> None:
    write_evals(pytester.path / "skills/gate")
    by_checks = run(pytester, server, "-n", workers)
    # A test fails unless all of its checks pass
    assert by_checks.outcomes == {"failed": 6}
    assert (
        "upskill: verdict on the share of checks passed (evals.json" in by_checks.screen
    )
    row = by_checks.summary
    assert (row["score"], row["verdict"]) == ("checks", HELPS)
    assert row["lift"] == pytest.approx(5 / 7)
    assert row["skill_rate"] == row["baseline_rate"] == 0
    by_passes = run(pytester, server, "--skill-score", "pass", "-n", workers)
    assert "upskill: verdict on the pass rate of cases" in by_passes.screen
    row = by_passes.summary
    assert (row["score"], row["verdict"], row["lift"]) == ("pass", TOO_FEW, 0)
    scores = [row["arms"][arm]["score"] for arm in ("baseline", "skill")]
    assert scores == [pytest.approx(1 / 7), pytest.approx(6 / 7)]


def test_each_skill_has_its_own_score(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    """A test in Python shares that of its skill."""
    write_evals(pytester.path / "skills/with-evals", 2)
    write_skill(pytester.path / "skills/with-meta", [case("How?", "gate", id="a")])
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/with-evals")
        def test_asks(ask):
            assert "gate" in ask("How?")
        """
    )
    finished = run(pytester, server, "test_gate.py", "skills")
    assert "checks passed for with-evals (evals.json" in finished.screen
    rows = {
        row["skill"]: (row["cases"], row["score"]) for row in finished.report["summary"]
    }
    assert rows == {"with-evals": (3, "checks"), "with-meta": (1, "pass")}


def test_cases_of_an_evals_file_elsewhere_are_scored_by_checks(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_evals(pytester.path / "elsewhere/gate", 1)
    write_skill(pytester.path / "skills/gate")
    finished = run(pytester, server, "--skill-tests", "elsewhere/gate/evals/evals.json")
    assert finished.summary["score"] == "checks"


def test_own_cases_can_be_scored_by_checks(pytester: pytest.Pytester) -> None:
    cases = [case(f"Open {n}?", "gate up", "never", id=f"c{n}") for n in range(6)]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json")
    finished = run_skills(
        pytester, model, "--skill-score", "checks", "--skill-min-lift", "0.6"
    )
    assert finished.outcomes == {"failed": 6}
    assert (finished.summary["lift"], finished.summary["verdict"]) == (0.5, HELPS)
    assert finished.gate["passed"] is False
    by_default = run_skills(pytester, model)
    assert by_default.summary["score"] == "pass"
    assert "verdict on" not in by_default.screen


def test_an_unknown_score_is_a_usage_error(pytester: pytest.Pytester) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="'all' is not pass or checks"):
        OPTIONS["score"].kind.parse("all")
    write_skill(pytester.path / "skills/gate")
    finished = run_skills(pytester, "m", "-o", "skill_score=all")
    assert finished.status == pytest.ExitCode.USAGE_ERROR
    assert "'all' is not pass or checks" in finished.screen
