"""How checks find texts and patterns in an answer.

Texts are compared in Unicode's form NFC, so that é is é however it is composed; not
in NFKC, where 10² would be 102. Case is folded as Unicode says, so that STRASSE is
Straße. Patterns are compiled and matched by another process, so that none can hang
a run or fill its memory.
"""

import atexit
import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Final

from ..trials.records import Span
from . import pattern_process
from .time_budget import LimitReachedError, real_seconds_left, seconds_left, spend

_MAX_PATTERN: Final = 2_000  # characters
# The compiler unrolls repeat counts, and would fill the memory
# with ((a{999}){999}){999}.
_MAX_UNROLLED: Final = 100_000
_SECONDS: Final = 1.0  # of CPU time, to compile a pattern or to search a text
_MEMORY: Final = 512 * 2**20  # bytes
# Python may need these
_KEPT_ENV: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_PIECE: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d{1,9})(?:,\d*)?\}|.", re.S
)
_MAX_SEARCHED: Final = 200_000  # characters of an answer that are searched for spans
_MAX_SPANS: Final = 20  # per text: highlighting everything would highlight nothing


@lru_cache(maxsize=8)  # the checks of a case fold the same answer, which may be long
def folded(text: str, case_sensitive: bool) -> str:
    if not case_sensitive:
        text = text if text.isascii() else unicodedata.normalize("NFD", text)
        text = text.casefold()
    return unicodedata.normalize("NFC", text)


# Patterns.


def compile_pattern(text: str) -> str:
    """The pattern, if it can be used; ValueError says what is wrong with it."""
    if len(text) > _MAX_PATTERN:
        raise ValueError(f"pattern longer than {_MAX_PATTERN:,} characters")
    if _unrolled(text) > _MAX_UNROLLED:
        raise ValueError("repeat counts such as {999} are too large")
    try:
        _PROCESS.ask(text)
    except LimitReachedError as error:
        raise ValueError(f"pattern can't be compiled: {error}") from None
    return text


def _unrolled(text: str) -> int:
    """The length of a pattern with its repeat counts written out."""
    sizes, last = [0], 0  # of the open groups; of what a count would repeat
    for piece in _PIECE.finditer(text):
        if piece[1]:
            copies = last * (int(piece[1]) - 1)
            last += copies
            sizes[-1] += copies
        elif piece[0] == "(":
            sizes.append(0)
        elif piece[0] == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        else:
            last = len(piece[0])  # of a set, its characters
            sizes[-1] += last
        if sizes[-1] > _MAX_UNROLLED:
            break
    return sum(sizes)


def word_pattern(text: str) -> str:
    """A text as whole words, with any white space between them."""
    spaced = r"\s+".join(map(re.escape, text.split()))
    return rf"(?<!\w){spaced}(?!\w)"


def search(pattern: str, text: str, *, case_sensitive: bool) -> str | None:
    """What matches first; LimitReachedError if the search takes
    too long or too much memory.
    """
    seconds_left()
    spans = _spans(pattern, case_sensitive, text)
    return text[slice(*spans[0])] if spans else None


@lru_cache(maxsize=32)  # what a check has found is then highlighted
def _spans(pattern: str, case_sensitive: bool, text: str) -> list[Span]:
    """The first matches."""
    return _PROCESS.ask(pattern, case_sensitive, text)


