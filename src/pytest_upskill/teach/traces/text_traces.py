"""Transcripts as text: exported Markdown, labels such as "Human:",
Claude Code's /export.

Labels are all there is to go by, so text before the first one is skipped.
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import Final, Literal, NamedTuple

from ...trials.transcript import Transcript
from .turns import Turns

Speaker = Literal["user", "assistant", "thinking", "call", "result", "none"]

_NAMES: Final[dict[Speaker, str]] = {
    "user": "user|human|you|me|prompt|question|developer|you said",
    "assistant": (
        "assistant|claude|claude code|ai|agent|codex|chatgpt|gpt|gemini|copilot|cursor"
        "|model|bot|response|answer|opencode|chatgpt said"
    ),
    "thinking": "thinking|reasoning|thought|thoughts|internal reasoning",
    "call": (
        "tool use|tool call|tool|tool_use|tool_call|using tool|function call|command"
    ),
    "result": (
        "tool result|tool results|tool output|tool response|tool_result|output|result"
        "|function result|stdout|stderr|error"
    ),
    "none": "system|system prompt|developer message|metadata",
}
_MARKS: Final[dict[str, Speaker]] = {
    ">": "user",
    "❯": "user",
    "⏺": "assistant",
    "●": "assistant",
    "⎿": "result",
    "✻": "thinking",
    "∴": "thinking",
}
_SPEAKERS: Final[dict[str, Speaker]] = _MARKS | {
    name: speaker for speaker, names in _NAMES.items() for name in names.split("|")
}
_ANY: Final = "|".join(
    sorted("|".join(_NAMES.values()).split("|"), key=len, reverse=True)
)
# An optional ornament, the name, optionally a model,
# a time or a tool's name in brackets.
_LABEL: Final = rf"[^\w\n#*<>`/.,;=(\[{{\"'-]{{0,4}}\s?(?P<name>{_ANY})"
_EXPORTED: Final = (
    r"^(?:(?P<name>[>❯](?= )|[⏺●])|\s*(?P<result>⎿)|(?P<thought>[✻∴]) Thinking)"
)
_EXPORT: Final = re.compile(_EXPORTED + r"(?P<about>)\s*(?P<text>.*)$")
_HEADING: Final = re.compile(
    rf"^ {{0,3}}#{{1,6}}[ \t]+{_LABEL}["
    r" \t]*(?P<about>(?:[(\[:—–-]|`)[^\n]*)?(?P<text>)$",
    re.I,
)
_BOLD: Final = re.compile(
    rf"^ {{0,3}}(?:[-*] )?(\*\*|__){_LABEL}[ \t]*(?P<about>(?:\([^\n)*]*\)|:["
    r" \t]*`?[\w.-]+`?)?)"
    r"[ \t]*(?::[ \t]*\1|\1[ \t]*:|\1(?=[ \t]*$))[ \t]*(?P<text>.*)$",
    re.I,
)
_PLAIN: Final = re.compile(
    rf"^(?:\[[^\]\n]{{1,40}}\][ \t]*)?{_LABEL}[ \t]*:(?=\s|$)(?P<about>)(?P<text>.*)$",
    re.I,
)
_LONGEST_LINE: Final = 10_000
_FENCE: Final = re.compile(r"^\s{0,3}(```|~~~)")
_TOOL: Final = re.compile(r"[`:(\s]*([A-Za-z][\w.-]*)")
# Calls that stand where the assistant speaks: Bash(ls), or "Using tool:
# Bash" and its input.
_CALL: Final = re.compile(
    r"^(?P<tool>[A-Za-z][\w.:-]*(?: - [\w.:-]+(?: \(MCP\))?)?)\((?P<text>.*?)\)?$", re.S
)
_DESCRIBED_CALL: Final = re.compile(
    r"^\W{0,4}(?:using tool|tool use|tool call|used"
    r" tool)\W{1,4}(?P<tool>\w[\w.:-]*)`?\s*\n"
    r"(?:\s*(?:input|arguments):\s*)?(?P<text>.*)$",
    re.I | re.S,
)


class _Label(NamedTuple):
    line: int
    speaker: Speaker
    about: str  # in brackets: the name of a tool
    text: str  # on the same line


def read_transcript(text: str) -> Transcript:
    """The turns of a transcript; none if it has no labels of both user and
    assistant.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for patterns in ((_EXPORT,), (_HEADING, _BOLD), (_PLAIN,)):
        for heed_fences in (True, False):  # an unclosed fence would hide what follows
            labels = list(_labels(lines, patterns, heed_fences=heed_fences))
            if {"user", "assistant"} <= {label.speaker for label in labels}:
                return _read_labelled(
                    lines, labels, call=_CALL if _EXPORT in patterns else None
                )
    return ()


def _labels(
    lines: Sequence[str], patterns: Sequence[re.Pattern[str]], *, heed_fences: bool
) -> Iterator[_Label]:
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line) if heed_fences else None
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        if fence or len(line) > _LONGEST_LINE:
            continue
        if match := next(
            filter(None, (pattern.match(line) for pattern in patterns)), None
        ):
            named = match.groupdict()
            name = named["name"] or named["result"] or named["thought"]
            speaker = _SPEAKERS[" ".join(name.lower().split())]
            yield _Label(number, speaker, named["about"] or "", named["text"].strip())


def _read_labelled(
    lines: Sequence[str], labels: Sequence[_Label], call: re.Pattern[str] | None
) -> Transcript:
    turns = Turns()
    ends = [label.line for label in labels[1:]] + [len(lines)]
    for label, end in zip(labels, ends, strict=True):
        below = dedent("\n".join(lines[label.line + 1 : end]))
        body = f"{label.text}\n{below}".strip().removesuffix("---").strip()
        match label.speaker:
            case "assistant" if made := (call or _DESCRIBED_CALL).match(body):
                turns.call(None, made["tool"], made["text"].strip())
            case "user" | "assistant" | "thinking":
                turns.say(label.speaker, body)
            case "call":
                tool = _TOOL.match(label.about)
                turns.call(None, tool[1] if tool else "", body)
            case "result":
                turns.result(None, body)
    return turns.transcript
