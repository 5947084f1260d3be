"""What an agent said at its end, in one line that is the same for the same cause.

CLIs print events as JSON, stack traces, colours and progress. All of it is hostile text.
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from .._util.keys import HIDDEN, without_keys
from .._util.texts import one_line

_LINES: Final = 60  # from the end, that are looked at
_LONGEST_LINE: Final = 20_000
_LONGEST: Final = 250
_SEARCHED: Final = 2_000  # characters of what a line says: patterns take long on hostile ones
_DEEPEST: Final = 6  # levels of an event
_CODES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_=>()].?)"
)
_BY_SANDBOX: Final = re.compile(r"\[(?:The sandbox stopped|Stopped:|A file grew)")
_TRACE: Final = re.compile(
    r"\s+at |\s*File \"|Node\.js v|Bun v|\s*\d+ \||note: run with|Traceback \(|[\W_]*$|throw "
)
_TROUBLE: Final = re.compile(
    r"error|exception|fail|fatal|panic|abort|killed|denied|refused|invalid|unknown|unsupported|"
    r"not (?:found|supported|installed|logged)|no such|can(?:no|')t|could ?n.t|unable|must|"
    r"require|missing|exceed|expired|too old|log ?in|limit|timed out",
    re.I,
)
# What an event tells an error in, the likeliest first.
_KEYS: Final = ("error", "errors", "errorMessage", "error_message", "message", "result", "reason")
_KEYS_WITHIN: Final = (*_KEYS, "data", "details", "detail", "description", "name", "text", "code")
_CHANGING: Final = (  # what differs from trial to trial
    (re.compile(r"^[\[(]?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?[\])]?\s*"), ""),
    (re.compile(r"\bdoor-[\w-]{20,}"), HIDDEN),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.I), "…"),
    (re.compile(r"\d{4}-\d\d-\d\d[T_ ]\d\d[:-]\d\d[\d:.,-]*Z?"), "…"),
    (re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{16,}\b"), "…"),
    (re.compile(r"(?<![\w.])\d{5,}(?![\w.]*\w)"), "…"),
)


def last_words(output: bytes) -> str:
    """The line that says most about why a command ended; empty if there is none."""
    text = output.decode("utf-8", "replace")[-_LINES * _LONGEST_LINE :]
    lines = [line[:_LONGEST_LINE] for line in text.splitlines() if line.strip()][-_LINES:]
    told = [one for one in map(_told, lines) if one]
    by_sandbox = (one for one in reversed(told) if _BY_SANDBOX.match(one))
    troubled = (one for one in reversed(told) if _TROUBLE.search(one))
    return next(by_sandbox, None) or next(troubled, None) or (told[-1] if told else "")


def _told(line: str) -> str:
    """What a line says; empty if it is only a part of a trace, or an event of no error."""
    line = _CODES.sub("", line)
    if line.lstrip().startswith("{"):
        line = next(_in_event(line), "")
    elif _TRACE.match(line):
        return ""
    line = without_keys(line.strip())[:_SEARCHED]
    for pattern, instead in _CHANGING:
        line = pattern.sub(instead, line)
    return one_line(line, _LONGEST)


def _in_event(line: str) -> Iterator[str]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        yield line  # cut, or no event at all
        return
    if isinstance(event, dict) and _is_error(event):
        yield from _texts(event, (*_KEYS, "data"), _DEEPEST)


def _is_error(event: dict[str, object]) -> bool:
    kinds = " ".join(
        str(event.get(key, ""))[:100] for key in ("type", "subtype", "status", "level")
    )
    known = ("error", "errors", "errorMessage", "error_message", "is_error")
    return any(event.get(key) for key in known) or bool(re.search("error|fail|fatal", kinds, re.I))


def _texts(value: object, keys: tuple[str, ...], depth: int) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield " ".join(value.split())
    elif isinstance(value, list) and depth:
        for one in value[:5]:
            yield from _texts(one, keys, depth - 1)
    elif isinstance(value, dict) and depth:
        for key in keys:
            yield from _texts(value.get(key), _KEYS_WITHIN, depth - 1)
