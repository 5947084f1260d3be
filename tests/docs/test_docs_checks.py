"""The table of checks in docs/cases.md and the examples below it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import KINDS, grade, load_checked_cases, parse_checks
from pytest_upskill.checks.parse import RESERVED, GroupForm
from pytest_upskill.trials.answer import Answer, Usage
from support.checking import graded
from support.kit import write_skill

PAGE = (Path(__file__).parents[2] / "docs/cases.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)`[^|]*\| `(\{.*?\})` \| (.+?) (?<!\\)\| (.+?) \|$", re.M)
ROWS = ROW.findall(PAGE)


def answer_of(cell: str) -> Answer:
    """The answer in a cell of the table: text, tokens, seconds or a stop reason."""
    if text := re.fullmatch(r"`(.*)`", cell):
        return Answer(text[1].replace("⏎", "\n").replace(r"\|", "|"))
    match cell.split():
        case [number, "tokens"]:
            return Answer("x", Usage(output=int(number)))
        case [number, "seconds"]:
            return Answer("x", seconds=float(number))
        case ["stop", reason]:
            return Answer("x", stop=reason)
    raise AssertionError(cell)


@pytest.mark.parametrize(("name", "example", "right", "wrong"), ROWS, ids=[row[0] for row in ROWS])
def test_example_passes_and_fails_as_the_table_says(
    name: str, example: str, right: str, wrong: str
) -> None:
    expected: dict[str, Any] = json.loads(example)
    assert list(expected) == [name]
    if name == "judge":
        (text,) = expected["judge"]
        checks = parse_checks(expected, KINDS, ())
        passed, failed = (
            grade(checks, Answer("x"), {text: (cell == "ruled pass", "so")})
            for cell in (right, wrong)
        )
        assert (passed[0].passed, failed[0].passed) == (True, False)
        return
    assert all(grade.passed for grade in graded(expected, answer_of(right)))
    assert not all(grade.passed for grade in graded(expected, answer_of(wrong)))


def test_every_check_is_in_the_table() -> None:
    combining = set(RESERVED) - set(GroupForm.model_fields)
    assert sorted(row[0] for row in ROWS) == sorted({*KINDS, *combining})
    assert all(f'"{setting}"' in PAGE for setting in GroupForm.model_fields)


def block(title: str, language: str) -> str:
    part = PAGE.partition(f"\n### {title}\n")[2]
    found = re.search(rf"^```{language}\n(.*?)^```", part, re.S | re.M)
    assert found
    return found[1]


def test_partial_credit_example_loads(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(block("Partial credit", "json"))
    ((_, checks),) = load_checked_cases(file).whole()
    assert [(check.weight, check.required) for check in checks] == [
        (3, True),
        (1, True),
        (1, False),
    ]


@pytest.mark.parametrize(("lines", "outcome"), [(3, "passed"), (2, "failed")])
def test_custom_check_example_works(pytester: pytest.Pytester, lines: int, outcome: str) -> None:
    code = block("Checks of your own", "python")
    assert len(code.splitlines()) < 10
    pytester.makeconftest(code)
    write_skill(pytester.path / "skills/gate", json.loads(block("Checks of your own", "json")))
    script = [{"answer": "\n".join(["a line"] * lines)}]
    (pytester.path / "a.json").write_text(json.dumps(script))
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", "scripted:a.json")
    result.assert_outcomes(**{outcome: 1})
