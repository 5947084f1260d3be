"""What a failed test says: its answers, and what to do next."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest

from .._util.keys import without_keys
from ..errors import shown
from ..settings import Settings
from ..trials.plan import PlannedCase
from ..trials.records import Record
from .display import screen_of
from .next_command import rerun_of
from .run import PLANNED, RUN


def describe_failure(item: pytest.Item, records: Sequence[Record], **about: Any) -> str:
    """The answers with and without the skill, and the next steps."""
    from ..reports.terminal.failure import failure_text
    from ..reports.terminal.layout import TerminalLook

    test = item.stash[PLANNED]
    screen = screen_of(item.config)
    verbosity = item.config.get_verbosity()
    lines = [
        failure_text(
            test.case.trials[0].question.messages[-1][1],
            records,
            against=test.skill.against,
            look=TerminalLook(screen.width, screen.marks, verbosity=verbosity),
            **about,
        )
    ]
    if verbosity > 0:
        lines.append("")
    page = link_to(test.case, item.config.stash[RUN].settings)
    return without_keys("\n".join([*lines, *next_lines(item, page)]))


def next_lines(item: pytest.Item, page: str = "") -> list[str]:
    """The last lines of a failure; with -vv they have any length."""
    from ..reports.terminal.closing_lines import command_lines

    width = screen_of(item.config).width
    if item.config.get_verbosity() > 1:
        width = sys.maxsize
    lines = command_lines("Rerun: ", rerun_of(item.config).words(item.nodeid), width)
    if page:
        lines.append(f"In the page: {page}")
    return lines


def link_to(test: PlannedCase, settings: Settings) -> str:
    """Where the HTML page has a test, once it is written."""
    if not settings.html_file:
        return ""
    from ..reports.page.payload import case_anchor

    file = shown(settings.html_file)
    return f"{file}#{case_anchor(test.skill, test.case, test.label)}"
