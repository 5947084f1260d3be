"""pytest-upskill doctor."""

import json

import pytest

from pytest_upskill.agents.probe import STEPS
from pytest_upskill.agents.sandboxes import choice
from pytest_upskill.cli import main
from pytest_upskill.errors import SettingsError
from support.sandboxes import needs_bwrap

SECRET = "sk-ant-very-secret-value"


@needs_bwrap
def test_doctor_tries_sandboxes_and_agents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    rows = {line.split("  ")[0]: " ".join(line.split()) for line in shown.splitlines()}
    assert rows["bwrap"] == "bwrap yes"
    assert [rows[step] for step in STEPS] == [f"{step} yes" for step in STEPS]
    assert rows["anthropic"] == "anthropic ANTHROPIC_API_KEY set"
    assert SECRET not in shown
    assert max(map(len, shown.splitlines())) <= 80


@needs_bwrap
def test_doctor_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sandboxes"]["bwrap"] is None
    assert told["agents"]["loop"] == {
        "version": "1",
        **dict.fromkeys(STEPS, True),
        "problem": None,
    }
    assert told["keys"]["ollama"] == "not needed"


def test_doctor_says_why_no_agent_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str, *, may_fetch: bool) -> None:
        assert not may_fetch
        raise SettingsError("sandbox", f"{name} was not found.", "Install it. " * 20, value=name)

    monkeypatch.setattr("pytest_upskill.cli.commands.doctor.kind_of", none)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    for name in choice.NAMES:
        assert (f"{name} was not found" in shown) is (name not in ("auto", "none"))
    assert "No agent was tried: agents need a sandbox." in shown
    assert max(map(len, shown.splitlines())) <= 80
