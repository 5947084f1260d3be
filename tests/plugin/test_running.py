"""A run from its questions to its summary, files and exit status."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pytest_upskill.trials.trial import BASE_SYSTEM, FOLLOW_SKILL
from support.kit import case, write_script, write_skill
from support.loopback import Asked, LoopbackServer, Reply


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_skill(pytester.path / "skills/gate")
    return write_script(pytester.path / "answers.json")


def test_a_skill_that_helps_passes_and_shows_its_lift(
    pytester: pytest.Pytester, model: str
) -> None:
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"upskill: gate on {model}",
            "gate · about 10 tokens · 1 case × 1 run",
            "model*without*with*lift*tokens*seconds*errors",
            "scripted:* +100 *",
        ]
    )


def test_a_failure_shows_the_question_the_checks_and_both_answers(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json", knows="Push it.", does_not="gate up, I guess")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '"gate up" is not in the answer',
            "Question:",
            "  | How do I open the gate?",
            "Expected (found text is marked »like this«):",
            '  contains: "gate up"',
            "With the skill: failed",
            '  FAIL contains: "gate up" is not in the answer',
            "  | Push it.",
            "Without it: passed",
            '  ok   contains: "gate up" is in the answer',
            "  | »gate up«, I guess",
            "*-100*",
            'FAILED skills/gate/skill_meta.json::open-gate?scripted:a.json? - "gate up*',
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_failure_is_one_line_where_pytest_wants_one(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json", knows="Push it.")
    args = ["--skill", "skills", "--model", model]
    by_line = pytester.runpytest_inprocess(*args, "--tb=line", "--junitxml", "j.xml")
    assert "Question:" not in by_line.stdout.str()
    by_line.stdout.fnmatch_lines(['*: "gate up" is not in the answer'])
    [failure] = ET.parse(pytester.path / "j.xml").iter("failure")
    assert failure.get("message") == '"gate up" is not in the answer'
    verbose = pytester.runpytest_inprocess(*args, "-vv")
    assert verbose.stdout.str().count("Question:") == 1


def test_the_headline_of_several_runs_begins_with_how_many_passed(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json", knows="Push it.")
    args = ["--skill", "skills", "--model", model, "--skill-runs", "2", "--junitxml", "j.xml"]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(["FAILED *::open-gate* - 0 of 2 runs*"])
    [failure] = ET.parse(pytester.path / "j.xml").iter("failure")
    assert failure.get("message") == '0 of 2 runs passed: "gate up" is not in the answer'


def test_no_answer_is_an_error_not_a_failure(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "a.json").write_text('[{"system": "gate up", "answer": "gate up"}]')
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", "scripted:a.json")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["scripted:a.json: no rule in a.json matches this question. Add one*"]
    )
    result.stdout.fnmatch_lines(["scripted:a* 1"])  # the column of errors
    result.stdout.no_fnmatch_line("*Traceback*")
    assert result.ret == 1


def test_the_older_name_of_the_address_of_openai_counts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", [case("How does it open?", "gate up")])
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    args = ["--skill", "skills", "--model", "openai.gpt-4.1", "-n", workers]
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        monkeypatch.setenv("OPENAI_API_BASE", f"{server.url}/v1")
        result = pytester.runpytest_subprocess(*args)
        result.assert_outcomes(passed=1)
        result.stdout.no_fnmatch_line("*OPENAI_API_BASE*")
        assert len(server.asked) == 2
        monkeypatch.setenv("OPENAI_API_BASE", "http://elsewhere/v1")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        result = pytester.runpytest_subprocess(*args)  # the same address: nothing is asked again
        result.assert_outcomes(passed=1)
        assert len(server.asked) == 2
    result.stdout.fnmatch_lines(["*OPENAI_API_BASE name different servers; OPENAI_BASE_URL is*"])


def test_an_address_that_no_model_uses_is_told(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", [case("How does it open?", "gate up")])
    pytester.makefile(".py", models="def answer(question):\n    return 'gate up'")
    args = ["--skill", "skills", "--model", "scripted:models.py:answer"]
    result = pytester.runpytest(*args, "--skill-base-url", "http://127.0.0.1:9/v1")
    result.assert_outcomes(passed=1)
    told = "*--skill-base-url is not used by scripted:models.py:answer*"
    result.stdout.fnmatch_lines([told])
    pytester.runpytest(*args).stdout.no_fnmatch_line(told)


def test_the_two_arms_differ_by_the_skill_and_by_nothing_else(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "The gate opens with `gate up`.\n\nNothing else does."
    files = {"files": {"notes.md": "It is a ```gate```."}}
    cases = [case("How does it open?", "gate up", context=files)]
    write_skill(pytester.path / "skills/gate", cases, body=body)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        args = ["--skill", "skills", "--model", "haiku", "--model", "openai:gpt-5.4-mini"]
        pytester.runpytest_inprocess(*args).assert_outcomes(passed=2)
    for protocol in ("anthropic", "openai"):
        baseline, skill = sorted(
            (asked for asked in server.asked if asked.protocol == protocol),
            key=lambda asked: len(asked.system),
        )
        assert baseline.system == BASE_SYSTEM
        assert skill.system == f"{BASE_SYSTEM}\n\n{body}\n\n{FOLLOW_SKILL}"
        assert _without_system(baseline) == _without_system(skill)
        assert "gate" not in baseline.system
        assert skill.question.endswith("notes.md:\n````\nIt is a ```gate```.\n````")


def _without_system(asked: Asked) -> str:
    body = json.dumps(asked.body, sort_keys=True).replace(json.dumps(asked.system), '"SYSTEM"')
    lengths = ("content-length", "idempotency-key", "x-stainless-retry-count")
    headers = {name: value for name, value in asked.headers.items() if name not in lengths}
    return body + json.dumps(headers, sort_keys=True)


def test_a_case_passes_when_more_than_half_of_its_runs_do(pytester: pytest.Pytester) -> None:
    cases = [case(f"case {n}", "yes", id=f"passes-{n}-of-4") for n in (2, 3)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makepyfile(
        fake="""
        def answer(question):
            return "yes" if question.run <= int(question.messages[0][1][-1]) else "no"
        """
    )
    args = ["--skill", "skills", "--model", "scripted:fake.py:answer", "--skill-runs", "4"]
    result = pytester.runpytest_inprocess(*args, "-rA")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["With the skill: 2 of 4 runs passed. *", "Run 3, with the skill: failed"]
    )
    result.stdout.fnmatch_lines(["PASSED*passes-3-of-4*"])
    result.stdout.fnmatch_lines(["gate · * · 2 cases × 4 runs"])


def test_without_baseline_only_the_skill_is_asked(pytester: pytest.Pytester, model: str) -> None:
    report = pytester.path / "r.json"
    args = ["--skill", "skills", "--model", model, "--skill-no-baseline"]
    pytester.runpytest_inprocess(*args, "--skill-json", "r.json").assert_outcomes(passed=1)
    data = json.loads(report.read_text())
    assert [record["arm"] for record in data["records"]] == ["skill"]
    assert data["summary"][0]["lift"] is None
    assert data["summary"][0]["skill_rate"] == 1


def test_the_json_report_holds_the_whole_run(pytester: pytest.Pytester, model: str) -> None:
    args = ["--skill", "skills", "--model", model, "--skill-json", "out/deep/r.json"]
    pytester.runpytest_inprocess(*args)
    data = json.loads((pytester.path / "out/deep/r.json").read_text())
    assert data["schema"] == 1
    assert [skill["path"] for skill in data["skills"]] == ["skills/gate"]
    [summary] = data["summary"]
    assert (summary["baseline_rate"], summary["skill_rate"], summary["lift"]) == (0, 1, 1)
    assert (summary["checks_passed"], summary["checks_total"]) == (1, 1)
    outcomes = {record["arm"]: record["outcome"] for record in data["records"]}
    assert outcomes == {"baseline": "failed", "skill": "passed"}
    assert data["records"][0]["output"] == "No idea."


def test_junit_has_the_records_too(pytester: pytest.Pytester, model: str) -> None:
    pytester.runpytest_inprocess("--skill", "skills", "--model", model, "--junitxml", "j.xml")
    tree = ET.parse(pytester.path / "j.xml")
    [test] = tree.iter("testcase")
    assert test.get("name") == f"open-gate[{model}]"
    [records] = [p.get("value") for p in test.iter("property") if p.get("name") == "upskill"]
    assert [record["arm"] for record in json.loads(records or "")] == ["baseline", "skill"]


def test_last_failed_and_stepwise_run_what_failed(pytester: pytest.Pytester) -> None:
    cases = [case(name, "gate up", id=name) for name in ("a", "b", "c")]
    write_skill(pytester.path / "skills/gate", cases)
    rules = [{"question": "b", "answer": "no"}, {"answer": "gate up"}]
    (pytester.path / "a.json").write_text(json.dumps(rules))
    args = ["--skill", "skills", "--model", "scripted:a.json"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=2, failed=1)
    pytester.runpytest_inprocess(*args, "--lf").assert_outcomes(failed=1)
    first = pytester.runpytest_inprocess(*args, "--ff", "-v")
    order = re.findall(r"::(\w)\[", "\n".join(first.outlines))
    assert order[:3] == ["b", "a", "c"]
    pytester.runpytest_inprocess(*args, "--sw").assert_outcomes(passed=1, failed=1)
    pytester.runpytest_inprocess(*args, "--sw").assert_outcomes(failed=1, deselected=1)


def test_stopping_at_the_first_failure_cancels_what_was_not_asked(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"question {n}", "never", id=f"c{n}") for n in range(30)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("no", delay=0.02)) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = pytester.runpytest_inprocess(*args, "-x", "--skill-concurrency", "2")
    result.assert_outcomes(failed=1)
    assert len(server.asked) < 30
    result.stdout.fnmatch_lines(
        ["m: incomplete: 0 points * over 1 complete case, *", "*29 cases not run."]
    )


def test_no_more_calls_are_in_flight_than_allowed(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(12)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("yes", delay=0.02)) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        pytester.runpytest_inprocess(*args, "--skill-concurrency", "3").assert_outcomes(passed=12)
    assert server.most_in_flight == 3


def test_no_summary_leaves_out_the_summary(pytester: pytest.Pytester, model: str) -> None:
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, "--no-summary")
    result.stdout.no_fnmatch_line("*lift*")


@pytest.mark.parametrize("width", ["80", "120"])
def test_the_summary_fits_the_terminal(
    pytester: pytest.Pytester, model: str, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    start = next(n for n, line in enumerate(result.outlines) if "= skills =" in line)
    assert max(map(len, result.outlines[start:])) <= int(width)
    assert "\x1b" not in result.stdout.str()


def test_colour_only_on_demand(pytester: pytest.Pytester, model: str) -> None:
    cases = [case(f"Open gate {n}?", "gate up", id=f"open-{n}") for n in range(9)]
    write_skill(pytester.path / "skills/gate", cases)  # enough to show the lift
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, "--color=yes")
    assert re.search(r"\x1b\[32m(\x1b\[1m)?\+100", result.stdout.str())


def test_a_report_that_cannot_be_written_is_a_usage_error(
    pytester: pytest.Pytester, model: str, tmp_path: Path
) -> None:
    args = ["--skill", "skills", "--model", model, "--skill-json", str(tmp_path)]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --skill-json {tmp_path}: can't be written: *"])


def test_two_skills_of_the_same_name_are_labelled_by_path(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "old/gate", body="Not known.")
    write_skill(pytester.path / "new/gate")
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "old", "--skill", "new", "--model", model, "--skill-json", "r.json"]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=1, failed=1)
    data = json.loads((pytester.path / "r.json").read_text())
    lifts = {summary["skill"]: summary["lift"] for summary in data["summary"]}
    assert lifts == {"old/gate": 0, "new/gate": 1}


def test_written_files_are_listed_and_problems_come_last(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    args = ["--skill", "skills", "--model", write_script(pytester.path / "a.json"), f"-n{workers}"]
    pytester.makeconftest(
        """
        from pathlib import Path

        def pytest_collection_finish():
            Path("nowhere/run.csv").mkdir(parents=True, exist_ok=True)  # after the check
        """
    )
    result = pytester.runpytest_inprocess(
        *args, "--skill-json", "run.json", "--skill-csv", "nowhere/run.csv"
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "upskill: written: run.json",
            "*1 passed*",
            "✘ --skill-csv nowhere/run.csv: can't be written: is a directory",
        ]
    )
    same = pytester.runpytest_inprocess(*args, "--skill-json", "x", "--skill-html", "./x")
    assert same.ret == 4
    same.stderr.fnmatch_lines(["ERROR: --skill-html x: --skill-json uses the same file*"])
