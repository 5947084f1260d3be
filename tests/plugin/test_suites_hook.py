"""pytest_upskill_suites: cases in a form of the project's own."""

from pathlib import Path

import pytest

from support.hook_runs import example, run
from support.kit import write_skill
from support.runs import run_skills
from support.usage import usage_error

EXAMPLE = example("pytest_upskill_suites")
ROWS = (
    "question,answer\nHow do I open the gate?,gate up\nHow do I close it?,gate down\n"
)
RETURNED = "def pytest_upskill_suites(path): return "
UP = {
    "id": "up",
    "input": "How do I open the gate?",
    "expected": {"contains": "gate up"},
}
RAISES = "raise InputError('cases.csv:4', 'no question')"
MADE = """
from pytest_upskill import InputError, Suite

def pytest_upskill_suites(path):
    {body}
"""


@pytest.fixture(autouse=True)
def skill(pytester: pytest.Pytester) -> Path:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "evals").mkdir()
    (folder / "evals/questions.csv").write_text(ROWS)
    return folder


def test_the_example_of_the_docs(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makeconftest(EXAMPLE)
    result = run(pytester, "--collect-only", "-q", "-n", workers)
    lines = [line for line in result.stdout.lines if "::" in line]
    assert [line.partition("::")[0] for line in lines] == ["skills/gate/SKILL.md"] * 2
    assert ["open-the-gate" in lines[0], "close-it" in lines[1]] == [True, True]


def test_its_cases_are_asked_and_named_by_their_ids(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(MADE.format(body=f"return Suite.of(path, [{UP}])"))
    pytester.makepyfile(model="def answer(question): return 'gate up'")
    ran = run_skills(pytester, "scripted:model.py:answer", "skills/gate/SKILL.md::up")
    assert ran.outcomes == {"passed": 1}
    assert ran.record(arm="skill")["case"] == "up"


def test_a_file_that_is_named_is_read_by_the_hook(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(EXAMPLE)
    (pytester.path / "other.csv").write_text("question,answer\nWhich door?,oak\n")
    result = run(pytester, "--collect-only", "-q", "--skill-tests", "other.csv")
    result.stdout.fnmatch_lines(["skills/gate/SKILL.md::which-door-*"])


def test_triggers_in_files_of_their_own_are_read_too(
    pytester: pytest.Pytester, skill: Path
) -> None:
    pytester.makeconftest(EXAMPLE)
    (skill / "evals/triggers.json").write_text(
        '[{"query": "Open up", "should_trigger": true}]'
    )
    result = run(pytester, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["skills/gate/SKILL.md::trigger-open-up*"])


def test_a_broken_case_has_its_file_and_line(
    pytester: pytest.Pytester, skill: Path
) -> None:
    pytester.makeconftest(EXAMPLE)
    (skill / "evals/questions.csv").write_text(
        "question,answer\nWhich door?,oak\n,elm\n"
    )
    result = run(pytester)
    result.stdout.fnmatch_lines(
        ["*skills/gate/evals/questions.csv:3: *input: must not be empty*"]
    )


@pytest.mark.parametrize(
    ("conftest", "message"),
    [
        (RETURNED + "7", "pytest_upskill_suites: returned 7"),
        (
            RETURNED + "1 / 0",
            "conftest.py:1: pytest_upskill_suites raised ZeroDivisionError",
        ),
        (
            MADE.format(body="raise InputError('cases.csv:4', 'no question')"),
            "cases.csv:4: no question",
        ),
    ],
)
def test_what_is_wrong_with_it_is_one_line(
    pytester: pytest.Pytester, conftest: str, message: str
) -> None:
    pytester.makeconftest(conftest)
    assert message in usage_error(pytester, "--skill", "skills")
