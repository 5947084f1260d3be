"""Which skills an agent opened, which of their files it read, which scripts it ran.

Found in the texts that its model saw after the first request, not in the names of tools
that an agent has. But a model that calls a skill as if it were a tool has chosen it.
"""

import html
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from .._util.files import read_file
from ..skills.folder import MAX_FILE_BYTES, SKILL_NAMES
from ..trials.transcript import ToolCall
from ..trials.written_calls import is_called
from .sandboxes.sandbox import WORKSPACE
from .script_use import ScriptUse
from .staging import InstalledSkill

# Shares of the letters of a text's unique lines. Agents read long files in parts.
ENOUGH: Final = 0.25
ENOUGH_ASKED: Final = 0.1  # if the call names the skill
MOST: Final = 0.5  # in the first request, where a list of skills may quote it
PLENTY: Final = 1_000  # letters; as many are no accident, whatever the share
_LONGEST_LINE: Final = 200  # characters compared: some agents cut long lines
_SHORTEST_INSIDE: Final = 12  # letters of a line that is looked for within another
_LONGEST_SEEN: Final = 1_000_000  # characters of a result, or of all files at the start
_DEEPEST: Final = 4  # a text, escaped as JSON, as JSON in JSON, …
_MOST_FILES: Final = 500  # of a skill
# What agents put before a line: "12→", "12\t", "12:", "L12: ", "SKILL.md:12:".
_PLACE: Final = re.compile(r"^[\W\d_]*(?:\S{1,200}?-\d+-|\S{1,200}:)")
_START: Final = re.compile(r"^[\W\d_]+")
_NOT_WORD: Final = re.compile(r"[\W_]+")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}

LineKeys = frozenset[str]


@dataclass(frozen=True)
class _SkillFile:
    """A text file of a skill, by its lines."""

    path: str
    keys: LineKeys
    text: str  # of a file without words, which must be seen as a whole


def _is_opened(keys: LineKeys, lines: Collection[str], share: float = ENOUGH) -> bool:
    """Whether enough lines of a text were seen."""
    letters = _letters(keys.intersection(lines))
    return letters > 0 and (letters >= share * _letters(keys) or letters >= PLENTY)


def _letters(keys: Iterable[str]) -> int:
    return sum(map(len, keys))


def keys_of(text: str) -> LineKeys:
    """The lines of a text, without what agents change when they show them."""
    return frozenset(filter(None, map(_key, text.splitlines())))


def _key(line: str) -> str:
    return _NOT_WORD.sub("", _START.sub("", line))[:_LONGEST_LINE]


def is_in(body: str, texts: Iterable[str]) -> bool:
    """Whether texts have most of the words of a body, line by line."""
    forms = (form for text in texts for form in _plain_forms(text[:_LONGEST_SEEN]))
    seen, keys = "\n".join(_NOT_WORD.sub("", form) for form in forms), keys_of(body)
    return _letters(key for key in keys if key in seen) >= MOST * _letters(keys)


