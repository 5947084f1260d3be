"""Checks of what an agent did on the way to its answer: tools, commands, turns,
the skill's files.

Names of tools differ from agent to agent. A shell command is known by its argument,
not by the name of the tool.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from .._util.json_forms import Strict
from .._util.texts import counted, one_line
from ..trials.transcript import GIVEN, Activity, Transcript, Turn
from .check import COUNT, TEXTS, CheckContext, CheckKind, Evaluate, Result, Text, quoted
from .file_checks import Condition, ConditionsForm, conditions_in, results_in
from .matching import compile_pattern, folded, search
from .text_checks import PATTERNS, YES_OR_NO

_COMMANDS: Final = ("command", "cmd")  # arguments that hold a shell command
_NAMED: Final = re.compile(r'"(?:command|cmd)"\s*:\s*')
_CUT: Final = re.compile(r"\[… [\d,]+ characters left out …\]")
_MOST_NAMED: Final = 100  # characters


class CallsForm(Strict):
    """Calls of a tool, perhaps only those with certain arguments,
    and how many there may be.
    """

    tool: Text = Field(description="The name of the tool.")
    input_match: Annotated[str, AfterValidator(compile_pattern)] | None = Field(
        None,
        description='A pattern that the arguments match, as JSON: {"path":"a.txt"}.',
    )
    min: int | None = Field(
        None, ge=0, description="The fewest calls (default: 1, or 0 with max 0)."
    )
    max: int | None = Field(
        None, ge=0, description="The most calls (default: no limit)."
    )

    @property
    def fewest(self) -> int:
        return (0 if self.max == 0 else 1) if self.min is None else self.min

    @property
    def words(self) -> str:
        matching = f" with {quoted(self.input_match)}" if self.input_match else ""
        return f"{quoted(self.tool)}{matching}"


def _as_calls(value: Any) -> Any:
    """A list of objects; a text is the name of a tool."""
    entries = value if isinstance(value, list) else [value]
    return [{"tool": entry} if isinstance(entry, str) else entry for entry in entries]


_Written = Text | CallsForm
_CALLS: Final[TypeAdapter[Any]] = TypeAdapter(
    Annotated[
        list[CallsForm],
        Field(min_length=1),
        BeforeValidator(_as_calls, json_schema_input_type=_Written | list[_Written]),
    ]
)


def _require_order(calls: list[CallsForm]) -> list[CallsForm]:
    if any(call.min is not None or call.max is not None for call in calls):
        raise ValueError("min and max have no effect here; tools_used counts calls")
    return calls


_ORDER: Final[TypeAdapter[Any]] = TypeAdapter(
    Annotated[
        list[CallsForm],
        Field(min_length=1),
        BeforeValidator(_as_calls, json_schema_input_type=_Written | list[_Written]),
        AfterValidator(_require_order),
    ]
)


def called(transcript: Transcript) -> list[str]:
    """The tools that were called, in order."""
    return [turn.tool for turn in transcript if turn.kind == "call"]


def _calls(transcript: Transcript) -> list[Turn]:
    return [turn for turn in transcript if turn.kind == "call"]


@lru_cache(maxsize=256)
def compact(arguments: str) -> str:
    """The arguments of a call as JSON without spaces, as other tools show it."""
    try:
        return json.dumps(
            json.loads(arguments), ensure_ascii=False, separators=(",", ":")
        )
    except (ValueError, RecursionError):
        return arguments


def _is_one(context: CheckContext, call: CallsForm, turn: Turn) -> bool:
    if _canonical(context, call.tool) != folded(turn.tool, context.case_sensitive):
        return False
    # Patterns are of other tools, where they may expect a space after a colon or not.
    texts = (compact(turn.text), turn.text)
    return not call.input_match or any(
        search(call.input_match, text, case_sensitive=True) for text in texts
    )


@lru_cache(maxsize=4)  # the checks of an answer look at the same transcript
def commands_of(transcript: Transcript) -> tuple[str, ...]:
    """The shell commands of all calls."""
    return tuple(
        command
        for turn in transcript
        if turn.kind == "call"
        for command in _commands_in(turn)
    )


def _commands_in(turn: Turn) -> Iterator[str]:
    try:
        arguments = json.loads(turn.text)
    except (ValueError, RecursionError):
        # Of a long call a transcript keeps the start and the end,
        # which is not JSON any more.
        if _CUT.search(turn.text) and (named := _NAMED.search(turn.text)):
            yield turn.text[named.end() :].replace("\\n", "\n").replace('\\"', '"')
        return
    if not isinstance(arguments, dict):
        return
    for key in _COMMANDS:
        match arguments.get(key):
            case str() as command:
                yield command
            case list() as words:
                yield " ".join(map(str, words))


def _canonical(context: CheckContext, name: str) -> str:
    """The name of a tool in transcripts: agents call those of MCP servers
    differently.
    """
    for part in context.case.parts:
        name = part.tool_name(name)
    return folded(name, context.case_sensitive)


def _named(names: Sequence[str]) -> str:
    return one_line(", ".join(dict.fromkeys(names)), _MOST_NAMED) or "none"


def _used(context: CheckContext) -> Iterator[Result]:
    turns = _calls(context.answer.transcript)
    for call in context.value:
        number = sum(_is_one(context, call, turn) for turn in turns)
        if call.min is None and call.max is None:
            others = (
                "" if number else f" (called: {_named([turn.tool for turn in turns])})"
            )
            yield (
                number > 0,
                f"{call.words} was {'' if number else 'not '}called{others}",
            )
            continue
        most = "" if call.max is None else f" to {call.max:,}"
        wanted = f"{call.fewest:,}{most or ' or more'}"
        passed = call.fewest <= number and (call.max is None or number <= call.max)
        yield (
            passed,
            f"{call.words} was called {counted(number, 'time')} (expected: {wanted})",
        )


def _not_used(context: CheckContext) -> Iterator[Result]:
    names = called(context.answer.transcript)
    there = {folded(name, context.case_sensitive) for name in names}
    for name in context.value:
        if _canonical(context, name) in there:
            yield False, f"{quoted(name)} was called"
        else:
            yield True, f"{quoted(name)} was not called (called: {_named(names)})"


def _order(context: CheckContext) -> Iterator[Result]:
    turns = _calls(context.answer.transcript)
    remaining = iter(turns)
    for number, call in enumerate(context.value):
        # This uses up what is before it.
        if not any(_is_one(context, call, turn) for turn in remaining):
            after = f" after {context.value[number - 1].words}" if number else ""
            names = _in_order([turn.tool for turn in turns])
            yield False, f"{call.words} was not called{after} (called: {names})"
            return
    yield (
        True,
        f"called in this order: {_in_order([call.words for call in context.value])}",
    )


def _in_order(names: Sequence[str]) -> str:
    return one_line(", ".join(names), _MOST_NAMED) or "none"


def _commands(expected: bool) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        commands = commands_of(context.answer.transcript)
        for text in context.value:
            match = next(
                (c for c in commands if _matches(text, context.case_sensitive, c)), None
            )
            if match is None:
                reason = (
                    f"none of {counted(len(commands), 'command')} matches"
                    f" {quoted(text)}"
                )
            else:
                reason = f"{quoted(text)} matches the command {quoted(match)}"
            yield (match is not None) is expected, reason

    return evaluate


def _matches(pattern: str, case_sensitive: bool, command: str) -> bool:
    text = folded(command, case_sensitive=True)
    return search(pattern, text, case_sensitive=case_sensitive) is not None


def _activity(context: CheckContext) -> Activity:
    return context.answer.activity or Activity()


def _at_most(unit: str, count: Callable[[Activity], int]) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        number = count(_activity(context))
        yield (
            number <= context.value,
            f"{counted(number, unit)} (limit {context.value:,})",
        )

    return evaluate


def _activated(context: CheckContext) -> Iterator[Result]:
    activity = _activity(context)
    activated = activity.activated is True
    if activated:
        outcome = " without being asked to" if GIVEN in activity.findings else ""
    elif activity.opened:
        outcome = f"; opened instead: {_named(activity.opened)}"
    elif context.answer.stop == "max_turns":
        outcome = f" in {counted(activity.turns, 'turn')}"
    else:
        outcome = ""
    yield (
        activated is context.value,
        f"the skill was {'' if activated else 'not '}opened{outcome}",
    )


def _opened(expected: bool) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        opened = _activity(context).opened
        for name in context.value:
            is_open = name in opened
            others = f" (opened: {_named(opened)})" if expected and not is_open else ""
            yield (
                is_open is expected,
                f"{name} was {'' if is_open else 'not '}opened{others}",
            )

    return evaluate


@lru_cache(maxsize=4)  # the checks of an answer look at the same transcript
def transcript_text(transcript: Transcript) -> str:
    """What was said, called and replied, without what the agent was told before."""
    lines = []
    for turn in transcript:
        if turn.kind == "call":
            name = json.dumps(turn.tool, ensure_ascii=False)
            arguments = compact(turn.text)
            lines.append(f'{{"type":"tool_use","name":{name},"input":{arguments}}}')
        elif turn.kind in ("assistant", "result"):
            lines.append(turn.text)
    return "\n".join(lines)


class TranscriptForm(ConditionsForm):
    """What is asked of a transcript, as of the text of an answer."""


def _conditions(form: TranscriptForm) -> tuple[Condition, ...]:
    if not (conditions := conditions_in(form)):
        raise ValueError("must not be empty: every answer would pass")
    return conditions


TRANSCRIPT: Final[TypeAdapter[Any]] = TypeAdapter(
    Annotated[TranscriptForm, AfterValidator(_conditions)]
)


def _transcript(context: CheckContext) -> Iterator[Result]:
    text = transcript_text(context.answer.transcript)
    for condition in context.value:
        yield from results_in(text, "the transcript", condition, context)


def _files_made(context: CheckContext) -> Iterator[Result]:
    made = (file.path for file in context.workspace.touched if file.change == "made")
    text = "\n".join(made)
    for condition in context.value:
        yield from results_in(text, "the list of new files", condition, context)


def _read(context: CheckContext) -> Iterator[Result]:
    yield from _each(context.value, _activity(context).read, "read")


def _ran(context: CheckContext) -> Iterator[Result]:
    yield from _each(context.value, _activity(context).scripts, "run")


def _each(paths: Sequence[str], touched: Sequence[str], verb: str) -> Iterator[Result]:
    for path in paths:
        if path.removeprefix("./") in touched:
            yield True, f"{path} was {verb}"
        else:
            yield False, f"{path} was not {verb} ({verb}: {_named(touched)})"


KINDS: Final = (
    CheckKind("tools_used", _CALLS, _used, needs_agent=True),
    CheckKind("tools_not_used", TEXTS, _not_used, needs_agent=True),
    CheckKind("tool_order", _ORDER, _order, needs_agent=True),
    CheckKind("transcript", TRANSCRIPT, _transcript, needs_agent=True),
    CheckKind("files_made", TRANSCRIPT, _files_made, needs_agent=True, of_files=True),
    CheckKind("commands_run", PATTERNS, _commands(expected=True), needs_agent=True),
    CheckKind(
        "commands_not_run", PATTERNS, _commands(expected=False), needs_agent=True
    ),
    CheckKind(
        "max_turns", COUNT, _at_most("turn", attrgetter("turns")), needs_agent=True
    ),
    CheckKind(
        "max_tool_calls",
        COUNT,
        _at_most("tool call", attrgetter("tool_calls")),
        needs_agent=True,
    ),
    CheckKind(
        *("skill_activated", YES_OR_NO, _activated),
        needs_agent=True,
        of_skill=True,
        of_opening=True,
    ),
    *(
        CheckKind(
            name,
            TEXTS,
            _opened(expected),
            needs_agent=True,
            of_skill=True,
            of_opening=True,
        )
        for name, expected in (("skill_opened", True), ("skill_not_opened", False))
    ),
    CheckKind("references_read", TEXTS, _read, needs_agent=True, of_skill=True),
    CheckKind("scripts_run", TEXTS, _ran, needs_agent=True, of_skill=True),
)
