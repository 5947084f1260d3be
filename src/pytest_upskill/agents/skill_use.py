"""Which skills an agent opened, which of their files it read, which scripts it ran.

Told by the text that its model got to see after the first request, never by the name of a tool.
"""

import html
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from .._util.files import read_file
from ..skills.folder import MAX_FILE_BYTES, SKILL_NAMES
from ..trials.tools import ToolCall
from .script_use import ScriptUse
from .staging import InstalledSkill

# Of the letters of a text's own lines. Agents read long files in parts, and skills share lines.
ENOUGH: Final = 0.25
ENOUGH_ASKED: Final = 0.1  # in results of calls that name the skill
MOST_OF_IT: Final = 0.5  # in the first request, where agents may quote a skill to list it
PLENTY: Final = 1_000  # letters; so many in equal lines are no accident, whatever the share
_LONGEST_LINE: Final = 200  # characters that are compared: some agents cut long lines
_SHORTEST_INSIDE: Final = 12  # letters of a line that is found inside of another
_LONGEST_SEEN: Final = 1_000_000  # characters of one result that are looked at
_DEEPEST: Final = 4  # a text as it is, as JSON, as JSON in JSON, …
_MOST_FILES: Final = 500  # of a skill
# What agents put before a line: "12→", "12\t", "12:", "L12: ", "SKILL.md:12:". The start of a
# line without its number, list mark or heading mark is dropped on both sides.
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
    text: str  # of a file without words, where only all of it tells


def _enough(keys: LineKeys, seen: Collection[str], share: float = ENOUGH) -> bool:
    """Whether so much of a text was seen that it was opened."""
    got = _letters(keys.intersection(seen))
    return got > 0 and (got >= share * _letters(keys) or got >= PLENTY)


def _letters(keys: Iterable[str]) -> int:
    return sum(map(len, keys))


def keys_of(text: str) -> LineKeys:
    """The lines of a text in a form that survives what agents do to a text that they show."""
    return frozenset(filter(None, map(_key, text.splitlines())))


def _key(line: str) -> str:
    return _NOT_WORD.sub("", _START.sub("", line))[:_LONGEST_LINE]