class _PatternProcess:
    """The process that knows patterns, started for the first one,
    and again after one broke it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(
        self, pattern: str, case_sensitive: bool | None = None, text: str = ""
    ) -> list[Span]:
        """The first matches. ValueError says what is wrong with the pattern."""
        seconds = min(_SECONDS, seconds_left())
        normal = unicodedata.normalize("NFC", pattern)
        request = (
            json.dumps([normal, case_sensitive, text, _MAX_SPANS, seconds]).encode()
            + b"\n"
        )
        with self._lock:
            used = self._process is not None
            reply = self._reply(request)
            if reply is None and used:  # earlier patterns may have filled its memory
                reply = self._reply(request)
        if reply is None:
            raise LimitReachedError(
                f"a pattern may use {_MEMORY // 2**20} MB of memory"
            )
        spans, cpu_seconds = reply
        spend(cpu_seconds)
        if isinstance(spans, str):
            raise ValueError(spans)
        if spans is None:
            seconds_left()
            raise _timed_out()
        return [(start, stop) for start, stop in spans]

    def _reply(self, request: bytes) -> Any:
        """None if it died of the request."""
        process = self._process = self._process or _started()
        assert process.stdin
        assert process.stdout
        line, in_time = b"", True
        try:
            process.stdin.write(request)
            process.stdin.flush()
            if in_time := _is_readable(process.stdout, real_seconds_left()):
                line = process.stdout.readline()
        except OSError:
            pass  # it is gone
        finally:
            if not line:
                self.end()
        if line:
            return json.loads(line)
        if not in_time or process.returncode == _OUT_OF_TIME:
            spend(_SECONDS)
            seconds_left()
            raise _timed_out()
        return None

    def end(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()
            process.communicate()

    def forget(self) -> None:
        """In a forked process: the other one still talks to it."""
        self._lock, self._process = threading.Lock(), None


def _started() -> subprocess.Popen[bytes]:
    package = importlib.util.find_spec("regex")  # its \w knows the vowel signs of Hindi
    assert package
    assert package.origin
    script, folder = pattern_process.__file__, str(Path(package.origin).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", script, folder, str(_MEMORY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT_ENV if name in os.environ},
    )


def _is_readable(stream: IO[bytes], seconds: float) -> bool:
    """Wait for a line, or the end."""
    if sys.platform == "win32":  # there only the process itself looks at the time
        return True
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _timed_out() -> LimitReachedError:
    return LimitReachedError(f"timed out: a pattern has {_SECONDS:g} s")


_OUT_OF_TIME: Final = -getattr(signal, "SIGPROF", 0)
_PROCESS: Final = _PatternProcess()
atexit.register(_PROCESS.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.forget)


# Where in an answer something was found, to highlight it.


@lru_cache(maxsize=2)
def _placed(answer: str, case_sensitive: bool) -> str:
    """The beginning of an answer, folded as far as each character stays in its
    place.
    """
    text = answer[:_MAX_SEARCHED]
    if case_sensitive:
        return text
    return "".join(
        same if len(same := letter.casefold()) == 1 else letter for letter in text
    )


def find_texts(answer: str, texts: list[str], case_sensitive: bool) -> Iterator[Span]:
    placed = _placed(answer, case_sensitive)
    for text in texts:
        part, start = folded(text, case_sensitive), 0
        for _ in range(_MAX_SPANS):
            start = placed.find(part, start)
            if start < 0:
                break
            yield start, start + len(part)
            start += len(part)


def find_words(answer: str, texts: list[str], case_sensitive: bool) -> Iterator[Span]:
    for text in texts:
        pattern = word_pattern(folded(text, case_sensitive))
        yield from _matches(
            pattern, _placed(answer, case_sensitive), case_sensitive=True
        )


def find_patterns(
    answer: str, patterns: list[str], case_sensitive: bool
) -> Iterator[Span]:
    for pattern in patterns:
        yield from _matches(
            pattern,
            _placed(answer, case_sensitive=True),
            case_sensitive=case_sensitive,
        )


def find_start(answer: str, text: str, case_sensitive: bool) -> Iterator[Span]:
    placed, part = _placed(answer, case_sensitive), folded(text, case_sensitive).strip()
    at = len(placed) - len(placed.lstrip())
    if placed.startswith(part, at):
        yield at, at + len(part)


def find_end(answer: str, text: str, case_sensitive: bool) -> Iterator[Span]:
    placed, part = _placed(answer, case_sensitive), folded(text, case_sensitive).strip()
    stop = len(placed.rstrip())
    if len(answer) <= _MAX_SEARCHED and placed.endswith(part, 0, stop):
        yield stop - len(part), stop


def _matches(pattern: str, placed: str, *, case_sensitive: bool) -> Iterator[Span]:
    seconds_left()
    for start, stop in _spans(pattern, case_sensitive, placed):
        if start < stop:
            yield start, stop
