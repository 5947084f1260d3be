"""Change a field in the frontmatter of a SKILL.md, and not a single other character."""

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

import yaml

from .._util.small_yaml import YAML_ERRORS, read_yaml
from .frontmatter import parse

_KEY: Final = "description"


def with_description(text: str, description: str) -> str | None:
    """The SKILL.md with another description of one line; None if only that can't be changed."""
    return with_field(text, _KEY, description)


def with_field(text: str, key: str, value: str) -> str | None:
    """The SKILL.md with another value of one line; None if only that can't be changed."""
    for start, end in _spans(text, key):
        old = text[start:end]
        kept = old[len(old.rstrip()) :]  # a block ends with its line breaks
        space = " " if text[:start].endswith(":") else ""
        for written in (_plain(value), json.dumps(value, ensure_ascii=False)):
            new = f"{text[:start]}{space}{written}{kept}{text[end:]}"
            if _differs_only(text, new, key, value):
                return new
    return None


def _spans(text: str, key: str) -> Iterator[tuple[int, int]]:
    """Where the value of a field may be: as YAML has it, or the rest of its line."""
    parsed = parse(text)
    if key not in parsed.lines:
        return
    lines = text.split("\n")
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    first = next((n for n, line in enumerate(lines) if line.strip(" \t\r\ufeff") == "---"), None)
    if first is not None:
        span = _in_yaml("\n".join(lines[first + 1 : parsed.body_line - 2]), key)
        if span:
            yield begins[first + 1] + span[0], begins[first + 1] + span[1]
    number = parsed.lines[key] - 1
    name, colon, value = lines[number].partition(":")
    if colon and name.strip(" \t\"'") == key and value.strip():
        start = begins[number] + len(name) + 1 + len(value) - len(value.lstrip())
        yield start, start + len(value.strip())


def _in_yaml(head: str, key: str) -> tuple[int, int] | None:
    try:
        root, _ = read_yaml(head, only_texts=True)
    except YAML_ERRORS:
        return None
    values = root.value if isinstance(root, yaml.MappingNode) else []
    found = [value for name, value in values if name.value == key]
    if len(found) != 1 or not isinstance(found[0], yaml.ScalarNode):
        return None
    return found[0].start_mark.index, found[0].end_mark.index


def _plain(value: str) -> str:
    """As YAML writes it: with quotes only where it must have them."""
    dumped: str = yaml.safe_dump({_KEY: value}, allow_unicode=True, width=1_000_000)
    return dumped.removeprefix(f"{_KEY}: ").rstrip("\n")


def _differs_only(old: str, new: str, key: str, value: str) -> bool:
    """Whether the value is the new one, and all else is read as before."""
    before, after = parse(old), parse(new)
    others = [
        {name: one.fields[name] for name in one.fields if name != key} for one in (before, after)
    ]
    return (
        after.fields.get(key) == value
        and others[0] == others[1]
        and before.body == after.body
        and len(after.faults) <= len(before.faults)
    )