class SkillUse:
    """Watches the texts that a model sees."""

    def __init__(
        self,
        skills: Sequence[InstalledSkill],
        start: Iterable[bytes] = (),
        workdir: str = WORKSPACE,
    ) -> None:
        self._skills = skills
        # Lines of skills: given at the start, seen later,
        # and in results of calls that name one.
        self._given: set[str] = set()
        self._seen: set[str] = set()
        self._by_name: dict[str, set[str]] = {}
        self._named_files: set[str] = set()  # by a call that returned their text
        self._opened_at: dict[str, int] = {}  # skill → number of the call
        self._tested = [skill for skill in skills if skill.tested]
        self._script_uses = [ScriptUse(skill, workdir) for skill in self._tested]
        texts = _texts_of(tuple(skills))
        self._files, self._bodies = texts.files, texts.bodies
        self._all_lines, self._shared = texts.all_lines, texts.shared_lines
        remaining = _LONGEST_SEEN if self._all_lines else 0
        # Large ones are data, hardly the text of a skill
        for data in sorted(start, key=len):
            if len(data) > remaining:
                break
            if b"\0" not in data:
                remaining -= len(data)
                self.add_given(data.decode("utf-8", "replace"))

    def add_given(self, text: str) -> None:
        """A text of the first request, or of the workspace at the start."""
        self._given |= self._lines_in(text, self._given)

    def saw(
        self,
        text: str,
        call: ToolCall | None = None,
        *,
        failed: bool = False,
        at: int = 0,
    ) -> None:
        """A text of a later request, which may be the result of a ``call``.

        ``at`` is the number of the call: results of parallel calls arrive in any order.
        """
        if not self._all_lines:
            return
        lines = self._look_at(text, call, failed)
        for skill in self._skills if lines else ():
            name = skill.name
            if name not in self._opened_at and self._has_opened(skill):
                self._opened_at[name] = at

    def called(self, tool: str, at: int) -> list[str]:
        """Note the call of a tool that is not there; returns the
        skills that have its name.
        """
        names = [skill.name for skill in self._skills if is_called(skill.name, tool)]
        for name in names:
            self._opened_at.setdefault(name, at)
        return names

    def _look_at(self, text: str, call: ToolCall | None, failed: bool) -> set[str]:
        """Note the lines of skills in a text, and return them."""
        text = text[:_LONGEST_SEEN]
        lines = self._lines_in(text, self._seen, call.arguments if call else "")
        self._seen |= lines
        if call is None:
            return lines
        for skill in self._skills:
            if re.search(
                rf"(?<![\w-]){re.escape(skill.name)}(?![\w-])", call.arguments
            ):
                self._by_name.setdefault(skill.name, set()).update(lines)
        ran = {
            _path(use.skill, path, self._tested)
            for use in self._script_uses
            for path in use.saw(call, text, failed=failed)
        }
        for file in self._files:
            if file.path in ran or posixpath.basename(file.path) not in call.arguments:
                continue  # a script may print lines of itself
            unique = self._unique(file.keys)
            if (
                lines & unique
                if unique
                else file.text and file.text in _without_spaces(text)
            ):
                self._named_files.add(file.path)
        return lines

    def was_invoked(self, name: str) -> None:
        """The first request had the text of a skill since a user named it."""
        self._opened_at[name] = 0

    def was_given(self, query: Iterable[str]) -> bool:
        """Whether the first request had the text of a tested skill,
        which then counts as opened.

        Lines of the query and of descriptions don't count.
        """
        texts = [*query, *(skill.description for skill in self._skills)]
        expected = set[str]().union(*(self._lines_in(text, set()) for text in texts))
        given = [
            skill.name for skill in self._tested if self._is_given(skill, expected)
        ]
        self._opened_at |= dict.fromkeys(given, 0)
        return bool(given)

    def _is_given(self, skill: InstalledSkill, expected: set[str]) -> bool:
        body = self._bodies[skill.name]
        unique = body.difference(self._shared, expected)
        letters = _letters(unique & self._given)
        is_telling = _letters(unique) >= ENOUGH * _letters(body)
        return is_telling and letters > 0 and letters >= MOST * _letters(unique)

    @property
    def opened(self) -> tuple[str, ...]:
        """The names of the skills that were opened, in order."""
        return tuple(sorted(self._opened_at, key=self._opened_at.__getitem__))

    @property
    def activated(self) -> bool | None:
        return (
            any(skill.name in self._opened_at for skill in self._tested)
            if self._tested
            else None
        )

    @property
    def read(self) -> tuple[str, ...]:
        """Files of tested skills besides SKILL.md that the model saw."""
        return tuple(
            file.path
            for file in self._files
            if file.path in self._named_files
            or _is_opened(self._unique(file.keys), self._seen)
        )

    @property
    def scripts(self) -> tuple[str, ...]:
        """Files of tested skills that were run."""
        return tuple(
            _path(use.skill, path, self._tested)
            for use in self._script_uses
            for path in use.ran
        )

    def _has_opened(self, skill: InstalledSkill) -> bool:
        name = skill.name
        body = self._bodies[name]
        unique = self._unique(body)
        by_name = self._by_name.get(name, set())
        if _letters(unique) >= ENOUGH * _letters(body):
            return _is_opened(unique, self._seen) or _is_opened(
                unique, by_name, ENOUGH_ASKED
            )
        # Nearly all of it was there from the start, so only calls that name it count.
        return _is_opened(body, by_name)

    def _lines_in(self, text: str, skipped: set[str], arguments: str = "") -> set[str]:
        """The lines of skills in a text; ``skipped`` are not
        looked for within other lines.
        """
        texts = _plain_forms(text)
        keys = (key for form in texts for key in _keys_seen(form))
        lines = set(self._all_lines.intersection(keys))
        # Within other lines, as in JSON and XML: bodies, and files that the call names.
        files = (
            file for file in self._files if posixpath.basename(file.path) in arguments
        )
        searched = [*self._bodies.values(), *(file.keys for file in files)]
        letters = "\n".join(_NOT_WORD.sub("", form) for form in texts)
        for key in frozenset[str]().union(*searched) - skipped - lines:
            if len(key) >= _SHORTEST_INSIDE and key in letters:
                lines.add(key)
        return lines

    def _unique(self, keys: LineKeys) -> LineKeys:
        """The lines of a text that stand in no other, and were
        not there from the start.
        """
        return keys.difference(self._shared, self._given)


