"""What people write about commands: which calls an answer fits, and what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import grade, load_checked_cases, parse_checks
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.errors import CasesError
from pytest_upskill.features.commands.answers import fits
from pytest_upskill.features.commands.part import Commands
from pytest_upskill.features.commands.reading import CommandFiles
from pytest_upskill.skills.case import Case
from pytest_upskill.skills.case_forms import CaseForm
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.transcript import Activity, CommandCall
from support.agents import write_files


@pytest.mark.parametrize(
    ("pattern", "words", "fitting"),
    [
        ("pr list", ["pr", "list"], True),
        ("pr list", ["pr", "list", "-w"], False),
        ("pr *", ["pr", "list", "-w"], True),
        ("pr *", ["pr"], True),
        ("pr *", ["print"], False),
        ("pr*", ["print", "x"], True),
        ("*", [], True),
        ("", ["x"], False),
        ("create --title 'A b'", ["create", "--title", "A b"], True),
        ("get -o {.items[0]}", ["get", "-o", "{.items[0]}"], True),
        ("get -o {.items[0]}", ["get", "-o", "{.items0}"], False),
        ("a?", ["ab"], False),
        ("say *", ["say", "two\nlines"], True),
    ],
)
def test_only_stars_are_wild(pattern: str, words: list[str], fitting: bool) -> None:
    assert fits(pattern, words) is fitting


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- args: a\n  exitt: 1", "gh.yaml:2: [0].exitt: unknown key"),
        ("- args: a\n- exit: 300", "gh.yaml:2: [1].exit: must be 255 or less"),
        ("- args: it's", "gh.yaml:1: [0].args: a quote is not closed"),
        ("- files: {/etc/x: a}", "gh.yaml:1: [0].files./etc/x"),
        ("- files: {../x: a}", "must be a path in the workspace"),
        ("- args: a *\n- args: a b", "'a *' comes first and fits all calls of 'a b'"),
        ("- args: [a", "gh.yaml:1: invalid YAML"),
        ("a: b", "gh.yaml:1: the file: must be a list"),
        ("", "gh.yaml:1: the file: must be a list"),
        ("[]", "must not be empty"),
    ],
)
def test_wrong_file_is_one_line(tmp_path: Path, text: str, error: str) -> None:
    write_files(tmp_path, {"evals/commands/gh.yaml": text})
    with pytest.raises(CasesError) as raised:
        CommandFiles(tmp_path).part_of(CaseForm.model_validate({"input": "x"}))
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        ("more", "'more' is not in evals/, so it would be installed"),
        ("evals/none", "'evals/none' has no NAME.yaml"),
    ],
)
def test_folder_of_a_case_has_commands_in_evals(
    tmp_path: Path, folder: str, problem: str
) -> None:
    file = tmp_path / "skill_meta.json"
    text = '[{"input": "x", "expected": {"contains": "x"}, "commands": "%s"}]'
    file.write_text(text % folder)
    (broken,) = load_checked_cases(file).broken
    assert f"[0].commands: {problem}" in broken.message


@pytest.mark.parametrize(
    ("expected", "passed"),
    [
        ({"called": "gh pr view"}, [True]),
        ({"called": ["gh pr view 12 *", "kubectl"]}, [True, False]),
        ({"called": "gh pr vie"}, [False]),
        ({"called": {"command": "gh", "args": "pr view"}}, [False]),
        ({"called": {"command": "gh", "args": "pr view 12 -w *"}}, [True]),
        ({"called": {"command": "gh", "args": ["pr", "view", "12", "-w"]}}, [True]),
        ({"not_called": ["gh pr merge", "gh *"]}, [True, False]),
    ],
)
def test_checks_read_the_calls(expected: dict[str, Any], passed: list[bool]) -> None:
    calls = (CommandCall(("gh", "pr", "view", "12", "-w")),)
    answer = Answer("Done.", activity=Activity(commands=calls))
    case = Case("a", "q", parts=(Commands('{"gh": [], "kubectl": []}'),))
    grades = grade(parse_checks(expected, KINDS, ()), answer, case=case)
    assert [one.passed for one in grades] == passed


def test_command_without_answers_passes_no_check() -> None:
    answer = Answer("Done.", activity=Activity())
    checks = parse_checks({"called": "gh", "not_called": "gh pr merge"}, KINDS, ())
    grades = grade(checks, answer)
    assert [one.passed for one in grades] == [False, False]
    assert {one.reason for one in grades} == {
        "no calls of gh are seen: add evals/commands/gh.yaml"
    }
