"""pytest_upskill_agents: agents of a project, and what is wrong with them in one
line.
"""

import json
import runpy
import shutil

import pytest

from pytest_upskill import AgentJob
from pytest_upskill.models.model import ProtocolName
from support.documentation import ROOT
from support.fake_cli import VERSION, fake_cli
from support.hook_runs import example
from support.kit import write_script, write_skill
from support.runs import run_skills
from support.sandboxes import needs_bwrap
from support.usage import usage_error

EXAMPLE = example("pytest_upskill_agents")
KNOWS = """
def answer(question):
    return "Type gate up." if "gate up" in repr(question) else "No idea."
"""
PI = ROOT / "examples/pi_agent.py"
# It reads its settings where pi does, and lists the skills, which its model may read.
FAKE_PI = r"""
import json, pathlib, sys, urllib.request
home = pathlib.Path.home()
settings = json.loads((home / ".pi/agent/settings.json").read_text())
models = json.loads((home / ".pi/agent/models.json").read_text())
provider = models["providers"][settings["defaultProvider"]]
assert provider["api"] == "anthropic-messages"
form = {"type": "object", "properties": {"path": {"type": "string"}}}
body = {
    "model": settings["defaultModel"],
    "max_tokens": provider["models"][0]["maxTokens"],
    "system": "Skills: " + " ".join(map(str, home.glob(".agents/skills/*/SKILL.md"))),
    "messages": [{"role": "user", "content": sys.stdin.read()}],
    "tools": [{"name": "read", "description": "read", "input_schema": form}],
}
while True:
    request = urllib.request.Request(
        provider["baseUrl"] + "/v1/messages",
        json.dumps(body).encode(),
        {"x-api-key": provider["apiKey"]},
    )
    content = json.load(urllib.request.urlopen(request))["content"]
    calls = [block for block in content if block["type"] == "tool_use"]
    if not calls:
        break
    results = [
        {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": pathlib.Path(call["input"]["path"]).read_text(),
        }
        for call in calls
    ]
    body["messages"] += [
        {"role": "assistant", "content": content},
        {"role": "user", "content": results},
    ]
"""
READS = """
from pytest_upskill.agents.probe import ScriptStep, ToolScript

KNOWS = [ScriptStep("skill", "gate"), ScriptStep("say", "Type gate up.")]

def answer(question):
    has_skill = "/gate/SKILL.md" in question.system
    steps = KNOWS if has_skill else [ScriptStep("say", "No idea.")]
    return ToolScript(steps, "gate")(question)
"""
MADE = """
from pytest_upskill import CommandAgent, Launch

class Acme(CommandAgent):
    program = "sh"
    install = "pip install acme-agent"
    {more}

    def launch(self, job):
        return Launch(["-c", "true"])

def pytest_upskill_agents():
    return {{"acme": {made}}}
"""


def made(made: str = "Acme", more: str = "def version(self): return '1.2'") -> str:
    return MADE.format(made=made, more=more)


