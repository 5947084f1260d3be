"""What scripts of tasks download, prepared outside of the sandbox."""

import json
import os
import platform
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_upskill.agents import verifier_folder
from pytest_upskill.agents.prepared_scripts import python_versions
from pytest_upskill.agents.sandboxes.sandbox import SandboxError
from pytest_upskill.agents.verifier_folder import STAND_INS, SandboxPythons, prepare
from pytest_upskill.skills.verifier_script import VerifierDownloads, WheelSet

HERE = SandboxPythons(("3.11", "3.12"), of_host=True)
NOWHERE = Path("/nowhere")


class Commands:
    """Stands for pip and uv: they resolve what a test says, and download empty
    wheels.
    """

    def __init__(self) -> None:
        self.calls = list[Sequence[str]]()
        self.resolved = {"tally": "tally==1.0\nchart==2.0 ; sys_platform == 'win32'\n"}

    def __call__(
        self,
        call: Sequence[str],
        stdin: str,
        env: dict[str, str],  # noqa: ARG002
        seconds: float = 0,  # noqa: ARG002
    ) -> str:
        self.calls.append(call)
        if "download" in call:
            for name in call[call.index("--") + 1 :]:
                folder = Path(call[call.index("--dest") + 1])
                with zipfile.ZipFile(folder / f"{name}.whl", "w") as wheel:
                    for program in ("uv", "uvx") if name == "uv" else ():
                        wheel.writestr(f"uv.data/scripts/{program}", "#!/bin/sh\n")
            return ""
        if "compile" in call:
            if stdin not in self.resolved:
                raise SandboxError(f"{stdin} has no usable wheels")
            return self.resolved[stdin]
        if "install" in call:
            raise SandboxError("no network")
        return ""

    def count(self, word: str) -> int:
        return sum(word in call for call in self.calls)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The cache is empty, and no Python of the host is found."""
    replaced = Commands()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(NOWHERE))
    monkeypatch.setattr(verifier_folder, "user_cache", lambda: tmp_path)
    monkeypatch.setattr(verifier_folder, "_ran", replaced)
    monkeypatch.setattr(verifier_folder, "_host_python", lambda _: None)
    for cached in ("_wheel_folder", "_index", "_portable_python"):
        getattr(verifier_folder, cached).cache_clear()
    return replaced


def wanted(*sets: WheelSet) -> VerifierDownloads:
    return VerifierDownloads(sets)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_set_is_resolved_by_itself_for_its_python(commands: Commands) -> None:
    commands.resolved |= {"chart": "chart==1.0\n"}
    sets = (WheelSet(("tally",), "3.12"), WheelSet(("chart",)))
    folder = prepare(wanted(*sets), HERE)
    assert (folder.unmet, folder.without) == ((), ())
    assert len(folder.wheels) == 2
    hosts = {mount.inside: Path(mount.host) for mount in folder.mounts}
    names = [names_in(hosts[name]) for name in folder.wheels]
    assert names == [["chart==2.0.whl", "tally==1.0.whl"], ["chart==1.0.whl"]]
    assert folder.size > 0
    compiled = [
        call[call.index("--python-version") + 1]
        for call in commands.calls
        if "compile" in call
    ]
    assert compiled == ["3.12", "3.11"]
    downloads = [call for call in commands.calls if "tally==1.0" in call]
    assert all("--only-binary" in call for call in downloads)
    assert any(f"manylinux_2_17_{platform.machine()}" in call for call in downloads)
    assert names_in(hosts["/prepared/bin"]) == sorted(STAND_INS)
    assert os.access(hosts["/prepared/uv"] / "uvx", os.X_OK)


def test_nothing_is_looked_up_or_downloaded_twice(commands: Commands) -> None:
    first = prepare(wanted(WheelSet(("tally",))), HERE)
    verifier_folder._wheel_folder.cache_clear()  # as in another process
    before = len(commands.calls)
    assert (
        prepare(wanted(WheelSet(("tally",)), WheelSet(("tally",), by_pip=True)), HERE)
        == first
    )
    assert len(commands.calls) == before


def test_a_project_is_resolved_for_all_systems(commands: Commands) -> None:
    prepare(wanted(WheelSet(("tally",), locked=True)), HERE)
    assert commands.count("--universal") == 1


def test_a_python_that_is_nowhere_is_tried_once_a_day(commands: Commands) -> None:
    for _ in range(2):
        folder = prepare(wanted(WheelSet(("tally",), "3.14")), HERE)
        assert folder.without == ("3.14",)
        assert folder.unmet == ()
        verifier_folder._portable_python.cache_clear()
    assert commands.count("install") == 1
    assert "3.11" in next(call for call in commands.calls if "compile" in call)


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        ("sums", "sums has no usable wheels"),
        ("git+https://example.org/x.git", "not a requirement"),
        ("./local.whl", "not a requirement"),
        ("--index-url=https://example.org", "not a requirement"),
    ],
)
def test_what_can_not_be_had_is_told(
    commands: Commands, requirement: str, problem: str
) -> None:
    folder = prepare(wanted(WheelSet((requirement,)), WheelSet(("tally",))), HERE)
    (unmet,) = folder.unmet
    assert problem in unmet
    assert len(folder.wheels) == 1
    assert commands.count("compile") == 1 + (requirement == "sums")


def test_an_image_without_a_python(commands: Commands) -> None:  # noqa: ARG001
    folder = prepare(wanted(WheelSet(("tally",))), SandboxPythons((), of_host=False))
    assert folder.unmet == ("a Python",)


def test_without_uv_all_is_missing(
    commands: Commands,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> str:
        raise SandboxError("no network")

    monkeypatch.setattr(verifier_folder, "_ran", fail)
    assert prepare(wanted(WheelSet(("tally",))), HERE).unmet == ("uv: no network",)


def test_versions_of_pythons() -> None:
    rows = [
        {"implementation": "cpython", "version_parts": {"major": 3, "minor": 12}},
        {"implementation": "pypy", "version_parts": {"major": 3, "minor": 10}},
        {"implementation": "cpython", "version_parts": {"major": 3, "minor": 12}},
        {"implementation": "cpython", "version_parts": {"major": 3, "minor": 9}},
    ]
    assert python_versions(json.dumps(rows).encode()) == ("3.12", "3.9")
    for odd in (b"", b"{}", b"[1]", b"no uv"):
        assert python_versions(odd) == ()
