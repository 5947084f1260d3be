"""The doctor's trial of an agent."""

import asyncio
import os

import pytest

from pytest_upskill.agents.loop import LoopAgent
from pytest_upskill.agents.port import Room, Sandbox, SandboxError, SandboxKind
from pytest_upskill.agents.probe import STEPS, probe
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.unconfined import Unconfined
from support.sandboxes import needs_bwrap

OUTSIDE = ("key invisible", "network closed")


class Broken(SandboxKind):
    name = "broken"

    def why_not(self, image: str = "") -> str | None:  # noqa: ARG002
        return None

    async def open(self, room: Room) -> Sandbox:  # noqa: ARG002
        raise SandboxError("no room left")


@needs_bwrap
def test_loop_works_in_a_sandbox() -> None:
    found = asyncio.run(probe(LoopAgent(), Bwrap()))
    assert found.done == dict.fromkeys(STEPS, True)
    assert found.works
    assert (found.version, found.problem) == (LoopAgent().version(), "")


def test_without_a_sandbox_the_probe_sees_key_and_network() -> None:
    before = dict(os.environ)
    found = asyncio.run(probe(LoopAgent(), Unconfined()))
    assert [step for step, done in found.done.items() if not done] == list(OUTSIDE)
    assert not found.works
    assert dict(os.environ) == before


def test_a_sandbox_that_does_not_open_is_told() -> None:
    found = asyncio.run(probe(LoopAgent(), Broken()))
    assert not any(found.done.values())
    assert "no room left" in found.problem


@pytest.mark.parametrize("tool", ["skill", "read", "bash", "write"])
@needs_bwrap
def test_an_agent_without_a_tool_is_told(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_upskill.agents.loop_tools import Toolbox

    real = Toolbox.__init__

    def without_tool(self: Toolbox, *args: object) -> None:
        real(self, *args)  # type: ignore[arg-type]
        del self._tools[tool]

    monkeypatch.setattr(Toolbox, "__init__", without_tool)
    found = asyncio.run(probe(LoopAgent(), Bwrap()))
    lacking = {"skill": 2, "read": 3, "bash": 4, "write": 5}[tool]
    assert found.done[STEPS[lacking]] is False
    assert not found.works
