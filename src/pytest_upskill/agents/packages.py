"""Python packages for a sandbox: installed outside of it, once, and only as wheels."""

import functools
import json
import os
import re
import secrets
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from .._util.credentials import without_credentials
from .._util.files import read_file, replace_file
from .._util.texts import digest
from .port import SandboxError
from .run_folder import remove

_VERSION: Final = r"(?:===|[<>=!~]=|[<>])\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]*\s*"
_REQUIREMENT: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*"  # a name
    r"(?:\[[A-Za-z0-9._,\s-]*\]\s*)?"  # extras
    rf"(?:{_VERSION}(?:,\s*{_VERSION})*(?:,\s*)?)?"
    r"(?:;[^\n]*)?"  # when
)
# Pip would take a file of this name from the current folder, and build it.
_ARCHIVE: Final = re.compile(
    r"[^;]*\.(?:whl|zip|tgz|tbz|txz|tlz|tar(?:\.\w+)?)\s*(?:[\[;]|$)", re.IGNORECASE
)
_PIP: Final = (
    # -P: a pip.py in the current folder is not pip.
    *("-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"),
    *("--only-binary", ":all:", "--ignore-installed", "--no-warn-script-location"),
)
_SECONDS: Final = 600
_DAY: Final = 86_400.0  # a resolution is looked up again after this time
_lock: Final = threading.Lock()


def why_no_requirement(text: str) -> str | None:
    """Why a requirement can't be used; None if it can."""
    if len(text) < 200 and _REQUIREMENT.fullmatch(text) and not _ARCHIVE.match(text):
        return None
    return f'"{text}" is not a requirement of a package like "pypdf==5.*"'


def python_packages(requirements: Sequence[str]) -> Path:
    """A folder with these packages and all that they need. SandboxError if pip can't make it.

    It may take a while: call it in a thread. Concurrent runs don't disturb each other.
    """
    for text in requirements:
        if problem := why_no_requirement(text):
            raise SandboxError(f"{problem}. Write a name and versions; wheels only.")
    with _lock:
        return _installed(tuple(sorted(set(requirements))))


@functools.cache
def _installed(requirements: tuple[str, ...]) -> Path:
    """Once per run, so that all trials have the same."""
    resolution = _resolution(requirements)
    folder = _cache() / digest(_platform(), *resolution)[:32]
    if not folder.is_dir():
        _install(resolution, folder)
    return folder


def _resolution(requirements: tuple[str, ...]) -> list[str]:
    """The exact versions, looked up at most once a day, and not if there is no way to do so."""
    known = _cache() / f"{digest(_platform(), *requirements)[:32]}.json"
    old: list[str] | None = None
    with suppress(OSError, ValueError):
        old = [str(one) for one in json.loads(read_file(known))]
        if time.time() - known.stat().st_mtime < _DAY:
            return old
    try:
        resolution = _resolved(requirements)
    except SandboxError:
        if old is None:
            raise
        return old
    with suppress(OSError):
        replace_file(known, json.dumps(resolution))
    return resolution


def _resolved(requirements: tuple[str, ...]) -> list[str]:
    """What pip would install, as NAME==VERSION."""
    said = _pip("--dry-run", "--report", "-", "--", *requirements)
    try:
        found = [one["metadata"] for one in json.loads(said)["install"]]
        return sorted(f"{one['name']}=={one['version']}" for one in found)
    except (ValueError, KeyError, TypeError):
        raise SandboxError(f"{_what(requirements)}: pip sent no report. Update pip.") from None


def _install(resolution: Sequence[str], folder: Path) -> None:
    new = folder.with_name(f"new-{secrets.token_hex(8)}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _pip("--no-deps", "--target", str(new), "--", *resolution)
        new.mkdir(exist_ok=True)  # nothing to install
        _call_python_by_name(new / "bin")
        new.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another run was faster
            raise SandboxError(f"{folder.parent} can't be written: {error.strerror}.") from None
    finally:
        remove(new)


def _call_python_by_name(scripts: Path) -> None:
    """Let scripts call the Python of the sandbox: that of pip may be invisible there."""
    own = os.fsencode(sys.executable)
    for script in scripts.glob("*") if scripts.is_dir() else ():
        text = read_file(script)
        line, _, rest = text.partition(b"\n")
        if line.startswith(b"#!") and b"python" in line:
            script.write_bytes(b"#!/usr/bin/env python3\n" + rest)
        elif line == b"#!/bin/sh" and own in rest[:1000]:  # a path too long for that line
            script.write_bytes(text.replace(own, b"/usr/bin/env python3", 1))


def _pip(*arguments: str) -> bytes:
    """Run pip with the settings of its user."""
    requirements = arguments[arguments.index("--") + 1 :]
    try:
        ran = subprocess.run(
            [sys.executable, *_PIP, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"{_what(requirements)}: pip failed: {error}.") from None
    if ran.returncode:
        raise SandboxError(f"{_what(requirements)}: {_reason(ran.stderr)}")
    return ran.stdout


def _what(requirements: Sequence[str]) -> str:
    return f"the Python packages {', '.join(requirements)} could not be installed"


def _reason(errors: bytes) -> str:
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if line.startswith("ERROR:")), "")
    said = said or (lines[-1] if lines else "pip said nothing")
    said = without_credentials(said.removeprefix("ERROR:").strip())
    if "No module named pip" in said:
        return f"{said}. Install pip for {sys.executable}: python -m ensurepip"
    hint = "Only wheels are installed: check the names, the versions and pip's index settings."
    return f"{said.rstrip('.')}. {hint}"


def _platform() -> str:
    version = sys.version_info
    return (
        f"{sys.implementation.cache_tag} {version.major}.{version.minor} {sysconfig.get_platform()}"
    )


def _cache() -> Path:
    if sys.platform == "darwin":
        top = Path.home() / "Library" / "Caches"
    else:
        top = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return top / "pytest-upskill" / "packages"
