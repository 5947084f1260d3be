"""Which sandbox a task runs in: a container of its own image, if it has one.

A task without an image runs where all cases of a run do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from ..errors import SettingsError
from ..skills.case import Case, SandboxNeeds, WorkspaceFile
from . import images
from .sandboxes.bwrap import Bwrap
from .sandboxes.container import Container
from .sandboxes.container_program import INSTALL, PROGRAMS, why_no_program
from .sandboxes.kinds import kind_of
from .sandboxes.sandbox import SandboxError, SandboxKind, SandboxSpec, why_not_writable
from .snapshot import Snapshot

_ROOT: Final = "/"  # what an image has there can be read, not written


@dataclass(frozen=True)
class SandboxChoice:
    """Where a task runs, before its image is pulled or built."""

    kind: str  # the name of a sandbox; empty if the task can't run
    image: str = ""  # the name of its own image
    reason: str = ""  # why it can't run


class TaskSandbox(NamedTuple):
    """A sandbox that is ready for trials of a task."""

    kind: SandboxKind
    image: str = ""  # of the task itself: its files and packages are in it

    @property
    def is_own(self) -> bool:
        return bool(self.image)

    def needs_inside(self, needs: SandboxNeeds) -> SandboxNeeds:
        """Without what the image has."""
        if not self.is_own:
            return needs
        places = tuple(place for place in needs.places if place != _ROOT)
        return needs._replace(python=(), env=(), places=places)

    def start(self, needs: SandboxNeeds, files: Sequence[WorkspaceFile]) -> Snapshot:
        """The files of the image that tasks may change, with those that a case adds."""
        inside = self.needs_inside(needs)
        folders = SandboxSpec(workdir=inside.workdir, places=inside.places).kept
        start = images.files_of_image(self.kind.name, self.image, folders)
        added = {file.path: file for file in files}
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

    programs = PROGRAMS if sandbox == "auto" else (sandbox,)
    wanted = " or ".join(PROGRAMS)
    if sandbox not in ("auto", *PROGRAMS):
        reason = f"needs {wanted}, and the sandbox is {sandbox}"
        return SandboxChoice("", reason=reason)

    problems = {name: why_no_program(name) for name in programs}
    program = next((name for name, problem in problems.items() if not problem), "")
    if not program:
        why = "; ".join(problems.values())
        return SandboxChoice("", reason=f"needs {wanted}: {why}. {INSTALL}")

    name = _named_image(needs) or (images.tag_of(needs.build) if needs.build else "")
    return SandboxChoice(program, name)


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
        (name for name in PROGRAMS if not why_no_program(name)),
        sandbox,
    )


def sandbox_for(
    needs: SandboxNeeds, sandbox: str = "auto", image: str = ""
) -> TaskSandbox:
    """The sandbox of a task; its image is pulled or built first,
    which may take a while.

    SandboxError says why the task can't run here.
    """
    place = choose_sandbox(needs, sandbox, image)
    if not place.kind:
        raise SandboxError(place.reason)
    if not place.image or image:
        try:
            return TaskSandbox(kind_of(place.kind, image or None))
        except SettingsError as error:
            raise SandboxError(f"{error.problem} {error.hint}".strip()) from None
    built = images.prepare(place.kind, _named_image(needs), needs.build)
    return TaskSandbox(Container(place.kind, built), built)


def _named_image(needs: SandboxNeeds) -> str:
    """The image that a task names; empty if it may have the task's skills in it."""
    return "" if needs.build and needs.build.without else needs.image
