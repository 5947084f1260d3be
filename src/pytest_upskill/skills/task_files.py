"""Files that a case has besides those of its workspace: a Dockerfile, skills, a solution."""

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from .._util.json_forms import FormError, Problem
from .._util.texts import digest
from .case import BuildContext, Case, Reference, SandboxNeeds, WorkspaceFile
from .case_files import MOST_BYTES, is_path, workspace_files
from .case_forms import CaseForm
from .dockerfile import copied_files, read_dockerfile
from .folder import (
    digest_of,
    is_executable,
    read_skill_bytes,
    read_skill_file,
    real_skill_file,
    walk,
)
from .task_forms import FileOfSkill, ReferenceForm

_Read = TypeVar("_Read")
# Images that have nothing but a system or Python, so that those of this machine can stand in.
_PLAIN_BASES: Final = frozenset({"ubuntu", "debian", "python", "buildpack-deps"})


def with_task_files(case: Case, form: CaseForm, folder: Path) -> Case:
    """A case with what its form names in ``folder``, and with places for its absolute paths."""
    problems = list[Problem]()

    def read(of: Callable[[], _Read], *place: str) -> _Read | None:
        try:
            return of()
        except ValueError as error:
            problems.append((case.place_of(*place), str(error)))
            return None

    skills, needs = form.skills or "", case.sandbox
    if form.sandbox and (file := form.sandbox.dockerfile):
        seconds = form.sandbox.build_timeout
        read_context = partial(build_context, folder, file, skills, seconds)
        build = read(read_context, "sandbox", "dockerfile")
        needs = needs._replace(build=build)
    texts = tuple((_inside(needs, name), text) for name, text in case.files)
    exact = tuple(replace(file, path=_inside(needs, file.path)) for file in case.exact)
    needs = _with_places(needs, [*(name for name, _ in texts), *(file.path for file in exact)])
    installed = read(partial(skills_folder, folder, skills), "skills") if skills else ""
    solution = form.reference and read(partial(reference_of, folder, form.reference), "reference")
    if problems:
        raise FormError(problems)
    return replace(
        case,
        files=texts,
        exact=exact,
        sandbox=needs,
        skills=installed or "",
        reference=solution or None,
    )


def _inside(needs: SandboxNeeds, name: str) -> str:
    """A path relative to the folder that an agent works in, if it is there."""
    return name.removeprefix(f"{needs.workdir}/")


def _with_places(needs: SandboxNeeds, names: Iterable[str]) -> SandboxNeeds:
    """With the folders of absolute paths that are in no place yet."""
    places = list(needs.places)
    for name in names:
        if name.startswith("/") and not any(name.startswith(f"{place}/") for place in places):
            places.append(posixpath.dirname(name))
    return needs._replace(places=tuple(places))


def build_context(
    folder: Path, dockerfile: str, skills: str = "", seconds: float | None = None
) -> BuildContext:
    """The context of a Dockerfile in ``folder``, without the skills in another folder there.

    ValueError says what can't be used.
    """
    real_skill_file(folder, dockerfile)
    path = _below_folder(dockerfile, "environment/")
    inside = PurePosixPath(skills)
    without = str(inside.relative_to(path.parent)) if inside.is_relative_to(path.parent) else ""
    top = folder / path.parent
    files = [
        file
        for inside, _, names in walk(top)
        for file in (inside / name for name in names)
        if not without or not file.is_relative_to(top / without)
    ]
    files.sort()
    executable = [file.relative_to(top).as_posix() for file in files if is_executable(file)]
    recipe = read_dockerfile(read_skill_file(folder, str(path)), without)
    base = recipe.base.removeprefix("docker.io/").removeprefix("library/")
    others = [f"{path.name}:{line}: {text}" for line, text in recipe.others]
    if base.partition(":")[0] not in _PLAIN_BASES:
        others = [f"{path.name}: FROM {recipe.base}", *others]
    return BuildContext(
        digest(path.name, digest_of(top, files), *executable),
        path.name,
        str(top),
        without,
        600.0 if seconds is None else seconds,
        tuple(others),
        tuple(copied_files(recipe, (file.relative_to(top).as_posix() for file in files))),
        recipe.platform,
    )


def skills_folder(folder: Path, name: str) -> str:
    """A folder of skills, absolute; ValueError says why it can't be used."""
    return str(real_skill_file(folder, name, is_folder=True))


def reference_of(folder: Path, form: str | ReferenceForm) -> Reference:
    """A solution with its files; ValueError says what can't be used."""
    if isinstance(form, str):
        return Reference(form)
    if form.run:
        real_skill_file(folder, form.run)
        path = _below_folder(form.run, "solution/")
        files = workspace_files(folder, path.parts[0])
        script = str(path.relative_to(path.parts[0]))
        env = tuple(form.env.items())
        return Reference(files=files, run=script, env=env, sources=(path.parts[0],))
    texts = sorted((form.files or {}).items())
    files = tuple(_file(folder, path, text) for path, text in texts)
    sources = tuple(text.file for _, text in texts if isinstance(text, FileOfSkill))
    return Reference(form.text or "", files, sources=sources)


def _file(folder: Path, path: str, content: str | FileOfSkill) -> WorkspaceFile:
    if not is_path(path):
        raise ValueError(f"{path!r} can't be a file in a workspace; use a relative path")
    if isinstance(content, str):
        return WorkspaceFile(path, content.encode("utf-8", "replace"))
    data = read_skill_bytes(folder, content.file, MOST_BYTES)
    return WorkspaceFile(path, data, is_executable(real_skill_file(folder, content.file)))


def _below_folder(name: str, such_as: str) -> PurePosixPath:
    """A path in a folder of its own, all of which is used."""
    path = PurePosixPath(name)
    if len(path.parts) < 2:
        raise ValueError(f"{name!r} must be in a folder, such as {such_as}")
    return path
