"""How OpenCode is started."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.clis.opencode import OpenCode
from pytest_upskill.agents.command_agent import AgentJob
from pytest_upskill.agents.program import Program
from pytest_upskill.errors import SettingsError
from pytest_upskill.models.model import ProtocolName


def config_of(protocol: ProtocolName, model: str) -> Any:
    job = AgentJob("-x", model, "http://127.0.0.1:7", "trialkey-1", protocol, 30, 4000)
    launch = OpenCode().launch(job)
    assert launch.stdin == b"-x"
    assert "trialkey-1" not in str(launch.arguments)
    return json.loads(launch.files[".config/opencode/opencode.json"])


@pytest.mark.parametrize("model", ["gpt-5.4-mini", "qwen3:8b", "Qwen/Qwen3-8B"])
def test_every_protocol_goes_to_the_gateway(model: str) -> None:
    packages = {
        "chat": "openai-compatible",
        "messages": "anthropic",
        "responses": "openai",
    }
    for protocol in OpenCode.protocols:
        config = config_of(protocol, model)
        provider = config["provider"]["door"]
        assert provider["npm"] == f"@ai-sdk/{packages[protocol]}"
        assert provider["options"] == {
            "baseURL": "http://127.0.0.1:7/v1",
            "apiKey": "trialkey-1",
        }
        assert provider["models"][model]["limit"]["output"] == 4000
        assert config["model"] == config["small_model"] == f"door/{model}"


def test_ripgrep_is_found_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    host = tmp_path / "node_modules/opencode-ai/bin/opencode"
    program = Program(str(host), "/programs/opencode/opencode")
    with pytest.raises(SettingsError, match="rg") as caught:
        OpenCode().with_needs(program)
    assert "npm install -g @vscode/ripgrep" in str(caught.value.hint)
    for place in (
        "cache/opencode/bin",
        "node_modules/@vscode/ripgrep-linux-x64/bin",
        ".",
    ):
        ripgrep = tmp_path / place / "rg"
        ripgrep.parent.mkdir(parents=True, exist_ok=True)
        ripgrep.write_text("#!/bin/sh\n")
        ripgrep.chmod(0o755)
        (mount,) = OpenCode().with_needs(program).mounts
        assert mount.host == str(ripgrep.resolve())
        assert mount.inside == "/programs/bin/rg"
        assert OpenCode().with_needs(program).folders == ("/programs/bin",)
