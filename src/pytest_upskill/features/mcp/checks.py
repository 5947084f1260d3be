"""Checks of the calls of MCP tools."""

import json
from collections.abc import Iterator
from typing import Final

from ...checks.activity_checks import TRANSCRIPT, transcript_text
from ...checks.check import CheckContext, CheckKind, Result
from ...checks.file_checks import results_in
from ...checks.text_checks import YES_OR_NO
from .answers import why_refused
from .server import parsed, spellings


def _mcp_calls(context: CheckContext) -> Iterator[Result]:
    turns = (
        turn for turn in context.answer.transcript if turn.tool.startswith("mcp__")
    )
    text = transcript_text(tuple(turns))
    for condition in context.value:
        yield from results_in(text, "the calls of MCP tools", condition, context)


def _mcp_expected(context: CheckContext) -> Iterator[Result]:
    """The first call of an MCP tool without the arguments that its mock expects.

    There is no result if all have them: nobody wrote this check,
    so it must not raise a score.
    """
    tools = spellings(context.value)
    for turn in context.answer.transcript:
        if turn.kind != "call" or turn.tool not in tools:
            continue
        _, server, tool = tools[turn.tool]
        rules = parsed(server)["mocks"].get(tool, {}).get("expect", {})
        try:
            arguments = json.loads(turn.text or "{}")
        # Also of a call that is too long for a transcript
        except (ValueError, RecursionError):
            continue
        if reason := why_refused(rules, arguments):
            yield False, f"a call of {server.name}/{tool} was refused: {reason}"
            return


KINDS: Final = (CheckKind("mcp_calls", TRANSCRIPT, _mcp_calls, needs_agent=True),)
ABOUT: Final = {
    "mcp_calls": (
        "The same for calls of MCP tools and their results alone.",
        {"regex": "priority"},
    ),
}
# Of every case whose mocks expect certain arguments; nobody writes it.
MCP_EXPECTED: Final = CheckKind("mcp_expected", YES_OR_NO, _mcp_expected)
