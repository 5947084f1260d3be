"""What a skill's scripts need of the host, and what they can't have."""

import asyncio
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final

from ..skills.folder import is_private, is_skill
from ..trials.task import Needs
from .packages import python_packages
from .port import HOME, PACKAGES, SKILLS, WORKSPACE, Mount, SandboxError

_OWN: Final = (WORKSPACE, SKILLS, HOME, PACKAGES, "/tmp", "/dev/shm", "/proc", "/etc/passwd")
_PRIVATE: Final = (
    *("/proc", "/sys", "/dev", "/run", "/boot", "/etc/ssh", "/etc/ssl"),
    *("/var/run", "/var/backups", "/var/log", "/var/mail", "/var/spool"),
)
# Hidden folders of a home hold keys; these hold tools.
_TOOLS: Final = (
    *(".local/bin", ".local/lib", ".local/opt", ".cargo", ".rustup", ".nvm", ".pyenv"),
    *(".bun", ".deno", ".dotnet", ".asdf", ".sdkman", ".volta"),
)


async def mounts_for(needs: Needs) -> tuple[Mount, ...]:
    """What to mount in a room for these needs. SandboxError if something can't be had."""
    for path in needs.paths:
        if problem := why_no_path(path):
            raise SandboxError(f"sandbox.paths: {problem}.")
    mounts = [Mount(os.path.realpath(path), os.path.normpath(path)) for path in needs.paths]
    if needs.python:
        folder = await asyncio.to_thread(python_packages, needs.python)
        mounts.append(Mount(str(folder), PACKAGES))
    return tuple(mounts)


def why_no_path(text: str) -> str | None:
    """Why a path of the host is not for a sandbox; None if it may be read there."""
    path = Path(os.path.normpath(text))
    if not text.startswith("/") or "\0" in text:
        return f'"{text}" is not an absolute path'
    real = Path(os.path.realpath(path))
    try:
        kind = real.stat().st_mode
    except OSError as error:
        return f"{text} can't be read: {error.strerror}"
    if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
        return f"{text} is neither a folder nor a file"
    for one in {path, real}:
        if problem := _problem(one):
            return f"{text} {problem}"
    if stat.S_ISREG(kind) and is_private(PurePath(real.name)):
        return f"{text} may hold secrets"
    # Root could read it, and so could an agent.
    if not kind & stat.S_IROTH and not any(real.is_relative_to(home) for home in _homes()):
        return f"{text} is not for everyone to read, so it may hold secrets"
    return None


def _problem(path: Path) -> str | None:
    if any(Path(own).is_relative_to(path) for own in _OWN):
        return "is a folder of the sandbox itself, or holds one"
    if any(path.is_relative_to(own) for own in (WORKSPACE, SKILLS, HOME, PACKAGES)):
        return "is in a folder of the sandbox itself"
    if any(path.is_relative_to(private) for private in _PRIVATE):
        return "holds what agents must not see"
    for home in _homes():
        if home.is_relative_to(path):
            return "is a home, or holds one; name the folder of the tool alone"
        if path.is_relative_to(home):
            inside = path.relative_to(home)
            tool = any(inside.is_relative_to(name) for name in _TOOLS)
            if inside.parts[0].startswith(".") and not tool:
                return "is in a hidden folder of a home, where keys may be"
    if Path.cwd().is_relative_to(path):
        return "holds the folder of this run, with the checks of its cases"
    if any(is_skill(folder) for folder in (path, *path.parents)) or _holds_skills(path):
        return "is a skill or holds one, which the baseline must not see"
    if ".upskill" in path.parts or (path / ".upskill").exists():
        return "holds stored answers"
    return None


def _holds_skills(folder: Path) -> bool:
    with suppress(OSError):
        return any(is_skill(one) for one in folder.iterdir() if one.is_dir())
    return False


def _homes() -> Iterable[Path]:
    homes = {Path.home(), Path(os.path.realpath(Path.home())), Path("/root"), Path("/home")}
    if sys.platform != "win32":
        import pwd

        found = (Path(user.pw_dir) for user in pwd.getpwall())
        homes |= {home for home in found if home.is_relative_to("/home")}
    return homes
