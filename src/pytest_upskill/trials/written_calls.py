"""Tool calls that a model wrote as text, because its server did not parse them.

Open models write calls in forms of their own, each of which a server has to know. What
it does not know it returns as text, which looks like a final answer, so the agent stops
before it began. An answer may have such text, too: if the task asks for it, or as an
example. So a tag that only calls have counts wherever it stands, but plain JSON only
where a call would stand.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from .answer import without_reasoning
from .transcript import Tool

PROBLEM: Final = "the server returned tool calls as text"
ADVICE: Final = (
    "It has to parse them: start llama-server with --jinja, vLLM with"
    " --enable-auto-tool-choice --tool-call-parser NAME, take a model of Ollama's that"
    " is listed with tools, or another model"
)
_MOST_TEXT: Final = 100_000  # characters of a reply
_MOST_OBJECTS: Final = 200
_MOST_MARKS: Final = 50
_MOST_NAMES: Final = 200
_AFTER_MARK: Final = 2_000  # characters in which a call is looked for
_DEEPEST: Final = 4

_NAMES: Final = (
    *("name", "tool", "tool_name", "toolname", "function", "function_name"),
    *("action", "recipient_name"),
)
_ARGUMENTS: Final = (
    *("arguments", "parameters", "args", "params", "input", "tool_input"),
    *("action_input", "kwargs"),
)
_WRAPPERS: Final = (
    *(
        "tool_call",
        "tool_calls",
        "function_call",
        "function_calls",
        "function",
        "tool_use",
    ),
    *("tool_uses", "tool", "tools", "call", "calls", "action", "actions"),
)
_ASIDE: Final = ("id", "type", "tool_call_id", "call_id", "index")
# <tool_call>, <|tool_call|>, <｜tool▁calls▁begin｜>, <minimax:tool_call>,
# <function_calls>, …
_MARK: Final = (
    r"(?:<[|｜]?(?:[\w｜]{1,20}[:｜_])?(?:start_)?(?:tool|function)[_▁]?(?:call|use)s?"
    r"(?:[_▁](?:section[_▁])?(?:begin|start))?[|｜]?>"
    r"|\[TOOL_CALLS?\]|<\|python_tag\|>|<\|START_ACTION\|>|<\|action_start\|>|functools(?=\[)"
    r"|<\|tools_prefix\|>|<[|｜]?tool[_▁]sep[|｜]?>|✿FUNCTION✿|```tool_(?:code|call)s?\b)"
)
# What stands between a mark and the name of a tool.
_GLUE: Final = (
    r"(?:[\s\[{(\"'`:,=<>|｜▁_.]"
    r"|(?:name|type|json|functions?|tools?|call|sep|plugin|invoke|default|api|print)(?![a-z]))"
    r"{0,100}?"
)
_INLINE: Final = r"(?<![^`]`)"  # not between backquotes in a line of prose
_MARKS: Final = re.compile(_INLINE + _MARK, re.IGNORECASE)
_MARKED_OBJECT: Final = re.compile(rf"(?:{_MARK})\s*[\[{{]", re.IGNORECASE)
_CLOSED: Final = ("```", ">", "}", "]", ")", '"')
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*[\w-]*[ \t]*$", re.MULTILINE)
_HEAD: Final = re.compile(  # of JSON that is broken, or cut off
    r"\{\s*(?:[\"'](?:id|type)[\"']\s*:\s*[\"'][^\"']{0,100}[\"']\s*,\s*){0,2}"
    rf"[\"'](?P<key>{'|'.join(_NAMES)})[\"']\s*:\s*[\"'](?P<name>[^\"'\n]{{1,200}})[\"']\s*,\s*"
    rf"[\"'](?P<arguments>{'|'.join(_ARGUMENTS)})[\"']\s*:\s*[\[{{\"']"
)
_FORMATS: Final = re.compile(
    r"\b(?:json|xml|yaml|format|syntax|openai|hermes)", re.IGNORECASE
)
_CALLS: Final = re.compile(
    r"\btool[\s_-]*(?:calls?|use|invocations?)\b|\btools/call\b|\bfunction[\s_-]*calling\b|"
    r"<[|]?tool|\[TOOL_CALLS",
    re.IGNORECASE,
)
_ABOUT_TOOLS: Final = re.compile(  # a task that gets examples, with prose around them
    r"\b(?:(?:describe|document|explain|how|show|what|which)\w*\b.{0,60}\btools?|"
    r"(?:example|fixture|mock)s?\b.{0,60}\b(?:tool|agent)s?)\b",
    re.IGNORECASE | re.DOTALL,
)
_CALLING: Final = re.compile(r"\b(?:call(?:s|ing)?|invo(?:k|c)\w+)\b", re.IGNORECASE)


@dataclass
class Offer:
    """The tools and skills that a model may name in a call, and their arguments,
    if known.
    """

    arguments: dict[str, frozenset[str]] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)
    # Of tools, with those of arguments
    descriptions: list[str] = field(default_factory=list)

    def add_tools(self, tools: Iterable[Tool]) -> None:
        for tool in tools:
            key = _plain(tool.name)
            if key and key not in self.tools and len(self.tools) < _MOST_NAMES:
                self.tools.add(key)
                self.arguments[key] = _arguments_of(tool)
                self.descriptions.append(f"{tool.description}\n{tool.schema}")

    def add_skills(self, names: Iterable[str]) -> None:
        for name in names:
            if key := _plain(name):
                self.arguments.setdefault(key, frozenset())

    def add(self, other: "Offer") -> None:
        self.tools |= other.tools
        self.arguments |= other.arguments
        self.descriptions += other.descriptions

    def has_tool(self, name: str) -> bool:
        return _plain(name) in self.tools


def is_called(skill: str, tool: str) -> bool:
    """Whether the name of a tool is that of a skill, as models write it."""
    return bool(_plain(skill)) and _plain(skill) == _plain(tool)


def writes_call(
    text: str, offer: Offer, task: str, *, has_called: bool = False
) -> bool:
    """Whether a reply without calls is one: a text that calls what was offered.

    ``task`` is what the model was asked; ``has_called``: the server parsed calls
    before, so what looks like one is more likely to be meant as text.
    """
    if not offer.tools or _asks_for_calls(task, offer):
        return False
    is_example = has_called or bool(_ABOUT_TOOLS.search(task))
    reply = without_reasoning(text)[:_MOST_TEXT].strip()
    if not reply:  # the server took the call for a part of the reasoning
        return _is_marked(text[-_MOST_TEXT:].strip(), offer)
    # If all of it is in a tag, it is no answer, even if there is no such tool.
    if _is_marked(reply, offer) or (
        _MARKED_OBJECT.match(reply) and reply.endswith(_CLOSED)
    ):
        return not is_example or reply.endswith(_CLOSED)
    return _is_json_call(reply, offer, task, is_example)


def _plain(name: str) -> str:
    """A name without what models and servers change in it."""
    name = re.sub(
        r"^(?:functions?|tools?|skills?|default_api)[.:/]|:\d+$", "", name.strip()
    )
    return re.sub(r"[\W_]+", "-", name).strip("-").casefold()


def _arguments_of(tool: Tool) -> frozenset[str]:
    with suppress(ValueError, RecursionError, AttributeError, TypeError):
        return frozenset(map(str, json.loads(tool.schema).get("properties", ())))
    return frozenset()


def _asks_for_calls(task: str, offer: Offer) -> bool:
    if _CALLS.search(task):
        return True
    if not _FORMATS.search(task):
        return False
    names = "|".join(map(_pattern, offer.tools))
    tool = rf"\btools?\b\W{{1,9}}(?:{names})(?!\w)|(?<!\w)(?:{names})\W{{1,9}}tools?\b"
    return bool(_CALLING.search(task) or re.search(tool, task, re.IGNORECASE))


def _pattern(name: str) -> str:
    return re.escape(name).replace(r"\-", r"[\W_]")


def _is_marked(text: str, offer: Offer) -> bool:
    """Whether it has a tag or form that only calls have, with a name that was
    offered.
    """
    names = rf"(?:{'|'.join(map(_pattern, offer.arguments))})(?![\w-])"
    called = re.compile(_GLUE + names, re.IGNORECASE)
    for mark in islice(_MARKS.finditer(text), _MOST_MARKS):
        after = text[mark.end() : mark.end() + _AFTER_MARK]
        if called.match(after) or any(_json_calls(after, offer)):
            return True
    forms = [
        (
            rf"{_INLINE}<(?:\w{{1,20}}:|｜\w{{1,20}}｜)?(?:function|invoke|tool)(?:_call|_use)?"
            rf"(?:=|\s+name=)[\"']?(?:functions\.)?{names}"
        ),
        rf"(?:<\|channel\|>\w{{0,20}} to=|\bto=functions\.)(?:functions\.)?{names}",
        rf"^\W{{0,9}}Action:\s*{names}\s*\n\s*\W{{0,9}}Action Input:",
    ]
    if any(re.search(form, text, re.IGNORECASE | re.MULTILINE) for form in forms):
        return True
    return any(
        _has_tool_syntax(text, name, offer.arguments[name]) for name in offer.tools
    )


def _has_tool_syntax(text: str, name: str, arguments: frozenset[str]) -> bool:
    """``[bash(command="ls")]``, ``<bash><command>ls</command></bash>``,
    ``<bash>ls</bash>``.
    """
    tool, keys = _pattern(name), "|".join(map(re.escape, sorted(arguments))) or r"\w+"
    # At the start, or it may be an example
    python = rf"{tool}\([ \n]?(?:{keys}) ?= ?[\"'\[{{\d]"
    by_tags = rf"<{tool}>\s{{0,9}}<(?:{keys})>"
    whole = rf"<{tool}>[^<]{{1,500}}</{tool}>\Z"
    within = re.compile(
        rf"^[ \t]*(?:\[{python}|{by_tags})", re.MULTILINE | re.IGNORECASE
    )
    # Tags may be special tokens, which servers drop.
    bare = rf"{tool}\s*(?:\[\w+\])?\s*(?:```(?:json)?\s*)?\{{\s*\"(?:{keys})\"\s*:"
    start = re.compile(rf"(?:```\w*\s)?(?:{python}|{whole}|{bare})", re.IGNORECASE)
    return bool(within.search(text) or start.match(text))


@dataclass(frozen=True)
class _JsonCall:
    start: int
    end: int
    keys: tuple[str, ...]  # for the name and the arguments
    fits: bool  # whether the tool takes such arguments


def _is_json_call(text: str, offer: Offer, task: str, is_example: bool) -> bool:
    calls = list(_json_calls(text, offer))
    if not calls:
        return False
    asks_for_json = bool(_FORMATS.search(task))
    words = set(re.findall(r"\w+", task.casefold()))
    if asks_for_json and any(words.issuperset(call.keys) for call in calls):
        return False
    end = calls[-1].end
    is_alone = _is_only(calls, text, 0, len(text))
    if is_alone or is_example or asks_for_json or len(calls[-1].keys) == 1:
        return is_alone and (
            all(c.fits for c in calls) or not (is_example or asks_for_json)
        )
    is_last = not re.search(r"\w", _FENCE.sub("", text[end:]))
    if is_last and calls[-1].fits:
        return True
    fences = [fence.span() for fence in _FENCE.finditer(text)]
    blocks = [
        (start, stop)
        for (_, start), (stop, _) in zip(fences[::2], fences[1::2], strict=False)
    ]
    return any(
        (is_last or c.fits) and _is_only(calls, text, *_block_of(c, text, blocks))
        for c in calls
    )


def _block_of(
    call: _JsonCall, text: str, fenced: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Where the fenced block of a call starts and ends; without one, its lines."""
    for start, stop in fenced:
        if start <= call.start < stop:
            return start, stop
    stop = text.find("\n", call.end)
    return text.rfind("\n", 0, call.start) + 1, len(text) if stop < 0 else stop


