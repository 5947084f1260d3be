"""What a trace is made of, and how the readers of all forms put one together."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ...trials.transcript import Transcript, Turn

# Of a call to a shell only the command teaches; these say how it was run.
_MANNER: Final = frozenset(
    {"description", "timeout", "timeout_ms", "workdir", "cwd", "login", "run_in_background"}
    | {"justification", "sandbox_permissions", "with_escalated_permissions", "yield_time_ms"}
    | {"max_output_tokens", "tty", "shell", "dangerouslyDisableSandbox", "sandbox"}
)
_PATH_KEYS: Final = ("file_path", "path", "notebook_path", "filename", "filePath", "target_file")
_EXIT: Final = re.compile(
    r"(?i)\b(?:exit(?:ed)?(?: with)?(?: exit)?[ _](?:code|status))\W{1,3}(-?\d{1,5})\b"
)
_ERROR: Final = re.compile(
    r"\s*(?:<tool_use_error>|error\b|\w*(?:Error|Exception)\b|fatal:|err:|failed\b"
    r"|Traceback \(most recent)",
    re.IGNORECASE,
)
_LOOKED_AT: Final = 400


@dataclass(frozen=True)
class Trace:
    """What an agent did, in the order in which it did it; a result follows its call."""

    form: str
    turns: Transcript
    skipped: int = 0  # lines or entries that could not be read or say nothing


class Turns:
    """Collects turns; calls and results find each other by their ids."""

    def __init__(self) -> None:
        self.skipped = 0
        self._turns: list[Turn] = []
        self._calls: dict[str, int] = {}
        self._results: dict[int, Turn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def say(self, kind: Literal["user", "assistant", "thinking"], text: str) -> None:
        if text.strip():
            self._turns.append(Turn(kind, text.strip()))
        else:
            self.skipped += 1

    def call(self, call_id: Any, tool: Any, text: str) -> None:
        if call_id and str(call_id) in self._calls:
            self.skipped += 1  # told twice, as in a session that was resumed
            return
        if call_id:
            self._calls[str(call_id)] = len(self._turns)
        self._turns.append(Turn("call", text.strip(), str(tool or "")))

    def result(self, call_id: Any, text: str, *, failed: bool, tool: Any = "") -> None:
        of = self._calls.get(str(call_id)) if call_id else None
        if of is None:
            self._turns.append(Turn("result", text.strip(), str(tool or ""), failed))
        elif of in self._results:
            self.skipped += 1
        else:
            self._results[of] = Turn("result", text.strip(), self._turns[of].tool, failed)

    def trace(self, form: str) -> Trace:
        turns: list[Turn] = []
        for place, turn in enumerate(self._turns):
            turns.append(turn)
            if place in self._results:
                turns.append(self._results[place])
        return Trace(form, tuple(turns), self.skipped)


def call_text(arguments: Any) -> str:
    """The arguments of a call as text: a command alone, a path first, else a line for each.

    They are an object, or JSON in a text, or whatever a tool of its own takes.
    """
    if isinstance(arguments, str):
        parsed = parsed_json(arguments)
        if not isinstance(parsed, dict):
            return arguments
        arguments = parsed
    if not isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False) if arguments is not None else ""
    command = next((arguments[key] for key in ("command", "cmd") if arguments.get(key)), None)
    if command and arguments.keys() - {"command", "cmd"} <= _MANNER:
        return command_text(command)
    first = [key for key in _PATH_KEYS if key in arguments]
    rest = [key for key in arguments if key not in first]
    return "\n".join(_argument(key, arguments[key]) for key in [*first, *rest])


def _argument(key: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{key}:\n{text}" if "\n" in text else f"{key}: {text}"


def command_text(command: Any) -> str:
    """A command as people type it: Codex has it as a list, mostly with a shell around it."""
    if not isinstance(command, list):
        return str(command)
    words = [str(word) for word in command]
    if len(words) == 3 and words[1] in ("-c", "-lc", "/c", "-Command"):
        return words[2]
    if len(words) == 2 and words[0] == "apply_patch":
        return words[1]
    return shlex.join(words)


def result_text(content: Any) -> str:
    """What a tool gave back: a text, or blocks of which some are text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return without(content, "system-reminder")
    if isinstance(content, list):
        return "\n".join(filter(None, map(_block_text, content)))
    if isinstance(content, dict):
        inner = content.get("content", content.get("output"))
        return result_text(inner) if inner is not None else json.dumps(content, ensure_ascii=False)
    return str(content)


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return result_text(block)
    if not isinstance(block, dict):
        return ""
    if isinstance(text := block.get("text"), str):
        return result_text(text)
    kind = str(block.get("type", ""))
    return "[an image]" if "image" in kind else ""


def looks_failed(text: str) -> bool:
    """Whether a result whose form has no mark for it tells of an error.

    Only its ends are looked at: what a tool merely shows may hold errors of others.
    """
    for match in _EXIT.finditer(f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"):
        return match[1] != "0"
    return _ERROR.match(text[:_LOOKED_AT]) is not None


def exit_status(value: Mapping[str, Any]) -> bool | None:
    """Whether a structured result failed; None if it does not say."""
    metadata = value.get("metadata")
    for place in (value, metadata if isinstance(metadata, dict) else {}):
        for key in ("exit_code", "exitCode"):
            if isinstance(code := place.get(key), int):
                return code != 0
        if isinstance(success := place.get("success"), bool):
            return not success
    return None


def parsed_json(text: str) -> Any:
    """What a text says as JSON; None if it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def word_of(entry: Any, key: str) -> str:
    """What stands under a key, if that is a text; anything else says nothing."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def without(text: str, *tags: str) -> str:
    """A text without what stands in these tags: agents put their own words into what users say."""
    for tag in tags:
        start = text.find(f"<{tag}")
        if start < 0:
            continue
        kept, end = [], 0
        while start >= 0:
            close = text.find(f"</{tag}>", start)
            if close < 0:
                break
            kept.append(text[end:start])
            end = close + len(tag) + 3
            start = text.find(f"<{tag}", end)
        text = "".join([*kept, text[end:]])
    return text
