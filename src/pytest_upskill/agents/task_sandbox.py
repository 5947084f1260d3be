"""Which sandbox a task runs in: bubblewrap if that is enough, else its own image.

A task that names no image runs where all cases of a run do.
"""

import posixpath
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Final, NamedTuple

from .._util.texts import first_few
from ..errors import SettingsError
from ..skills.case import Case, SandboxNeeds, WorkspaceFile
from . import images
from .needs import python_packages
from .sandboxes.bwrap import Bwrap
from .sandboxes.container import Container
from .sandboxes.kinds import kind_of
from .sandboxes.sandbox import SandboxError, SandboxKind, SandboxSpec, why_not_writable
from .snapshot import Snapshot

_MOST_NAMED: Final = 3
_ROOT: Final = "/"  # what an image has there can be read, not written
# System packages that serve a person at a terminal, a recording or a build,
# but no task.
_NOT_NEEDED: Final = frozenset(
    {
        "apt-utils",
        "asciinema",
        "less",
        "locales",
        "nano",
        "software-properties-common",
        "sudo",
    }
    | {"vim"}
)
# System packages whose program has another name, where there is no dpkg to ask.
_PROGRAMS: Final = {
    "python3-pip": "pip3",
    "python3-dev": "python3-config",
    "python3-venv": "python3",
    "build-essential": "gcc",
    "ca-certificates": "sh",
    "imagemagick": "convert",
    "poppler-utils": "pdftotext",
    "procps": "ps",
    "ripgrep": "rg",
    "netcat-openbsd": "nc",
}


@dataclass(frozen=True)
class SandboxChoice:
    """Where a task runs, as far as that is known before its image is pulled or
    built.
    """

    kind: str  # the name of a sandbox; empty if the task can't run
    image: str = ""  # the name of its own image
    reason: str = ""  # why it needs an image, or why it can't run


class TaskSandbox(NamedTuple):
    """A sandbox that is ready for trials of a task."""

    kind: SandboxKind
    image: str = ""
    # The image is that of the task: its files and packages are in it
    is_own: bool = False

    def needs_inside(self, needs: SandboxNeeds) -> SandboxNeeds:
        """Without what the image has."""
        if not self.is_own:
            return needs
        places = tuple(place for place in needs.places if place != _ROOT)
        return needs._replace(python=(), env=(), places=places)

    def setup(self, needs: SandboxNeeds, command: str) -> str:
        """What runs before an agent: steps of a Dockerfile that was not built,
        then a command.
        """
        steps = needs.build.steps if needs.build and not self.is_own else ()
        return "\n".join(
            [*(f"(\n{step}\n) || exit" for step in steps), command]
        ).strip()

    def start(self, needs: SandboxNeeds, files: Sequence[WorkspaceFile]) -> Snapshot:
        """The files of the image that tasks may change, with those that a case adds."""
        inside = self.needs_inside(needs)
        folders = SandboxSpec(workdir=inside.workdir, places=inside.places).kept
        start = images.files_of_image(self.kind.name, self.image, folders)
        there = needs.build.copied if needs.build else ()
        paths = {file.path: posixpath.join(needs.workdir, file.path) for file in files}
        added = {file.path: file for file in files if paths[file.path] not in there}
        # Its files have relative paths, also if a place is around it
        again = f"{needs.workdir}/"
        kept = (
            f
            for f in start.files
            if f.path not in added and not f.path.startswith(again)
        )
        links = (link for link in start.links if not link.path.startswith(again))
        empty = (path for path in start.folders if not path.startswith(again))
        return Snapshot((*kept, *added.values()), tuple(links), tuple(empty))


def always(kind: SandboxKind) -> Callable[[SandboxNeeds], TaskSandbox]:
    """The same sandbox for all tasks."""
    return lambda _: TaskSandbox(kind)


def has_own_image(needs: SandboxNeeds) -> bool:
    return bool(needs.image or needs.build)


