"""Credentials in commands and texts."""

import shlex

import pytest

from pytest_upskill._util.keys import shown_command, without_credentials

URL = "http://***@host:8000/v1"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("http://user:hunter22@host:8000/v1", URL),
        ("http://user:p@ss:w@rd@host:8000/v1", URL),
        ("http://user:pa/ss?w#rd@host:8000/v1", URL),
        ("http://user:hunter%2F22@host:8000/v1", URL),
        ("http://onlytoken@host:8000/v1", URL),
        (
            "--skill-base-url=http://user:hunter22@host:8000/v1",
            f"--skill-base-url={URL}",
        ),
        ("skill_base_url=http://user:hunter22@host:8000/v1", f"skill_base_url={URL}"),
        (
            "https://host/v1?api-version=3&api-key=abc",
            "https://host/v1?api-version=3&api-key=***",
        ),
        ("https://host/v1?sig=a%2Fb&x=1", "https://host/v1?sig=***&x=1"),
        ("--api-token=abc", "--api-token=***"),
        ("--TOKEN=abc", "--TOKEN=***"),
        ("db_password=abc def", "db_password=***"),
    ],
)
def test_a_command_shows_no_credential(word: str, shown: str) -> None:
    assert shlex.split(shown_command(["pytest", word, "-v"])) == ["pytest", shown, "-v"]


def test_the_value_after_an_option_that_names_a_credential_is_hidden() -> None:
    assert shlex.split(
        shown_command(["pytest", "--db-password", "abc", "--auth", "-v"])
    ) == [*("pytest", "--db-password", "***", "--auth", "-v")]


@pytest.mark.parametrize(
    "words",
    [
        ["--skill", "skills/a@b", "--model", "haiku", "--skill-max-tokens", "1000"],
        ["--skill-base-url", "http://localhost:8000/v1/a@b", "--no-header", "tests"],
        [
            "-k",
            "key or token",
            "tests/test_a.py::test_b[key=1]",
            "--skill-score",
            "pass",
        ],
        ["--model", "local:a.gguf", "--skill-min-pass-rate=0.9", "-o", "skill_runs=3"],
        ["--skill-base-url", "https://host/v1?api-version=2024-10-21"],
    ],
)
def test_a_command_without_credentials_stays_as_it_is(words: list[str]) -> None:
    assert shown_command(words) == shlex.join(words)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("OPENAI_API_KEY", "plain-looking-key", "plain-looking-key"),
        ("TEAM_SECRET", "some long passphrase", "some long passphrase"),
        ("OPENAI_CUSTOM_HEADERS", "X-A: yes\nX-Gate: open-sesame", "open-sesame"),
        (
            "ANTHROPIC_CUSTOM_HEADERS",
            "Authorization: Bearer open-sesame",
            "open-sesame",
        ),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,api-key=open%20sesame", "open sesame"),
        ("GENERIC_BASE_URL", "http://me:open%20sesame@host/v1", "open sesame"),
        ("HTTPS_PROXY", "http://me:sesame@proxy:3128", "sesame"),
    ],
)
def test_what_the_environment_holds_is_hidden(
    name: str, value: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert without_credentials(f"you sent {secret}!") == "you sent ***!"
    assert shlex.split(shown_command(["--x", secret])) == ["--x", "***"]


def test_words_and_paths_in_the_environment_are_no_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PWD", "/home/me/project")
    monkeypatch.setenv("CLOUD_CREDENTIALS", "/home/me/cloud.json")
    monkeypatch.setenv("SSH_AUTH_SOCK", "sock-of-agent")
    monkeypatch.setenv("SOME_KEY", "yes")
    text = "/home/me/project /home/me/cloud.json sock-of-agent yes http://host/a?b=c"
    assert without_credentials(text) == text


def test_a_password_that_comes_and_goes_is_hidden_as_long_as_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for password in ("lantern1", "lantern2"):
        monkeypatch.setenv("PROXY", f"http://me:{password}@proxy")
        assert without_credentials(f"it was {password}") == "it was ***"
    assert without_credentials("it was lantern1") == "it was lantern1"
