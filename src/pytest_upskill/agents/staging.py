"""Skills as agents get them: a read-only copy, made once per run."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ..errors import InputError
from ..skills.folder import SKILL_NAMES
from ..skills.skill import summary_of
from ..trials.installing import digest_of_copy, files_to_install
from ..trials.task import Installed, StartFile
from .port import InstalledSkill, NoAnswerError

FilesOf = Callable[[Installed], Sequence[StartFile]]


class Staging:
    """The copies of a run, each made when a trial first needs it."""

    def __init__(self, folder: Path, files_of: FilesOf = files_to_install) -> None:
        self._folder = folder
        self._files_of = files_of
        self._copies: dict[Installed, asyncio.Future[InstalledSkill]] = {}

    async def installed_skill(self, installed: Installed) -> InstalledSkill:
        """NoAnswerError if the skill has changed since the run began, or can't be read."""
        if installed not in self._copies:
            target = self._folder / f"skill-{len(self._copies)}"
            making = asyncio.to_thread(installed_skill, installed, target, self._files_of)
            self._copies[installed] = asyncio.ensure_future(making)
        # Shielded, as one trial that is cancelled must not take the copy from the others.
        return await asyncio.shield(self._copies[installed])

    async def close(self) -> None:
        """Wait for copies that nobody waits for any more: a thread can't be stopped."""
        await asyncio.gather(*self._copies.values(), return_exceptions=True)


def installed_skill(
    installed: Installed, target: Path, files_of: FilesOf = files_to_install
) -> InstalledSkill:
    """Copy a skill's files into a folder of its name in a new one."""
    try:
        files = files_of(installed)
    except InputError as error:
        raise NoAnswerError(f"the skill {installed.name} can't be read: {error}") from None
    if digest_of_copy(files) != installed.digest:
        raise NoAnswerError(f"the skill {installed.name} has changed since the run began")
    texts = {file.path: file.data for file in files}
    description, body = summary_of(next((texts[n] for n in SKILL_NAMES if n in texts), b""))
    skill = InstalledSkill(installed, description, body, tuple(texts), "")
    host = target / PurePosixPath(skill.inside).name
    try:
        for file in files:
            _write(file, host / file.path)
        for folder, _, _ in os.walk(target, topdown=False):
            Path(folder).chmod(0o555)
    except OSError as error:
        raise NoAnswerError(f"the skill {installed.name} can't be copied: {error}") from None
    return replace(skill, host=str(host))


def _write(file: StartFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(file.data)
    target.chmod(0o555 if file.executable else 0o444)
