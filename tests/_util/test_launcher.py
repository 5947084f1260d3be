"""Commands that are printed can be run: by uvx, where the process itself is."""

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from pytest_upskill._util.keys import shown_command
from pytest_upskill._util.launcher import _launcher, launcher_of

REPOSITORY = "https://github.com/pytest-upskill/pytest-upskill"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    _launcher.cache_clear()
    yield
    _launcher.cache_clear()


@pytest.mark.parametrize(
    ("origin", "has_local", "requirement"),
    [
        (None, False, "pytest-upskill"),
        (None, True, "pytest-upskill[local]"),
        (
            {"url": "file:///tmp/x%20y/p.whl", "archive_info": {}},
            False,
            "file:///tmp/x%20y/p.whl",
        ),
        ({"url": REPOSITORY, "vcs_info": {"vcs": "git"}}, True, f"git+{REPOSITORY}"),
        (
            {
                "url": REPOSITORY,
                "vcs_info": {"vcs": "git", "requested_revision": "main"},
            },
            False,
            f"git+{REPOSITORY}@main",
        ),
    ],
)
def test_uvx_takes_what_it_took_before(
    origin: dict[str, object] | None, has_local: bool, requirement: str
) -> None:
    first, option, written = launcher_of(
        json.dumps(origin) if origin else "", has_local=has_local
    )
    assert (first, option) == ("uvx", "--from")
    name = "pytest-upskill[local]" if has_local else "pytest-upskill"
    assert written == (f"{name} @ {requirement}" if origin else requirement)


def test_only_our_commands_are_run_by_uvx(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown_command(["pytest", "--lf"]) == "pytest --lf"
    _launcher.cache_clear()
    monkeypatch.setattr(sys, "prefix", "/home/me/.cache/uv/archive-v0/Lr3aCo3")
    installed = SimpleNamespace(read_text=lambda _: None)
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: installed)
    monkeypatch.setattr("pytest_upskill._util.launcher.find_spec", lambda _: None)
    assert shown_command(["pytest", "--lf"]) == "uvx --from pytest-upskill pytest --lf"
    assert shown_command(["pytest-upskill", "init"]).endswith(" pytest-upskill init")
    assert shown_command(["open", "page.html"]) == "open page.html"
    assert shown_command([]) == ""
