"""Logins of subscriptions are not used, and that is said where a key is missing."""

from pathlib import Path

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.model import NamedBy
from pytest_upskill.models.providers import PROVIDERS


def refusal(provider: str, env: dict[str, str], setting: str = "models") -> str:
    spec = ModelSpec("m", PROVIDERS[provider], "m", by=NamedBy(setting))
    with pytest.raises(SettingsError) as caught:
        spec.provider.require(spec, env, lambda _: lambda _done, _total: None)
    return str(caught.value)


@pytest.mark.parametrize(
    ("provider", "file", "variable", "program"),
    [
        ("anthropic", ".claude/.credentials.json", "CLAUDE_CONFIG_DIR", "Claude Code"),
        ("anthropic", ".copilot/config.json", "COPILOT_HOME", "Copilot CLI"),
        ("openai", ".codex/auth.json", "CODEX_HOME", "Codex"),
        ("openai", ".copilot/config.json", "COPILOT_HOME", "Copilot CLI"),
    ],
)
def test_a_login_without_a_key_is_told(
    tmp_path: Path, provider: str, file: str, variable: str, program: str
) -> None:
    told = f"The login of {program} is not used: only keys of the API are."
    env = {"HOME": str(tmp_path)}
    assert "login" not in refusal(provider, env)
    login = tmp_path / file
    login.parent.mkdir()
    login.write_text("not to be read")
    for setting in ("models", "judge"):
        assert refusal(provider, env, setting).endswith(told)
    assert refusal(provider, {variable: str(login.parent)}).endswith(told)


def test_a_token_of_a_subscription_is_no_key(tmp_path: Path) -> None:
    told = "The login of Claude Code is not used: only keys of the API are."
    env = {"HOME": str(tmp_path), "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-abcdefgh"}
    assert refusal("anthropic", env).endswith(told)
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        refused = refusal("anthropic", {variable: "sk-ant-oat01-abcdefgh"})
        assert f"{variable} holds the token of a subscription, which is not used" in refused
        assert "abcdefgh" not in refused
