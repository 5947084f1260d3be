"""A case, and what belongs to it, as frozen values."""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from pydantic import Base64Bytes

from .._util.files import PLAIN
from .._util.json_forms import Location
from .._util.texts import digest
from .case_forms import DEFAULT_ANSWERS, CaseForm
from .invocation import Invocation
from .kinds import CASE, CaseKind
from .task_forms import DEFAULT_WORKDIR, SandboxForm

Role = Literal["user", "assistant"]

EDIT_ME: Final = "edit-me"  # the tag of an example that nobody has edited yet
OPENS: Final = "opens"  # the tag of a trigger that should open the skill
STAYS_CLOSED: Final = "stays-closed"  # of one that should not


@dataclass(frozen=True)
class BuildContext:
    """A Dockerfile with the files beside it, which an image can be built from.

    The skills of its case are no part of it. Where it is makes no difference.
    """

    digest: str  # of the Dockerfile and all files
    # Its path in the folder
    dockerfile: str = field(default="", compare=False, repr=False)
    folder: str = field(default="", compare=False, repr=False)  # absolute
    without: str = field(default="", compare=False, repr=False)  # the skills in it
    # That a build may take
    seconds: float = field(default=600.0, compare=False, repr=False)


class SandboxNeeds(NamedTuple):
    """What a case, or a skill's scripts, need of a sandbox."""

    python: tuple[str, ...] = ()  # requirements of packages
    paths: tuple[str, ...] = ()  # of the host, to be read
    network: bool = False
    workdir: str = DEFAULT_WORKDIR
    places: tuple[str, ...] = ()  # other folders that can be written to and are kept
    env: tuple[tuple[str, str], ...] = ()
    image: str = ""  # of a container
    build: BuildContext | None = None  # of an image
    memory_mb: int | None = None
    storage_mb: int | None = None
    cpus: float | None = None

    @classmethod
    def of(cls, form: SandboxForm | None) -> "SandboxNeeds":
        """Without the context of an image."""
        if form is None:
            return cls()
        return cls(
            tuple(form.python),
            tuple(form.paths),
            form.network,
            form.workdir or DEFAULT_WORKDIR,
            tuple(form.places),
            tuple(form.env.items()),
            form.image or "",
            None,
            form.memory_mb,
            form.storage_mb,
            form.cpus,
        )


NO_NEEDS: Final = SandboxNeeds()


class CaseUser(NamedTuple):
    """Who answers an agent's questions: a model that knows some facts,
    or fixed replies.
    """

    facts: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    most: int = DEFAULT_ANSWERS  # answers

    @classmethod
    def of(cls, form: CaseForm) -> "CaseUser | None":
        user = form.user
        if replies := form.replies or (user and user.replies):
            return cls(replies=tuple(replies), most=len(replies))
        if user is None:
            return None
        return cls(tuple(user.facts or ()), most=user.max_turns or DEFAULT_ANSWERS)


@dataclass(frozen=True)
class WorkspaceFile:
    """A file as it is: binary or not, with its permissions."""

    # With forward slashes; relative, or absolute in a place outside of the workspace
    path: str
    data: Base64Bytes
    mode: int = PLAIN

    @property
    def is_executable(self) -> bool:
        return bool(self.mode & 0o100)

    @property
    def text(self) -> str | None:
        """None if it is binary."""
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text

    @cached_property
    def digest(self) -> str:
        return digest(self.path, sha256(self.data).hexdigest(), oct(self.mode))


@dataclass(frozen=True)
class CaseReference:
    """A solution of a case: a text and files, or a script that makes them."""

    text: str = ""
    files: tuple[WorkspaceFile, ...] = ()  # of the workspace, or of the script's folder
    run: str = ""  # the path of the script in its folder
    env: tuple[tuple[str, str], ...] = ()  # of the script
    # Paths in the skill's folder
    sources: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def digest(self) -> str:
        return digest(
            self.text, self.run, repr(self.env), *(file.digest for file in self.files)
        )


@dataclass(frozen=True, slots=True)
class Case:
    """One question with the checks its answer must pass."""

    id: str
    input: str
    expected: Any = None  # as written; checks/ parses it
    place: Location = ()  # its path in the file
    line: int = 1
    files: tuple[tuple[str, str], ...] = ()  # texts, by name
    # Files for agents that are more than their text
    exact: tuple[WorkspaceFile, ...] = ()
    workspace: str = ""  # a folder in the skill's folder; its files are among these
    setup: str = ""  # a command that runs before an agent
    max_turns: int | None = None  # of an agent
    timeout: float | None = None  # seconds of an agent
    sandbox: SandboxNeeds = NO_NEEDS
    user: CaseUser | None = None  # who answers an agent's questions
    needs_agent: str = ""  # why a plain completion can't be asked
    parts: tuple[Any, ...] = ()  # around its trials, each a `TrialPart`
    tags: tuple[str, ...] = ()
    group: str = ""  # the same for near-copies, which a lift counts as one case
    earlier: tuple[tuple[Role, str], ...] = ()  # turns before the question
    # What arms with the skill get in place of the question
    invoke: Invocation | None = None
    system: str | None = None
    skills: str = ""  # a folder with the skills of this case, absolute
    reference: CaseReference | None = None  # how it is solved
    skip: str | None = None  # the reason
    xfail: str | None = None  # the reason
    runs: int | None = None
    threshold: float | None = None
    models: tuple[str, ...] = ()  # patterns; empty means all
    validator: tuple[str, dict[str, Any]] | None = (
        None  # name of a registered check, and its argument
    )
    # Paths filled in by the file's defaults
    defaulted: frozenset[Location] = frozenset()
    # In the form of evals.json or a similar one, which has other paths
    is_eval: bool = False
    is_task: bool = False  # of a benchmark: its files have the names that it gives them
    # That of most follows from their checks.
    kind: CaseKind = field(default=CASE, repr=False)

    @property
    def should_open(self) -> bool:
        """Whether a trigger should open the skill."""
        return OPENS in self.tags

    def place_of(self, *inside: str | int) -> Location:
        """The path in the file of something inside this case."""
        if self.is_eval:
            return self.place
        from_defaults = any(inside[:length] in self.defaulted for length in (1, 2))
        return (*(("defaults",) if from_defaults else self.place), *inside)

    def is_for(self, *names: str) -> bool:
        """Whether a name of a model matches one of the patterns;
        upper and lower case are equal.
        """
        return not self.models or any(
            fnmatchcase(name.lower(), pattern.lower())
            for pattern in self.models
            for name in names
        )
