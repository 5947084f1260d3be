"""--skill-score: what lift and verdict are of."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.judges import judge_says
from support.kit import BODY, case, gates, write_script, write_skill
from support.loopback import Asked, LoopbackServer, Reply

WORDS: Final = ("gate", "up", "please", "now", "thanks", "slowly", "never")


def answer_or_judge(asked: Asked) -> Reply:
    """A model that says all words but one with the skill, and one word without it."""
    if asked.system.startswith("You grade"):
        answer = asked.question.split("<answer ")[1].split("</answer ")[0]
        criteria = asked.question.split("The criteria:\n")[1].split("\n\n")[0].split("\n")
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
        {"id": n, "prompt": f"How, {n}?", "assertions": asserted} for n in range(1, evals + 1)
    ]
    data = {"skill_name": folder.name, "evals": written}
    (folder / "evals/evals.json").write_text(json.dumps(data))


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(answer_or_judge) as server:
        yield server


def run(pytester: pytest.Pytester, server: LoopbackServer, *more: str) -> pytest.RunResult:
    args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
    return pytester.runpytest_inprocess(
        *args, "--skill-judge", "judge", "--skill-json", "r.json", *more
    )


def summary(pytester: pytest.Pytester) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((pytester.path / "r.json").read_text())["summary"]
    return found


def test_evals_are_scored_by_checks(
    pytester: pytest.Pytester, server: LoopbackServer, workers: str
) -> None:
    write_evals(pytester.path / "skills/gate")
    result = run(pytester, server, f"-n{workers}")
    result.assert_outcomes(failed=6)  # a test fails unless all of its checks pass
    header = "upskill: verdict on the share of checks passed (evals.json; or --skill-score pass)"
    assert header in result.outlines
    result.stdout.fnmatch_lines(
        [
            "gate * 6 cases * 1 run * share of checks passed",
            "m: helps: +71 points of checks (+*), 0 of pass rate (-46 to*",
            "FAILED *1?m? - 6 of 7 checks (1 without th*",
        ]
    )
    (row,) = summary(pytester)
    assert (row["score"], row["verdict"]) == ("checks", "helps")
    assert row["lift"] == pytest.approx(5 / 7)
    assert row["rate_lift"] == 0


def test_the_option_chooses_the_pass_rate(
    pytester: pytest.Pytester, server: LoopbackServer, workers: str
) -> None:
    write_evals(pytester.path / "skills/gate")
    result = run(pytester, server, "--skill-score", "pass", f"-n{workers}")
    assert "upskill: verdict on the pass rate of cases" in result.outlines
    result.stdout.fnmatch_lines(["m: no effect shown: 0 points of pass rate (-46 to +46), +71 of*"])
    (row,) = summary(pytester)
    assert (row["score"], row["verdict"], row["lift"]) == ("pass", "no effect shown", 0)
    assert row["score_lift"] == pytest.approx(5 / 7)


def test_the_header_names_the_skills_that_are_scored_by_checks(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_evals(pytester.path / "skills/with-evals")
    write_skill(pytester.path / "skills/with-meta", [case("How?", "gate", id="a")])
    result = run(pytester, server)
    result.stdout.fnmatch_lines(
        ["upskill: verdict on the share of checks passed for with-evals (evals.json; or*"]
    )
    assert {row["skill"]: row["score"] for row in summary(pytester)} == {
        "with-evals": "checks",
        "with-meta": "pass",
    }


def test_nothing_is_said_about_the_pass_rate_of_own_cases(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    assert not any("verdict on" in line for line in result.outlines)


def test_own_cases_can_be_scored_by_checks(pytester: pytest.Pytester) -> None:
    cases = [case(f"Open {n}?", "gate up", "never", id=f"c{n}") for n in range(6)]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "--skill-score", "checks"]
    result = pytester.runpytest_inprocess(*args, "--skill-min-lift", "0.6")
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(["*: helps: +50 points of checks (+*"])
    gate = f"gate on {model}: lift of checks is +50 points (minimum +60)"
    assert gates(result) == [gate]


def test_cases_of_an_evals_file_elsewhere_are_scored_by_checks(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_evals(pytester.path / "elsewhere/gate")
    write_skill(pytester.path / "skills/gate")
    run(pytester, server, "--skill-tests", "elsewhere/gate/evals/evals.json")
    assert [row["score"] for row in summary(pytester)] == ["checks"]


def test_a_test_in_python_shares_the_score_of_its_skill(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_evals(pytester.path / "skills/gate")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_asks(ask):
            assert "gate" in ask("How?")
        """
    )
    run(pytester, server, "test_a_test_in_python_shares_the_score_of_its_skill.py", "skills")
    (row,) = summary(pytester)
    assert (row["cases"], row["score"]) == (7, "checks")


