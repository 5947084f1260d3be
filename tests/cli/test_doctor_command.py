"""pytest-upskill doctor."""

import json
import os
from pathlib import Path

import pytest

from pytest_upskill.agents.probe import STEPS
from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.agents.sandboxes import kinds
from pytest_upskill.cli import main
from pytest_upskill.errors import SettingsError
from support.fake_cli import VERSION, fake_cli
from support.fake_docker import forget_programs, use_docker
from support.logins import SETUP_TOKEN
from support.sandboxes import needs_bwrap

SECRET = "sk-ant-very-secret-value"


@pytest.fixture(autouse=True)
def _no_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the system's own programs, whatever is installed here."""
    monkeypatch.setenv("PATH", os.defpath)


def rows_of(shown: str) -> dict[str, list[str]]:
    return {
        line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.split()
    }


@needs_bwrap
def test_doctor_tries_sandboxes_and_agents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    rows = rows_of(shown)
    assert rows["bwrap"] == ["yes"]
    assert rows["loop"] == ["1", *["yes"] * len(STEPS)]
    assert rows["claude"] == ["npm", "install", "-g", "@anthropic-ai/claude-code"]
    assert rows["anthropic"] == ["ANTHROPIC_API_KEY", "set"]
    assert SECRET not in shown
    assert shown.splitlines()[-1] == "Ready: loop in bwrap. Keys: anthropic."
    assert max(map(len, shown.splitlines())) <= 80


@needs_bwrap
def test_doctor_names_logins_but_never_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fake_cli(tmp_path)}:{os.defpath}")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", SETUP_TOKEN)
    assert main(["doctor", "--agent", "claude"]) == 0
    shown = capsys.readouterr().out
    assert "claude: logged in (CLAUDE_CODE_OAUTH_TOKEN)" in shown
    assert "Add --skill-login for claude without a key." in " ".join(shown.split())
    assert SETUP_TOKEN not in shown
    main(["doctor", "--agent", "claude", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["logins"] == {"claude": "CLAUDE_CODE_OAUTH_TOKEN"}


@needs_bwrap
def test_doctor_tries_a_program_that_is_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fake_cli(tmp_path)}:{os.defpath}")
    assert main(["doctor", "--agent", "claude", "--agent", "loop"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert rows["claude"] == [VERSION, *["yes"] * len(STEPS)]
    assert "loop" in rows
    assert "codex" not in rows


@needs_bwrap
def test_an_installed_agent_that_does_not_work_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fake_cli(tmp_path, breaks="printf 'no \\033[31mconfig\\n'; exit 1")
    monkeypatch.setenv("PATH", f"{folder}:{os.defpath}")
    assert main(["doctor", "--agent", "claude"]) == 1
    shown = capsys.readouterr().out
    assert rows_of(shown)["claude"] == [VERSION, "NO", *["-"] * (len(STEPS) - 1)]
    assert "config" in shown
    assert "\n\nNo agent works. Not ready: claude. " in shown
    assert "\033" not in shown


@needs_bwrap
def test_an_agent_that_was_asked_for_must_be_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--agent", "claude"]) == 1
    assert "npm install -g @anthropic-ai/claude-code" in capsys.readouterr().out


def test_an_agent_that_nobody_knows_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--agent", "claud"]) == 2
    assert (
        '--agent claud: no such agent (did you mean "claude"?)'
        in capsys.readouterr().err
    )


def test_a_version_that_was_asked_for_must_be_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fake_cli(tmp_path)}:{os.defpath}")
    assert main(["doctor", "--agent", "claude@0.0.1"]) == 2
    assert (
        f"--agent claude@0.0.1: claude {VERSION} is installed"
        in capsys.readouterr().err
    )


@needs_bwrap
def test_doctor_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sandboxes"]["bwrap"] is None
    assert told["agents"]["loop"] == {
        "installed": True,
        "version": "1",
        **dict.fromkeys(STEPS, True),
        "problem": None,
    }
    install = "npm install -g @anthropic-ai/claude-code"
    assert told["agents"]["claude"] == {"installed": False, "install": install}
    assert set(told["agents"]) == set(AGENTS)
    assert told["keys"]["ollama"] == "not needed"


@needs_bwrap
@pytest.mark.parametrize("key", ["", "OPENAI_API_KEY"])
@pytest.mark.parametrize("has_local", [True, False])
def test_the_conclusion_names_only_what_works(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    has_local: bool,
) -> None:
    """The embedded model takes no tools, so it is none for an agent."""
    monkeypatch.setattr("pytest_upskill.models.local.installed", lambda: has_local)
    if key:
        monkeypatch.setenv(key, "k")
    assert main(["doctor", "--json", "--agent", "loop"]) == 0
    conclusion = json.loads(capsys.readouterr().out)["conclusion"]
    if key:
        assert conclusion == "Ready: loop in bwrap. Keys: openai."
    else:
        assert conclusion.startswith("Ready but for a key: loop in bwrap. ")
        assert conclusion.endswith("pytest-upskill try SKILL")
        assert ("pip install" in conclusion) is not has_local


def test_doctor_says_why_no_agent_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str, *, may_fetch: bool) -> None:
        assert not may_fetch
        raise SettingsError(
            "sandbox", f"{name} was not found.", "Install it. " * 20, value=name
        )

    monkeypatch.setattr("pytest_upskill.cli.commands.doctor.kind_of", none)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    for name in kinds.NAMES:
        assert (f"{name} was not found" in shown) is (name not in ("auto", "none"))
    assert "\n\nNo agent can run: no sandbox works. " in shown
    assert max(map(len, shown.splitlines())) <= 80


def _task(folder: Path, line: str, **files: str) -> None:
    for name, text in {
        "task.toml": 'version = "1.0"\n',
        "instruction.md": "Sum the numbers.",
        "environment/Dockerfile": f"FROM ubuntu:24.04\nWORKDIR /app\n{line}\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
        **files,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_doctor_shows_where_tasks_would_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_docker(tmp_path / "docker", monkeypatch)
    _task(tmp_path / "tasks/sums", "RUN mkdir -p data")
    _task(tmp_path / "tasks/gpu", "", **{"task.toml": "[environment]\ngpus = 1\n"})
    assert main(["doctor", str(tmp_path / "tasks")]) == 0
    shown = capsys.readouterr().out
    rows = rows_of(shown)
    assert rows["sums"] == ["docker"]
    assert rows["gpu"] == ["can't", "run", "it", "needs", "1", "GPU"]
    assert shown.splitlines()[-1] == "2 tasks: 1 in an image (docker), 1 can't run"
    forget_programs()


def test_doctor_says_what_to_install_for_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    forget_programs()
    _task(tmp_path / "sums", "RUN mkdir -p data")
    assert main(["doctor", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "install podman" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    assert main(["doctor", str(tmp_path / "sums"), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["tasks"]["sums"]["sandbox"] is None
    assert data["conclusion"] == "1 task: 1 can't run"
    forget_programs()


def test_doctor_shows_what_is_wrong_with_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _task(tmp_path / "sums", "RUN mkdir -p data", **{"task.toml": "version = \n"})
    assert main(["doctor", str(tmp_path)]) == 1
    assert "task.toml" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "missing")]) == 2
    assert "no task here" in capsys.readouterr().err
