"""Control groups around sandboxes: made where they can be had,
and believed only if they limit.

Most tests have a folder in place of the kernel's, and a script in place of systemd-run.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.sandboxes import cgroup
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.cgroup import NO_GROUP, group_of, limited_by
from pytest_upskill.agents.sandboxes.sandbox import (
    CommandResult,
    SandboxError,
    SandboxLimits,
    SandboxSpec,
)
from support.sandboxes import needs_bwrap

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cgroup").exists(), reason="no Linux"
)

LIMITS = SandboxLimits(memory=300 * 2**20, processes=50, disk=100 * 2**20)
MEMORY, PROCESSES = str(464 * 2**20), "66"  # with the files, and what runs the sandbox

SYSTEMD_RUN = """#!/bin/sh
echo "$@" >> {log}
cd {mount}/me.slice/run
while [ "$1" != "--" ]; do
    case "$1" in
        --property=MemoryMax=*) echo "${{1#*Max=}}" > memory.max;;
        --property=TasksMax=*) echo "${{1#*Max=}}" > pids.max;;
    esac
    shift
done
shift
{more}
exec "$@"
"""


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tree of groups, where the one above ours may be divided; no systemd."""
    mount, membership = tmp_path / "cgroup", tmp_path / "membership"
    (mount / "me.slice/run").mkdir(parents=True)
    (mount / "cgroup.subtree_control").write_text("cpu\n")
    (mount / "me.slice/cgroup.subtree_control").write_text("cpu memory pids\n")
    (mount / "me.slice/run/cgroup.subtree_control").write_text("")
    membership.write_text("4:memory:/old\n0::/me.slice/run\n")
    monkeypatch.setattr(cgroup, "_MOUNT", mount)
    monkeypatch.setattr(cgroup, "_MEMBERSHIP", membership)
    # The kernel's files are no obstacle
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bwrap", "sh", "cat"):
        (programs / name).symlink_to(shutil.which(name) or "/nothing")
    monkeypatch.setenv("PATH", str(programs))
    cgroup._working.cache_clear()
    yield mount
    cgroup._working.cache_clear()


def add_systemd(mount: Path, more: str = "") -> Path:
    log, program = mount.parent / "log", mount.parent / "programs/systemd-run"
    program.write_text(SYSTEMD_RUN.format(mount=mount, log=log, more=more))
    program.chmod(0o755)
    return log


def made_in(mount: Path) -> list[Path]:
    return sorted(mount.rglob("pytest-upskill-*"))


def test_a_delegated_group_has_the_limits_and_the_command(mount: Path) -> None:
    group = group_of(LIMITS)
    assert made_in(mount) == [group.folder]
    assert group.folder
    assert group.folder.parent == mount / "me.slice"
    limits = {file.name: file.read_text().strip() for file in group.folder.iterdir()}
    assert limits == {
        "memory.max": MEMORY,
        "pids.max": PROCESSES,
        "memory.swap.max": "0",
    }
    with subprocess.Popen([*group.start, "/bin/true"]) as process:
        assert process.wait() == 0
    assert (group.folder / "cgroup.procs").read_text().split() == [str(process.pid)]
    group.remove()
    assert not made_in(mount)
    assert limited_by() == "cgroup v2 and its helper"


def test_a_group_has_the_processors_of_the_task(mount: Path) -> None:
    group = group_of(replace(LIMITS, cpus=1.5))
    assert group.folder
    assert (group.folder / "cpu.max").read_text() == "150000 100000\n"
    log = add_systemd(mount)
    cgroup._working.cache_clear()
    by_systemd = group_of(replace(LIMITS, cpus=0.5))
    assert "--property=CPUQuota=50%" in by_systemd.start
    assert "CPUQuota" not in log.read_text()  # of the try


