"""Change the description in a SKILL.md, and not a single other character."""

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
    for start, end in _spans(text):
        old = text[start:end]
        kept = old[len(old.rstrip()) :]  # a block ends with its line breaks
        space = " " if text[:start].endswith(":") else ""
        for written in (_plain(description), json.dumps(description, ensure_ascii=False)):
            new = f"{text[:start]}{space}{written}{kept}{text[end:]}"
            if _differs_only(text, new, description):
                return new
    return None


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the value of the description may be: as YAML has it, or the rest of its line."""
    parsed = parse(text)
    if _KEY not in parsed.lines:
        return
    lines = text.split("\n")
    begins = [0, *accumulate(len(line) + 1 for line in lines)]
    first = next((n for n, line in enumerate(lines) if line.strip(" \t\r\ufeff") == "---"), None)
    if first is not None:
        span = _in_yaml("\n".join(lines[first + 1 : parsed.body_line - 2]))
        if span:
            yield begins[first + 1] + span[0], begins[first + 1] + span[1]
    number = parsed.lines[_KEY] - 1
    key, colon, value = lines[number].partition(":")
    if colon and key.strip(" \t\"'") == _KEY and value.strip():
        start = begins[number] + len(key) + 1 + len(value) - len(value.lstrip())
        yield start, start + len(value.strip())


def _in_yaml(head: str) -> tuple[int, int] | None:
    try:
        root, _ = read_yaml(head, only_texts=True)
    except YAML_ERRORS:
        return None
    values = root.value if isinstance(root, yaml.MappingNode) else []
    found = [value for key, value in values if key.value == _KEY]
    if len(found) != 1 or not isinstance(found[0], yaml.ScalarNode):
        return None
    return found[0].start_mark.index, found[0].end_mark.index


def _plain(description: str) -> str:
    """As YAML writes it: with quotes only where it must have them."""
    dumped: str = yaml.safe_dump({_KEY: description}, allow_unicode=True, width=1_000_000)
    return dumped.removeprefix(f"{_KEY}: ").rstrip("\n")


def _differs_only(old: str, new: str, description: str) -> bool:
    """Whether the description is the new one, and all else is read as before."""
    before, after = parse(old), parse(new)
    others = [
        {key: one.fields[key] for key in one.fields if key != _KEY} for one in (before, after)
    ]
    return (
        after.fields.get(_KEY) == description
        and others[0] == others[1]
        and before.body == after.body
        and len(after.faults) <= len(before.faults)
    )
