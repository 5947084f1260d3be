"""Settings and credentials of clouds: what is missing, odd or refused,
told before it costs.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill.errors import InputError, ModelError, SettingsError
from pytest_upskill.models import clouds as models_clouds
from support import clouds
from support.clouds import (
    AWS_SECRET,
    AZURE,
    BEDROCK,
    KEY,
    SESSION,
    VERTEX,
    ask,
    require,
    resolve,
)
from support.loopback import GOOGLE_TOKEN, LoopbackServer, Reply

pytestmark = pytest.mark.usefixtures("no_cloud")


def refused(name: str) -> str:
    with pytest.raises(SettingsError) as caught:
        require(name)
    return f"{caught.value.problem}. {caught.value.hint}"


AWS_LOGIN = (
    "Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or"
    " AWS_PROFILE, or name another model."
)
GOOGLE_LOGIN = (
    "Set GOOGLE_APPLICATION_CREDENTIALS to a file with credentials, or run gcloud auth "
    "application-default login, or name another model."
)


def test_all_that_bedrock_lacks_is_one_error() -> None:
    assert (
        refused(BEDROCK) == "AWS_REGION is not set, and there are no AWS credentials. "
        f"Set AWS_REGION, for example to us-east-1. {AWS_LOGIN}"
    )


def test_all_that_vertex_lacks_is_one_error() -> None:
    told = refused(VERTEX)
    settings = "CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID"
    assert told.startswith(
        f"{settings} are not set, and no Google credentials: Your default"
    )
    assert told.endswith(f"Set {settings}. {GOOGLE_LOGIN}")


def test_all_that_azure_lacks_is_one_error() -> None:
    assert (
        refused(AZURE)
        == "AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY are not set. Set"
        " AZURE_OPENAI_ENDPOINT and AZURE_OPENAI_API_KEY (the endpoint is"
        " https://NAME.openai.azure.com), or name another model."
    )


def test_missing_credentials_are_told_with_where_they_belong(
    set_env: Callable[..., None],
) -> None:
    set_env(
        AWS_REGION="us-east-1",
        CLOUD_ML_REGION="global",
        AZURE_OPENAI_ENDPOINT="https://x.y",
    )
    set_env(ANTHROPIC_VERTEX_PROJECT_ID="my-project")
    assert refused(BEDROCK) == f"there are no AWS credentials. {AWS_LOGIN}"
    told = refused(VERTEX)
    assert told.startswith("no Google credentials: ")
    assert told.endswith(GOOGLE_LOGIN)
    assert refused(AZURE).startswith(
        "AZURE_OPENAI_API_KEY is not set. Set AZURE_OPENAI_API_KEY,"
    )


def test_odd_credentials_of_aws_are_told(
    set_env: Callable[..., None], tmp_path: Path
) -> None:
    set_env(AWS_REGION="us-east-1", AWS_PROFILE="nobody")
    assert "profile (nobody) could not be found" in refused(BEDROCK)
    (tmp_path / "config").write_bytes(b"[profile nobody]\nregion = \xff\n")
    set_env(AWS_CONFIG_FILE=str(tmp_path / "config"))
    assert refused(BEDROCK).startswith("no AWS credentials: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "account.json was not found"),
        (b"{}", "does not have a valid type"),
        (b"[]", "no Google credentials: "),
        (b"{", "account.json is not a valid json file.: Expecting property name"),
        (
            b'{"type": "service_account"}',
            "was not in the expected format, missing fields",
        ),
    ],
)
def test_odd_credentials_of_google_are_told(
    content: bytes | None,
    said: str,
    set_env: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    set_env(CLOUD_ML_REGION="global", ANTHROPIC_VERTEX_PROJECT_ID="my-project")
    set_env(GOOGLE_APPLICATION_CREDENTIALS="account.json")
    if content is not None:
        Path("account.json").write_bytes(content)
    told = refused(VERTEX)
    assert said in told
    assert "Error(" not in told


@pytest.mark.parametrize(
    "region", ["us-east-1/../x", "US-EAST-1", "us-east-1.evil.com", "x@y"]
)
@pytest.mark.parametrize(
    ("name", "variable"), [(BEDROCK, "AWS_REGION"), (VERTEX, "CLOUD_ML_REGION")]
)
def test_a_region_is_a_word(
    name: str, variable: str, region: str, set_env: Callable[..., None]
) -> None:
    set_env(**{variable: region})
    with pytest.raises(InputError, match=f"{variable}: not the name of a region"):
        resolve(name)


def test_keys_of_aws_lose_the_line_break_at_their_end(
    log_in: Callable[[str, str], None], set_env: Callable[..., None]
) -> None:
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        log_in(BEDROCK, server.url)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            set_env(**{name: f"{os.environ[name]}\n"})
        set_env(AWS_BEARER_TOKEN_BEDROCK="")
        assert ask(BEDROCK).text == "gate up"
    sent = server.asked[0].headers
    assert "Credential=AKIAIOSFODNN7EXAMPLE/" in sent["authorization"]
    assert clouds.is_signed(server.asked[0])


def test_no_log_has_a_secret(
    log_in: Callable[[str, str], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with LoopbackServer(lambda _: Reply("gate up")) as server:
        for name in (BEDROCK, VERTEX, AZURE):
            log_in(name, server.url)
            ask(name)
    assert "/invoke" in caplog.text
    for secret in (AWS_SECRET, SESSION, "AKIAIOSFODNN7EXAMPLE", GOOGLE_TOKEN, KEY):
        assert secret not in caplog.text


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
@pytest.mark.parametrize("odd", ["\n", "ü"])
def test_keys_of_aws_with_odd_characters_are_told(
    name: str,
    odd: str,
    log_in: Callable[[str, str], None],
    set_env: Callable[..., None],
) -> None:
    log_in(BEDROCK, "http://127.0.0.1:9")
    set_env(**{name: f"0123456789{odd}0123456789"})
    assert refused(BEDROCK).startswith(
        f"{name} holds a character that no key has. Copy the key"
    )


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [(BEDROCK, "boto3", "bedrock"), (VERTEX, "google-auth", "vertex")],
)
def test_a_missing_package_is_told_with_how_to_install_it(
    name: str,
    package: str,
    extra: str,
    log_in: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log_in(name, "http://127.0.0.1:9")
    monkeypatch.setattr(models_clouds, "find_spec", lambda _: None)
    told = (
        f"the package {package} is not installed. Run: pip install"
        f' "pytest-upskill[{extra}] @ git+https://'
    )
    assert refused(name).startswith(told)


def test_a_login_that_fails_is_told(
    log_in: Callable[[str, str], None], tmp_path: Path
) -> None:
    log_in(VERTEX, "http://127.0.0.1:9")
    with LoopbackServer(lambda _: Reply("never")) as server:
        clouds.service_account(tmp_path / "account.json", f"{server.url}/nowhere")
        with pytest.raises(ModelError) as caught:
            ask(VERTEX)
    assert caught.value.problem.startswith(
        "no login to vertex: {'type': 'not_found_error', "
    )
    assert caught.value.fatal


@pytest.mark.parametrize("name", [BEDROCK, VERTEX])
def test_a_login_that_is_not_reached_is_tried_again(
    name: str,
    log_in: Callable[[str, str], None],
    set_env: Callable[..., None],
    tmp_path: Path,
) -> None:
    nowhere = "http://127.0.0.1:9"
    if name == BEDROCK:
        write_role(tmp_path)
        set_env(AWS_PROFILE="ops", AWS_ENDPOINT_URL_STS=nowhere, AWS_MAX_ATTEMPTS="1")
    else:
        log_in(name, nowhere)
    with pytest.raises(ModelError) as caught:
        ask(name)
    assert (caught.value.transient, caught.value.fatal) == (True, False)
    assert caught.value.hint == "Check the network, and try again"


def write_role(home: Path) -> None:
    """A profile that takes a role first."""
    (home / ".aws").mkdir()
    keys = (
        f"aws_access_key_id = AKIAPROFILE0000\naws_secret_access_key = {AWS_SECRET}\n"
    )
    (home / ".aws/credentials").write_text(f"[base]\n{keys}")
    role = "role_arn = arn:aws:iam::123456789012:role/x\nsource_profile = base\n"
    (home / ".aws/config").write_text(f"[profile ops]\nregion = us-east-1\n{role}")


def test_a_role_that_may_not_be_taken_is_told(
    set_env: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_role(tmp_path)
    with LoopbackServer(lambda _: Reply("never")) as server:
        set_env(AWS_PROFILE="ops", AWS_ENDPOINT_URL_STS=f"{server.url}/nowhere")
        with pytest.raises(ModelError) as caught:
            ask(BEDROCK)
    assert caught.value.problem.startswith("no login to bedrock: ")
    assert caught.value.fatal
    assert not caplog.text  # botocore's has a traceback