@pytest.fixture(autouse=True)
def _skill(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    write_script(pytester.path / "answers.json")


@needs_bwrap
def test_the_example_of_the_docs(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    system = "/usr/local/bin:/usr/bin:/bin"  # which is in the sandbox as it is
    if not shutil.which("python3", path=system):
        pytest.skip("no python3 in /usr")
    monkeypatch.setenv("PATH", system)
    assert len(EXAMPLE.splitlines()) <= 30
    pytester.makeconftest(EXAMPLE)
    pytester.makepyfile(model=KNOWS)
    args = ("--skill-agent", "acme", "-n", workers)
    run = run_skills(pytester, "scripted:model.py:answer", *args)
    assert run.outcomes["passed"] == 1
    assert "upskill: carried out by acme 3." in run.screen
    baseline, skill = run.record(arm="baseline"), run.record(arm="skill")
    assert (baseline["outcome"], skill["outcome"]) == ("failed", "passed")
    (version,) = run.report["agents"].values()
    assert skill["activity"]["activated"]
    assert skill["activity"]["agents"] == [["acme", version]]
    assert run.summary["agent_version"] == version


@needs_bwrap
def test_the_example_of_pi(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = fake_cli(pytester.path / "bin", "pi", agent=FAKE_PI)
    monkeypatch.setenv("PATH", f"{programs}:/usr/local/bin:/usr/bin:/bin")
    pytester.makeconftest(PI.read_text())
    pytester.makepyfile(model=READS)
    run = run_skills(pytester, "scripted:model.py:answer", "--skill-agent", "pi")
    assert run.outcomes["passed"] == 1
    assert run.report["agents"] == {"pi": VERSION}
    baseline, skill = run.record(arm="baseline"), run.record(arm="skill")
    assert (baseline["outcome"], skill["outcome"]) == ("failed", "passed")
    assert skill["activity"]["opened"] == ["gate"]


@pytest.mark.parametrize(
    ("protocol", "api", "path"),
    [
        ("chat", "openai-completions", "/v1"),
        ("responses", "openai-responses", "/v1"),
        ("messages", "anthropic-messages", ""),
    ],
)
def test_the_example_of_pi_speaks_every_protocol(
    protocol: ProtocolName, api: str, path: str
) -> None:
    agent = runpy.run_path(str(PI))["Pi"]()
    url = "http://127.0.0.1:7"
    job = AgentJob("Go.", "m", url, "key-of-trial", protocol, 30, 4000)
    files = agent.launch(job).files
    provider = json.loads(files[".pi/agent/models.json"])["providers"]["upskill"]
    assert (provider["api"], provider["baseUrl"]) == (api, f"{url}{path}")
    assert provider["apiKey"] == "key-of-trial"
    assert provider["models"][0]["maxTokens"] == 4000


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            made("lambda: 1 / 0"),
            "conftest.py:12: pytest_upskill_agents: 'acme' raised ZeroDiv",
        ),
        (made("int"), "pytest_upskill_agents: 'acme': made 0, not an agent"),
        (made("7"), "pytest_upskill_agents: returned {'acme': 7}"),
        (
            made("CommandAgent"),
            "pytest_upskill_agents: 'acme' raised TypeError: Can't instant",
        ),
        (
            made(more="def version(self): return 7"),
            "agent acme: its version is 7, not a string",
        ),
        (
            made(more="def version(self): return self.x"),
            "agent acme: its version() raised AttributeError: ",
        ),
        (
            made(more="program = 'no-such-acme'"),
            "--skill-agent acme: no-such-acme is not installed",
        ),
        ("def pytest_upskill_agents(): return 7", "pytest_upskill_agents: returned 7"),
        ("def pytest_upskill_agents(): return {'loop': int}", ": 'loop' is taken"),
        ("def pytest_upskill_agents(): return {'chat': int}", ": 'chat' is taken"),
        (
            "def pytest_upskill_agents(): 1 / 0",
            "conftest.py:1: pytest_upskill_agents raised Zero",
        ),
    ],
)
def test_what_is_wrong_with_an_agent_is_one_line(
    pytester: pytest.Pytester, source: str, message: str
) -> None:
    pytester.makeconftest(source)
    args = (
        "--skill",
        "skills",
        "--model",
        "scripted:answers.json",
        "--skill-agent",
        "acme",
    )
    assert message in usage_error(pytester, *args).splitlines()[0]


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--skill-agent", "acme"], pytest.ExitCode.USAGE_ERROR),
        ([], pytest.ExitCode.OK),
    ],
)
def test_a_broken_agent_ends_a_run_only_if_it_is_used(
    pytester: pytest.Pytester, args: list[str], status: int
) -> None:
    pytester.makeconftest(made("lambda: 1 / 0"))
    assert run_skills(pytester, "scripted:answers.json", *args).status == status


def test_an_agent_of_the_ini_file_with_a_version(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(made())
    pytester.makeini("[pytest]\nskill_agents = acme@1.3\n")
    message = usage_error(
        pytester, "--skill", "skills", "--model", "scripted:answers.json"
    )
    assert "tox.ini: skill_agents: acme@1.3: acme 1.2 is installed\n" in message
    assert message.endswith("  Install it: pip install acme-agent==1.3")
