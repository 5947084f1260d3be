"""Sessions of Claude Code: JSON lines of ~/.claude/projects, or of its output stream-json."""

from collections.abc import Sequence
from typing import Any

from .messages import add_message
from .spoken import is_summary
from .turns import Trace, Turns, word_of


def is_claude_code(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and word_of(entry, "type") in ("user", "assistant")
        and isinstance(entry.get("message"), dict)
        and "content" in entry["message"]
    )


def read_claude_code(entries: Sequence[Any], skipped: int = 0) -> Trace:
    """Its turns; those of subagents are left out, since their results tell what came of them."""
    turns, seen = Turns(), set[str]()
    turns.skipped += skipped
    spoken_by = [entry for entry in entries if is_claude_code(entry)]
    # The file of a subagent has nothing else.
    only_aside = all(entry.get("isSidechain") for entry in spoken_by)
    for entry in entries:
        uuid = str(entry.get("uuid") or "") if isinstance(entry, dict) else ""
        aside = isinstance(entry, dict) and entry.get("isSidechain") and not only_aside
        if aside or not is_claude_code(entry) or _says_nothing(entry) or uuid in seen:
            turns.skipped += 1
            continue
        if uuid:
            seen.add(uuid)  # a session that was resumed begins with a copy of the old one
        _add(turns, entry)
    return turns.trace("Claude Code session")


def _says_nothing(entry: dict[str, Any]) -> bool:
    return bool(entry.get("isMeta") or entry.get("isApiErrorMessage"))


def _add(turns: Turns, entry: dict[str, Any]) -> None:
    message = {"role": entry["type"], **entry["message"]}
    content = message["content"]
    if entry.get("isCompactSummary") or (isinstance(content, str) and is_summary(content)):
        # Where the turns that it sums up are in the file, it would only repeat them.
        if len(turns):
            turns.skipped += 1
        else:
            add_message(turns, {**message, "role": "assistant"})
        return
    add_message(turns, message)
