"""Logins to clouds whose servers, all of them, are one on loopback."""

import json
import os
import re
from pathlib import Path

import pytest

# Imported before any test: pytester forgets what is imported in one of its tests, and cryptography
# can't be used any more when it is imported twice.
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

BEDROCK = "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX = "vertex:claude-sonnet-4-5@20250929"
AZURE = "azure:my-team"
AWS_SECRET = "/JalrXUtnFEMI+K7MDENG/bPxRfiCYzQ4tLk8sVo"
SESSION = "session-token-0123456789"
KEY = "azure-key-0123456789"
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
