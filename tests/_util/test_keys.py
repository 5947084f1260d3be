"""Every key that this process knows is masked, however it is written."""

import base64
import html
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from pytest_upskill._util import keys
from pytest_upskill._util.keys import hide_keys, know, without_credentials, without_keys
from pytest_upskill.skills.invocation import Invocation

KEY = "sk-proj-" + "Ab3+/dEf" * 4 + "9Z"
AWS_SECRET = "/JalrXUtnFEMI+K7MDENG/bPxRfiCYzQ4tLk8sVo"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    told = set(keys._learnt)
    yield
    keys._learnt.clear()
    keys._learnt.update(told)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        *(
            (name, KEY, KEY)
            for name in ("OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HF_TOKEN")
        ),
        *(
            (name, KEY, KEY)
            for name in ("GITHUB_TOKEN", "PGPASSWORD", "DB_PASS", "my_secret")
        ),
        *(
            (name, KEY, KEY)
            for name in ("AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_AD_TOKEN")
        ),
        ("AWS_SECRET_ACCESS_KEY", AWS_SECRET, AWS_SECRET),
        ("ANTHROPIC_API_KEY", f" {KEY}\n", KEY),
        ("SMTP_PASSWORD", "correct-horse-battery", "correct-horse-battery"),
        ("DB_PASSWORD", "hunter2", "hunter2"),
        ("OPENAI_CUSTOM_HEADERS", "X-A: yes\nX-Gate: open-sesame", "open-sesame"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,api-key=open%20sesame", "open sesame"),
        ("HTTPS_PROXY", "http://me:hunter2-proxy@proxy:3128", "hunter2-proxy"),
        ("DATABASE_URL", "postgres://app:p%40ss-word-9@db/x", "p@ss-word-9"),
        ("GENERIC_BASE_URL", "https://host/v1?api-key=abcdef123456", "abcdef123456"),
    ],
)
def test_the_keys_of_the_environment_are_masked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, secret: str
) -> None:
    monkeypatch.setenv(name, value)
    assert without_keys(f"before {secret}, after") == "before ***, after"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", "x"),
        ("OPENAI_API_KEY", "none"),
        ("OPENAI_API_KEY", "lm-studio"),
        ("OPENAI_API_KEY", "sk-no-key-required"),
        ("OPENAI_API_KEY", "not-needed"),
        ("OPENAI_API_KEY", "your-api-key-here"),
        ("OPENAI_API_KEY", "EMPTY"),
        ("OPENAI_API_KEY", "sk-1234"),
        ("DB_PASSWORD", "postgres"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "C:\\Users\\me\\key.json"),
        ("APP_KEY", "20240101"),
        ("PATH", "/usr/local/bin1:/usr/bin2"),
    ],
)
def test_words_that_stand_for_a_key_mask_no_ordinary_text(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert without_keys(f"the {value} of all") == f"the {value} of all"


@pytest.mark.parametrize(
    "coded",
    [
        quote(KEY, safe=""),
        json.dumps(f'"{KEY}"'),
        KEY.replace("/", "\\/"),
        html.escape(f"<{KEY}>"),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"u:{KEY}".encode()).decode(),
        base64.urlsafe_b64encode(f"us:{KEY}\n".encode()).decode(),
        KEY.encode().hex(),
        f"{KEY[:20]}\n  {KEY[20:30]}\r\n{KEY[30:]}",
        KEY[:20],
        f"{KEY[:17]}…",
        f"…{KEY[-20:]}",
    ],
)
def test_a_coded_broken_or_cut_key_is_masked(
    monkeypatch: pytest.MonkeyPatch, coded: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    left = without_keys(f"it is {coded} and so on")
    assert "***" in left
    # What is left beside it: quotes, and the ends of base64,
    # which hold what stands around the key.
    assert len(left.replace("it is", "").replace("and so on", "")) <= 20
    plain = "".join(left.split())
    pieces = {KEY[at : at + 8] for at in range(8, len(KEY) - 8)}
    assert not any(piece in plain for piece in pieces)


def test_the_public_beginning_of_a_key_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-" + "aB3" * 30)
    assert (
        without_keys("They begin with sk-ant-api03-") == "They begin with sk-ant-api03-"
    )


def test_what_is_told_is_masked_and_masking_again_changes_nothing() -> None:
    know("letmein-22", "x", "")
    once = without_keys("x letmein-22 letmein-22")
    assert once == without_keys(once) == "x *** ***"


def test_a_long_key_hides_the_short_one_inside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A_TOKEN", "abcd1234efgh")
    monkeypatch.setenv("B_TOKEN", "abcd1234efgh5678ijkl")
    assert without_keys("abcd1234efgh5678ijkl abcd1234efgh") == "*** ***"


def test_a_variable_that_vanishes_meanwhile_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Changing(dict[str, str]):
        def __iter__(self) -> Iterator[str]:
            # As os.environ has it, removed by pytest
            names = [*super().__iter__(), "GONE"]
            return iter(names)

    monkeypatch.setattr("os.environ", Changing(A_TOKEN="abcd1234efgh"))
    assert without_keys("abcd1234efgh") == without_credentials("abcd1234efgh") == "***"


def test_the_token_of_a_door_is_masked() -> None:
    token = "trialkey-" + "aB3_-xYz" * 4
    assert without_keys(f"file-{token}.txt: {token}") == "file-***.txt: ***"
    assert without_keys(f"the trap{token}s") == f"the trap{token}s"


def test_named_tuples_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_API_KEY", "sk-secret-0123456789abcdef")
    written = Invocation("gate", "open with sk-secret-0123456789abcdef")
    assert hide_keys(written) == Invocation("gate", "open with ***")
    assert hide_keys(written).skill == "gate"
