"""The progress line: what it says, and that it never mixes with pytest's output."""

import io
import os
import re
import sys
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

import pytest

from pytest_upskill.plugin import status_line
from pytest_upskill.plugin.status_line import GuardedFile, ProgressLine, can_draw
from pytest_upskill.reports.terminal.live import Progress
from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply
from support.terminal import run_on_terminal, seen

HALF: Final = Progress(34, 1200, 16, 12, 41200, 0.123, 100)
CASES: Final = [case(f"Question {number}?", "yes", id=f"case-{number}") for number in range(12)]


def test_questions_that_wait_for_a_rate_limit_are_counted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(asked: Asked) -> Reply | Fault:
        busy = asked.attempt == 1 and asked.question != "Question 0?"
        return Fault("status", 429, retry_after="1") if busy else Reply("yes")

    monkeypatch.setattr(status_line, "LOG_EVERY", 0.1)
    write_skill(pytester.path / "skills/gate", CASES[:3])
    with LoopbackServer(script) as server:
        address = ["--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = pytester.runpytest_inprocess("--skill", "skills", *address)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["upskill: 2 of 6 answers, 4 waiting to retry*"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_drawn_only_on_a_terminal() -> None:
    assert can_draw(Terminal(), {"TERM": "xterm"})
    assert not can_draw(Terminal(), {"TERM": "dumb"})
    assert not can_draw(Terminal(), {"TERM": "xterm", "CI": "true"})
    assert not can_draw(io.StringIO(), {"TERM": "xterm"})


def test_a_line_is_cleared_before_anything_is_written() -> None:
    file = GuardedFile(io.StringIO())
    file.write("test_x.py .")
    file.draw("LINE")
    file.write(".F\n")
    file.draw("LINE")
    file.wipe()
    shown = seen(file.file.getvalue().replace("\n", "\r\n"), rows=4)  # type: ignore[attr-defined]
    assert shown[:2] == ["test_x.py ..F", ""]


def test_a_line_in_a_log_waits_for_the_end_of_a_row() -> None:
    file = GuardedFile(io.StringIO())
    file.write("test_x.py .")
    file.log("LINE")
    file.write(".\n")
    file.log("LINE")
    assert file.file.getvalue() == "test_x.py ..\nLINE\n"  # type: ignore[attr-defined]


def test_a_line_in_a_log_comes_before_a_row_that_is_held_back() -> None:
    file = GuardedFile(io.StringIO())
    file.hold(holds=True)
    assert file.write("skill_meta.json ") == 16
    file.log("LINE")
    file.write(".")
    file.log("LINE")
    file.write("F  [100%]\n.")
    assert file.file.getvalue() == "LINE\nLINE\nskill_meta.json .F  [100%]\n"  # type: ignore[attr-defined]
    file.hold(holds=False)
    file.write("s")
    assert file.file.getvalue().endswith("[100%]\n.s")  # type: ignore[attr-defined]


@pytest.fixture
def slow(pytester: pytest.Pytester) -> list[str]:
    """Arguments for twelve cases on a model that takes longer than the line needs to be drawn."""
    write_skill(pytester.path / "skills/gate", CASES)
    delay = status_line.DRAW_EVERY / 8  # of 24 answers, one after the other
    pytester.makepyfile(
        fake=f"""
        import time

        def answer(question):
            time.sleep({delay})
            return "yes"
        """
    )
    return ["--skill", "skills", "--model", "scripted:fake.py:answer"]


def steady(lines: Sequence[str]) -> list[str]:
    """Without what differs from run to run: times, and the order and names of workers."""
    plain = [re.sub(r"\d+\.\d+ ?s?|\[gw\d\] *|=+| *\[ *\d+%\]", "#", line) for line in lines]
    return sorted(filter(None, plain))


@pytest.mark.parametrize(
    ("options", "rows"),
    [([], 8), (["-v"], 8), (["-s"], 50), (["-n4"], 50), (["-n4", "-v"], 8)],
)
def test_on_a_terminal_it_leaves_no_trace(
    pytester: pytest.Pytester, slow: list[str], options: list[str], rows: int
) -> None:
    pytester.makepyfile(test_other="def test_other():\n    print('said by a test')")
    paths = ["skills", "test_other.py"]
    command = [sys.executable, "-m", "pytest", *slow, *paths, "--color=no", *options]
    environ = {key: value for key, value in os.environ.items() if key != "CI"}

    def look(**more: str) -> tuple[str, list[str]]:
        written = run_on_terminal(command, pytester.path, environ | more, rows)
        return written, seen(written, rows)

    drawn, screen = look(TERM="xterm")
    assert re.search(r"upskill: \d+ of 24 answers, \d+ in flight", drawn)
    plain, wanted = look(TERM="dumb")
    assert "in flight" not in plain
    assert "in flight" not in "\n".join(screen)
    assert steady(screen) == steady(wanted)


@pytest.mark.parametrize(
    "options", [[], ["-v"], ["-q"], ["-s"], ["-n2"], ["-n2", "-v"]], ids=" ".join
)
def test_in_a_log_there_is_a_plain_line_now_and_then(
    pytester: pytest.Pytester,
    slow: list[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    monkeypatch.setattr(status_line, "LOG_EVERY", 0.1)
    result = pytester.runpytest_inprocess(*slow, *options)
    result.assert_outcomes(passed=12)
    lines = [line for line in result.outlines if "in flight" in line]
    assert lines
    assert all(re.fullmatch(r"upskill: \d+ of 24 answers, .* tokens?", line) for line in lines)
    assert "\x1b" not in result.stdout.str()
    rows = [line for line in result.outlines if line.endswith("%]")]
    if "-v" not in options:
        assert sum("." * 12 in line for line in result.outlines) == 1
        assert len(rows) == ("-s" not in options)  # pytest shows no percentage then
    elif "-n2" not in options:
        assert len(rows) == 12
        assert all("PASSED" in row for row in rows)


def test_other_tests_are_named_in_a_log_before_they_run(
    pytester: pytest.Pytester, slow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_line, "LOG_EVERY", 0.1)
    pytester.makepyfile(test_crash="import os\n\ndef test_crash():\n    os._exit(3)")
    result = pytester.runpytest_subprocess(*slow, "skills", "test_crash.py", "-v")
    assert result.ret == 3
    assert result.outlines[-1].startswith("test_crash.py::test_crash")


class FakeTally:
    """Counts how often it is asked, so that a test can wait for that and not for a time."""

    def __init__(self) -> None:
        self.times = 0
        self.asked = threading.Condition()

    def progress(self) -> Progress:
        with self.asked:
            self.times += 1
            self.asked.notify()
        return HALF

    def wait(self, times: int) -> None:
        with self.asked:
            wanted = self.times + times
            self.asked.wait_for(lambda: self.times >= wanted)


class FakeConfig:
    """As much of pytest's config as the line needs."""

    def __init__(self) -> None:
        self.writer = SimpleNamespace(_file=io.StringIO(), fullwidth=80)
        self.pluginmanager = SimpleNamespace(
            getplugin=lambda _: None,
            hasplugin=lambda _: False,
            register=lambda *_: None,
        )

    def get_terminal_writer(self) -> Any:
        return self.writer


def test_nothing_is_shown_while_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "LOG_EVERY", 0.001)
    config, tally = FakeConfig(), FakeTally()
    written = config.writer._file
    line = ProgressLine(config, tally, {})  # type: ignore[arg-type]
    tally.wait(3)
    assert written.getvalue() == ""
    with line.waiting():
        tally.wait(3)  # the second at the latest is written before the third is asked
    assert "34 of 1,200 answers" in written.getvalue()
    line.close()
    assert config.writer._file is written
