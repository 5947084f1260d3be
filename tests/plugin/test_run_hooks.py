"""The hooks of a run's moments: planned, graded, results and next_step."""

import pytest

from support.hook_runs import example, run


def test_plan_is_told_before_the_first_call(
    pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makeconftest(
        """
        def pytest_upskill_planned(config, plan):
            config.trials = [trial.arm for trial in plan.trials()]

        def pytest_upskill_finished(config):
            return f"planned: {', '.join(config.trials)}"
        """
    )
    result = run(pytester, "-n", workers)
    result.stdout.fnmatch_lines(["planned: baseline, skill"])


def test_example_of_results_and_next_step(
    pytester: pytest.Pytester, workers: str
) -> None:
    conftest = example('["make", "skills"]')
    conftest += """
def pytest_upskill_finished(results):
    return f"versions: {results.versions}"
"""
    pytester.makeconftest(conftest.replace("if results.failed else None", ""))
    result = run(pytester, "-n", workers)
    result.stdout.fnmatch_lines(["versions: {'acme': '3.2'}"])
    assert result.outlines[-2:] == ["to build the skills again:", "next: make skills"]


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("passed", "passed"),
        ("better", "passed"),
        ("accepted as failing", "xfailed"),
        ("could be chance", "xfailed"),
        ("regressed", "failed"),
        ("failed", "failed"),
    ],
)
def test_standing_decides_how_a_graded_test_ends(
    pytester: pytest.Pytester, kind: str, outcome: str
) -> None:
    pytester.makeconftest(
        f"""
        from pytest_upskill import Standing

        def pytest_upskill_graded(item, case, records):
            assert [record.arm for record in records] == ["baseline", "skill"]
            return Standing("{kind}", f"{{case.case}}: as the hook says")
        """
    )
    result = run(pytester)
    result.assert_outcomes(**{outcome: 1})
    if kind == "regressed":
        result.stdout.fnmatch_lines(["*open-gate: as the hook says*"])


@pytest.mark.parametrize(
    ("hook", "body", "message"),
    [
        ("planned", "raise ValueError('x')", "raised ValueError: x"),
        ("graded", "raise ValueError('x')", "raised ValueError: x"),
        ("graded", "return 3", "returned 3"),
        ("results", "raise ValueError('x')", "raised ValueError: x"),
        ("results", "return {'verdict': 1}", "raised TypeError: "),
        ("results", "return 5", "returned 5"),
        ("next_step", "raise ValueError('x')", "raised ValueError: x"),
        ("next_step", "return 3", "returned 3"),
    ],
)
def test_broken_hook_is_told_in_one_line(
    pytester: pytest.Pytester, hook: str, body: str, message: str
) -> None:
    name = f"pytest_upskill_{hook}"
    pytester.makeconftest(f"def {name}():\n    {body}")
    result = run(pytester)
    result.stdout.fnmatch_lines([f"*{name}*{message}*"])
    assert "INTERNALERROR" not in result.stdout.str()