@lru_cache(maxsize=1024)
def choose_sandbox(
    needs: SandboxNeeds, sandbox: str = "auto", image: str = ""
) -> SandboxChoice:
    """Where a task runs with these settings. Nothing is pulled or built for it."""
    for folder in (needs.workdir, *needs.places):
        in_image = folder == _ROOT and has_own_image(needs) and not image
        if not in_image and (problem := why_not_writable(folder)):
            return SandboxChoice(
                "", reason=f"{folder} can't be a folder of a task: {problem}"
            )
    if not has_own_image(needs) or image:  # an image of the user replaces all others
        return SandboxChoice(_usual(sandbox, image), image)
    lacks = _why_image(needs)
    if needs.build and needs.build.missing and not _named_image(needs):
        return SandboxChoice("", reason=needs.build.missing[0])
    if sandbox == "none":  # the agent would work in a folder of this machine
        reason = (
            f"works in {needs.workdir}, and the sandbox none has no such folder of"
            " its own"
        )
        return SandboxChoice("", reason=reason)
    if sandbox == "bwrap":
        reason = f"needs an image, which bwrap has not: {lacks}" if lacks else ""
        return SandboxChoice("" if lacks else sandbox, reason=reason)
    if sandbox == "auto":
        problem = lacks or Bwrap().why_not() or ""
        if not problem:
            return SandboxChoice("bwrap")
        lacks = problem
    programs = images.PROGRAMS if sandbox == "auto" else (sandbox,)
    problems = {name: images.why_no_program(name) for name in programs}
    program = next((name for name, problem in problems.items() if not problem), "")
    if not program:
        why = "; ".join(problems.values())
        return SandboxChoice(
            "", reason=f"needs an image ({lacks}), but {why}. {images.INSTALL}"
        )
    name = _named_image(needs) or (images.tag_of(needs.build) if needs.build else "")
    machine = f"linux/{images.architecture()}"
    if needs.build and not f"{machine}/".startswith(
        f"{needs.build.platform or machine}/"
    ):
        return SandboxChoice(
            "", reason=f"its image is for {needs.build.platform}, not for {machine}"
        )
    is_here = name in images.images_here(program)
    if is_here and (problem := images.why_other_machine(program, name)):
        return SandboxChoice("", reason=problem)
    return SandboxChoice(program, name, lacks)


def skipped_if_unrunnable(case: Case, sandbox: str = "auto", image: str = "") -> Case:
    """A case with an image of its own that can't run here is skipped with the
    reason.
    """
    if case.skip or not has_own_image(case.sandbox):
        return case
    place = choose_sandbox(case.sandbox, sandbox, image)
    return case if place.kind else replace(case, skip=place.reason)


def _usual(sandbox: str, image: str) -> str:
    """The sandbox of cases without an image; ``auto`` if none seems to work."""
    if sandbox != "auto":
        return sandbox
    if not image and not Bwrap().why_not():
        return "bwrap"
    return next(
        (name for name in images.PROGRAMS if not images.why_no_program(name)), sandbox
    )


def sandbox_for(
    needs: SandboxNeeds, sandbox: str = "auto", image: str = ""
) -> TaskSandbox:
    """The sandbox of a task; its image is pulled or built first,
    which may take a while.

    SandboxError says why the task can't run here.
    """
    place = choose_sandbox(needs, sandbox, image)
    if sandbox == "auto" and place.kind == "bwrap" and has_own_image(needs):
        place = _with_wheels(needs, place)
    if not place.kind:
        raise SandboxError(place.reason)
    if not place.image or image:
        try:
            return TaskSandbox(kind_of(place.kind, image or None), image)
        except SettingsError as error:
            raise SandboxError(f"{error.problem} {error.hint}".strip()) from None
    built = images.prepare(place.kind, _named_image(needs), needs.build)
    return TaskSandbox(Container(place.kind), built, is_own=True)


def _with_wheels(needs: SandboxNeeds, place: SandboxChoice) -> SandboxChoice:
    """The image of a task if there are no wheels for the Python of this machine."""
    try:
        if needs.python:
            python_packages(needs.python)
    except SandboxError:
        places = (choose_sandbox(needs, name) for name in images.PROGRAMS)
        return next((in_image for in_image in places if in_image.kind), place)
    return place


def _named_image(needs: SandboxNeeds) -> str:
    """The image that a task names; empty if it may have the task's skills in it."""
    return "" if needs.build and needs.build.without else needs.image


def _why_image(needs: SandboxNeeds) -> str:
    """Why files, Python packages and programs of this machine don't suffice;
    empty if they do.
    """
    if not needs.build:
        return f"{needs.image} has no Dockerfile"
    if needs.build.others:
        return needs.build.others[0]
    if _ROOT in needs.places:
        return f"a file in {_ROOT}, where no other can be written"
    missing = missing_packages(needs.packages)
    if missing:
        return f"not installed: {first_few(missing, _MOST_NAMED)}"
    return ""


def missing_packages(names: tuple[str, ...]) -> list[str]:
    """System packages that are not installed here."""
    wanted, installed = (
        [name for name in names if name not in _NOT_NEEDED],
        _installed(),
    )
    if installed is not None:
        return [name for name in wanted if name.partition(":")[0] not in installed]
    return [name for name in wanted if not shutil.which(_PROGRAMS.get(name, name))]


@cache
def _installed() -> frozenset[str] | None:
    """The packages of this machine, with what they provide; None without dpkg."""
    query = (
        "dpkg-query",
        "--show",
        "--showformat",
        "${db:Status-Abbrev}|${Package}|${Provides}\n",
    )
    try:
        ran = subprocess.run(query, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ran.returncode:
        return None
    names = set[str]()
    for line in ran.stdout.decode(errors="replace").splitlines():
        status, _, packages = line.partition("|")
        if status.startswith("ii"):
            name, _, provided = packages.partition("|")
            names |= {
                name,
                *(item.split()[0] for item in provided.split(",") if item.strip()),
            }
    return frozenset(names)
