"""What an agent gets besides its question: a workspace, skills, limits."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from .._util.texts import digest
from ..settings import DEFAULT_MAX_TURNS


@dataclass(frozen=True)
class StartFile:
    """A file that a workspace starts with."""

    path: str  # relative to the workspace, with forward slashes
    data: bytes
    executable: bool = False

    @cached_property
    def digest(self) -> str:
        return digest(self.path, sha256(self.data).hexdigest(), str(self.executable))


@dataclass(frozen=True)
class Installed:
    """A skill that is installed for an agent."""

    name: str
    folder: str  # absolute
    digest: str  # of every file that is installed: path, content, executable or not
    ref: str | None = None  # as it was at this git ref
    tested: bool = False  # the skill under test, not one that both arms have
    without: tuple[str, ...] = ()  # paths in the folder that belong to the cases
    text: str = ""  # of a bundled skill, which is this SKILL.md and has no folder


@dataclass(frozen=True)
class Needs:
    """What a skill's scripts need of the sandbox."""

    python: tuple[str, ...] = ()  # requirements of packages
    paths: tuple[str, ...] = ()  # of the host, to be read
    network: bool = False


@dataclass(frozen=True)
class Task:
    """A trial of an agent. With the question it is all that shapes the answer."""

    agent: str
    version: str = ""  # of the agent
    files: tuple[StartFile, ...] = ()
    setup: str = ""  # a command that runs before the agent
    skills: tuple[Installed, ...] = ()
    needs: Needs = Needs()
    max_turns: int = DEFAULT_MAX_TURNS
    image: str = ""  # of the sandbox, if that is a container
    confined: bool = True  # False: no sandbox, so it may see and do all that the user can
    until_opened: bool = False  # ends as soon as it is decided whether the tested skill is opened

    @property
    def tested(self) -> Installed | None:
        """The skill under test; None in the baseline."""
        return next((skill for skill in self.skills if skill.tested), None)

    @cached_property
    def content(self) -> str:
        """A key of all of it. Where a skill's folder is makes no difference."""
        return digest(
            self.agent,
            self.version,
            self.setup,
            self.image,
            str(self.max_turns),
            repr(self.needs),
            *(file.digest for file in self.files),
            *(() if self.confined else ("unconfined",)),
            *(("until opened",) if self.until_opened else ()),
            "skills",
            *(digest(skill.name, skill.digest) for skill in self.skills),
        )
