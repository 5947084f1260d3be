"""What all tests of commands need."""

import pytest


@pytest.fixture(autouse=True)
def no_certificates(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server here speaks TLS, and each client would read all certificates of the machine."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path_factory.getbasetemp()))
