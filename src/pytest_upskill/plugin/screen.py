"""How much room there is on the terminal and what it can show, known to xdist workers too."""

from dataclasses import dataclass
from typing import Final

import pytest

from ..reports.terminal.layout import ASCII_MARKS, UNICODE_MARKS, Marks, marks_for

_KEY: Final = "upskill_screen"
_WIDTH: Final = 80  # where nobody looks


@dataclass(frozen=True)
class Screen:
    width: int
    marks: Marks


_SCREEN: Final = pytest.StashKey[Screen]()


def screen_of(config: pytest.Config) -> Screen:
    """The terminal of the run: in a worker, that of the controller.

    It is looked at once, before the first test: while output is captured it can't be seen.
    """
    if told := getattr(config, "workerinput", {}).get(_KEY):
        width, drawn = told
        return Screen(width, UNICODE_MARKS if drawn else ASCII_MARKS)
    if not config.pluginmanager.hasplugin("terminalreporter"):
        return Screen(_WIDTH, UNICODE_MARKS)
    if _SCREEN not in config.stash:
        writer = config.get_terminal_writer()
        encoding = getattr(writer._file, "encoding", None) or "ascii"
        config.stash[_SCREEN] = Screen(writer.fullwidth, marks_for(encoding))
    return config.stash[_SCREEN]


def tell_worker(config: pytest.Config, node: object) -> None:
    screen = screen_of(config)
    told = (screen.width, screen.marks == UNICODE_MARKS)
    node.workerinput[_KEY] = told  # type: ignore[attr-defined]