# With the skill, the number of words varies from run to run; no answer ever has all of them.
NOISY: Final = f"""
WORDS = {WORDS!r}
MORE = (3, -1, 2, 3, -1, 3, 0, 2)

def answer(question):
    case = int(question.messages[-1][1].split()[1])
    words = 2
    if {BODY!r} in question.system:
        words = min(6, max(0, 2 + MORE[case] + (2 if question.run % 2 else -2)))
    return " ".join(WORDS[:words]) or "-"
"""


@pytest.mark.parametrize(("score", "more_runs"), [("checks", True), ("pass", False)])
def test_frugal_runs_look_at_the_score(
    pytester: pytest.Pytester, workers: str, score: str, more_runs: bool
) -> None:
    """After two runs the lift of checks is open, and there is no pass to wait for."""
    cases = [case(f"Case {n} ?", *WORDS, id=f"c{n}") for n in range(8)]
    write_skill(pytester.path / "skills/gate", cases)
    (pytester.path / "noisy.py").write_text(NOISY)
    args = ["--skill", "skills", "--model", "scripted:noisy.py:answer", "--skill-runs", "2..8"]
    pytester.runpytest_inprocess(
        *args, "--skill-json", "r.json", "--skill-score", score, f"-n{workers}"
    )
    (row,) = summary(pytester)
    assert (row["runs"] > 2) == more_runs


@pytest.mark.parametrize("given", [["--skill-score", "all"], ["-o", "skill_score=all"]])
def test_an_unknown_score_is_a_usage_error(pytester: pytest.Pytester, given: list[str]) -> None:
    write_skill(pytester.path / "skills/gate")
    result = pytester.runpytest_inprocess("--skill", "skills", *given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "'all' is not pass or checks" in result.stderr.str()


def test_every_report_has_both_lifts_and_the_checks_of_both_arms(
    pytester: pytest.Pytester, server: LoopbackServer
) -> None:
    write_evals(pytester.path / "skills/gate")
    files = ["--skill-markdown", "r.md", "--skill-html", "r.html", "--skill-csv", "r.csv"]
    run(pytester, server, *files, "--junitxml", "j.xml", "--skill-benchmark", "bench")
    folder = pytester.path
    markdown = (folder / "r.md").read_text()
    assert "| +71 (+" in markdown
    assert "| 0% → 0%, +0 (-46 to +46) | 1/7 → 6/7 |" in markdown
    assert "Lift and verdict are of the share of checks passed." in markdown
    assert "1 on m: passed 0 of 1, 6 of 7 checks" in markdown
    assert "Without the skill: passed 0 of 1 run, 1 of 7 checks." in markdown
    page = (folder / "r.html").read_text()
    assert "lift and verdict are of the share of checks passed" in page
    assert "<figcaption>Share of checks passed</figcaption>" in page
    assert re.search(r'data-name="passed">0% → 0% <small>\+0 \(-46 to \+46\)</small>', page)
    assert 'data-name="checks">1/7 → 6/7</td>' in page
    lines = (folder / "r.csv").read_text().splitlines()
    at = [lines[0].split(",").index(name) for name in ("arm", "checks_passed", "checks_total")]
    counts = {tuple(line.split(",")[n] for n in at) for line in lines[1:]}
    assert counts == {("baseline", "1", "7"), ("skill", "6", "7")}
    junit = (folder / "j.xml").read_text()
    assert 'name="upskill:gate:m:score" value="checks"' in junit
    assert 'name="upskill:gate:m:rate_lift" value="0"' in junit
    assert 'name="upskill:gate:m:score_lift" value="0.714286"' in junit
    assert 'name="upskill_lift" value="0.714286"' in junit
    assert 'name="upskill_baseline_score" value="0.142857"' in junit
    (benchmark,) = (folder / "bench").rglob("benchmark.json")
    shares = json.loads(benchmark.read_text())
    assert shares["run_summary"]["delta"]["pass_rate"] == "+0.71"
    assert shares["notes"][0].startswith("helps: +71 points of checks (")
