"""A project in which the commands are called, for all tests here."""

from pathlib import Path

import pytest

from support.fake_models import Project, make_project


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    monkeypatch.delenv(
        "COLUMNS", raising=False
    )  # so that lines are as wide as in pipes
    return make_project(tmp_path, monkeypatch, capsys)
