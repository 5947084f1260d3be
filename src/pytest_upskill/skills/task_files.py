"""Files that a case has besides those of its workspace: a Dockerfile, skills,
a solution.
"""

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from .._util.files import read_file
from .._util.json_forms import FormError, Problem
from .case import Case, CaseReference, SandboxNeeds, WorkspaceFile
from .case_files import MOST_BYTES, is_path, workspace_files
from .case_forms import CaseForm
from .folder import is_file, mode_of, read_skill_bytes, real_skill_file, skill_file
from .task_environment import environment_of, places_in
from .task_forms import FileOfSkill, ReferenceForm

_OF_SKILL: Final = ("scripts", "references", "assets")  # folders that its agent reads
_Read = TypeVar("_Read")


def with_task_files(case: Case, form: CaseForm, folder: Path) -> Case:
    """A case with what its form names in ``folder``,
    and with places for its absolute paths.
    """
    problems = list[Problem]()

    def read(of: Callable[[], _Read], *place: str) -> _Read | None:
        try:
            return of()
        except ValueError as error:
            problems.append((case.place_of(*place), str(error)))
            return None

    skills = form.skills or ""
    needs, files = case.sandbox, case.exact
    if form.sandbox and (file := form.sandbox.dockerfile):
        make = partial(environment_of, folder, file, skills, form.sandbox.build_timeout)
        if made := read(make, "sandbox", "dockerfile"):
            build, workdir = made
            needs = needs._replace(build=build, workdir=form.sandbox.workdir or workdir)
    texts = tuple((_inside(needs, name), text) for name, text in case.files)
    exact = tuple(replace(file, path=_inside(needs, file.path)) for file in files)
    if case.is_task:
        places = (*needs.places, *places_in(case.input, needs.workdir))
        needs = needs._replace(places=tuple(dict.fromkeys(places)))
    needs = _with_places(
        needs, [*(name for name, _ in texts), *(file.path for file in exact)]
    )
    installed = read(partial(skills_folder, folder, skills), "skills") if skills else ""
    solution = form.reference and read(
        partial(reference_of, folder, form.reference), "reference"
    )
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
        if name.startswith("/") and not any(
            name.startswith(f"{place}/") for place in places
        ):
            places.append(posixpath.dirname(name))
    return needs._replace(places=tuple(places))


def skills_folder(folder: Path, name: str) -> str:
    """A folder of skills, absolute; ValueError says why it can't be used."""
    return str(real_skill_file(folder, name, is_folder=True))


def reference_of(folder: Path, form: str | ReferenceForm) -> CaseReference:
    """A solution with its files; ValueError says what can't be used."""
    if isinstance(form, str):
        return CaseReference(form)
    if form.run:
        files, path = (
            _folder_files(folder, form.run, "solution/"),
            PurePosixPath(form.run),
        )
        script, env = str(path.relative_to(path.parts[0])), tuple(form.env.items())
        return CaseReference(files=files, run=script, env=env, sources=(path.parts[0],))
    texts = sorted((form.files or {}).items())
    files = tuple(_file(folder, path, text) for path, text in texts)
    sources = tuple(text.file for _, text in texts if isinstance(text, FileOfSkill))
    return CaseReference(form.text or "", files, sources=sources)


def verifier_files(folder: Path, script: str) -> tuple[WorkspaceFile, ...]:
    """The script of a verifier with all files of its folder;
    ValueError says what can't be used.
    """
    return _folder_files(folder, script, "tests/")


def _file(folder: Path, path: str, content: str | FileOfSkill) -> WorkspaceFile:
    if not is_path(path):
        raise ValueError(
            f"{path!r} can't be a file in a workspace; use a relative path"
        )
    if isinstance(content, str):
        return WorkspaceFile(path, content.encode("utf-8", "replace"))
    data = read_skill_bytes(folder, content.file, MOST_BYTES)
    return WorkspaceFile(path, data, mode_of(real_skill_file(folder, content.file)))


def _folder_files(folder: Path, script: str, such_as: str) -> tuple[WorkspaceFile, ...]:
    """All files of a script's folder, which no model may see:
    it can't be one of the skill.
    """
    real_skill_file(folder, script)
    top, *below = PurePosixPath(script).parts
    if not below:
        raise ValueError(f"{script!r} must be in a folder, such as {such_as}")
    files, skill = workspace_files(folder, top), skill_file(folder)
    text = read_file(skill) if is_file(skill) else b""
    if top in _OF_SKILL or any(f"{top}/{file.path}".encode() in text for file in files):
        problem = (
            f"the folder of {script!r} is not installed, but it is one that the skill"
            " uses"
        )
        raise ValueError(
            f"{problem}; put the script into a folder of its own, such as {such_as}"
        )
    return files