def _is_only(calls: Iterable[_JsonCall], text: str, start: int, stop: int) -> bool:
    """Whether a part of a text has nothing but calls."""
    around, at = "", start
    for call in calls:
        if start <= call.start < stop:
            around, at = around + text[at : call.start], call.end
    return not re.search(r"[^\W\d_]", _FENCE.sub("", around + text[at:stop]))


def _json_calls(text: str, offer: Offer) -> Iterator[_JsonCall]:
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(_MOST_OBJECTS):
        start = text.find("{", at)
        if start < 0:
            return
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            head = _HEAD.match(text, start)
            if head and _plain(head["name"]) in offer.arguments:
                yield _JsonCall(
                    start, len(text), (head["key"], head["arguments"]), fits=True
                )
                return
        else:
            for keys, fits in _calls_in(value, offer):
                yield _JsonCall(start, at, keys, fits)
                break


def _calls_in(
    value: object, offer: Offer, depth: int = _DEEPEST
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The keys of each call in a JSON value, and whether its arguments fit."""
    if isinstance(value, list):
        for item in value[:_MOST_OBJECTS]:
            yield from _calls_in(item, offer, depth)
    if not isinstance(value, dict) or not depth:
        return
    for key in value:
        name = value[key]
        if (
            key.casefold() in _NAMES
            and isinstance(name, str)
            and _plain(name) in offer.arguments
        ):
            yield from _named_call(key, _plain(name), value, offer)
        if offer.has_tool(key):
            inner, known = value[key], offer.arguments[_plain(key)]
            is_skill = isinstance(inner, str) and _plain(inner) in offer.arguments
            is_call = isinstance(inner, dict) and inner and known.issuperset(inner)
            if len(value) == 1 and (is_skill or is_call):
                yield (key,), True
        if key.casefold() in _WRAPPERS:
            yield from _calls_in(name, offer, depth - 1)


def _named_call(
    key: str, name: str, value: Mapping[str, Any], offer: Offer
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """A call by name; no definition of a tool, nor another thing of that name."""
    known = offer.arguments[name]
    if "description" in value and "description" not in known:
        return
    others = {
        other for other in value if other != key and other.casefold() not in _ASIDE
    }
    inner = next((other for other in others if other.casefold() in _ARGUMENTS), "")
    arguments = value[inner] if inner and inner not in known else None
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    if isinstance(arguments, dict):
        if "properties" not in arguments:
            yield (
                (key.casefold(), inner.casefold()),
                not known or known.issuperset(arguments),
            )
    elif arguments is not None:
        yield (key.casefold(), inner.casefold()), False
    elif others & known:  # {"tool": "bash", "command": "ls"}
        yield (key.casefold(), *others), known.issuperset(others)
    elif not others and not offer.has_tool(name):  # {"name": "harbour-manifest"}
        yield (key.casefold(),), True
