"""Scripts of tasks, verifiers and solutions, run with what they download prepared."""

import asyncio
import json
import os
import posixpath
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ..skills.verifier_script import VerifierDownloads
from .sandboxes.sandbox import (
    HOME,
    PACKAGES,
    Sandbox,
    SandboxError,
    SandboxKind,
    SandboxSpec,
)
from .task_sandbox import missing_packages
from .verifier_folder import (
    BIN,
    UV,
    PreparedFolder,
    SandboxPythons,
    prepare,
    stand_ins,
    uv,
)

UNMET: Final = "/tmp/.upskill-unmet"  # what scripts asked for in vain
_UV_FOLDERS: Final = (
    *(
        "CACHE_DIR",
        "TOOL_DIR",
        "TOOL_BIN_DIR",
        "PROJECT_ENVIRONMENT",
        "PYTHON_INSTALL_DIR",
    ),
)
# Bytes of all folders for each of the wheels, which are unpacked
_DISK_PER_WHEELS: Final = 24
_USER_SITE: Final = "import site; print(site.getusersitepackages())"
_TRY_SECONDS: Final = 60.0
_LIST_PYTHONS: Final = (
    *(
        "python",
        "list",
        "--only-installed",
        "--offline",
        "--no-config",
        "--output-format",
        "json",
    ),
)
# By kind of sandbox and image
_pythons: Final = dict[tuple[str, str], SandboxPythons]()


async def prepared_in(
    kind: SandboxKind, spec: SandboxSpec, downloads: VerifierDownloads
) -> PreparedFolder:
    """What a script downloads, for sandboxes of a kind."""
    of_host = not spec.image
    packages = downloads.packages if of_host else ()  # else the image tells what it has
    there = tuple(name for name in packages if not missing_packages((name,)))
    if not downloads.wheels:
        return PreparedFolder((await asyncio.to_thread(stand_ins),), packages=there)
    key = (kind.name, spec.image)
    if key not in _pythons:
        with suppress(SandboxError):  # there is no uv, as preparing tells, too
            _pythons[key] = SandboxPythons(await _versions_in(kind, spec), of_host)
    pythons = _pythons.get(key, SandboxPythons((), of_host))
    return replace(await asyncio.to_thread(prepare, downloads, pythons), packages=there)


async def _versions_in(kind: SandboxKind, spec: SandboxSpec) -> tuple[str, ...]:
    sandbox = await kind.open(
        SandboxSpec((await asyncio.to_thread(uv),), image=spec.image)
    )
    try:
        words = [sandbox.path(f"{UV}/uv"), *_LIST_PYTHONS]
        return python_versions((await sandbox.run(words, timeout=_TRY_SECONDS)).output)
    finally:
        await sandbox.close()


def python_versions(listed: bytes) -> tuple[str, ...]:
    """Versions such as 3.11 in a list of uv, the default one first."""
    try:
        rows = json.loads(listed)
        parts = [
            row["version_parts"] for row in rows if row["implementation"] == "cpython"
        ]
        names = [f"{int(part['major'])}.{int(part['minor'])}" for part in parts]
    except (ValueError, KeyError, TypeError):
        return ()
    return tuple(dict.fromkeys(names))


def with_prepared(spec: SandboxSpec, folder: PreparedFolder) -> SandboxSpec:
    """With its mounts, and with space to unpack the wheels."""
    more, limits = folder.size * _DISK_PER_WHEELS, spec.limits
    limits = replace(limits, disk=limits.disk + more, memory=limits.memory + more)
    return replace(spec, mounts=(*spec.mounts, *folder.mounts), limits=limits)


async def environment(
    sandbox: Sandbox,
    folder: PreparedFolder,
    kept: Sequence[str] = (),
    *,
    network: bool = False,
) -> dict[str, str]:
    """By which scripts take what is prepared.

    Where an agent could have put programs, in the folders ``kept``,
    they are looked for last.
    """
    path, wheels = sandbox.path, [sandbox.path(name) for name in folder.wheels]
    env = {f"UV_{name}": f"{path('/tmp')}/uv/{name.lower()}" for name in _UV_FOLDERS}
    env |= {
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
        "UV_LINK_MODE": "hardlink",
    }
    # No settings of an agent's: a file uv.toml, or sources in its pyproject.toml.
    env |= {
        "UV_SYSTEM_CERTS": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_SOURCES": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }
    env |= {"PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    env |= {"UV_FIND_LINKS": ",".join(wheels), "PIP_FIND_LINKS": " ".join(wheels)}
    env |= (
        {} if network else {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "PIP_NO_INDEX": "1"}
    )
    env |= {"UPSKILL_WITHOUT": " ".join(folder.without), "UPSKILL_BIN": path(BIN)}
    env |= {"UPSKILL_PACKAGES": " ".join(folder.packages), "UPSKILL_UNMET": path(UNMET)}
    return env | {"PATH": await _path(sandbox, folder, kept)}


async def _path(sandbox: Sandbox, folder: PreparedFolder, kept: Sequence[str]) -> str:
    ran = await sandbox.run(
        ["/bin/sh", "-c", 'printf %s "$PATH"'], timeout=_TRY_SECONDS
    )
    python = posixpath.dirname(sandbox.python)
    first, last = (
        [sandbox.path(BIN), sandbox.path(f"{HOME}/.local/bin")],
        [*folder.pythons],
    )
    for place in map(
        posixpath.normpath, ran.output.decode("utf-8", "replace").split(":")
    ):
        of_agent = any(f"{place}/".startswith(f"{folder}/") for folder in kept)
        (last if of_agent and place != python else first).append(place)
    return ":".join((*first, *last))


async def install_packages(sandbox: Sandbox) -> bool:
    """Install Python packages for the system's Python,
    but not in environments that uv makes.

    Those on PYTHONPATH are in all of them, before the packages that uv installs.
    Whether there are some, and it could be done.
    """
    if not any(mount.inside == PACKAGES for mount in sandbox.spec.mounts):
        return False
    found = await sandbox.run([sandbox.python, "-c", _USER_SITE], timeout=_TRY_SECONDS)
    site = found.output.decode("utf-8", "replace").strip()
    if not site.startswith(f"{sandbox.path(HOME)}/"):
        return False
    await sandbox.write(f"{site}/packages.pth", f"{sandbox.path(PACKAGES)}\n".encode())
    return True
