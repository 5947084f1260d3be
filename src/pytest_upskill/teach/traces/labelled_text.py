"""Transcripts as text: exported Markdown, labels such as "Human:", Claude Code's /export.

Labels are all there is to go by, so text before the first one is skipped.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from .api_messages import spoken
from .turns import Trace, Turns, call_text, looks_failed

Speaker = Literal["user", "assistant", "thinking", "call", "result", "none"]

_NAMES: Final[dict[Speaker, str]] = {
    "user": "user|human|you|me|prompt|question|developer|you said",
    "assistant": "assistant|claude|claude code|ai|agent|codex|chatgpt|gpt|gemini|copilot|cursor"
    "|model|bot|response|answer|opencode|chatgpt said|agent \\(\\w+\\)",
    "thinking": "thinking|reasoning|thought|thoughts|internal reasoning",
    "call": "tool use|tool call|tool|tool_use|tool_call|using tool|function call|command",
    "result": "tool result|tool results|tool output|tool response|tool_result|output|result"
    "|function result|stdout|stderr|error",
    "none": "system|system prompt|developer message|metadata",
}
_SPEAKER: Final = {
    name.replace("\\(\\w+\\)", ""): speaker
    for speaker, names in _NAMES.items()
    for name in names.split("|")
}
_ANY: Final = "|".join(sorted(("|".join(_NAMES.values())).split("|"), key=len, reverse=True))
# An optional ornament, the name, optionally a model, a time or a tool's name in brackets.
_LABEL: Final = rf"[^\w\n#*<>`/.,;=(\[{{\"'-]{{0,4}}\s?({_ANY})"
_HEADING: Final = re.compile(
    rf"^ {{0,3}}#{{1,6}}[ \t]+{_LABEL}[ \t]*((?:[(\[:—–-]|`)[^\n]*)?$", re.IGNORECASE
)
_BOLD: Final = re.compile(
    rf"^ {{0,3}}(?:[-*] )?(\*\*|__){_LABEL}[ \t]*((?:\([^\n)*]*\)|:[ \t]*`?[\w.-]+`?)?)[ \t]*"
    r"(?::[ \t]*\1|\1[ \t]*:|\1(?=[ \t]*$))[ \t]*(.*)$",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(rf"^(?:\[[^\]\n]{{1,40}}\][ \t]*)?{_LABEL}[ \t]*:(?=\s|$)(.*)$", re.I)
_FENCE: Final = re.compile(r"^\s{0,3}(```|~~~)")
_ITEM_TOOL: Final = re.compile(r"[`:(\s]*([A-Za-z][\w.-]*)")
_MARKED_CALL: Final = re.compile(r"^([A-Za-z][\w.:-]*(?: - [\w.:-]+(?: \(MCP\))?)?)\((.*)$", re.S)
# A call that an exporter puts under the assistant's heading.
_DESCRIBED_CALL: Final = re.compile(
    r"^\W{0,4}(?:using tool|tool use|tool call|used tool)\W{1,4}(\w[\w.:-]*)`?\s*\n"
    r"(?:\s*(?:input|arguments):\s*)?(.*)$",
    re.IGNORECASE | re.DOTALL,
)
_MARKS: Final = ("⏺", "●")
_PROMPTS: Final = ("> ", "❯ ")


def read_transcript(text: str) -> Trace | None:
    """The turns of a transcript; None if it has no labels of both user and assistant."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(line.startswith(_MARKS) for line in lines) and any("⎿" in line for line in lines):
        return _read_export(lines)
    if sum(line.startswith(_MARKS) for line in lines) and sum(
        line.startswith(_PROMPTS) for line in lines
    ):
        return _read_export(lines)
    for form, patterns in (
        ("Markdown transcript", (_HEADING, _BOLD)),
        ("text transcript", (_PLAIN,)),
    ):
        for heed_fences in (True, False):  # an unclosed fence would hide what follows
            labels = list(_labels(lines, patterns, heed_fences=heed_fences))
            if {"user", "assistant"} <= {speaker for _, speaker, _ in labels}:
                return _read_labelled(lines, labels, form)
    return None


