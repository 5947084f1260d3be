"""Logins to clouds whose servers, all of them, are one on loopback."""

import json
import os
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from pytest_upskill.models import ModelSpec
from pytest_upskill.models.model import ModelName, NamedBy
from pytest_upskill.models.providers import resolve as resolve_name
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of
from support.loopback import Asked

BEDROCK = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX = "vertex:claude-sonnet-4-5@20250929"
AZURE = "azure:my-team"
AWS_SECRET = "/JalrXUtnFEMI+K7MDENG/bPxRfiCYzQ4tLk8sVo"
SESSION = "session-token-0123456789"
KEY = "azure-key-0123456789"
QUESTION = Question("m", "Be brief.", (("user", "What is the gate's command?"),), 64, 1)
_OF_CLOUDS = re.compile(r"(AWS|AZURE|GOOGLE|CLOUD|CLOUDSDK|GCE|OPENAI|ANTHROPIC)_")


def log_out(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Forget all that this machine knows of clouds."""
    for name in [name for name in os.environ if _OF_CLOUDS.match(name)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def log_in(monkeypatch: pytest.MonkeyPatch, name: str, url: str, folder: Path) -> None:
    """Set what the cloud of a model needs."""
    for variable, value in login(name, url, folder).items():
        monkeypatch.setenv(variable, value)


def login(name: str, url: str, folder: Path) -> dict[str, str]:
    match name.partition(":")[0]:
        case "bedrock":
            return {
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
                "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
                "AWS_SESSION_TOKEN": SESSION,
                "ANTHROPIC_BEDROCK_BASE_URL": url,
            }
        case "vertex":
            return {
                "CLOUD_ML_REGION": "us-east5",
                "ANTHROPIC_VERTEX_PROJECT_ID": "my-project",
                "GOOGLE_APPLICATION_CREDENTIALS": str(
                    service_account(folder / "account.json", url)
                ),
                "ANTHROPIC_VERTEX_BASE_URL": f"{url}/v1",
            }
        case _:
            return {"AZURE_OPENAI_ENDPOINT": url, "AZURE_OPENAI_API_KEY": KEY}


def service_account(file: Path, url: str) -> Path:
    """Credentials of Google that log in at a server on loopback."""
    pem = generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "project-of-the-account",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "me@example.com",
        "token_uri": f"{url}/token",
    }
    file.write_text(json.dumps(account))
    return file


def resolve(name: str) -> ModelSpec:
    return resolve_name(ModelName(name, by=NamedBy()), os.environ)


def require(name: str) -> None:
    spec = resolve(name)
    spec.provider.require(spec, os.environ, lambda _: lambda _done, _all: None)


def ask(name: str, question: Question = QUESTION) -> Answer:
    require(name)
    return answers_of(resolve(name), question)[0]


def is_signed(asked: Asked) -> bool:
    """Whether what arrived, signed once more by AWS's own package,
    has the same signature.
    """
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    sent = asked.headers["authorization"]
    signed = re.search(
        r"Credential=AKIA\w+/\d{8}/us-east-1/bedrock/.*SignedHeaders=([^,]+)", sent
    )
    assert signed
    headers = {one: asked.headers[one] for one in signed[1].split(";")}
    url = f"http://{asked.headers['host']}{asked.target}"
    again = AWSRequest("POST", url, data=asked.content, headers=headers)
    again.context["timestamp"] = asked.headers["x-amz-date"]
    signer = SigV4Auth(
        Credentials("AKIAIOSFODNN7EXAMPLE", AWS_SECRET), "bedrock", "us-east-1"
    )
    to_sign = signer.string_to_sign(again, signer.canonical_request(again))
    return f"Signature={signer.signature(to_sign, again)}" in sent
