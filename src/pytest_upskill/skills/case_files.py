"""The files of a case: those it names, and those of its workspace."""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any, Final, NamedTuple

from .._util.files import read_file, reason_of
from .._util.json_forms import FormError, Location, Problem
from ..registry import part_readers
from .case import Case, WorkspaceFile
from .case_forms import CaseForm, ContextForm
from .folder import (
    TOOL_FOLDERS,
    NotTextError,
    is_private,
    mode_of,
    read_skill_bytes,
    read_skill_file,
    real_skill_file,
    walk,
)
from .task_forms import FileOfSkill

SYSTEM_FOLDERS: Final = frozenset(
    {
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "proc",
        "run",
        "sbin",
        "sys",
        "usr",
        "var",
    }
)
_MOST_IN_FILES: Final = 5_000_000  # characters of a case's files
_ONLY_AGENTS: Final = {
    "mcp": '"mcp" names servers, which only agents can use',
    "commands": '"commands" names commands, which only agents can run',
}
_BINARY: Final = "a plain question can't have such a file, an agent can"


_SCAFFOLD: Final = ".upskill-scaffold"  # in the workspace, until the script has run
_OF_CASE: Final = ("prompt.md", "case.yaml", "case.yml")  # of a plugin's evals
_NOT_OF_SCAFFOLDS: Final = frozenset({"results", "mocks"})  # folders


class _ScaffoldFiles(NamedTuple):
    files: tuple[WorkspaceFile, ...]  # by their paths in the skill's folder
    cases: tuple[PurePosixPath, ...]  # the folders of cases