def _plain_forms(text: str) -> list[str]:
    """A text, as it is and unescaped."""
    texts = [text]
    while len(texts) < _DEEPEST and "\\" in texts[-1]:
        texts.append(_unescaped(texts[-1]))
    if "&" in text:
        texts += [html.unescape(form) for form in texts]
    return texts


def _keys_seen(text: str) -> Iterator[str]:
    """The keys of the lines of a text, with and without a prefix such as
    SKILL.md:12:.
    """
    for line in text.splitlines():
        yield _key(line)
        if place := _PLACE.match(line):
            yield _key(line[place.end() :])


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _unescaped(text: str) -> str:
    """A text with the escapes of JSON strings replaced."""

    def plain(match: re.Match[str]) -> str:
        code, char = match.groups()
        return chr(int(code, 16)) if code else _ESCAPED.get(char, char)

    text = _ESCAPE.sub(plain, text)
    # Halves joined
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True)
class _SkillTexts:
    """The texts of the skills of a trial."""

    bodies: Mapping[str, LineKeys]  # by the name of the skill
    files: tuple[_SkillFile, ...]  # of the tested skills, besides SKILL.md
    all_lines: LineKeys
    shared_lines: LineKeys  # those that stand in several texts


@lru_cache(maxsize=64)
def _texts_of(skills: tuple[InstalledSkill, ...]) -> _SkillTexts:
    bodies = {skill.name: keys_of(skill.body) for skill in skills}
    tested = [skill for skill in skills if skill.tested]
    files = tuple(
        replace(file, path=_path(skill, file.path, tested))
        for skill in tested
        for file in _files_of(skill)
    )
    times = Counter(
        key
        for keys in (*bodies.values(), *(file.keys for file in files))
        for key in keys
    )
    shared_lines = frozenset(key for key, number in times.items() if number > 1)
    return _SkillTexts(bodies, files, frozenset(times), shared_lines)


def _path(skill: InstalledSkill, path: str, tested: Sequence[InstalledSkill]) -> str:
    """A file of a tested skill, relative to it; with its name if several are tested."""
    return path if len(tested) == 1 else f"{skill.name}/{path}"


def _files_of(skill: InstalledSkill) -> Iterator[_SkillFile]:
    """The text files of a skill besides its SKILL.md."""
    for path in skill.files[:_MOST_FILES]:
        if path in SKILL_NAMES:
            continue
        try:
            text = read_file(Path(skill.host, path), MAX_FILE_BYTES).decode("utf-8")
        except (OSError, ValueError):
            continue  # binary, or too large to be read by a model
        keys = keys_of(text)
        squeezed = "" if keys else _without_spaces(text)
        if keys or squeezed:
            yield _SkillFile(path, keys, squeezed)
