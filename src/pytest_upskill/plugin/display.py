"""The terminal of a run, and lines that fit it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from ..errors import without_commands
from ..reports.terminal.layout import (
    ASCII_MARKS,
    UNICODE_MARKS,
    Marks,
    marks_for,
    wrapped,
)

if TYPE_CHECKING:
    from ..models.model import Download, Progress

_KEY: Final = "upskill_screen"
_WIDTH: Final = 80  # without a terminal
_MB: Final = 1_000_000.0
_CLEAR_LINE: Final = "\r\x1b[K"


@dataclass(frozen=True)
class Screen:
    width: int
    marks: Marks


_SCREEN: Final = pytest.StashKey[Screen]()


def screen_of(config: pytest.Config) -> Screen:
    """The terminal of the run: in a worker, that of the controller.

    Read once, before the first test: later, pytest captures the output.
    """
    if sent := getattr(config, "workerinput", {}).get(_KEY):
        width, unicode = sent
        return Screen(width, UNICODE_MARKS if unicode else ASCII_MARKS)
    if not config.pluginmanager.hasplugin("terminalreporter"):
        return Screen(_WIDTH, UNICODE_MARKS)
    if _SCREEN not in config.stash:
        writer = config.get_terminal_writer()
        encoding = getattr(writer._file, "encoding", None) or "ascii"
        config.stash[_SCREEN] = Screen(writer.fullwidth, marks_for(encoding))
    return config.stash[_SCREEN]


def fitted_lines(config: pytest.Config, lines: Iterable[str]) -> list[str]:
    """Wrapped, so that no line is wider than the terminal;
    none begins with a log command.
    """
    width = screen_of(config).width
    fitted = []
    for line in lines:
        for part in wrapped(line, width, rest="  "):
            fitted.append(without_commands(part))
    return fitted


def write_lines(config: pytest.Config, lines: Iterable[str], **markup: bool) -> None:
    """Write lines that fit to the terminal, if there is one."""
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        for line in fitted_lines(config, lines):
            reporter.write_line(line, **markup)


def send_screen(config: pytest.Config, node: object) -> None:
    """Send the controller's terminal to an xdist worker."""
    screen = screen_of(config)
    sent = (screen.width, screen.marks == UNICODE_MARKS)
    node.workerinput[_KEY] = sent  # type: ignore[attr-defined]


def download_bar(config: pytest.Config) -> "Download":
    """Announce a download and, on a terminal, show its progress."""

    def begin(name: str) -> "Progress":
        write_lines(config, [f"upskill: downloading {name}"])
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if not reporter or not reporter.isatty:
            return lambda _bytes, _total: None
        writer = config.get_terminal_writer()

        def show(loaded: int, total: int) -> None:
            sizes = f"{loaded / _MB:.0f} of {total / _MB:.0f} MB"
            writer.write(_CLEAR_LINE if loaded == total else f"\r{sizes}", flush=True)

        return show

    return begin
