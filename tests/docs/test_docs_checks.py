"""The table of checks in docs/checks.md and the examples below it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.sandboxes.sandbox import CommandResult
from pytest_upskill.checks import grade, load_checked_cases, parse_checks
from pytest_upskill.checks.final_workspace import Verified, Workspace
from pytest_upskill.checks.group import RESERVED, GroupForm
from pytest_upskill.checks.kinds import KINDS, kinds_of_skill
from pytest_upskill.features.commands.part import Commands
from pytest_upskill.skills.case import Case, WorkspaceFile
from pytest_upskill.trials.answer import Answer, AnswerFile, Usage
from pytest_upskill.trials.transcript import Activity, CommandCall, Turn
from support.kit import write_skill
from support.runs import run_skills

PAGE = (Path(__file__).parents[2] / "docs/checks.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)`[^|]*\| `(\{.*?\})` \| (.+?) (?<!\\)\| (.+?) \|$", re.M)
ROWS = ROW.findall(PAGE)


START = (WorkspaceFile("data.csv", b"1\n2\n"),)


def agent_of(cell: str) -> Answer | None:
    """An agent's answer in a cell of the second table: what it did."""
    what, named = cell.split()[0], re.findall(r"`([^`]*)`", cell)
    files, activity = tuple[AnswerFile, ...](), Activity(activated=True)
    turns: tuple[Turn, ...] = ()
    match what:
        case "made" | "changed":
            file = AnswerFile.of(named[0], named[1].encode())
            files = (replace(file, change=what),)
        case "called":
            turns = tuple(Turn("call", "{}", tool) for tool in named)
        case "asked":
            asked = tuple(CommandCall(tuple(line.split())) for line in named)
            activity = Activity(activated=True, commands=asked)
        case "ran":
            turns = (Turn("call", json.dumps({"cmd": named}), "shell"),)
        case "prints" | "writes":
            return Answer(named[0], workspace=b"kept", activity=activity)
        case "opened" | "not":
            activity = Activity(activated=what == "opened")
        case "read":
            activity = Activity(activated=True, read=tuple(named))
        case "loaded":
            activity = Activity(activated=True, opened=tuple(named))
        case "started":
            activity = Activity(activated=True, scripts=tuple(named))
        case _ if cell.endswith((" turns", " calls")):
            activity = Activity(int(what), int(what), activated=True)
        case _:
            return None
    return Answer("Done.", files=files, transcript=turns, activity=activity)


def answer_of(cell: str) -> Answer:
    """The answer in a cell of the table: text, tokens, seconds or a stop reason."""
    if agent := agent_of(cell):
        return agent
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


def passes(expected: dict[str, Any], cell: str, skill: Path) -> bool:
    """Whether the answer in a cell passes the check of its row."""
    checks = parse_checks(expected, {**KINDS, **kinds_of_skill(skill)}, ())
    if "judge" in expected:
        rulings = dict.fromkeys(expected["judge"], (cell == "ruled pass", "so"))
        return all(one.passed for one in grade(checks, Answer("x"), rulings))
    answer = answer_of(cell)
    ran = CommandResult(0, answer.text.encode())
    verified = Verified(rewards=(("reward.txt", answer.text.encode()),))
    left = Workspace(answer, START, run=lambda *_: ran, verify=lambda *_: verified)
    case = Case("a", "q", parts=(Commands('{"gh": []}'),))
    grades = grade(checks, answer, case=case, workspace=left)
    return all(one.passed for one in grades)


def test_examples_pass_and_fail_as_the_table_says(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    for name, example, right, wrong in ROWS:
        expected: dict[str, Any] = json.loads(example)
        assert list(expected) == [name]
        assert [passes(expected, cell, tmp_path) for cell in (right, wrong)] == [
            True,
            False,
        ], name


def test_every_check_is_in_the_table() -> None:
    combining = set(RESERVED) - set(GroupForm.model_fields)
    assert sorted(row[0] for row in ROWS) == sorted({*KINDS, *combining})
    assert all(f'"{setting}"' in PAGE for setting in GroupForm.model_fields)


def block(title: str, language: str) -> str:
    part = PAGE.partition(f"\n## {title}\n")[2]
    found = re.search(rf"^```{language}\n(.*?)^```", part, re.S | re.M)
    assert found
    return found[1]


def test_partial_credit_example_loads(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text(block("Partial credit", "json"))
    ((_, checks),) = load_checked_cases(file).require_all()
    assert [(check.weight, check.required) for check in checks] == [
        (3, True),
        (1, True),
        (1, False),
    ]


def test_custom_check_example_works(pytester: pytest.Pytester) -> None:
    code = block("Checks of your own", "python")
    assert len(code.splitlines()) < 10
    pytester.makeconftest(code)
    write_skill(
        pytester.path / "skills/gate", json.loads(block("Checks of your own", "json"))
    )
    for lines, outcome in ((3, "passed"), (2, "failed")):
        script = [{"answer": "\n".join(["a line"] * lines)}]
        (pytester.path / "a.json").write_text(json.dumps(script))
        assert run_skills(pytester, "scripted:a.json").outcomes == {outcome: 1}
