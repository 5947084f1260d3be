"""Write to a terminal or a pipe: colours, closed pipes, questions."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, TextIO

from .._util.files import reason_of
from .._util.keys import without_keys
from .._util.texts import printed
from ..errors import InputError
from ..reports.terminal.layout import TerminalLook, marks_for

# By the names that pytest has for them, since reports are shown by both.
_CODES: Final = {
    "bold": 1,
    "light": 2,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "cyan": 36,
}


def terminal_width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def stdout_look(verbosity: int = 0) -> TerminalLook:
    """The look of lines for standard output."""
    return TerminalLook(
        terminal_width(),
        marks_for(sys.stdout.encoding or "ascii"),
        painter(sys.stdout, os.environ),
        verbosity,
    )


def painter(stream: TextIO, env: Mapping[str, str]) -> Callable[..., str]:
    """A function ``paint(text, bold=True)``; for a pipe it changes nothing."""
    return _coloured if has_colours(stream, env) else _plain


def has_colours(stream: TextIO, env: Mapping[str, str]) -> bool:
    """According to no-color.org; old Windows consoles do not understand the codes."""
    if env.get("NO_COLOR") or env.get("TERM") == "dumb":
        return False
    return stream.isatty() and (sys.platform != "win32" or "WT_SESSION" in env)


def _coloured(text: str, **styles: bool) -> str:
    codes = ";".join(str(_CODES[name]) for name, is_on in styles.items() if is_on)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def _plain(text: str, **_: bool) -> str:
    return text


def write(text: str) -> None:
    """Print a text, even if the encoding lacks some characters or the reader has
    left.
    """
    try:
        _put(sys.stdout, f"{text}\n")
    except BrokenPipeError:
        forget_output()
    except OSError as error:  # a full disk
        forget_output()
        raise InputError(
            "the output", f"can't be written: {reason_of(error)}"
        ) from None


def tell(stream: TextIO, text: str) -> None:
    """Write progress; if that fails, the work goes on."""
    try:
        _put(stream, text)
    except OSError:
        forget_output(stream)


def ask(stream: TextIO, question: str) -> bool:
    """Ask a yes-or-no question."""
    tell(stream, f"{question} [y/N] ")
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-C or Ctrl-D: end the line
            tell(stream, "\n")
    return answer.strip().lower() in ("y", "yes")


def _put(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    text = printed(without_keys(text))
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def forget_output(stream: TextIO | None = None) -> None:
    """Redirect a closed stream to nowhere, so that Python's last flush does not
    fail.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):
        os.dup2(nowhere, (stream or sys.stdout).fileno())
    os.close(nowhere)