def _labels(
    lines: Sequence[str], patterns: Sequence[re.Pattern[str]], *, heed_fences: bool
) -> Iterator[tuple[int, Speaker, str]]:
    """Line number, speaker and the text behind the label."""
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line) if heed_fences else None
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        if fence or len(line) > 10_000:
            continue
        for pattern in patterns:
            if match := pattern.match(line):
                groups = match.groups()
                name = groups[1] if pattern is _BOLD else groups[0]
                yield number, _speaker(name), _said_at_once(pattern, groups)
                break


def _speaker(name: str) -> Speaker:
    return _SPEAKER.get(" ".join(name.lower().split()), "assistant")


def _said_at_once(pattern: re.Pattern[str], groups: Sequence[str | None]) -> str:
    if pattern is _BOLD:
        return f"{groups[2] or ''}\n{groups[3] or ''}"
    return f"{groups[1] or ''}\n" if pattern is _HEADING else f"\n{groups[1] or ''}"


def _read_labelled(
    lines: Sequence[str], labels: Sequence[tuple[int, Speaker, str]], form: str
) -> Trace:
    turns = Turns()
    turns.skipped += any(line.strip() for line in lines[: labels[0][0]])
    ends = [number for number, _, _ in labels[1:]] + [len(lines)]
    for (number, speaker, label), end in zip(labels, ends, strict=True):
        about, _, text = label.partition("\n")
        body = "\n".join([text.strip(), *lines[number + 1 : end]]).strip().removesuffix("---")
        match speaker:
            case "user":
                turns.say("user", spoken(body.strip()))
            case "assistant" if call := _DESCRIBED_CALL.match(body):
                turns.call(None, call[1], call_text(call[2].strip()))
            case "assistant" | "thinking":
                turns.say(speaker, body)
            case "call":
                tool = _ITEM_TOOL.match(about)
                turns.call(None, tool[1] if tool else "", body)
            case "result":
                turns.result(None, body, failed=looks_failed(body))
            case _:
                turns.skipped += 1
    return turns.trace(form)


def _read_export(lines: Sequence[str]) -> Trace:
    """Claude Code's terminal output: > a prompt, ⏺ a text or a call, ⎿ its result."""
    turns, tool = Turns(), ""
    for mark, body in _marked(lines):
        text = _dedented(body)
        if mark == ">":
            turns.say("user", spoken(text))
        elif mark == "⎿":
            turns.result(None, text, failed=looks_failed(text), tool=tool)
        elif mark == "✻":
            turns.say("thinking", text)
        elif call := _MARKED_CALL.match(text):
            tool = call[1]
            turns.call(None, tool, call[2].strip().removesuffix(")"))
        elif mark:
            turns.say("assistant", text)
        elif text.strip():
            turns.skipped += 1
    return turns.trace("text transcript")


def _marked(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    mark, body = "", list[str]()
    for line in lines:
        line = line.rstrip()
        new_mark = ""
        if line.startswith(_PROMPTS):
            new_mark, text = ">", line[2:]
        elif line.startswith(_MARKS):
            new_mark, text = "⏺", line[1:]
        elif line.lstrip().startswith("⎿"):
            new_mark, text = "⎿", line.lstrip()[1:]
        elif line.startswith(("✻ Thinking", "∴ Thinking")):
            new_mark, text = "✻", ""
        if new_mark:
            yield mark, body
            mark, body = new_mark, [text.lstrip()]
        else:
            body.append(line)
    yield mark, body


def _dedented(body: Sequence[str]) -> str:
    """The text after a mark, without the indentation of its other lines."""
    indented = [line for line in body[1:] if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in indented), default=0)
    return "\n".join([*body[:1], *(line[min(margin, 5) :] for line in body[1:])]).strip()
