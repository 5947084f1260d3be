"""pytest_upskill_finished: a hook that gets the results of a run."""

import csv

import pytest

from support.collector import Collector
from support.documentation import ROOT
from support.hook_runs import example, records, run
from support.runs import ending


def test_the_example_of_finished_results(
    pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makeconftest(example("lifts.csv"))
    result = run(pytester, "-n", workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["added the verdicts to lifts.csv"])
    rows = list(csv.reader((pytester.path / "lifts.csv").read_text().splitlines()))
    assert rows == [["gate", "", "1.0"]]  # one case is too few for a verdict


def test_the_example_that_sends_a_trace(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest((ROOT / "examples/otel_hook.py").read_text())
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        run(pytester).stdout.fnmatch_lines(["handed 2 spans to the exporter"])
    baseline, skill, whole = collector.spans
    assert whole["name"] == "upskill run"
    assert baseline["parent"] == skill["parent"] == whole["id"]
    assert skill["end"] - skill["start"] == pytest.approx(
        records(pytester)[1]["seconds"] * 1e9
    )
    assert skill["attributes"] == {
        "gen_ai.request.model": "answers.json",
        "gen_ai.usage.input_tokens": 34,
        "gen_ai.usage.output_tokens": 3,
        "upskill.skill": "gate",
        "upskill.case": "open-gate",
        "upskill.arm": "skill",
        "upskill.run": 1,
        "upskill.outcome": "passed",
    }
    event = {
        "gen_ai.evaluation.name": "contains",
        "gen_ai.evaluation.score.value": True,
    }
    assert skill["events"] == [("gen_ai.evaluation.result", event)]
    assert baseline["attributes"]["upskill.outcome"] == "failed"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "raise KeyError('x')",
            "conftest.py:2: pytest_upskill_finished raised KeyError: 'x'",
        ),
        ("return 3", "pytest_upskill_finished: returned 3"),
    ],
)
def test_finished_results_outlive_a_broken_hook(
    pytester: pytest.Pytester, body: str, message: str
) -> None:
    pytester.makeconftest(f"""
        def pytest_upskill_finished(results):
            {body}
        """)
    result = run(pytester)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any(line.startswith(f"✘ {message}") for line in ending(result))
    assert len(records(pytester)) == 2


@pytest.mark.parametrize("args", [["--collect-only"], ["-k", "nothing"]])
def test_nothing_is_finished_where_nothing_is_asked(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    pytester.makeconftest("def pytest_upskill_finished(): raise ValueError")
    result = run(pytester, *args)
    assert "ValueError" not in result.stdout.str()


@pytest.mark.parametrize("hook", ["checks", "models", "prompt", "finished"])
def test_each_hook_is_typed_and_has_a_docstring_with_an_example(hook: str) -> None:
    from pytest_upskill.plugin import hookspecs

    spec = getattr(hookspecs, f"pytest_upskill_{hook}")
    assert "return" in spec.__annotations__
    assert f"def pytest_upskill_{hook}(" in spec.__doc__