class CaseFiles:
    """Reads the files of cases; the folder of a workspace once,
    as many cases may share it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._part_readers = [read(folder) for read in part_readers()]
        self._workspace = cache(
            lambda name: [(file, file.text) for file in workspace_files(folder, name)]
        )
        self._scaffolds = dict[str, _ScaffoldFiles]()

    def add_to(self, case: Case, form: CaseForm) -> Case:
        """The case with its files; those of its own win over those of its workspace.

        CasesError if a file of its parts can't be used.
        """
        texts, exact = dict[str, str](), dict[str, WorkspaceFile]()
        problems, needs_agent, size = list[Problem](), "", 0
        if case.workspace:
            try:
                for file, text in self._workspace(case.workspace):
                    exact[file.path] = file
                    if text is None:
                        needs_agent = f"{file.path!r} is not text: {_BINARY}"
                    else:
                        texts[file.path] = text
                if sum(map(len, texts.values())) > _MOST_IN_FILES:
                    needs_agent = (
                        f"{case.workspace!r} is too large for a plain question"
                    )
            except ValueError as error:
                problems.append((case.place_of("workspace"), str(error)))
        for step, name, content in _named(form.context):
            texts.pop(name, None)
            exact.pop(name, None)
            try:
                if isinstance(content, str):
                    texts[name] = content
                else:
                    exact_file, text, reason = self._file(name, content.file)
                    needs_agent = reason or needs_agent
                    texts |= {} if text is None else {name: text}
                    exact |= {name: exact_file} if exact_file else {}
            except ValueError as error:
                problems.append((case.place_of("context", "files", step), str(error)))
            size += len(texts.get(name, ""))
            # The same large file may be named a million times
            if size > _MOST_IN_FILES:
                problem = (
                    f"the files have more than {_MOST_IN_FILES:,} characters together"
                )
                raise FormError([(case.place_of("context", "files"), problem)])
        parts = self._parts(case, form, problems)
        if problems:
            raise FormError(problems)
        return replace(
            case,
            files=tuple(texts.items()),
            exact=tuple(exact.values()),
            needs_agent=_why_agent(form) or needs_agent,
            parts=parts,
        )

    def _parts(
        self, case: Case, form: CaseForm, problems: list[Problem]
    ) -> tuple[Any, ...]:
        """What features set up around the trials of a case."""
        parts = []
        for reader in self._part_readers:
            try:
                if part := reader.part_of(form):
                    parts.append(part)
            except FormError as error:
                for place, problem in error.problems:
                    problems.append((case.place_of(*place), problem))
        return tuple(parts)

    def with_scaffold(self, case: Case, script: str) -> Case:
        """The case with a script that runs before its setup,
        and the files that it may use.
        """
        path = PurePosixPath(script.removeprefix("./"))
        try:
            real_skill_file(self._folder, script)
            if len(path.parts) < 2:
                raise ValueError(f"{script!r} must be in a folder, such as evals/")
            files = self._beside_cases(path.parts[0])
        except ValueError as error:
            raise FormError([(case.place_of("scaffold"), str(error))]) from None
        others = [folder for folder in files.cases if not path.is_relative_to(folder)]
        exact = tuple(
            replace(file, path=f"{_SCAFFOLD}/{file.path}")
            for file in files.files
            if not any(
                PurePosixPath(file.path).is_relative_to(folder) for folder in others
            )
        )
        run = f"bash {quote(f'{_SCAFFOLD}/{path}')}; status=$?; rm -rf {_SCAFFOLD}"
        setup = f"{run}; [ $status = 0 ] || exit $status" + (
            f"; {case.setup}" * bool(case.setup)
        )
        return replace(
            case,
            exact=(*case.exact, *exact),
            setup=setup,
            needs_agent=case.needs_agent or f"{script} makes its workspace",
        )

    def _beside_cases(self, top: str) -> "_ScaffoldFiles":
        """The files of a folder of cases, without those that scripts don't use."""
        if top not in self._scaffolds:
            all_files = workspace_files(self._folder, top, _NOT_OF_SCAFFOLDS)
            paths = [PurePosixPath(top, file.path) for file in all_files]
            cases = {path.parent for path in paths if path.name in _OF_CASE}
            files = tuple(
                replace(file, path=str(path))
                for file, path in zip(all_files, paths, strict=True)
                if path.name not in _OF_CASE and path.parent.name != "graders"
            )
            self._scaffolds[top] = _ScaffoldFiles(files, tuple(cases))
        return self._scaffolds[top]

    def _file(
        self, name: str, written: str
    ) -> tuple[WorkspaceFile | None, str | None, str]:
        """A file if it is more than its text, that text, and why there is none."""
        text, reason = None, ""
        try:
            text = read_skill_file(self._folder, written)
        except NotTextError as error:
            reason = f"{error}: {_BINARY}"
        data = read_skill_bytes(self._folder, written, MOST_BYTES)
        file = WorkspaceFile(
            name, data, mode_of(real_skill_file(self._folder, written))
        )
        plain = text is not None and data == text.encode() and not file.is_executable
        return None if plain else file, text, reason


def _why_agent(form: CaseForm) -> str:
    reasons = [why for key, why in _ONLY_AGENTS.items() if getattr(form, key)]
    return reasons[0] if reasons else ""


def _named(
    context: ContextForm | None,
) -> list[tuple[str | int, str, str | FileOfSkill]]:
    """The files of a context: their places, names and contents."""
    written = (context and context.files) or {}
    if isinstance(written, dict):
        return [(name, name, content) for name, content in written.items()]
    return [(step, name, FileOfSkill(file=name)) for step, name in enumerate(written)]


MOST_FILES: Final = 2_000
MOST_BYTES: Final = 50_000_000  # of all files together


def workspace_files(
    folder: Path, name: str, without: Collection[str] = ()
) -> tuple[WorkspaceFile, ...]:
    """All files of a folder in the skill's folder, sorted;
    ValueError says what is wrong.

    ``without`` are folders in it that are left out.
    """
    top = real_skill_file(folder, name, is_folder=True)
    if top == Path(os.path.realpath(folder)):
        raise ValueError(
            f"{name!r} is the skill itself, which the baseline must not see"
        )
    files, size = list[WorkspaceFile](), 0
    for inside, subfolders, names in walk(top):
        # git keeps no empty folder, and what tools keep is not part of a task.
        subfolders[:] = sorted(
            set(subfolders) - TOOL_FOLDERS - set(without if inside == top else ())
        )
        linked = [entry for entry in subfolders if (inside / entry).is_symlink()]
        for entry in sorted([*names, *linked]):
            file = inside / entry
            path = file.relative_to(top)
            files.append(_read(top, path))
            size += len(files[-1].data)
            if len(files) > MOST_FILES or size > MOST_BYTES:
                most = f"{MOST_FILES:,} files and {MOST_BYTES // 10**6} MB"
                raise ValueError(f"{name!r} has more than {most}; make it smaller")
    return tuple(sorted(files, key=lambda file: file.path))


