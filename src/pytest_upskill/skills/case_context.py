"""The files of a case: those it names, and those of its workspace."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from .._util.json_forms import FormError, Problem
from .case import Case
from .case_forms import ContextForm, FileOfSkill
from .folder import NotTextError, read_skill_bytes, read_skill_file, real_skill_file
from .workspace import MOST_BYTES, WorkspaceFile, is_executable, workspace_files

_MOST_IN_FILES: Final = 5_000_000  # characters of a case's files
_BINARY: Final = "a plain question can't have such a file, an agent can"


class CaseFiles:
    """Reads the files of cases; the folder of a workspace once, as many cases may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workspace = cache(
            lambda name: [(file, file.text) for file in workspace_files(folder, name)]
        )

    def add_to(self, case: Case, context: ContextForm | None) -> Case:
        """The case with its files; those of its own win over those of its workspace."""
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
                    needs_agent = f"{case.workspace!r} is too large for a plain question"
            except ValueError as error:
                problems.append((case.place_of("workspace"), str(error)))
        for step, name, content in _named(context):
            texts.pop(name, None)
            exact.pop(name, None)
            try:
                if isinstance(content, str):
                    texts[name] = content
                else:
                    whole, text, why = self._file(name, content.file)
                    needs_agent = why or needs_agent
                    texts |= {} if text is None else {name: text}
                    exact |= {name: whole} if whole else {}
            except ValueError as error:
                problems.append((case.place_of("context", "files", step), str(error)))
            size += len(texts.get(name, ""))
            if size > _MOST_IN_FILES:  # the same large file may be named a million times
                what = f"the files have more than {_MOST_IN_FILES:,} characters together"
                raise FormError([(case.place_of("context", "files"), what)])
        if problems:
            raise FormError(problems)
        own = tuple(exact.values())
        return replace(case, files=tuple(texts.items()), exact=own, needs_agent=needs_agent)

    def _file(self, name: str, written: str) -> tuple[WorkspaceFile | None, str | None, str]:
        """A file if it is more than its text, that text, and why there is none."""
        text, why = None, ""
        try:
            text = read_skill_file(self._folder, written)
        except NotTextError as error:
            why = f"{error}: {_BINARY}"
        data = read_skill_bytes(self._folder, written, MOST_BYTES)
        executable = is_executable(real_skill_file(self._folder, written))
        plain = text is not None and data == text.encode() and not executable
        return None if plain else WorkspaceFile(name, data, executable), text, why


def _named(context: ContextForm | None) -> list[tuple[str | int, str, str | FileOfSkill]]:
    """The files of a context: their places, names and contents."""
    written = (context and context.files) or {}
    if isinstance(written, dict):
        return [(name, name, content) for name, content in written.items()]
    return [(step, name, FileOfSkill(file=name)) for step, name in enumerate(written)]
