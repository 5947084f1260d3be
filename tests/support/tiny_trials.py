"""Trials of a tiny agent as a command in a sandbox, through the engine,
on a loopback server.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import anthropic
import pytest

from pytest_upskill.agents.agent_trials import AgentTrials
from pytest_upskill.agents.command_agent import AgentJob, CommandAgent, Launch
from pytest_upskill.agents.sandboxes.kinds import kind_of
from pytest_upskill.agents.task_sandbox import always
from pytest_upskill.engine import AgentPlaces, Engine, ModelFacts
from pytest_upskill.engine.budget import Budget
from pytest_upskill.models import Model
from pytest_upskill.skills.case import SandboxNeeds
from pytest_upskill.trials.answer import Reply
from pytest_upskill.trials.trial import Question, Task
from support import loopback
from support.endpoints import spec_of
from support.loopback import Asked

BODY = "# Gates\n\nPush the gate, wait for the click of its latch, then pull.\n"
PACKAGES = str(Path(anthropic.__file__).parents[1])
PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
WAYS = {"messages": "anthropic", "chat": "openai", "responses": "openai"}
# An SDK takes a second to import: the gate tries one,
# and tests/agents/gateway has all protocols.
EACH_WAY = pytest.mark.parametrize(
    "way",
    [
        "messages",
        *(pytest.param(way, marks=pytest.mark.nightly) for way in list(WAYS)[1:]),
    ],
)
TINY = Path(__file__).parent / "tiny_agent.py"

# The same without an SDK, which takes seconds to import.
BARE = b"""
import json, os, subprocess, sys, urllib.request
said = [{"role": "user", "content": sys.argv[3]}]
calls = [None]
while calls:
    body = {"model": sys.argv[2], "max_tokens": 1000, "messages": said,
        "tools": [{"name": "bash"}]}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps(body).encode(), {"x-api-key": os.environ["ANTHROPIC_API_KEY"]})
    content = json.load(urllib.request.urlopen(request))["content"]
    calls = [one for one in content if one["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one["id"], "content":
        subprocess.getoutput(one["input"]["command"])} for one in calls]
    said.append({"role": "assistant", "content": content})
    said.append({"role": "user", "content": results})
"""


# The same with a session, which goes on when it is started again.
IN_SESSION = BARE.replace(
    b"\nsaid = [",
    b"""
session = os.path.expanduser("~/session.json")
said = json.load(open(session)) if os.path.exists(session) else []
said += [""",
)
IN_SESSION += b"json.dump(said[:-1], open(session, 'w'))\n"


class TinyAgent(CommandAgent):
    name = "tiny"
    program = "sh"
    skills_folder = "/skills"

    def __init__(self, way: str, script: bytes | None = None) -> None:
        super().__init__()
        self._way = way
        self._script = script or TINY.read_bytes()

    def version(self) -> str:
        return "1"

    def launch(self, job: AgentJob) -> Launch:
        env = {
            "PYTHONPATH": PACKAGES,
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANTHROPIC_BASE_URL": job.url,
            "ANTHROPIC_API_KEY": job.key,
            "OPENAI_BASE_URL": f"{job.url}/v1",
            "OPENAI_API_KEY": job.key,
        }
        script = self._script.decode()
        arguments = [PYTHON, "-c", script, self._way, job.model, job.text]
        return Launch(["-c", 'exec "$@"', "sh", *arguments], env)


def carried_out(
    url: str,
    way: str,
    *,
    script: bytes | None = None,
    sandbox: str = "bwrap",
    budget: Budget | None = None,
    timeout: float = 240,
    prompt: str = "Open the gate.",
    **task: object,
) -> Reply:
    """The reply to a trial of the tiny agent, through the engine."""
    spec = spec_of(WAYS[way], url)

    async def open_model(_: str) -> Model:
        return await spec.provider.open(spec, 120)

    trials = AgentTrials(
        lambda _: TinyAgent(way, script),
        always(kind_of(sandbox)),
        timeout,
        lambda _: spec,
    )
    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: min(120, timeout)),
        concurrency=4,
        agents=AgentPlaces(lambda: trials),
        budget=budget,
    )
    paths = tuple(
        path for path in (sys.base_prefix, PACKAGES) if not path.startswith("/usr")
    )
    needs = SandboxNeeds(paths=paths)
    question = Question(
        *("m", "", (("user", prompt),), 1000, 1),
        task=Task("tiny", needs=needs, **task),  # type: ignore[arg-type]
    )
    try:
        return engine.ask([question])[0]
    finally:
        engine.close()


def steps(
    *commands: str, final: str = "The gate is open."
) -> Callable[[Asked], loopback.Reply]:
    """A model that has these commands run, one by one."""

    def script(asked: Asked) -> loopback.Reply:
        if not asked.tools:
            return loopback.Reply("A title", input_tokens=100, output_tokens=3)
        done = len(asked.results)
        if done == len(commands):
            return loopback.Reply(final)
        call = ("bash", {"command": commands[done]})
        return loopback.Reply("", calls=(call,), thinking=f"Step {done + 1}.")

    return script
