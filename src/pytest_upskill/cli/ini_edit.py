"""Add keys to pytest's ini file and change nothing else in it: comments and formatting stay.

Text is inserted, the result is read back, and only one that differs by the keys alone is used.
"""

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .project import TABLES

Lists = Mapping[str, Sequence[str]]  # keys, and the texts that each of them lists

_PLAIN: Final = re.compile(r"[\w./@:+ -]+")  # what no ini file gives a meaning of its own
_NEW_TABLE: Final = {"pyproject.toml": "tool.pytest.ini_options", "setup.cfg": "tool:pytest"}


class CannotEdit(Exception):
    """The keys can't be added; says why."""


def block(name: str, keys: Lists) -> str:
    """The lines for these keys, as a file of this name has them."""
    return "\n".join(f"{key} = {_value(name, key, texts)}" for key, texts in keys.items())


def header(name: str) -> str:
    """The first line of a new table."""
    return f"[{_NEW_TABLE.get(name, 'pytest')}]"


def with_keys(name: str, text: str, keys: Lists) -> str:
    """The text of a file of this name with these keys, none of which it has yet."""
    before = _read(name, text)
    line_end = "\r\n" if "\r\n" in text else "\n"
    added = block(name, keys).replace("\n", line_end) + line_end
    for is_old, place in _places(name, text):
        start = "" if not place or text[:place].endswith("\n") else line_end
        gap = line_end if not is_old and text[:place].strip() else ""
        head = "" if is_old else f"{gap}{header(name)}{line_end}"
        new = f"{text[:place]}{start}{head}{added}{text[place:]}"
        if _only_adds(name, before, new, keys):
            return new
    raise CannotEdit("pytest's settings are written in a way that can't be added to safely")


def _value(name: str, key: str, texts: Sequence[str]) -> str:
    if name.endswith(".toml"):
        try:
            written = json.dumps(list(texts), ensure_ascii=False).encode("utf-8").decode("utf-8")
            return written.replace("\x7f", r"\u007f")  # which TOML wants escaped
        except UnicodeEncodeError:
            raise CannotEdit(f"{key}: a name that is no Unicode text") from None
    for text in texts:
        if not _PLAIN.fullmatch(text):
            raise CannotEdit(f"{key}: such a name has no place in an ini file")
    # Models are one per line, paths are split as a shell does.
    parts = map(shlex.quote, texts) if key == "skill_paths" else texts
    lines = list(parts)
    return lines[0] if len(lines) == 1 else "".join(f"\n    {line}" for line in lines)


def _read(name: str, text: str) -> dict[str, Any]:
    """All that a file says; CannotEdit if it is broken."""
    text = text.removeprefix("\ufeff")
    try:
        if name.endswith(".toml"):
            return tomllib.loads(text)
        parser = configparser.RawConfigParser(strict=True, default_section="\n")
        parser.read_string(text)
    except (ValueError, configparser.Error, RecursionError) as error:
        problem = str(error).splitlines()[0]
        raise CannotEdit(f"not valid: {problem}") from None
    return {section: dict(parser[section]) for section in parser.sections()}


def _places(name: str, text: str) -> Iterator[tuple[bool, int]]:
    """Where keys could go, best first, and whether a table is there already.

    That is the end of a table, right below its header, or a new table at the end of the file.
    """
    for path in TABLES[name]:
        for found in re.finditer(_header_pattern(name, path), text, re.M):
            rest = text[found.end() :]
            following = re.search(r"^[ \t]*\[" if name.endswith(".toml") else r"^\[", rest, re.M)
            inside = rest[: following.start()] if following else rest
            yield True, found.end() + len(_without_tail(inside, comments=bool(following)))
            yield True, found.end()
    yield False, len(text)


def _without_tail(inside: str, *, comments: bool) -> str:
    """Without empty lines at the end, and comments there, which are about the next table."""
    lines = inside.splitlines(keepends=True)
    while lines and (not (last := lines[-1].strip()) or (comments and last[0] in "#;")):
        lines.pop()
    return "".join(lines)


def _header_pattern(name: str, path: Sequence[str]) -> str:
    end = r"[ \t]*(?:[#;][^\r\n]*)?(?:\r?\n|\Z)"
    if name.endswith(".toml"):
        steps = r"[ \t]*\.[ \t]*".join(rf"[\"']?{re.escape(step)}[\"']?" for step in path)
        return rf"^[ \t]*\[[ \t]*{steps}[ \t]*\]{end}"
    return rf"^\[{re.escape(path[0])}\]{end}"


def _only_adds(name: str, before: dict[str, Any], text: str, keys: Lists) -> bool:
    try:
        after = _read(name, text)
    except CannotEdit:
        return False
    for path in TABLES[name]:
        table = _table(after, path)
        if table is not None and keys.keys() <= table.keys():
            values = {key: table.pop(key) for key in keys}
            return _without_empty(after) == _without_empty(before) and all(
                _texts(key, values[key]) == list(texts) for key, texts in keys.items()
            )
    return False


def _table(data: Any, path: Sequence[str]) -> dict[str, Any] | None:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else None


def _without_empty(data: Any) -> Any:
    """Without tables that have nothing in them: a new one was made for the keys."""
    if not isinstance(data, dict):
        return data
    kept = {key: _without_empty(value) for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {}}


def _texts(key: str, value: Any) -> list[str]:
    if not isinstance(value, str):
        return list(value)
    return shlex.split(value) if key == "skill_paths" else value.strip().split("\n")
