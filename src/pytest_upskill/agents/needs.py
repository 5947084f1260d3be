"""What a skill's scripts need of the host: paths, and Python packages.

Packages are installed outside of the sandbox, once, and only as wheels.
"""

import functools
import json
import os
import re
import secrets
import stat
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Final

from .._util.files import read_file, replace_file, resolved, user_cache
from .._util.keys import without_credentials
from .._util.texts import digest
from ..skills.case import SandboxNeeds
from ..skills.folder import is_private, is_skill
from .logins import CLAUDE, CODEX
from .run_folder import remove
from .sandboxes.sandbox import (
    HOME,
    PACKAGES,
    SKILLS,
    WORKSPACE,
    Mount,
    SandboxError,
    SandboxLimits,
    SandboxSpec,
)

_MOST_FOR_FILES: Final = 4  # the part of the machine's memory: a quarter
_FOLDERS: Final = (WORKSPACE, SKILLS, HOME, PACKAGES)
_SANDBOX_PATHS: Final = (*_FOLDERS, "/tmp", "/dev/shm", "/proc", "/etc/passwd")
_PRIVATE: Final = (
    *("/proc", "/sys", "/dev", "/run", "/boot", "/etc/ssh", "/etc/ssl"),
    *("/var/run", "/var/backups", "/var/log", "/var/mail", "/var/spool"),
)
# Hidden folders of a home that hold tools; others may hold keys.
_TOOL_FOLDERS: Final = (
    *(".local/bin", ".local/lib", ".local/opt", ".cargo", ".rustup", ".nvm", ".pyenv"),
    *(".bun", ".deno", ".dotnet", ".asdf", ".sdkman", ".volta"),
)


def spec_for(needs: SandboxNeeds) -> SandboxSpec:
    """The sandbox that these needs ask for. SandboxError if one can't be met."""
    for path in needs.paths:
        if problem := why_no_path(path):
            raise SandboxError(f"sandbox.paths: {problem}.")
    spec = SandboxSpec(
        tuple(
            Mount(os.path.realpath(path), os.path.normpath(path))
            for path in needs.paths
        ),
        dict(needs.env),
        needs.network,
        limits_of(needs),
        needs.workdir,
        needs.places,
    )
    if not needs.python:
        return spec
    folder = python_packages(needs.python)
    return replace(spec, mounts=(*spec.mounts, Mount(str(folder), PACKAGES)))