@pytest.mark.usefixtures("mount")
def test_a_command_that_can_not_join_its_group_does_not_run() -> None:
    group = group_of(LIMITS)
    assert group.folder
    shutil.rmtree(group.folder)
    assert subprocess.run(
        [*group.start, "/bin/true"], capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize("controllers", ["cpu memory", "cpu pids", "", "memory2 pids"])
def test_without_controllers_there_are_no_groups(mount: Path, controllers: str) -> None:
    (mount / "me.slice/cgroup.subtree_control").write_text(controllers)
    assert group_of(LIMITS) == NO_GROUP
    assert limited_by() == "its helper alone, without cgroup v2"


def test_an_old_machine_has_no_groups(mount: Path, tmp_path: Path) -> None:
    (tmp_path / "membership").write_text("4:memory:/me.slice/run\n")
    assert group_of(LIMITS) == NO_GROUP
    (tmp_path / "membership").unlink()
    cgroup._working.cache_clear()
    assert group_of(LIMITS) == NO_GROUP
    assert not made_in(mount)


def test_groups_of_killed_runs_are_removed(mount: Path) -> None:
    with subprocess.Popen(["/bin/true"]) as ended:
        ended.wait()
    dead = mount / f"me.slice/pytest-upskill-{ended.pid}-ab"
    other = mount / f"me.slice/pytest-upskill-{os.getppid()}-cd"
    for folder in (dead, other):
        folder.mkdir()
    group = group_of(LIMITS)
    assert made_in(mount) == sorted([other, group.folder or other])


def test_systemd_comes_first(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-1234567890")
    log = add_systemd(mount)
    group = group_of(LIMITS)
    assert not made_in(mount)
    assert limited_by() == "systemd (cgroup v2) and its helper"
    assert dict(group.env) == {"XDG_RUNTIME_DIR": "/run/user/1"}
    for text in (f"MemoryMax={MEMORY}", f"TasksMax={PROCESSES}", "MemorySwapMax=0"):
        assert f"--property={text}" in group.start
    assert ("--user" in group.start) is (os.geteuid() != 0)
    assert len(log.read_text().splitlines()) == 1  # tried once


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("echo max > memory.max", id="ignores the limit of memory"),
        pytest.param("rm pids.max", id="has no limit of processes"),
        pytest.param(
            "set -- sh -c 'shift; exec \"$@\" 2>&-' sh $1; exit 1", id="fails"
        ),
        pytest.param(
            "for n in 3 4 5 6 7 8 9; do eval exec $n'<&-'; done; exit 0", id="no output"
        ),
    ],
)
def test_systemd_that_does_not_limit_is_not_believed(mount: Path, more: str) -> None:
    add_systemd(mount, more)
    assert limited_by() == "cgroup v2 and its helper"


def test_systemd_that_passes_no_files_on_is_not_used(mount: Path) -> None:
    add_systemd(
        mount, 'for file in /proc/self/fd/*; do n=${file##*/}; eval "exec $n<&-"; done'
    )
    assert limited_by() == "cgroup v2 and its helper"


def ran_in(limits: SandboxLimits, command: str) -> CommandResult:
    async def run() -> CommandResult:
        sandbox = await Bwrap().open(SandboxSpec(limits=limits))
        try:
            return await sandbox.run(command, timeout=60)
        finally:
            await sandbox.close()

    return asyncio.run(run())


@needs_bwrap
def test_a_sandbox_is_in_its_group_which_ends_with_it(mount: Path) -> None:
    async def members() -> list[str]:
        sandbox = await Bwrap().open(SandboxSpec(limits=LIMITS))
        try:
            assert (await sandbox.run("echo hello", timeout=60)).output == b"hello\n"
            (group,) = made_in(mount)
            pids = (group / "cgroup.procs").read_text().split()
            return [Path("/proc", pid, "comm").read_text().strip() for pid in pids]
        finally:
            await sandbox.close()

    assert asyncio.run(members()) == ["bwrap"]
    assert not made_in(mount)


@needs_bwrap
def test_a_sandbox_that_does_not_start_leaves_no_group(mount: Path) -> None:
    limited_by()
    (mount.parent / "programs/bwrap").unlink()
    (mount.parent / "programs/bwrap").symlink_to("/bin/false")
    with pytest.raises(SandboxError):
        ran_in(LIMITS, "true")
    assert not made_in(mount)


@needs_bwrap
def test_a_sandbox_is_started_by_systemd(mount: Path) -> None:
    log = add_systemd(mount)
    assert ran_in(LIMITS, "echo hello").output == b"hello\n"
    started = log.read_text().partition("pids.max")[2]
    assert "--scope" in started
    assert f"TasksMax={PROCESSES}" in started
    assert "bwrap --unshare-all" in started


@needs_bwrap
def test_nothing_of_the_group_is_seen_inside(
    mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_systemd(mount)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/secret-bus")
    shown = ran_in(
        LIMITS, "env; ls /sys /run 2>&1; cat /proc/1/environ /proc/self/environ 2>&1"
    )
    assert b"secret-bus" not in shown.output


# Page tables of memory that is only read: no process is charged for them.
_PAGE_TABLES = """
import mmap
areas = []
for _ in range(64):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    area = mmap.mmap(-1, 2**32, flags=flags, prot=mmap.PROT_READ)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, 2**32, 2**21):
        area[at]
    areas.append(area)
print("held", flush=True)
"""


@needs_bwrap
@pytest.mark.skipif(
    cgroup._working() is None, reason="no cgroup v2 group can be had here"
)
def test_page_tables_count() -> None:
    limits = SandboxLimits(memory=100 * 2**20, disk=20 * 2**20)
    shown = ran_in(limits, f"python3 -c '{_PAGE_TABLES}'")
    assert b"held" not in shown.output