def is_path(name: str) -> bool:
    """Whether a file of this name can be in a workspace, or in a folder outside of
    it.
    """
    parts = PurePosixPath(name).parts
    good = name and "\0" not in name and "\\" not in name and not name.endswith("/")
    is_relative = parts[:1] != ("/",)
    outside = len(parts) > 2 and parts[1] not in SYSTEM_FOLDERS
    return bool(good and parts and ".." not in parts and (is_relative or outside))


def _read(top: Path, path: Path) -> WorkspaceFile:
    file, name = top / path, path.as_posix()
    try:
        name.encode()
        real = Path(os.path.realpath(file))
        if not real.is_relative_to(top):
            raise ValueError(f"{name!r} is a link out of the workspace; copy the file")
        if is_private(path) or is_private(real.relative_to(top)):
            raise ValueError(
                f"{name!r} may hold secrets, so it is not read; rename or remove it"
            )
        if real.is_dir():
            raise ValueError(f"{name!r} is a link to a folder; copy it")
        data = read_file(real, MOST_BYTES)
        return WorkspaceFile(name, data, mode_of(real))
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not a name in UTF-8; rename it") from None
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {reason_of(error)}") from None


_PATHS: Final = ("path", "name", "file", "filename")
_CONTENTS: Final = ("content", "contents", "text")


def path_in(item: Mapping[str, Any]) -> str:
    """The path of a file that is written as an object; empty if it has none."""
    return next((item[key] for key in _PATHS if isinstance(item.get(key), str)), "")


def files_of(
    written: Any, place: Location, folder: Path, problems: list[Problem]
) -> dict[str, Any]:
    """Names and texts, or files that are none: a list of paths or objects,
    an object of texts.
    """
    files = dict[str, Any]()
    if isinstance(written, dict):
        written = [{"path": name, "content": text} for name, text in written.items()]
    if not isinstance(written, list | None):
        problems.append((place, "must be a list"))
        return files
    for number, item in enumerate(written or ()):
        form = item if isinstance(item, dict) else {"path": item}
        name = path_in(form)
        text = next(
            (form[key] for key in _CONTENTS if isinstance(form.get(key), str)), None
        )
        try:
            if not name.strip():
                raise ValueError('must be a path, or an object with a "path"')
            files |= _named_files(folder, name) if text is None else {name: text}
        except ValueError as error:
            problems.append(((*place, number), str(error)))
    return files


def _named_files(folder: Path, name: str) -> dict[str, Any]:
    """A file, or all files of a folder, by name.

    Paths are relative to the skill's folder, to evals/,
    or to the root of the repository.
    """
    inside = [f"/{name}".partition(f"/{step}/")[2] for step in (folder.name, "evals")]
    choices = [name, f"evals/{name}", inside[0] or name, f"evals/{inside[1] or name}"]
    path = next((choice for choice in choices if _exists(folder / choice)), name)
    if _is_folder(folder / path):
        names = [file.path for file in workspace_files(folder, path)]
        return {
            f"{name.rstrip('/')}/{inner}": _content(folder, f"{path}/{inner}")
            for inner in names
        }
    return {name: _content(folder, path)}


def _content(folder: Path, name: str) -> str | dict[str, str]:
    try:
        return read_skill_file(folder, name)
    except NotTextError:  # for agents
        return {"file": name}


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no name that a file can have
        return False


def _is_folder(path: Path) -> bool:
    return _exists(path) and path.is_dir()
