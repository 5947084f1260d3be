"""MCP servers of cases: stand-ins answer agents from mocks, the same in both arms."""

import json
from typing import Any

import pytest

from support.agents import write_files
from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

CREATE, CLOSE = "mcp__tracker__create", "mcp__tracker__close"
MOCKS = {
    "tracker/create.md": (
        "---\nexpect: {title: /lamp/i}\n---\nCreated #4821: {{input.title}}"
    ),
    "tracker/_tools.json": json.dumps(
        {"tools": [{"name": "close", "description": "Shut."}]}
    ),
    "wiki/find.md": "Nothing.",
}
CASE = {"id": "file", "input": "File it.", "expected": {"contains": "4821"}}


def clerk(asked: Asked) -> Reply:
    """Files an issue about the lamp with the skill, about something else without."""
    about = "Lamp" if "<name>desk</name>" in asked.system else "Chair"
    calls: list[tuple[str, dict[str, Any]]] = [(CREATE, {"title": about}), (CLOSE, {})]
    if (step := len(asked.results)) < len(calls):
        return Reply(calls=(calls[step],))
    return Reply(f"Done: {asked.results[0]}")


def write_desk(pytester: pytest.Pytester, **more: object) -> None:
    folder = write_skill(pytester.path / "skills/desk", [{**CASE, **more}])
    write_files(folder, {f"evals/mocks/{path}": text for path, text in MOCKS.items()})


def run(
    pytester: pytest.Pytester, *args: str, agent: str = "loop"
) -> tuple[SkillRun, list[Asked]]:
    with LoopbackServer(clerk) as server:
        return run_skills(pytester, server, "--skill-agent", agent, *args), list(
            server.asked
        )


@needs_bwrap
def test_an_agent_has_the_tools_in_both_arms(
    pytester: pytest.Pytester, workers: str
) -> None:
    used = {
        "tools_used": ["tracker/create", CLOSE],
        "tools_not_used": ["mcp__wiki__find"],
    }
    write_desk(pytester, expected={"contains": "4821", **used})
    done, asked = run(pytester, "-n", workers)
    skill, baseline = done.record(arm="skill"), done.record(arm="baseline")
    assert (skill["outcome"], baseline["outcome"]) == ("passed", "failed")
    for one in asked:
        assert {CREATE, CLOSE, "mcp__wiki__find"} <= set(one.tools)
    checks = {check["check"]: check["passed"] for check in baseline["checks"]}
    assert checks == {
        "contains": False,
        "tools_used": True,
        "tools_not_used": True,
        "mcp_expected": False,
    }
    assert "mcp_expected" not in {check["check"] for check in skill["checks"]}
    assert skill["activity"]["findings"] == [
        "no mock answers the MCP tool tracker/close"
    ]


@needs_bwrap
def test_an_edited_mock_asks_again(pytester: pytest.Pytester) -> None:
    write_desk(pytester)
    with LoopbackServer(clerk) as server:
        for text, asked in [("Nothing.", 3), ("Nothing.", 3), ("Something.", 6)]:
            write_files(pytester.path, {"skills/desk/evals/mocks/wiki/find.md": text})
            run_skills(pytester, server, "--skill-agent", "loop", "--skill-no-baseline")
            assert len(server.asked) == asked


@needs_bwrap
def test_a_case_names_its_servers(pytester: pytest.Pytester) -> None:
    write_desk(pytester, mcp=["wiki"])
    _, asked = run(pytester)
    assert {name for one in asked for name in one.tools if "mcp" in name} == {
        "mcp__wiki__find"
    }


def test_a_plain_completion_needs_no_servers_unless_a_case_names_some(
    pytester: pytest.Pytester,
) -> None:
    write_desk(pytester)
    _, asked = run(pytester, agent="chat")
    assert len(asked) == 2
    write_desk(pytester, mcp=["tracker"])
    done, asked = run(pytester, agent="chat")
    assert asked == []
    assert "only agents can use" in done.screen


def test_agents_that_take_no_servers_are_refused_by_name(
    pytester: pytest.Pytester,
) -> None:
    conftest = """
        from pytest_upskill import Agent

        class Idle(Agent):
            name = "idle"

            def version(self):
                return "1"

            async def run(self, sandbox, call, recorder, spec):
                return recorder.answer("end")

        def pytest_upskill_agents():
            return {"idle": Idle}
    """
    pytester.makeconftest(conftest)
    write_desk(pytester)
    done, asked = run(pytester, agent="idle")
    assert (done.status, asked) == (4, [])
    assert (
        "--skill-agent idle: it can't be given the MCP servers of desk" in done.screen
    )
    write_desk(pytester, mcp=[])
    assert run(pytester, agent="idle")[0].status != 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"mcp": ["trackr"]},
            "skill_meta.json:1: cases[0].mcp[0]: no mocks of the MCP server",
        ),
        ({"mocks": "more"}, "cases[0].mocks: 'more' is not in evals/"),
        ({"mcp": "tracker"}, "cases[0].mcp: must be a list"),
    ],
)
def test_wrong_keys(
    pytester: pytest.Pytester, more: dict[str, Any], message: str
) -> None:
    write_desk(pytester, **more)
    done, asked = run(pytester)
    assert asked == []
    assert message in done.screen


def test_a_broken_mock_is_one_message(pytester: pytest.Pytester) -> None:
    write_desk(pytester)
    write_files(
        pytester.path,
        {"skills/desk/evals/mocks/wiki/find.md": "---\nerror: maybe\n---\n"},
    )
    done, asked = run(pytester)
    assert asked == []
    assert "skills/desk/evals/mocks/wiki/find.md:2: error: must be" in done.screen
