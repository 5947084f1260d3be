"""Pairs and versions of agents in a run: what is refused before the first call,
and replays.
"""

from pathlib import Path

import pytest

from support.kit import write_script, write_skill
from support.runs import run_skills
from support.sandboxes import needs_bwrap
from support.usage import usage_error

MINI = "openai:gpt-5.4-mini"
UNFIT = f"it speaks Anthropic Messages, and {MINI} does not"
FITTING = "  Fitting models: haiku, sonnet, opus, anthropic:ID, "
ACME = """
from pytest_upskill import CommandAgent, Launch

class Acme(CommandAgent):
    program = "{program}"
    install = "npm install -g acme"
    protocols = ("messages",)

    def version(self):
        self._program()
        return "{version}"

    def launch(self, job):
        said = '[{{"role": "user", "content": "q"}}]'
        body = '{{"model": "%s", "max_tokens": 9, "messages": ' + said + "}}"
        script = '''
import os, sys, urllib.request
url = os.environ["URL"] + "/v1/messages"
request = urllib.request.Request(url, sys.argv[1].encode())
request.add_header("x-api-key", os.environ["KEY"])
urllib.request.urlopen(request).read()
'''
        arguments = ["-c", 'exec python3 -c "$@"', "sh", script, body % job.model]
        return Launch(arguments, {{"URL": job.url, "KEY": job.key}})

def pytest_upskill_agents():
    return {{"acme": Acme}}
"""


@pytest.fixture(autouse=True)
def claude(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that tells its version, and counts how often it is asked."""
    file = pytester.mkdir("bin") / "claude"
    file.write_text(
        f"#!/bin/sh\necho x >> {pytester.path}/asked\necho '2.1.320 (Claude Code)'\n"
    )
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-made-up-for-this-test")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-this-test")
    write_skill(pytester.path / "skills/gate")
    return file


SKILLS = ("--skill", "skills")


@pytest.mark.parametrize("args", [(), ("--collect-only",)])
def test_an_agent_that_fits_no_model_shows_which_would(
    pytester: pytest.Pytester, args: tuple[str, ...]
) -> None:
    message = usage_error(
        pytester, *SKILLS, "--model", MINI, "--skill-agent", "claude", *args
    )
    assert message.startswith(f"--skill-agent claude: {UNFIT}\n{FITTING}")
    assert not (pytester.path / "asked").exists()


def test_a_model_that_fits_no_agent_shows_which_would(
    pytester: pytest.Pytester,
) -> None:
    models = ("--model", "haiku", "--model", MINI)
    message = usage_error(pytester, *SKILLS, *models, "--skill-agent", "claude")
    assert message.startswith(f"--model {MINI}: it speaks ")
    assert "and claude does not\n  Fitting agents: chat, " in message


def test_pairs_that_do_not_fit_are_one_line_of_the_header(
    pytester: pytest.Pytester, claude: Path
) -> None:
    claude.unlink()  # --collect-only needs no agent, and starts none
    both = ("--skill-agent", "claude", "--skill-agent", "chat", "--collect-only")
    run = run_skills(pytester, "haiku", "--model", MINI, *both)
    assert run.outcomes == {"tests": 3}
    assert f"upskill: left out, as they don't fit: claude/{MINI}" in run.screen
    assert not (pytester.path / "asked").exists()


def test_a_node_id_of_a_pair_that_does_not_fit(pytester: pytest.Pytester) -> None:
    nodeid = f"skills/gate/skill_meta.json::open-gate[claude/{MINI}]"
    agents = ("--skill-agent", "claude", "--skill-agent", "chat", "--model", "haiku")
    message = usage_error(pytester, nodeid, *agents)
    assert message.startswith(f"claude/{MINI}: claude speaks Anthropic ")
    assert FITTING in message


def test_a_pair_of_the_ini_file_and_of_upskill(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nskill_agents = claude\n")
    (pytester.path / "upskill.config.yaml").write_text(
        "eval_model: openai.gpt-5.4-mini\n"
    )
    message = usage_error(pytester, *SKILLS)
    assert (
        "tox.ini: skill_agents: claude: it speaks Anthropic Messages, and openai.gpt"
        in message
    )


def test_ask_names_an_agent_that_does_not_fit(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_it(ask):
            ask("How?", agent="claude")
        """)
    run = run_skills(pytester, MINI, skill="")
    assert run.outcomes == {"errors": 1}
    assert 'ask(agent="claude"): claude speaks ' in run.screen
    assert not (pytester.path / "asked").exists()


def test_a_pin_that_does_not_match(pytester: pytest.Pytester) -> None:
    pinned = ("--skill-agent", "claude@2.1.325", "-n", "2")
    assert (
        usage_error(pytester, *SKILLS, "--model", "haiku", *pinned)
        == "--skill-agent claude@2.1.325: claude 2.1.320 is installed\n"
        "  Install it: npm install -g @anthropic-ai/claude-code@2.1.325"
    )
    assert (pytester.path / "asked").read_text() == "x\n"


@needs_bwrap
def test_a_replay_needs_no_agent_and_knows_its_version(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    model = write_script(pytester.path / "answers.json")
    args = ("--skill-agent", "acme", "-n", workers)
    pytester.makeconftest(ACME.format(program="sh", version="1.2"))
    recorded = run_skills(pytester, model, *args, "--skill-record", "answers.jsonl")
    assert recorded.outcomes["failed"] == 1
    pytester.makeconftest(ACME.format(program="gone", version="1.3"))
    run = run_skills(pytester, model, *args, "--skill-replay", "answers.jsonl")
    assert run.outcomes["failed"] == 1
    assert "upskill: carried out by acme 1.2" in run.screen
    assert run.report["agents"] == {"acme": "1.2"}
    pinned = (
        "--model",
        model,
        "--skill-agent",
        "acme@1.3",
        "--skill-replay",
        "answers.jsonl",
    )
    assert usage_error(pytester, *SKILLS, *pinned).startswith(
        "--skill-agent acme@1.3: answers.jsonl has answers of acme 1.2"
    )
