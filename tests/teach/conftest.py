"""A project in which the commands are called, for all tests here."""

from pathlib import Path

import pytest

from support.fake_models import Project, make_project


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    return make_project(tmp_path, monkeypatch, capsys)


@pytest.fixture(autouse=True)
def no_certificates(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server here speaks TLS, and each client would read all certificates of the machine."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path_factory.getbasetemp()))
