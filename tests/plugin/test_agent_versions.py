"""Pairs and versions of agents in a run: what is told before the first call, and replays."""

import json
from pathlib import Path

import pytest

from support.hook_runs import run
from support.kit import run_skills, write_script, write_skill
from support.sandboxes import needs_bwrap

MINI = "openai:gpt-5.4-mini"
UNFIT = f"it speaks Anthropic Messages, and {MINI} does not"
FITTING = "  Fitting models: haiku, sonnet, opus, anthropic:ID, *any name at --skill-base-url"
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
request = urllib.request.Request(os.environ["URL"] + "/v1/messages", sys.argv[1].encode())
request.add_header("x-api-key", os.environ["KEY"])
urllib.request.urlopen(request).read()
'''
        arguments = ["-c", 'exec python3 -c "$@"', "sh", script, body % job.model]
        return Launch(arguments, {{"URL": job.url, "KEY": job.key}})

def pytest_upskill_agents():
    return {{"acme": Acme}}
"""


@pytest.fixture
def claude(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that tells its version, and counts how often it is asked."""
    file = pytester.mkdir("bin") / "claude"
    file.write_text(f"#!/bin/sh\necho x >> {pytester.path}/asked\necho '2.1.320 (Claude Code)'\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-made-up-for-this-test")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-this-test")
    write_skill(pytester.path / "skills/gate")
    return file


@pytest.mark.parametrize("more", [[], ["--collect-only"], ["-n", "2"]])
def test_an_agent_that_fits_no_model_is_told_which_would(
    pytester: pytest.Pytester, claude: Path, more: list[str]
) -> None:
    result = run_skills(pytester, MINI, "--skill-agent", "claude", *more)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --skill-agent claude: {UNFIT}", FITTING])
    assert claude.exists()
    assert not (pytester.path / "asked").exists()


def test_a_model_that_fits_no_agent_is_told_which_would(
    pytester: pytest.Pytester, claude: Path
) -> None:
    assert claude.exists()
    result = run_skills(pytester, "haiku", "--model", MINI, "--skill-agent", "claude")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = [f"ERROR: --model {MINI}: it speaks *, and claude does not", "  Fitting agents: chat, *"]
    result.stderr.fnmatch_lines(told)


def test_pairs_that_do_not_fit_are_one_line_of_the_header(
    pytester: pytest.Pytester, claude: Path
) -> None:
    both = ("--skill-agent", "claude", "--skill-agent", "chat", "--collect-only")
    result = run_skills(pytester, "haiku", "--model", MINI, *both)
    result.stdout.fnmatch_lines(
        [
            "upskill: carried out by claude, chat",
            f"upskill: left out, as they don't fit: claude/{MINI}",
        ]
    )
    assert result.parseoutcomes() == {"tests": 3}
    claude.unlink()  # --collect-only needs no agent, and starts none
    assert run_skills(pytester, "haiku", *both).ret == 0
    assert not (pytester.path / "asked").exists()


def test_a_node_id_of_a_pair_that_does_not_fit(pytester: pytest.Pytester, claude: Path) -> None:
    assert claude.exists()
    nodeid = f"skills/gate/skill_meta.json::open-gate[claude/{MINI}]"
    agents = ("--skill-agent", "claude", "--skill-agent", "chat", "--model", "haiku")
    result = pytester.runpytest_inprocess(nodeid, *agents)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: claude/{MINI}: claude speaks Anthropic *", FITTING])


def test_a_pair_of_the_ini_file_and_of_upskill(pytester: pytest.Pytester, claude: Path) -> None:
    assert claude.exists()
    pytester.makeini("[pytest]\nskill_agents = claude\n")
    (pytester.path / "upskill.config.yaml").write_text("eval_model: openai.gpt-5.4-mini\n")
    result = pytester.runpytest_inprocess("--skill", "skills")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = "ERROR: *tox.ini: skill_agents: claude: it speaks Anthropic Messages, and openai.gpt*"
    result.stderr.fnmatch_lines([told, FITTING])


def test_ask_names_an_agent_that_does_not_fit(pytester: pytest.Pytester, claude: Path) -> None:
    assert claude.exists()
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_it(ask):
            ask("How?", agent="claude")
        """
    )
    result = pytester.runpytest_inprocess("--model", MINI)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f'*ask(agent="claude"): claude speaks *and {MINI} does not'])
    assert not (pytester.path / "asked").exists()


def test_a_pin_that_does_not_match(pytester: pytest.Pytester, claude: Path) -> None:
    assert claude.exists()
    result = run_skills(pytester, "haiku", "--skill-agent", "claude@2.1.325", "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --skill-agent claude@2.1.325: claude 2.1.320 is installed",
            "  Install it: npm install -g @anthropic-ai/claude-code@2.1.325",
        ]
    )
    assert (pytester.path / "asked").read_text() == "x\n"


@needs_bwrap
def test_a_replay_needs_no_agent_and_knows_its_version(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    write_script(pytester.path / "answers.json")
    args = ("--skill-agent", "acme", "-n", workers)
    pytester.makeconftest(ACME.format(program="sh", version="1.2"))
    run(pytester, *args, "--skill-record", "answers.jsonl").assert_outcomes(failed=1)
    pytester.makeconftest(ACME.format(program="gone", version="1.3"))
    result = run(pytester, *args, "--skill-replay", "answers.jsonl")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["upskill: carried out by acme 1.2"])
    assert json.loads((pytester.path / "r.json").read_text())["agents"] == {"acme": "1.2"}
    pinned = ("--skill-agent", "acme@1.3", "--skill-replay", "answers.jsonl")
    result = run(pytester, *pinned)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = "ERROR: --skill-agent acme@1.3: answers.jsonl has answers of acme 1.2"
    result.stderr.fnmatch_lines([told])
