"""How Copilot is started, and what it unpacks."""

from pathlib import Path

import pytest

from pytest_upskill.agents.clis.copilot import Copilot
from pytest_upskill.agents.command_agent import AgentJob
from pytest_upskill.models.model import ProtocolName

UNPACKS = """#!/bin/sh
mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/copilot/pkg/linux/1.0.7"
echo GitHub Copilot CLI 1.0.7.
"""


@pytest.mark.parametrize(
    ("protocol", "url", "kind", "wire"),
    [
        ("chat", "http://127.0.0.1:7/v1", "openai", "completions"),
        ("messages", "http://127.0.0.1:7", "anthropic", "completions"),
        ("responses", "http://127.0.0.1:7/v1", "openai", "responses"),
    ],
)
def test_every_protocol_goes_to_the_gateway(
    protocol: ProtocolName, url: str, kind: str, wire: str
) -> None:
    job = AgentJob(
        "?", "qwen3:8b", "http://127.0.0.1:7", "trialkey-1", protocol, 30, 4000
    )
    env = Copilot().launch(job).env
    assert env["COPILOT_PROVIDER_BASE_URL"] == url
    assert (env["COPILOT_PROVIDER_TYPE"], env["COPILOT_PROVIDER_WIRE_API"]) == (
        kind,
        wire,
    )


@pytest.mark.parametrize("script", [UNPACKS, "#!/bin/sh\necho 0.9.1\n"])
def test_what_it_unpacks_is_there_in_all_trials(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "copilot"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(Copilot, "cache", lambda _: str(tmp_path / "cache"))
    agent = Copilot()
    unpacked = [
        one for one in agent.mounts() if one.inside == "/home/agent/.cache/copilot/pkg"
    ]
    assert len(unpacked) == (script == UNPACKS)
    for mount in unpacked:
        assert [one.name for one in Path(mount.host).iterdir()] == ["linux"]
