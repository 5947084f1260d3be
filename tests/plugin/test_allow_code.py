"""--skill-allow-code: checks in a file beside the skill."""

from pathlib import Path

import pytest

from support.kit import write_script, write_skill
from support.runs import SkillRun, run_skills

OWN = """
import dataclasses
from pathlib import Path

@dataclasses.dataclass
class Limit:
    most: int = 20

def short(context):
    return len(context.answer.text) <= Limit().most, "short"

def wrong(context):
    assert "door" in context.answer.text, "no door"

number = 3
Path(__file__).with_name("run").touch()
"""


def write_own(pytester: pytest.Pytester, text: str = OWN) -> Path:
    folder = pytester.path / "skills/gate"
    folder.mkdir(parents=True)
    (folder / "checks.py").write_text(text)
    return folder


def run_case(pytester: pytest.Pytester, expected: object, *args: str) -> SkillRun:
    write_skill(pytester.path / "skills/gate", [{"input": "q", "expected": expected}])
    return run_skills(pytester, write_script(pytester.path / "answers.json"), *args)


def test_a_function_beside_the_skill_runs_if_allowed(
    pytester: pytest.Pytester, workers: str
) -> None:
    folder = write_own(pytester)
    expected = {"python": "checks.py:short"}
    run = run_case(pytester, expected, "--skill-allow-code", "-n", workers)
    assert run.outcomes["passed"] == 1
    assert run.record(arm="skill")["checks"][0]["reason"] == "checks.py:short: short"
    assert (folder / "run").exists()
    assert not (folder / "__pycache__").exists()


def test_a_function_may_fail_by_an_assert(pytester: pytest.Pytester) -> None:
    write_own(pytester)
    run = run_case(pytester, {"python": "checks.py:wrong"}, "--skill-allow-code")
    assert run.outcomes == {"failed": 1}
    assert run.record(arm="skill")["checks"][0]["reason"] == "checks.py:wrong: no door"


def test_a_function_that_is_not_allowed_is_not_even_loaded(
    pytester: pytest.Pytester,
) -> None:
    folder = write_own(pytester)
    run = run_case(pytester, {"any_of": [{"python": "checks.py:short"}]})
    assert run.outcomes == {"failed": 1}
    assert (
        "[0].python: runs code from the skill's folder; allow it with --skill-"
        in run.screen
    )
    assert not (folder / "run").exists()


def test_functions_that_are_missing_are_errors_of_their_cases(
    pytester: pytest.Pytester,
) -> None:
    folder = write_own(pytester)
    pytester.makeconftest("")
    (folder / "broken.py").write_text("(")
    (folder / "exits.py").write_text("raise SystemExit(3)")
    (folder / "imports.py").write_text("import nothing_such")
    messages = {
        "checks.py": 'must have the form "checks.py:function"',
        "checks.txt:short": 'must have the form "checks.py:function"',
        "checks.py:a.b": 'must have the form "checks.py:function"',
        "checks.py:long": "\"checks.py\" has no function 'long'",
        "checks.py:number": "\"checks.py\" has no function 'number'",
        "none.py:f": '"none.py": no such file',
        "../../conftest.py:f": '"../../conftest.py" is outside the skill\'s folder',
        "broken.py:f": (
            "\"broken.py\" can't be loaded: SyntaxError: '(' was never closed"
        ),
        "exits.py:f": '"exits.py" can\'t be loaded: SystemExit: 3',
        "imports.py:f": (
            "can't be loaded: ModuleNotFoundError: No module named 'nothing_such'"
        ),
    }
    cases = [{"input": name, "expected": {"python": name}} for name in messages]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "answers.json")
    run = run_skills(pytester, model, "--skill-allow-code", "-vv")
    assert run.outcomes == {"failed": len(messages)}
    lines = run.screen.splitlines()
    for number, message in enumerate(messages.values()):
        place = f"skills/gate/skill_meta.json:1: cases[{number}].expected.python: "
        assert [message for line in lines if place in line and message in line]
