"""A run from its questions to its records, files and exit status."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pytest_upskill.trials.trial import BASE_SYSTEM, FOLLOW_SKILL
from support.kit import case, write_script, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.runs import run_skills


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    write_skill(pytester.path / "skills/gate")
    return write_script(pytester.path / "answers.json")


def test_the_json_report_holds_the_whole_run(
    pytester: pytest.Pytester, model: str
) -> None:
    run = run_skills(pytester, model, "--skill-json", "out/deep/r.json")
    assert (run.status, run.outcomes) == (0, {"passed": 1})
    report = json.loads((pytester.path / "out/deep/r.json").read_text())
    assert report["schema"] == 1
    assert report["gate"] == {"passed": None, "reasons": []}
    assert [skill["path"] for skill in report["skills"]] == ["skills/gate"]
    [summary] = report["summary"]
    assert (summary["baseline_rate"], summary["skill_rate"], summary["lift"]) == (
        0,
        1,
        1,
    )
    assert (summary["checks_passed"], summary["checks_total"]) == (1, 1)
    records = [(one["arm"], one["outcome"], one["output"]) for one in report["records"]]
    assert records == [
        ("baseline", "failed", "No idea."),
        ("skill", "passed", "Type gate up."),
    ]


def test_a_failure_is_one_line_where_pytest_wants_one(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json", knows="Push it.")
    more = ["--tb=line", "--junitxml", "j.xml", "--skill-runs", "2"]
    run = run_skills(pytester, model, *more)
    headline = '0 of 2 runs passed: "gate up" is not in the answer'
    assert any(line.endswith(f": {headline}") for line in run.result.outlines)
    assert "Question:" not in run.screen
    [failure] = ET.parse(pytester.path / "j.xml").iter("failure")
    assert failure.get("message") == headline


def test_no_answer_is_an_error_not_a_failure(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "a.json").write_text(
        '[{"system": "gate up", "answer": "gate up"}]'
    )
    run = run_skills(pytester, "scripted:a.json")
    assert (run.status, run.outcomes) == (1, {"errors": 1})
    assert run.record(arm="baseline")["outcome"] == "errored"
    assert "no rule in a.json matches" in run.record(arm="baseline")["error"]
    assert run.summary["errored"] == 1


def test_the_newer_of_two_names_of_an_address_counts(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_BASE", "http://elsewhere/v1")
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        run = run_skills(pytester, "openai.gpt-4.1")
    assert run.outcomes == {"passed": 1}
    assert len(server.asked) == 2
    assert "OPENAI_API_BASE name different servers" in run.screen


def test_an_address_that_no_model_uses_is_told(
    pytester: pytest.Pytester, model: str
) -> None:
    run = run_skills(pytester, model, "--skill-base-url", "http://127.0.0.1:9/v1")
    assert run.outcomes == {"passed": 1}
    assert f"--skill-base-url is not used by {model}" in run.screen


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
        run = run_skills(pytester, "haiku", "--model", "openai:gpt-5.4-mini")
    assert run.outcomes == {"passed": 2}
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
    body = json.dumps(asked.body, sort_keys=True).replace(
        json.dumps(asked.system), '"SYSTEM"'
    )
    lengths = ("content-length", "idempotency-key", "x-stainless-retry-count")
    headers = {
        name: value for name, value in asked.headers.items() if name not in lengths
    }
    return body + json.dumps(headers, sort_keys=True)


def test_a_case_passes_when_more_than_half_of_its_runs_do(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"case {n}", "yes", id=f"passes-{n}-of-4") for n in (2, 3)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makepyfile(
        fake="""
        def answer(question):
            return "yes" if question.run <= int(question.messages[0][1][-1]) else "no"
        """
    )
    run = run_skills(pytester, "scripted:fake.py:answer", "--skill-runs", "4", "-rA")
    assert run.outcomes == {"passed": 1, "failed": 1}
    assert re.search(r"^PASSED .*passes-3-of-4", run.screen, re.M)
    assert (run.summary["cases"], run.summary["runs"]) == (2, 4)


def test_without_baseline_only_the_skill_is_asked(
    pytester: pytest.Pytester, model: str
) -> None:
    run = run_skills(pytester, model, "--skill-no-baseline")
    assert [record["arm"] for record in run.records] == ["skill"]
    assert (run.summary["lift"], run.summary["skill_rate"]) == (None, 1)


def test_stepwise_and_failed_first_know_what_failed(pytester: pytest.Pytester) -> None:
    cases = [case(name, "gate up", id=name) for name in ("a", "b", "c")]
    write_skill(pytester.path / "skills/gate", cases)
    rules = [{"question": "b", "answer": "no"}, {"answer": "gate up"}]
    (pytester.path / "a.json").write_text(json.dumps(rules))
    first = run_skills(pytester, "scripted:a.json", "--sw")
    assert (first.outcomes["passed"], first.outcomes["failed"]) == (1, 1)
    second = run_skills(pytester, "scripted:a.json", "--sw")
    assert (second.outcomes["deselected"], second.outcomes["failed"]) == (1, 1)
    third = run_skills(pytester, "scripted:a.json", "--ff", "-v")
    assert re.findall(r"::(\w)\[", third.screen)[:3] == ["b", "a", "c"]


def test_stopping_at_the_first_failure_cancels_what_was_not_asked(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"question {n}", "never", id=f"c{n}") for n in range(30)]
    write_skill(pytester.path / "skills/gate", cases)

    def script(asked: Asked) -> Reply | Fault:
        return Reply("no") if asked.question == "question 0" else Fault("hang")

    with LoopbackServer(script) as server:
        run = run_skills(pytester, server, "-x", "--skill-concurrency", "2")
    assert run.outcomes["failed"] == 1
    assert len(server.asked) <= 4
    assert len(run.report["lost"]) == 29


def test_no_more_calls_are_in_flight_than_allowed(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(6)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("yes"), together=3) as server:
        run = run_skills(pytester, server, "--skill-concurrency", "3")
    assert run.outcomes == {"passed": 6}
    assert server.most_in_flight == 3


def test_a_report_that_cannot_be_written_is_a_usage_error(
    pytester: pytest.Pytester, model: str, tmp_path: Path
) -> None:
    run = run_skills(pytester, model, "--skill-json", str(tmp_path))
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert run.result.errlines[0].startswith(
        f"ERROR: --skill-json {tmp_path}: can't be written: "
    )


def test_written_files_are_listed_and_problems_come_last(
    pytester: pytest.Pytester, model: str
) -> None:
    pytester.makeconftest("""
        from pathlib import Path

        def pytest_collection_finish():
            Path("nowhere/run.md").mkdir(parents=True, exist_ok=True)  # after the check
        """)
    run = run_skills(pytester, model, "--skill-markdown", "nowhere/run.md")
    assert (run.status, run.outcomes) == (1, {"passed": 1})
    written = next(
        line for line in run.result.outlines if line.startswith("upskill: written: ")
    )
    assert "report.json" in written
    assert "run.md" not in written
    problem = "✘ --skill-markdown nowhere/run.md: can't be written: "
    assert any(line.startswith(problem) for line in run.ending)
