"""Checks of what an agent did."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_upskill._util.texts import shortened
from pytest_upskill.trials.transcript import Turn
from support.checking import agent_answer, graded, passes, reason, refused

CALLS = [
    ("read", {"path": "a.md"}),
    ("bash", {"command": "ls -la && make build"}),
    ("Bash", {"command": "rm -r out", "timeout": 3}),
    ("shell", {"cmd": ["bash", "-lc", "pytest -q"]}),
    ("write", {"path": "rm -rf", "content": "sudo reboot"}),
]
ANSWER = agent_answer(calls=CALLS, turns=4)


@pytest.mark.parametrize(
    ("expected", "good"),
    [
        ({"tools_used": ["bash", "read"]}, True),
        ({"tools_used": "READ"}, True),
        ({"tools_used": "READ", "case_sensitive": True}, False),
        ({"tools_used": ["bash", "edit"]}, False),
        ({"tools_not_used": ["edit", "web"]}, True),
        ({"tools_not_used": ["edit", "write"]}, False),
        ({"tool_order": ["read", "write"]}, True),
        ({"tool_order": ["read", "bash", "bash", "write"]}, True),
        ({"tool_order": ["write", "read"]}, False),
        ({"tool_order": ["read", "read"]}, False),
        ({"commands_run": ["make build", r"^bash .*pytest"]}, True),
        ({"commands_run": "reboot"}, False),
        ({"commands_not_run": ["reboot", r"rm -rf"]}, True),
        ({"commands_not_run": r"\brm\b"}, False),
        ({"max_turns": 4}, True),
        ({"max_turns": 3}, False),
        ({"max_tool_calls": 5}, True),
        ({"max_tool_calls": 4}, False),
        ({"not": {"tools_used": "edit"}}, True),
        ({"tools_used": {"tool": "bash", "min": 2, "max": 2}}, True),
        ({"tools_used": {"tool": "bash", "max": 1}}, False),
        ({"tools_used": {"tool": "bash", "max": 0, "input_match": "reboot"}}, True),
        ({"tools_used": {"tool": "bash", "max": 0, "input_match": "make"}}, False),
        ({"tools_used": [{"tool": "Read", "input_match": r'^\{"path":"a\.md"'}]}, True),
        ({"tools_used": [{"tool": "read", "input_match": r'"path":\s*"A'}]}, False),
        (
            {"tool_order": ["read", {"tool": "bash", "input_match": "rm -r"}, "write"]},
            True,
        ),
        (
            {"tool_order": [{"tool": "bash", "input_match": "rm"}, {"tool": "bash"}]},
            False,
        ),
        (
            {
                "transcript": {
                    "contains": '"name":"Bash","input":{"command":"rm -r out"'
                }
            },
            True,
        ),
        ({"transcript": {"not_regex": "reboot"}}, False),
    ],
)
def test_tools_commands_and_numbers(expected: Any, good: bool) -> None:
    assert all(one.passed for one in graded(expected, ANSWER)) is good


def test_reasons() -> None:
    assert (
        reason(ANSWER, tools_used="edit")
        == '"edit" was not called (called: read, bash, Bash, shell, write)'
    )
    assert (
        reason(ANSWER, tool_order=["write", "read"])
        == '"read" was not called after "write" (called: read, bash, Bash, shell,'
        " write)"
    )
    assert reason(ANSWER, commands_run="cargo") == 'none of 3 commands matches "cargo"'
    assert (
        reason(ANSWER, commands_not_run="make")
        == '"make" matches the command "ls -la && make build"'
    )
    assert reason(ANSWER, max_turns=3) == "4 turns (limit 3)"


@pytest.mark.parametrize(
    "arguments", ["rm", ["rm"], 3, None, {"command": 3}, {"command": {}}]
)
def test_odd_arguments_of_a_call_are_no_command(arguments: Any) -> None:
    assert not passes(agent_answer(calls=[("bash", arguments)]), commands_run="rm")


def test_a_command_that_the_transcript_cuts_is_searched_as_far_as_it_goes() -> None:
    arguments = json.dumps({"command": f"curl x | sh; echo {'a' * 50_000}; rm -rf out"})
    turn = Turn("call", shortened(arguments, 1000), "bash")
    answer = replace(agent_answer(), transcript=(turn,))
    assert passes(answer, commands_run=[r"curl x \| sh", "rm -rf out"])
    assert not passes(answer, commands_not_run="curl")
    broken = replace(turn, text='{"command": "curl')  # never ran
    assert not passes(replace(answer, transcript=(broken,)), commands_run="curl")


USED = agent_answer(
    activated=True, read=("references/a.md",), scripts=("scripts/run.py",)
)
NOT_USED = agent_answer(activated=False)
BASELINE = agent_answer(activated=None)
OF_SKILL: list[tuple[dict[str, Any], bool, bool]] = [
    ({"skill_activated": True}, True, False),
    ({"skill_activated": False}, False, True),
    ({"references_read": ["references/a.md"]}, True, False),
    ({"references_read": "./references/a.md"}, True, False),
    ({"references_read": ["references/a.md", "b.md"]}, False, False),
    ({"scripts_run": "scripts/run.py"}, True, False),
    ({"not": {"scripts_run": "scripts/run.py"}}, False, True),
    (
        {"any_of": [{"skill_activated": False}, {"max_turns": 3, "contains": "x"}]},
        False,
        True,
    ),
]


@pytest.mark.parametrize(("expected", "used", "not_used"), OF_SKILL)
def test_how_the_skill_was_used(expected: Any, used: bool, not_used: bool) -> None:
    assert passes(USED, **expected) is used
    assert passes(NOT_USED, **expected) is not_used


@pytest.mark.parametrize("expected", [expected for expected, _, _ in OF_SKILL])
def test_without_a_skill_the_other_checks_decide(expected: Any) -> None:
    grades = graded(expected, BASELINE)
    assert len(grades) == len(graded(expected, USED))
    assert all(one.passed and "no skill" in one.reason for one in grades)
    assert not passes(BASELINE, **expected, starts_with="x")


def test_a_baseline_that_did_nothing_passes_none_of_it() -> None:
    empty = agent_answer(activated=None, text="")
    for expected, _, _ in OF_SKILL:
        assert not any(one.passed for one in graded(expected, empty))


def test_a_plain_completion_passes_none_of_it() -> None:
    for expected in (
        {"max_turns": 3},
        {"tools_not_used": "x"},
        {"skill_activated": False},
    ):
        (only,) = graded(expected, "Done.")
        assert not only.passed
        assert "plain completion" in only.reason


@pytest.mark.parametrize(
    "expected",
    [
        {"tools_used": []},
        {"tool_order": 3},
        {"commands_run": "("},
        {"max_turns": 0},
        {"max_tool_calls": True},
        {"skill_activated": "yes"},
        {"references_read": [""]},
    ],
)
def test_mistakes_are_told(expected: Any) -> None:
    assert refused(expected).startswith(next(iter(expected)))


def test_calls_of_mcp_tools_alone() -> None:
    turns = (
        Turn("assistant", "apples"),
        Turn("call", '{"a": "pears"}', "bash"),
        Turn("call", '{"title": "plums"}', "mcp__tracker__create"),
        Turn("result", "cherries", "mcp__tracker__create"),
    )
    answer = replace(ANSWER, transcript=turns)
    assert passes(answer, mcp_calls={"contains": ["plums", "cherries"]})
    assert passes(answer, mcp_calls={"not_contains": ["apples", "pears"]})
    assert not passes(answer, mcp_calls={"regex": "pears"})
