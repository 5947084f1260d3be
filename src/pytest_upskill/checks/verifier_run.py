"""Runs a verifier after the agent, in a copy of what it left, in a separate sandbox.

The sandbox has the tests, which the agent never saw.
Nothing that the agent left decides how they end, as far as that is possible: its code
may run in the same process as a test that imports it, with the same rights as the
script that writes the reward.
"""

import asyncio
import os
import posixpath
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Final

from .._util.keys import without_keys
from .._util.texts import first_few, one_line, plain
from ..agents.needs import spec_for
from ..agents.sandboxes.sandbox import (
    PACKAGES,
    CommandResult,
    Sandbox,
    SandboxError,
    SandboxKind,
    SandboxSpec,
)
from ..agents.snapshot import Link, Snapshot, fill, unpack
from ..agents.staging import close_sandbox
from ..agents.task_sandbox import TaskSandbox
from ..errors import CheckError
from ..skills.case import SandboxNeeds, WorkspaceFile
from .command_check import sandbox_of, wait_for
from .final_workspace import (
    OWN_GIT,
    TESTS,
    IsFromStart,
    Verified,
    Verifier,
    Verify,
    steers,
)
from .pytest_report import FOLDER, PytestReport, runs_pytest

LOGS: Final = "/logs"
REWARDS: Final = ("reward.txt", "reward.json")  # the first that is there counts
_TRY_SECONDS: Final = 60.0
_FILES_SECONDS: Final = 180.0
MOST_REWARD: Final = 100_000  # bytes of a file with a reward
_SHOWN: Final = 4000  # characters at the end of the output
_NOT_OF_AGENT: Final = (TESTS, LOGS, "/solution")  # folders that it may not bring
# Where links of an agent may lead besides its own folders: to programs and libraries.
_LINKED: Final = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin", "/etc", "/opt")
_FULL: Final = """
for folder in "$@"; do
    problem=$({ echo > "$folder/.upskill"; } 2>&1)
    case $problem in '' | *'ermission denied') ;; *) echo "$folder" ;; esac
done
"""
# What shells, curl, wget, git, apt, pip, uv and npm say without a program or a network.
_MISSING: Final = re.compile(
    rf"^{TESTS}/\S+: line \d+: \S+: command not found$"
    r"|^.*(?:Could not resolve host|unable to resolve host address|EAI_AGAIN"
    r"|Temporary failure (?:resolving|in name resolution)|Name or service not known)"
    r".*$",
    re.MULTILINE,
)
_OWN_PROGRAMS: Final = re.compile(r"(?:^|/)\.local/(?:$|bin/|lib/)")
_SECTION: Final = re.compile(r"^\[tool:pytest\].*?(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
_MOST_TOML: Final = 50_000  # characters; the time to read it is not linear
_NO_TESTS: Final = (
    "a verifier needs /tests, which the sandbox none can't have: use another one"
)


def verifiers_in(
    sandbox: str,
    image: str,
    needs: SandboxNeeds,
    start: Sequence[WorkspaceFile] = (),
    *,
    network: bool = False,
) -> Verify:
    """Runs verifiers in sandboxes of a kind, by its name, with what a task needs.

    ``start`` are the files that the trial started with.
    """

    def verify(
        packed: bytes, verifier: Verifier, is_from_start: IsFromStart
    ) -> Verified:
        try:
            place = sandbox_of(needs, sandbox, image)
            given = place.start(needs, start).files if place.is_own else start
            left = _without_steering(unpack(packed, given), given, is_from_start)
            return wait_for(_in_sandbox(place, needs, left, verifier, network=network))
        except (SandboxError, ValueError) as error:
            reason = one_line(str(error), 300)
        except TimeoutError:
            reason = "its sandbox was not ready in time"
        raise CheckError(f"{verifier.name} can't be run: {reason}") from None

    return verify


async def _in_sandbox(
    place: TaskSandbox,
    needs: SandboxNeeds,
    left: Snapshot,
    verifier: Verifier,
    *,
    network: bool,
) -> Verified:
    inside = place.needs_inside(needs)._replace(network=False)
    spec = await asyncio.to_thread(spec_for, inside)
    return await verified(place.kind, spec, left, verifier, network=network)


def _without_steering(
    left: Snapshot, given: Sequence[WorkspaceFile], is_from_start: IsFromStart
) -> Snapshot:
    """With files that could decide how tests end as they were at the start."""
    start = {file.path: file for file in given}

    def steers(file: WorkspaceFile) -> bool:
        tells = _pytest_settings(file) != _pytest_settings(start.get(file.path))
        return (tells or _steers(file.path)) and not is_from_start(file)

    steering = {file.path for file in left.files if steers(file)}
    restored = {
        path: f for path, f in start.items() if path in steering or _steers(path)
    }
    files = [file for file in left.files if file.path not in steering | restored.keys()]
    links = tuple(link for link in left.links if not _steers(f"{link.path}/"))
    return Snapshot((*files, *restored.values()), links, left.folders)


def _steers(path: str) -> bool:
    """Whether it could decide how tests end, or stand in place of
    a program that they call.
    """
    return steers(path) or _OWN_PROGRAMS.search(path) is not None


def _pytest_settings(file: WorkspaceFile | None) -> object:
    """What a pyproject.toml or setup.cfg tells pytest; None if nothing."""
    name, text = (
        PurePosixPath(file.path).name if file else "",
        (file and file.text) or "",
    )
    if name == "setup.cfg":
        return _SECTION.findall("\n".join(text.splitlines())) or None
    if name != "pyproject.toml" or len(text) > _MOST_TOML:
        return text if name == "pyproject.toml" else None
    try:
        return tomllib.loads(text)["tool"]["pytest"]
    # none, or pytest refuses it
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


async def verified(
    kind: SandboxKind,
    spec: SandboxSpec,
    left: Snapshot,
    verifier: Verifier,
    *,
    network: bool,
) -> Verified:
    """Run a verifier on what an agent left; ``spec`` is that of the agent's sandbox."""
    if kind.name == "none":
        raise SandboxError(_NO_TESTS)
    sandbox = await kind.open(_spec(spec, verifier, network))
    try:
        async with asyncio.timeout(_FILES_SECONDS):
            await fill(sandbox, agents_files(left, spec))
            for place in verifier.folders:
                files = [replace(f, path=f"{place}/{f.path}") for f in verifier.files]
                await fill(sandbox, Snapshot(tuple(files)))
            logs = tuple(
                f"{LOGS}/{name}" for name in ("verifier", "agent", "artifacts")
            )
            await fill(sandbox, Snapshot(folders=logs))
            env = await _environment(sandbox, spec, verifier)
            report = await _prepared_report(sandbox, verifier, env)
        script = f"{TESTS}/{verifier.script}"
        ran = await sandbox.run(["bash", script], timeout=verifier.timeout, env=env)
        text = without_keys(ran.output.decode("utf-8", "replace")).strip()
        output = text[-_SHOWN:]
        if problem := _why_no_end(ran, verifier):
            return Verified(output, problem=problem)
        async with asyncio.timeout(_FILES_SECONDS):
            rewards = await _rewards(sandbox)
            problem = await _why_not_trusted(sandbox, verifier)
            unfinished = ""
            if report and await report.is_begun():
                unfinished = await report.problem(0)
        found = _MISSING.search(text)
        missing = found[0] if found else ""
        return Verified(output, rewards, problem, missing, unfinished)
    finally:
        await close_sandbox(sandbox)


def _spec(spec: SandboxSpec, verifier: Verifier, network: bool) -> SandboxSpec:
    places = tuple(dict.fromkeys((*spec.places, *verifier.folders, LOGS)))
    return replace(spec, network=network, places=places)


async def _prepared_report(
    sandbox: Sandbox, verifier: Verifier, env: dict[str, str]
) -> PytestReport | None:
    """The report of the pytest that a verifier runs, added to its variables.

    None if it runs none, or has a PYTHONPATH of its own, which would hide the plugin.
    """
    scripts = [t for path, t in verifier.texts.items() if path.endswith(".sh")]
    text = "\n".join(scripts)
    if not runs_pytest(text) or "PYTHONPATH=" in text:
        return None

    report = PytestReport(sandbox)
    env |= await report.prepare(text)
    env["PYTHONPATH"] = ":".join(filter(None, (FOLDER, env.get("PYTHONPATH"))))
    return report


async def _environment(
    sandbox: Sandbox, spec: SandboxSpec, verifier: Verifier
) -> dict[str, str]:
    """By which programs of the verifier read nothing of the agent's
    that they were not told to.
    """
    has_packages = any(mount.inside == PACKAGES for mount in spec.mounts)
    return {
        **dict(verifier.env),
        **OWN_GIT,
        "PATH": await _path(sandbox, spec.kept),
        "PYTHONPATH": PACKAGES if has_packages else "",
        "PYTHONPYCACHEPREFIX": "/tmp/pycache",  # not the agent's bytecode
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "UV_NO_SOURCES": "1",
    }


async def _path(sandbox: Sandbox, kept: Sequence[str]) -> str:
    """The PATH inside. Folders that an agent could put programs into come last."""
    words = ["/bin/sh", "-c", 'printf %s "$PATH"']
    ran = await sandbox.run(words, timeout=_TRY_SECONDS)
    python = posixpath.dirname(sandbox.python)
    first, last = list[str](), list[str]()
    for folder in ran.output.decode("utf-8", "replace").split(":"):
        place = posixpath.normpath(folder)
        of_agent = _is_in(place, kept) and place != python
        (last if of_agent else first).append(place)
    return ":".join((*first, *last))


def agents_files(left: Snapshot, spec: SandboxSpec) -> Snapshot:
    """What the agent left, without what leads to the tests or stands in their place."""

    # The workdir may be one of these folders, or in one
    def is_kept(path: str) -> bool:
        return not _is_in(posixpath.join(spec.workdir, path), _NOT_OF_AGENT)

    links = [
        link for link in left.links if is_kept(link.path) and _leads_nowhere(link, spec)
    ]
    return Snapshot(
        tuple(file for file in left.files if is_kept(file.path)),
        tuple(links),
        tuple(folder for folder in left.folders if is_kept(folder)),
    )


def _leads_nowhere(link: Link, spec: SandboxSpec) -> bool:
    """Whether a link leads to the agent's own files or the system's, and nowhere else.

    ``..`` behind a name would be that of the folder which the name leads to, so it may
    only come first, in a folder that is none of the agent's links.
    """
    parts = link.target.split("/")
    behind = [part for part in parts if part not in ("", ".")]
    while behind and behind[0] == "..":
        del behind[0]
    if ".." in behind:
        return False
    above = posixpath.dirname(posixpath.join(spec.workdir, link.path))
    target = posixpath.normpath(posixpath.join(above, link.target))
    return _is_in(target, (*spec.kept, *_LINKED)) and not _is_in(target, _NOT_OF_AGENT)


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _why_no_end(ran: CommandResult, verifier: Verifier) -> str:
    if ran.timed_out:
        return f"no end within {plain(verifier.timeout)} s"
    return f"it was ended by {ran.status}" if ran.exit < 0 else ran.problem


async def _rewards(sandbox: Sandbox) -> tuple[tuple[str, bytes | None], ...]:
    rewards = list[tuple[str, bytes | None]]()
    try:
        entries = {
            entry.path: entry for entry in await sandbox.tree(f"{LOGS}/verifier")
        }
    except OSError:
        return ()
    for name in REWARDS:
        inside = [path for path in entries if path.startswith(f"{name}/")]
        if inside or (name in entries and (entries[name].link or entries[name].folder)):
            rewards.append((name, None))
        elif name in entries:
            path = f"{LOGS}/verifier/{name}"
            rewards.append((name, await sandbox.read(path, MOST_REWARD)))
    return tuple(rewards)


async def _why_not_trusted(sandbox: Sandbox, verifier: Verifier) -> str:
    """Why the reward is not the verifier's own, or says nothing."""
    try:
        digests = {entry.path: entry.digest for entry in await sandbox.tree(TESTS)}
    except OSError:
        digests = {}
    for file in verifier.files:
        code = file.path.endswith((".sh", ".py"))
        if code and digests.get(file.path) != sha256(file.data).hexdigest():
            return f"{TESTS}/{file.path} was changed while it ran"
    folders = [folder for folder in sandbox.spec.disk if folder != "/dev/shm"]
    words = ["/bin/sh", "-c", _FULL, "sh", *folders]
    full = await sandbox.run(words, timeout=_TRY_SECONDS)
    if names := full.output.decode("utf-8", "replace").split():
        return f"no space is left in {first_few(names, 3)}"
    return ""
