"""Paths into JSON: ``$.a.b[0]["odd key"][-1]``, and ``[*]`` for every item."""

import json
import re
from functools import lru_cache
from typing import Any, Final

from .._util.texts import one_line

Step = str | int | None  # None: every item
_STEP: Final = re.compile(
    r"""\.(?P<name>[\w-]+)|(?P<all>\.\*|\[\*\])|\[(?P<index>-?\d{1,9})\]"""
    r"""|\[(?P<key>"(?:[^"\\]|\\.)*"|'[^'\\]*')\]"""
)


@lru_cache
def steps_of(written: str) -> tuple[Step, ...]:
    """ValueError that says where the path is broken."""
    if not written.startswith("$"):
        raise ValueError("a path begins with $, for example $.items[0].name")
    steps: list[Step] = []
    at = 1
    while at < len(written):
        match = _STEP.match(written, at)
        if not match:
            rest = one_line(written[at:], 40)
            raise ValueError(
                f"a broken path at position {at}, {rest!r}; "
                """steps are .name, [0], [-1], ["odd key"] and [*]"""
            )
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def checked(written: str) -> str:
    steps_of(written)
    return written


def _step(match: re.Match[str]) -> Step:
    if match["index"]:
        return int(match["index"])
    if match["key"]:
        key: str = match["key"][1:-1]
        return json.loads(match["key"]) if match["key"][0] == '"' else key
    return match["name"]


def found(data: Any, steps: tuple[Step, ...]) -> list[Any]:
    """All values at a path; several only where it has a [*]."""
    values = [data]
    for step in steps:
        values = [inner for value in values for inner in _inside(value, step)]
    return values


def _inside(value: Any, step: Step) -> list[Any]:
    if step is None:
        items = value.values() if isinstance(value, dict) else value
        return list(items) if isinstance(value, dict | list) else []
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    inside = isinstance(value, list) and -len(value) <= step < len(value)
    return [value[step]] if inside else []


def same(one: Any, other: Any) -> bool:
    """Equal as values of JSON: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 100)
