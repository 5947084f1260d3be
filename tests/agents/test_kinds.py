"""Which sandbox a run gets, and what it says if there is none."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.agents.sandboxes import bwrap, kinds
from pytest_upskill.agents.sandboxes.container import Container
from pytest_upskill.agents.sandboxes.kinds import kind_of
from pytest_upskill.agents.sandboxes.sandbox import HOME, SandboxLimits, SandboxSpec
from pytest_upskill.errors import SettingsError
from support.fake_docker import forget_programs
from support.sandboxes import needs_bwrap
from support.shell import started
from support.waiting import wait_until

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """All programs that can be found."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    bwrap._why_not.cache_clear()
    forget_programs()
    yield folder
    bwrap._why_not.cache_clear()
    forget_programs()


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def refused(name: str, image: str | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        kind_of(name, image)
    return caught.value.message(str)


@needs_bwrap
def test_auto_is_bubblewrap_on_linux() -> None:
    assert kind_of("auto").name == "bwrap"


def test_none_has_to_be_named() -> None:
    assert kind_of("none").name == "none"


def test_a_name_that_is_no_sandbox() -> None:
    message = refused("chroot")
    assert "chroot: no such sandbox" in message
    assert "auto, bwrap, docker, podman, none" in message


@linux
def test_without_any_the_message_says_what_to_install(
    programs: Path,  # noqa: ARG001
) -> None:
    message = refused("auto")
    for text in (
        "apt install bubblewrap",
        "dnf",
        "pacman",
        "docker was not found",
        "podman was",
    ):
        assert text in message
    assert "sandbox none runs agents without one" in message


@linux
def test_a_bubblewrap_that_can_not_be_run(programs: Path) -> None:
    program(programs, "bwrap", "")
    (programs / "bwrap").write_bytes(b"\x7fELF")
    assert "bwrap can't be run: exec format error." in refused("bwrap")


@linux
def test_a_bubblewrap_that_is_too_old(programs: Path) -> None:
    program(programs, "bwrap", "echo bubblewrap 0.4.1")
    assert "bubblewrap 0.4.1 is too old. Install bubblewrap 0.8" in refused("bwrap")


@linux
@pytest.mark.parametrize(
    ("setting", "mend"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "_userns=0"),
        ("kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "user.max_user_namespaces="),
        ("", "unshare --user true"),
    ],
)
def test_a_kernel_that_forbids_namespaces(
    setting: str,
    mend: str,
    programs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "bwrap: setting up uid map: Permission denied"
    script = (
        f'[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit; echo "{said}" >&2;'
        " exit 1"
    )
    program(programs, "bwrap", script)
    monkeypatch.setattr(bwrap, "_SYSCTL_FOLDER", tmp_path)
    monkeypatch.setattr(bwrap, "_CONTAINER_FILES", ())
    if setting:
        (tmp_path / setting).parent.mkdir(parents=True)
        (tmp_path / setting).write_text("1\n" if "apparmor" in setting else "0\n")
    message = refused("bwrap")
    assert said in message
    assert mend in message


@linux
def test_in_a_container_the_message_says_how_to_start_it(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(
        programs,
        "bwrap",
        '[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit; exit 1',
    )
    monkeypatch.setattr(bwrap, "_SYSCTL_FOLDER", tmp_path)
    monkeypatch.setattr(bwrap, "_CONTAINER_FILES", (str(tmp_path),))
    assert "--security-opt seccomp=unconfined" in refused("bwrap")


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_daemon_that_does_not_run(name: str, programs: Path) -> None:
    assert f"{name} was not found" in refused(name)
    forget_programs()
    program(programs, name, "echo 'Cannot connect. Does the daemon run?' >&2; exit 1")
    message = refused(name)
    assert f"{name} does not work: Cannot connect. Does the daemon run?" in message
    assert "?." not in message


def test_an_image_that_can_not_be_had(programs: Path) -> None:
    program(
        programs,
        "docker",
        '[ "$1" = version ] && exit; echo "no such image" >&2; exit 1',
    )
    assert "the image tool:1 can't be pulled: no such image." in refused(
        "docker", "tool:1"
    )


def test_an_image_is_not_fetched_for_a_look(programs: Path, tmp_path: Path) -> None:
    program(
        programs,
        "docker",
        f'[ "$1" = version ] && exit; echo $1 >> {tmp_path}/log; exit 1',
    )
    with pytest.raises(SettingsError, match="tool:1 is not here"):
        kind_of("docker", "tool:1", may_fetch=False)
    assert (tmp_path / "log").read_text() == "image\n"


@needs_bwrap
def test_only_containers_have_an_image() -> None:
    assert "bwrap has no image" in refused("bwrap", "tool:1")


def test_auto_with_an_image_is_a_container(programs: Path) -> None:  # noqa: ARG001
    assert "bwrap" not in refused("auto", "tool:1")


KILLED = """
import asyncio, sys
from pytest_upskill.agents.sandboxes.sandbox import SandboxSpec
from pytest_upskill.agents.sandboxes.bwrap import Bwrap

async def main():
    box = await Bwrap().open(SandboxSpec())
    loop = f"setsid bash -c 'while :; do sleep 1; done' {sys.argv[1]}"
    await box.run(f"({loop} &); true", timeout=60)
    print("ready", flush=True)
    await box.run("sleep 1000", timeout=1000)

asyncio.run(main())
"""


@needs_bwrap
def test_nothing_is_left_of_a_run_that_is_killed(tmp_path: Path) -> None:
    mark = f"left-by-{tmp_path.name}-{time.time_ns()}"
    with started([sys.executable, "-c", KILLED, mark], stdout=subprocess.PIPE) as run:
        assert run.stdout
        assert run.stdout.readline() == "ready\n"
        wait_until(lambda: _called(mark))
        run.kill()
    wait_until(lambda: not _called(mark))


def _called(mark: str) -> bool:
    """Whether a process of the sandbox is there; the one that
    was killed has the mark too.
    """
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"bash" and mark.encode() in words:
            return True
    return False


def test_all_names_are_known() -> None:
    assert [
        name for name in kinds.NAMES if name != "auto" and not kinds._kind(name)
    ] == []


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_container_has_the_folders_and_limits_of_its_task(
    name: str, tmp_path: Path
) -> None:
    limits = SandboxLimits(memory=2**30, disk=2**30, cpus=1.5)
    spec = SandboxSpec(
        limits=limits, workdir="/root", places=("/data",), env={"A": "1"}
    )
    words = Container(name, "")._options(spec, tmp_path)
    options = {(words[at], words[at + 1]) for at in range(len(words) - 1)}
    assert {
        ("--cpus", "1.5"),
        ("--memory", str(2 * 2**30)),
        ("--workdir", "/"),
    } <= options
    folders = {value.partition(":") for option, value in options if option == "--tmpfs"}
    assert {folder for folder, _, _ in folders} == {"/root", "/data", "/tmp", HOME}
    # Podman would fill them from the image, with files of root.
    assert all(("notmpcopyup" in text) == (name == "podman") for _, _, text in folders)
    assert ("--read-only-tmpfs=false" in words) == (name == "podman")
