"""What a model sees of a skill: SKILL.md, perhaps the files it refers to, perhaps at a git ref."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from .._util.files import read_file, reason_of
from ..settings import MOST_REFERENCE_TOKENS, Settings
from .at_ref import files_at_ref
from .folder import MAX_FILE_BYTES, SKILL_NAMES, decoded, is_folder, text_of, why_unsendable
from .references import Files, files_named
from .skill import Skill, UnseenFile, body_of, estimated_tokens, load_skill, with_files

_MOST_ENTRIES: Final = 10_000
_NO_ROOM: Final = f"no room in {MOST_REFERENCE_TOKENS:,} tokens"


class FilesOnDisk:
    """The files in a skill's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries = cache(self._entries)

    def _entries(self, folder: str) -> Mapping[str, bool]:
        try:
            with os.scandir(self._folder / folder) as found:
                return {entry.name: is_folder(entry) for entry in islice(found, _MOST_ENTRIES)}
        except OSError:
            return {}

    def text(self, path: str) -> str:
        try:
            file = self._folder / path
            if why := why_unsendable(self._folder, PurePosixPath(path)):
                raise ValueError(why)
            return text_of(read_file(file, MAX_FILE_BYTES))
        except OSError as error:
            raise ValueError(reason_of(error)) from None


def load_for_run(file: Path, settings: Settings) -> Skill:
    """The skill of a SKILL.md as the settings of a run want it."""
    skill = load_skill(file)
    files = FilesOnDisk(file.parent)
    named = files_named(files, skill.body.split("\n"))
    if settings.references:
        seen, unseen = _read(files, named)
        skill = replace(skill, references=seen, unseen=unseen)
    else:
        skill = replace(skill, unseen=tuple(map(UnseenFile, named)))
    if settings.against is None:
        return skill
    at_ref = files_at_ref(file.resolve().parent, settings.against)
    name = next((name for name in SKILL_NAMES if name in at_ref.entries("")), None)
    if name is None:
        return skill  # it is newer
    data = at_ref.data(name)
    body = body_of(data)
    named = files_named(at_ref, body.split("\n")) if settings.references else []
    previous = with_files(body, _read(at_ref, named)[0])
    return replace(skill, previous=previous, previous_file=decoded(data, "replace"))


def _read(
    files: Files, named: list[str]
) -> tuple[tuple[tuple[str, str], ...], tuple[UnseenFile, ...]]:
    """The files that fit, with their texts, and those that can't be put in context."""
    seen, unseen, room = list[tuple[str, str]](), list[UnseenFile](), MOST_REFERENCE_TOKENS
    for path in named:
        try:
            text = files.text(path)
        except ValueError as error:
            unseen.append(UnseenFile(path, str(error)))
            continue
        tokens = estimated_tokens(text)
        if tokens > room:
            unseen.append(UnseenFile(path, _NO_ROOM))
        elif text.strip():
            seen.append((path, text))
            room -= tokens
    return tuple(seen), tuple(unseen)
