"""What holds for every agent that is a program, whichever it is.
None needs to be installed.
"""

import json
import re
import tomllib
from itertools import product
from pathlib import Path, PurePosixPath

import pytest

from pytest_upskill.agents.command_agent import AgentJob, CommandAgent, Launch
from pytest_upskill.agents.roster import AGENTS, fits
from pytest_upskill.agents.sandboxes.sandbox import HOME
from pytest_upskill.models.model import PROTOCOLS, ModelName
from pytest_upskill.models.providers import resolve

DOCS = Path(__file__).parents[2] / "docs"
URL = "http://127.0.0.1:40123"
TOKEN = "trialkey-Zx81-of-a-trial"
PROMPT = '-Say "it\'s" $HOME `id` {x}\n\nin å few lines\\n'
MODELS = ("gpt-5.4-mini", "qwen3:8b", "Qwen/Qwen3-8B", 'a "model" of {ours} \N{LLAMA}')

MADE = {name: make() for name, make in AGENTS.items()}
CLIS = [agent for agent in MADE.values() if isinstance(agent, CommandAgent)]
[CLAUDE] = [agent for agent in CLIS if agent.name == "claude"]
each = pytest.mark.parametrize("agent", CLIS, ids=lambda agent: agent.name)


def launch_of(agent: CommandAgent, **given: object) -> Launch:
    job = {
        "prompt": PROMPT,
        "model": MODELS[0],
        "url": URL,
        "key": TOKEN,
        "protocol": agent.protocols[0],
        "max_turns": 17,
        "max_output": 3456,
    }
    return agent.launch(AgentJob(**{**job, **given}))  # type: ignore[arg-type]


def told(launch: Launch) -> str:
    """All that an agent is told besides its prompt."""
    return "\n".join([*launch.arguments, *launch.env.values(), *launch.files.values()])


def test_claude_code_is_told_of_the_plugin_under_test() -> None:
    launch = launch_of(CLAUDE, plugin="/home/agent/plugins/garden")
    at = list(launch.arguments).index("--plugin-dir")
    assert launch.arguments[at + 1] == "/home/agent/plugins/garden"
    assert "--plugin-dir" not in launch_of(CLAUDE).arguments


@pytest.mark.parametrize(
    ("errors", "problem"),
    [
        ([{"type": "generic-error", "message": "wrong\nmanifest"}], "wrong manifest"),
        ([{"type": "path-not-found", "message": "no skills"}], ""),
        ("hostile", ""),
        ([3], ""),
    ],
)
def test_claude_code_says_if_it_does_not_take_the_plugin(
    errors: object, problem: str
) -> None:
    event = json.dumps({"type": "system", "subtype": "init", "plugin_errors": errors})
    output = f'a warning\n{event}\n{{"type": "result"}}\n'.encode()
    assert CLAUDE.why_not_installed(output) == problem
    assert CLAUDE.why_not_installed(b'{"plugin_errors"') == ""


@each
def test_it_says_what_it_is(agent: CommandAgent) -> None:
    assert agent is MADE[agent.name]
    assert re.fullmatch(r"[a-z][a-z-]*", agent.name)
    assert agent.program
    assert "/" not in agent.program
    assert re.match(
        r"(npm install -g|uv tool install|pipx? install)( \S+)+$", agent.install
    )
    assert agent.protocols
    assert set(agent.protocols) <= set(PROTOCOLS)
    assert len(set(agent.protocols)) == len(agent.protocols)
    assert 50 <= agent.memory <= 3000  # megabytes
    assert PurePosixPath(agent.skills_folder).is_relative_to(HOME)
    assert agent.skills_folder != HOME


@each
def test_it_gets_all_that_it_needs_and_no_token_where_others_see_it(
    agent: CommandAgent,
) -> None:
    for protocol in agent.protocols:
        launch = launch_of(agent, protocol=protocol)
        assert launch == launch_of(agent, protocol=protocol)
        assert URL in told(launch), protocol
        assert MODELS[0] in told(launch), protocol
        assert TOKEN in "\n".join([*launch.env.values(), *launch.files.values()]), (
            protocol
        )
        for argument in launch.arguments:
            assert TOKEN not in argument
            assert "\0" not in argument
        assert PROMPT in (
            launch.stdin.decode(),
            *launch.arguments,
            *launch.files.values(),
        )
        for path in launch.files:
            inside = PurePosixPath(HOME, path)
            assert inside.is_relative_to(HOME)
            assert ".." not in inside.parts
            # Which is for skills alone
            assert not inside.is_relative_to(agent.skills_folder)
        assert all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in launch.env)
        assert not {"PATH", "HOME", "LANG", "TMPDIR"} & set(launch.env)


@each
def test_names_of_models_and_texts_are_quoted(agent: CommandAgent) -> None:
    for protocol, model in product(agent.protocols, MODELS):
        launch = launch_of(agent, protocol=protocol, model=model)
        quoted = [
            json.dumps(model, ensure_ascii=ascii)[1:-1] for ascii in (True, False)
        ]
        assert any(name in told(launch) for name in (model, *quoted)), (protocol, model)
        for path, text in launch.files.items():
            if path.endswith(".json"):
                json.loads(text)
            elif path.endswith(".toml"):
                tomllib.loads(text)


@each
def test_a_prompt_is_no_option_and_may_be_long(agent: CommandAgent) -> None:
    """A single argument may have 128 KB on Linux."""
    for protocol in agent.protocols:
        launch = launch_of(agent, protocol=protocol, prompt="--help " * 40_000)
        assert max(map(len, launch.arguments)) < 100_000, protocol
        short = launch_of(agent, protocol=protocol, prompt="--help")
        options = list(short.arguments)
        if "--help" in options:
            assert "--" in options[: options.index("--help")], protocol


@each
def test_the_page_tells_how_to_use_it(agent: CommandAgent) -> None:
    page = (DOCS / "agents.md").read_text()
    (row,) = re.findall(rf"^\| `{agent.name}` \|.*$", page, re.M)
    _, install, *_, model = re.findall(r"`([^`]+)`", row)
    assert install == agent.install
    assert fits(agent, resolve(ModelName(model), {}))
    assert f"`{agent.skills_folder.replace(HOME, '~')}`" in page


@each
def test_it_is_given_mcp_servers_only_if_it_takes_them(agent: CommandAgent) -> None:
    server = {"command": "/usr/bin/python3", "args": ["-I", "/home/agent/mcp.py"]}
    launch = launch_of(agent, mcp_servers={"lamp_tracker": server})
    assert ("lamp_tracker" in told(launch)) is agent.mcp
    assert ("/home/agent/mcp.py" in told(launch)) is agent.mcp
    for path, text in launch.files.items():
        if path.endswith(".toml"):
            assert tomllib.loads(text)
