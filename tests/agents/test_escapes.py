"""Nothing gets out of a sandbox, whoever runs pytest."""

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import pytest

from support import escapes
from support.escape_host import Attempt, host
from support.escapes import ATTEMPTS
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap
STRANGER = 54_321  # a user that has nothing
NAMES = [attempt.name for attempt in ATTEMPTS]
OTHER_WORKDIRS = ("/app", "/home/x", "/srv/a/b", "/usr/src/app")
WITH_FILES = (
    "dots",
    "home",
    "skill",
    "outside",
    "written by the helper",
    "remount",
    "disk",
)
GATE = {  # cheap ones, of each class; `make nightly` makes all attempts
    *("symlink", "environment", "open files", "read by the helper"),
    *("skill", "outside", "TCP", "abstract socket", "signal", "terminal's session"),
    *(
        "user namespace",
        "risky calls",
        "memory",
        "daemon",
        "memory of the helper",
        "kernel tables",
    ),
}


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(attempt, marks=() if attempt.name in GATE else pytest.mark.nightly)
        for attempt in ATTEMPTS
    ],
    ids=NAMES,
)
def test_it_fails_and_the_run_goes_on(attempt: Attempt) -> None:
    with host() as target:
        assert asyncio.run(attempt.make(target)) == ""


@pytest.mark.parametrize("name", WITH_FILES)
@pytest.mark.parametrize(
    "workdir",
    [
        "/root",
        *(pytest.param(path, marks=pytest.mark.nightly) for path in OTHER_WORKDIRS),
    ],
)
def test_it_fails_wherever_the_workdir_is(name: str, workdir: str) -> None:
    (attempt,) = (attempt for attempt in ATTEMPTS if attempt.name == name)
    with host() as target:
        assert asyncio.run(attempt.make(target, workdir)) == ""


@pytest.mark.nightly
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("name", NAMES)
def test_it_fails_for_a_user_without_rights_too(name: str) -> None:
    assert _as_stranger()[name] == ""


@cache
def _as_stranger() -> dict[str, str]:
    """What came of all attempts, made by a user without rights."""
    folders = [
        escapes.__file__,
        *_imported("pytest_upskill"),
        sysconfig.get_path("purelib"),
    ]
    path = [str(Path(folders[0]).parents[1]), *folders[1:]]
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(path), "HOME": "/"}
        try:
            ran = subprocess.run(
                [python, "-B", escapes.__file__],
                capture_output=True,
                text=True,
                user=STRANGER,
                group=STRANGER,
                extra_groups=[],
                env=env,
                check=False,
                cwd="/",
            )
        except OSError as error:  # say, it is below root's home
            said = str(error)
            continue
        if ran.returncode == 0:
            results: dict[str, str] = json.loads(ran.stdout)
            return results
        said = ran.stderr.strip()[-300:]
    pytest.skip(f"no Python that another user can start: {said}")


def _imported(package: str) -> list[str]:
    return [
        str(Path(file).parents[1]) for file in [sys.modules[package].__file__] if file
    ]