class SkillUse:
    """Looks at what a model gets to see, as it comes."""

    def __init__(self, skills: Sequence[InstalledSkill], start: Iterable[bytes] = ()) -> None:
        self._skills = skills
        self._given: set[str] = set()  # lines that the agent has without opening a skill
        self._seen: set[str] = set()  # lines of any skill
        self._named: dict[str, set[str]] = {}  # lines seen by a call that names the skill
        self._asked: set[str] = set()  # files that a call names and whose text came back
        self._opened_at: dict[str, int] = {}  # skills, by the number of the call that opened them
        self._tested = next((skill for skill in skills if skill.installed.tested), None)
        self._commands = ScriptUse(self._tested) if self._tested else None
        texts = _texts_of(tuple(skills))
        self._files, self._bodies = texts.files, texts.bodies
        self._known, self._shared = texts.known, texts.shared
        if self._known:
            for data in start:
                if b"\0" not in data:
                    self.given(data[:_LONGEST_SEEN].decode("utf-8", "replace"))

    def given(self, text: str) -> None:
        """What stands in the first request, or in the workspace at the start."""
        self._given |= self._found_in(text, self._given)

    def saw(
        self, text: str, call: ToolCall | None = None, *, failed: bool = False, at: int = 0
    ) -> None:
        """What stands in a later request; ``call`` is what it is the result of.

        ``at`` orders calls as the model made them: results of calls side by side come in any order.
        """
        if not self._known:
            return
        found = self._look_at(text, call, failed)
        for skill in self._skills if found else ():
            name = skill.installed.name
            if name not in self._opened_at and self._opened(skill):
                self._opened_at[name] = at

    def _look_at(self, text: str, call: ToolCall | None, failed: bool) -> set[str]:
        """Note what stands in a text; return the lines of skills in it."""
        text = text[:_LONGEST_SEEN]
        found = self._found_in(text, self._seen, call.arguments if call else "")
        self._seen |= found
        if call is None:
            return found
        for skill in self._skills:
            if re.search(rf"(?<![\w-]){re.escape(skill.installed.name)}(?![\w-])", call.arguments):
                self._named.setdefault(skill.installed.name, set()).update(found)
        ran = self._commands.saw(call, text, failed=failed) if self._commands else ()
        for file in self._files:
            if file.path in ran or posixpath.basename(file.path) not in call.arguments:
                continue  # what a script prints may well stand in it
            own = self._own(file.keys)
            if found & own if own else file.text and file.text in _squeezed(text):
                self._asked.add(file.path)
        return found

    def was_given(self, query: Iterable[str]) -> bool:
        """Whether the first request had the tested skill's text: then that is opened.

        Lines do not tell that stand in the query, or in a description.
        """
        if self._tested is None:
            return False
        told = [*query, *(skill.description for skill in self._skills)]
        known = set[str]().union(*(self._found_in(text, set()) for text in told))
        body = self._bodies[self._tested.installed.name]
        own = body.difference(self._shared, known)
        got = _letters(own & self._given)
        if _letters(own) < ENOUGH * _letters(body) or got < MOST_OF_IT * _letters(own) or not got:
            return False
        self._opened_at[self._tested.installed.name] = 0
        return True

    @property
    def opened(self) -> tuple[str, ...]:
        """The names of the skills whose instructions the model saw, in the order of opening."""
        return tuple(sorted(self._opened_at, key=self._opened_at.__getitem__))

    @property
    def activated(self) -> bool | None:
        return None if self._tested is None else self._tested.installed.name in self._opened_at

    @property
    def read(self) -> tuple[str, ...]:
        """Files of the tested skill besides SKILL.md that the model saw."""
        return tuple(
            file.path
            for file in self._files
            if file.path in self._asked or _enough(self._own(file.keys), self._seen)
        )

    @property
    def scripts(self) -> tuple[str, ...]:
        """Files of the tested skill that were run."""
        return tuple(self._commands.ran) if self._commands else ()

    def _opened(self, skill: InstalledSkill) -> bool:
        name = skill.installed.name
        body = self._bodies[name]
        own = self._own(body)
        asked = self._named.get(name, set())
        if _letters(own) >= ENOUGH * _letters(body):
            return _enough(own, self._seen) or _enough(own, asked, ENOUGH_ASKED)
        # Nearly all of it was there from the start, so only who asked for it can tell.
        return _enough(body, asked)

    def _found_in(self, text: str, before: set[str], asked: str = "") -> set[str]:
        """The lines of skills in a text; ``before`` are known, so they need no close look."""
        texts = _plain_forms(text)
        found = set(self._known.intersection(key for one in texts for key in _keys_seen(one)))
        # Inside of other lines, as in JSON and XML: of what is few, or was asked for.
        wanted = [*self._bodies.values()]
        wanted += [one.keys for one in self._files if posixpath.basename(one.path) in asked]
        letters = "\n".join(_NOT_WORD.sub("", one) for one in texts)
        for key in frozenset[str]().union(*wanted) - before - found:
            if len(key) >= _SHORTEST_INSIDE and key in letters:
                found.add(key)
        return found

    def _own(self, keys: LineKeys) -> LineKeys:
        """The lines of a text that no other has, nor the agent from the start."""
        return keys.difference(self._shared, self._given)


def _plain_forms(text: str) -> list[str]:
    """A text, and what is escaped in it."""
    texts = [text]
    while len(texts) < _DEEPEST and "\\" in texts[-1]:
        texts.append(_unescaped(texts[-1]))
    if "&" in text:
        texts += [html.unescape(one) for one in texts]
    return texts


def _keys_seen(text: str) -> Iterator[str]:
    """The keys of the lines of a text, also without their place."""
    for line in text.splitlines():
        yield _key(line)
        if place := _PLACE.match(line):
            yield _key(line[place.end() :])


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _unescaped(text: str) -> str:
    """A text out of a JSON string, wherever in the text that starts."""

    def plain(match: re.Match[str]) -> str:
        code, char = match.groups()
        return chr(int(code, 16)) if code else _ESCAPED.get(char, char)

    text = _ESCAPE.sub(plain, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # halves joined


@dataclass(frozen=True)
class _SkillTexts:
    """The texts of the skills of a trial, which other trials have as well."""

    bodies: Mapping[str, LineKeys]  # by the name of the skill
    files: tuple[_SkillFile, ...]  # of the tested skill, besides SKILL.md
    known: LineKeys  # all lines
    shared: LineKeys  # lines that stand in several texts


@lru_cache(maxsize=64)
def _texts_of(skills: tuple[InstalledSkill, ...]) -> _SkillTexts:
    bodies = {skill.installed.name: keys_of(skill.body) for skill in skills}
    files = tuple(file for skill in skills if skill.installed.tested for file in _files_of(skill))
    times = Counter(
        key for keys in (*bodies.values(), *(file.keys for file in files)) for key in keys
    )
    shared = frozenset(key for key, number in times.items() if number > 1)
    return _SkillTexts(bodies, files, frozenset(times), shared)


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
        squeezed = "" if keys else _squeezed(text)
        if keys or squeezed:
            yield _SkillFile(path, keys, squeezed)