def limits_of(needs: SandboxNeeds) -> SandboxLimits:
    """The limits of a task. Its files are in memory,
    so it can't have as many as it may ask for.
    """
    usual = SandboxLimits()
    most = max(usual.disk, _machine_memory() // _MOST_FOR_FILES)
    disk = min((needs.storage_mb or 0) * 2**20 or usual.disk, most)
    return replace(
        usual,
        memory=min((needs.memory_mb or 0) * 2**20, _machine_memory()) or usual.memory,
        disk=disk,
        file_size=max(usual.file_size, disk // 2),
        cpus=needs.cpus,
    )


def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def why_no_path(text: str) -> str | None:
    """Why a path of the host must not be mounted; None if it may be."""
    path = Path(os.path.normpath(text))
    if not text.startswith("/") or "\0" in text:
        return f'"{text}" is not an absolute path'
    real = Path(os.path.realpath(path))
    try:
        mode = real.stat().st_mode
    except OSError as error:
        return f"{text} can't be read: {error.strerror}"
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return f"{text} is neither a folder nor a file"
    for place in {path, real}:
        if problem := _problem(place):
            return f"{text} {problem}"
    if stat.S_ISREG(mode) and is_private(PurePath(real.name)):
        return f"{text} may hold secrets"
    # Root, and so an agent, could read it all the same.
    if not mode & stat.S_IROTH and not any(
        real.is_relative_to(home) for home in _homes()
    ):
        return f"{text} is not for everyone to read, so it may hold secrets"
    return None


def _problem(path: Path) -> str | None:
    if any(Path(folder).is_relative_to(path) for folder in _SANDBOX_PATHS):
        return "is a folder of the sandbox itself, or holds one"
    if any(path.is_relative_to(folder) for folder in _FOLDERS):
        return "is in a folder of the sandbox itself"
    if any(path.is_relative_to(private) for private in _PRIVATE):
        return "holds what agents must not see"
    for home in _homes():
        if home.is_relative_to(path):
            return "is a home, or holds one; name the folder of the tool alone"
        if path.is_relative_to(home):
            inside = path.relative_to(home)
            tool = any(inside.is_relative_to(name) for name in _TOOL_FOLDERS)
            if inside.parts[0].startswith(".") and not tool:
                return "is in a hidden folder of a home, where keys may be"
    logins = (resolved(login.file(os.environ)) for login in (CLAUDE, CODEX))
    if any(login.is_relative_to(path) for login in logins):
        return "holds your login to an agent"
    if Path.cwd().is_relative_to(path):
        return "holds the folder of this run, with the checks of its cases"
    if any(is_skill(folder) for folder in (path, *path.parents)) or _holds_skills(path):
        return "is a skill or holds one, which the baseline must not see"
    if ".upskill" in path.parts or (path / ".upskill").exists():
        return "holds stored answers"
    return None


def _holds_skills(folder: Path) -> bool:
    with suppress(OSError):
        return any(is_skill(child) for child in folder.iterdir() if child.is_dir())
    return False


def _homes() -> Iterable[Path]:
    homes = {
        Path.home(),
        Path(os.path.realpath(Path.home())),
        Path("/root"),
        Path("/home"),
    }
    if sys.platform != "win32":
        import pwd

        folders = (Path(user.pw_dir) for user in pwd.getpwall())
        homes |= {home for home in folders if home.is_relative_to("/home")}
    return homes


_VERSIONS: Final = r"(?:===|[<>=!~]=|[<>])\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]*\s*"
_REQUIREMENT: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*"  # a name
    r"(?:\[[A-Za-z0-9._,\s-]*\]\s*)?"  # extras
    rf"(?:{_VERSIONS}(?:,\s*{_VERSIONS})*(?:,\s*)?)?"
    r"(?:;[^\n]*)?"  # markers
)
# Pip would take a file of this name from the current folder, and build it.
_ARCHIVE: Final = re.compile(
    r"[^;]*\.(?:whl|zip|tgz|tbz|txz|tlz|tar(?:\.\w+)?)\s*(?:[\[;]|$)", re.IGNORECASE
)
_PIP: Final = (
    # -P: a pip.py in the current folder is not pip.
    *(
        "-P",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--no-input",
        "install",
        "--quiet",
    ),
    *("--only-binary", ":all:", "--ignore-installed", "--no-warn-script-location"),
)
_PIP_SECONDS: Final = 600
_DAY_SECONDS: Final = 86_400.0  # versions are looked up again after this time
_NO_WHEEL: Final = re.compile(r"No matching distribution found for ([^\n]+?)\.?$")
_lock: Final = threading.Lock()


def why_no_requirement(text: str) -> str | None:
    """Why a requirement can't be used; None if it can."""
    # A second line could be an option, such as another index.
    is_line = len(text) < 200 and text.isprintable()
    if is_line and _REQUIREMENT.fullmatch(text) and not _ARCHIVE.match(text):
        return None
    return f'"{text}" is not a requirement of a package like "pypdf==5.*"'


def python_packages(requirements: Sequence[str]) -> Path:
    """A folder with these packages and all that they need.
    SandboxError if pip can't make it.

    It may take a while: call it in a thread. Concurrent runs don't disturb each other.
    """
    for text in requirements:
        if problem := why_no_requirement(text):
            raise SandboxError(f"{problem}. Write a name and versions; wheels only.")
    with _lock:
        return _installed(tuple(sorted(set(requirements))))


@functools.cache
def _installed(requirements: tuple[str, ...]) -> Path:
    """Cached, so that all trials of a run have the same packages."""
    stored = _cache() / f"{digest(_platform(), *requirements)[:32]}.json"
    resolution = _daily_versions(stored, lambda: _resolved(requirements))

    def install(new: Path) -> None:
        _pip("--no-deps", "--target", str(new), "--", *resolution)
        _call_python_by_name(new / "bin")

    return _whole_folder(_cache() / digest(_platform(), *resolution)[:32], install)


def _resolved(requirements: tuple[str, ...]) -> list[str]:
    """The packages that pip would install, as NAME==VERSION."""
    report = _pip("--dry-run", "--report", "-", "--", *requirements)
    try:
        packages = [package["metadata"] for package in json.loads(report)["install"]]
        return sorted(
            f"{package['name']}=={package['version']}" for package in packages
        )
    except (ValueError, KeyError, TypeError):
        raise SandboxError(
            f"{_failed(requirements)}: pip sent no report. Update pip."
        ) from None


def _call_python_by_name(scripts: Path) -> None:
    """Let scripts call the Python of the sandbox, where that of pip may be missing."""
    python = os.fsencode(sys.executable)
    for script in filter(Path.is_file, scripts.glob("*")):  # besides __pycache__
        text = read_file(script)
        line, _, body = text.partition(b"\n")
        if line.startswith(b"#!") and b"python" in line:
            script.write_bytes(b"#!/usr/bin/env python3\n" + body)
        # A path too long for that line
        elif line == b"#!/bin/sh" and python in body[:1000]:
            script.write_bytes(text.replace(python, b"/usr/bin/env python3", 1))


def _pip(*arguments: str) -> bytes:
    """Run pip with the settings of its user."""
    requirements = arguments[arguments.index("--") + 1 :]
    try:
        ran = subprocess.run(
            [sys.executable, *_PIP, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PIP_SECONDS,
            check=False,
            env={**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"{_failed(requirements)}: pip failed: {error}.") from None
    if ran.returncode:
        raise SandboxError(f"{_failed(requirements)}: {_reason(ran.stderr)}")
    return ran.stdout


def _failed(requirements: Sequence[str]) -> str:
    return f"the Python packages {', '.join(requirements)} could not be installed"


def _reason(errors: bytes) -> str:
    lines = [
        line.strip()
        for line in errors.decode(errors="replace").splitlines()
        if line.strip()
    ]
    told = [line for line in reversed(lines) if line.startswith("ERROR:")]
    conflicts = [line for line in told if line.startswith("ERROR: Cannot install")]
    message = next(iter([*conflicts, *told]), "")
    message = message or (lines[-1] if lines else "pip gave no reason")
    message = without_credentials(message.removeprefix("ERROR:").strip())
    if "No module named pip" in message:
        return f"{message}. Install pip for {sys.executable}: python -m ensurepip"
    hint = "check the names, the versions and pip's index settings."
    if missing := _NO_WHEEL.match(message):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        platform = f"Python {version} on {sysconfig.get_platform()}"
        return (
            f"there is no wheel of {missing[1]} for {platform}. Only wheels are used:"
            f" {hint}"
        )
    return f"{message.rstrip('.')}. Only wheels are used: {hint}"


def _daily_versions(file: Path, look_up: Callable[[], list[str]]) -> list[str]:
    """The exact versions, looked up once a day; if that fails, those of the last
    time.
    """
    previous: list[str] | None = None
    with suppress(OSError, ValueError):
        previous = [str(requirement) for requirement in json.loads(read_file(file))]
        if time.time() - file.stat().st_mtime < _DAY_SECONDS:
            return previous
    try:
        versions = look_up()
    except SandboxError:
        if previous is None:
            raise
        return previous
    with suppress(OSError):
        replace_file(file, json.dumps(versions))
    return versions


def _whole_folder(folder: Path, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, made whole or not at all."""
    if folder.is_dir():
        return folder
    new = folder.with_name(f"new-{secrets.token_hex(8)}")
    try:
        new.mkdir(parents=True)
        make(new)
        new.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another run was faster
            raise SandboxError(
                f"{folder.parent} can't be written: {error.strerror}."
            ) from None
    finally:
        remove(new)
    return folder


def _platform() -> str:
    return f"{sys.implementation.cache_tag} {sysconfig.get_platform()}"


def _cache() -> Path:
    return user_cache() / "packages"
