"""What the checks of a case ask of an answer, a line for each, as people say it."""

import json
from collections.abc import Iterator
from typing import Any

from ...checks.parse import RESERVED


def expected_lines(written: Any) -> Iterator[str]:
    """Of ``expected`` as it is written in a case; the lines are not harmless yet."""
    if isinstance(written, list):
        for group in written:
            yield from expected_lines(group)
    elif isinstance(written, dict):
        settings = _settings(written)
        for name, argument in written.items():
            if argument is None:  # how some programs write "not there"
                continue
            if name == "all_of":
                yield from expected_lines(argument)
            elif name in ("any_of", "not"):
                yield f"{name}: {_choices(argument)}{settings}"
            elif name not in RESERVED:
                for text in _arguments(name, argument):
                    yield f"{name}: {text}{settings}"


def _settings(group: dict[str, Any]) -> str:
    said = ["case counts"] if group.get("case_sensitive") else []
    said += ["not required"] if group.get("required") is False else []
    return f" ({', '.join(said)})" if said else ""


def _choices(groups: Any) -> str:
    """Groups on one line."""
    each = groups if isinstance(groups, list) else [groups]
    return "; or ".join("; and ".join(expected_lines(group)) for group in each)


def _arguments(name: str, argument: Any) -> Iterator[str]:
    texts = argument if isinstance(argument, list) else [argument]
    if not all(isinstance(text, str) for text in texts):
        yield json.dumps(argument, ensure_ascii=False)
    elif name == "judge":  # sentences, each with a line of its own
        yield from texts
    else:
        yield ", ".join(f'"{text}"' for text in texts)
