"""Tool calls that a model wrote as text, because its server did not parse them.

What a server does not know it returns as text, which looks like a final answer, so the
agent stops before it began. Only two things count: a tag that calls have, followed by a
name that was offered, and JSON with such a name at the end of a reply.
"""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from .answer import without_reasoning
from .transcript import Tool

PROBLEM: Final = "the server returned tool calls as text"
ADVICE: Final = (
    "It has to parse them: start llama-server with --jinja, vLLM with"
    " --enable-auto-tool-choice --tool-call-parser NAME, take a model of Ollama's that"
    " is listed with tools, or another model"
)
_MAX_CHARACTERS: Final = 100_000  # of a reply
_MAX_NAMES: Final = 200
_MAX_MARKS: Final = 50
_AFTER_MARK: Final = 300  # characters in which the name of a tool is looked for

# <tool_call>, <|tool_call|>, <｜tool▁calls▁begin｜>, <minimax:tool_call> and the like,
# but not between backquotes in a line of prose.
_MARK: Final = re.compile(
    r"(?<!`)<[^<>\n]{0,20}(?:tool[_▁](?:call|sep)|function[_▁]?call|function=|invoke )"
    r"|(?<!`)\[TOOL_CALLS\]|<\|(?:python_tag|START_ACTION|action_start)\|>|functools\["
    r"|\bto=functions",
    re.IGNORECASE,
)
_NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "skill")
_ARGUMENT_KEYS: Final = {"arguments", "parameters", "args", "input", "skill"}
_CALLS: Final = re.compile(
    r"\btool[\s_-]*calls?\b|\bfunction[\s_-]*call", re.IGNORECASE
)


@dataclass
class Offer:
    """The tools and skills that a model may name in a call."""

    names: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    # Of tools, with those of arguments
    descriptions: list[str] = field(default_factory=list)

    def add_tools(self, tools: Iterable[Tool]) -> None:
        for tool in tools:
            key = _plain(tool.name)
            if key and key not in self.tools and len(self.tools) < _MAX_NAMES:
                self.tools.add(key)
                self.names.add(key)
                self.descriptions.append(f"{tool.description}\n{tool.schema}")

    def add_skills(self, names: Iterable[str]) -> None:
        self.names.update(filter(None, map(_plain, names)))

    def add(self, other: "Offer") -> None:
        self.names |= other.names
        self.tools |= other.tools
        self.descriptions += other.descriptions

    def has_tool(self, name: str) -> bool:
        return _plain(name) in self.tools


def is_called(skill: str, tool: str) -> bool:
    """Whether the name of a tool is that of a skill, as models write it."""
    return bool(_plain(skill)) and _plain(skill) == _plain(tool)


def writes_call(text: str, offer: Offer, task: str) -> bool:
    """Whether a reply without calls is one: a text that calls what was offered.

    ``task`` is what the model was asked; it may ask for such text.
    """
    if not offer.tools or _CALLS.search(task):
        return False

    # The server may have taken the call for a part of the reasoning.
    reply = without_reasoning(text[:_MAX_CHARACTERS]).strip() or text[-_MAX_CHARACTERS:]
    return _is_marked(reply, offer) or _is_json_call(reply, offer)


def _plain(name: str) -> str:
    """A name without what models and servers change in it."""
    name = re.sub(
        r"^(?:functions?|tools?|skills?|default_api)[.:/]|:\d+$", "", name.strip()
    )
    return re.sub(r"[\W_]+", "-", name).strip("-").casefold()


def _is_marked(reply: str, offer: Offer) -> bool:
    """Whether a name stands after a tag, and not within prose."""
    names = "|".join(re.escape(name).replace(r"\-", r"[\W_]") for name in offer.names)
    named = re.compile(rf"[^\w\s,;]\s*(?:{names})(?![\w-])", re.IGNORECASE)
    for mark in islice(_MARK.finditer(reply), _MAX_MARKS):
        if named.search(reply, mark.end() - 1, mark.end() + _AFTER_MARK):
            return True
    return False


def _is_json_call(reply: str, offer: Offer) -> bool:
    """Whether a reply ends with a call, or several, and with nothing else."""
    text = reply.removesuffix("```").rstrip()
    start = min((text.find(opening) for opening in "[{" if opening in text), default=0)
    value: object = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text[start:])

    calls = value if isinstance(value, list) else [value]
    return bool(calls) and all(_names_tool(call, offer) for call in calls)


def _names_tool(call: object, offer: Offer) -> bool:
    if not isinstance(call, dict):
        return False
    name = next((call[key] for key in _NAME_KEYS if key in call), None)
    has_arguments = not _ARGUMENT_KEYS.isdisjoint(call)
    is_definition = "description" in call or "properties" in str(call)
    return (
        isinstance(name, str)
        and _plain(name) in offer.names
        and has_arguments
        and not is_definition
    )
