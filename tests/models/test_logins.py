"""A token of a login is no key."""

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_a_token_of_a_login_is_no_key(variable: str) -> None:
    spec = ModelSpec("m", PROVIDERS["anthropic"], "m")
    env = {variable: "sk-ant-oat01-abcdefgh"}
    with pytest.raises(SettingsError) as caught:
        spec.provider.require(spec, env, lambda _: lambda _done, _total: None)
    refused = str(caught.value)
    assert f"{variable} holds the token of a login, not a key" in refused
    assert "abcdefgh" not in refused
