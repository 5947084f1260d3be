"""What a trace consists of, and helpers for the readers of all formats."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ...trials.transcript import Transcript, Turn

# Arguments of a shell call that only say how the command was run.
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
    """What an agent did, in order; a result follows its call."""

    form: str
    turns: Transcript
    skipped: int = 0  # entries that could not be read or are empty


class Turns:
    """Collects turns, and puts each result after its call."""

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
            self.skipped += 1  # repeated, as in a resumed session
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
    """The arguments of a call as text: only the command, or a line for each with paths first.

    They are an object, a string of JSON, or any other text.
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
    paths = [key for key in _PATH_KEYS if key in arguments]
    keys = dict.fromkeys([*paths, *arguments])
    return "\n".join(_argument(key, arguments[key]) for key in keys)


def _argument(key: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{key}:\n{text}" if "\n" in text else f"{key}: {text}"


def command_text(command: Any) -> str:
    """A command as people type it; Codex has a list, mostly wrapped in a shell."""
    if not isinstance(command, list):
        return str(command)
    words = [str(word) for word in command]
    if len(words) == 3 and words[1] in ("-c", "-lc", "/c", "-Command"):
        return words[2]
    if len(words) == 2 and words[0] == "apply_patch":
        return words[1]
    return shlex.join(words)


def result_text(content: Any) -> str:
    """A tool's result: a text, or blocks some of which are text."""
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
    """Whether a result is an error, for formats that do not mark errors.

    Only its start and end count: a tool may show errors that are not its own.
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
    """The text parsed as JSON; None if it is not JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def word_of(entry: Any, key: str) -> str:
    """The string under a key; "" if it is anything else."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def without(text: str, *tags: str) -> str:
    """A text without these tags and their content, which agents add to users' messages."""
    for tag in tags:
        start = text.find(f"<{tag}")
        if start < 0:
            continue
        parts, end = [], 0
        while start >= 0:
            close = text.find(f"</{tag}>", start)
            if close < 0:
                break
            parts.append(text[end:start])
            end = close + len(tag) + 3
            start = text.find(f"<{tag}", end)
        text = "".join([*parts, text[end:]])
    return text
