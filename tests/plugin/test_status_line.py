"""The progress line: what it says, and that it never mixes with pytest's output."""

import io
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

import pytest

from pytest_upskill.engine.budget import Budget
from pytest_upskill.models.prices import Price
from pytest_upskill.plugin import progress
from pytest_upskill.plugin.progress import GuardedFile, ProgressLine, can_draw
from pytest_upskill.plugin.spending import Spending
from pytest_upskill.reports.terminal.live import Progress
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer, Usage
from support.kit import case, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.terminal import run_on_terminal, seen

HALF: Final = Progress(34, 1200, 16, 12, 41200, 0.123, 100)
CASES: Final = [
    case(f"Question {number}?", "yes", id=f"case-{number}") for number in range(3)
]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")  # as the screens that are looked at


def test_each_reply_is_counted_once() -> None:
    replies = [
        ("m", Answer("yes", Usage(10, 5, 0))),
        ("m", Answer("yes", Usage(10, 5, 0), stored=True)),
        ("m", NoAnswer("broken")),
    ]
    progress = SimpleNamespace(
        settled=lambda since: replies[since:],
        questions=9,
        in_flight=2,
        pausing=4,
        agents_at_work=(1, [("m", Usage(20, 10, 0))] * 7),
        elsewhere=0,
        opening=["m"],
    )
    engine: Any = SimpleNamespace(progress=progress, budget=Budget())
    price = Price(1e6, 1e6, 1e6)
    spending = Spending(
        engine, lambda _: price, Settings(), lambda model: f"loading {model}"
    )
    # What a running agent has used counts, too: 7 turns of 30 tokens.
    expected = Progress(3, 9, 2, 1, 225, 225.0, None, 4, 1, 7, "loading m")
    assert spending.progress() == expected
    assert spending.progress() == expected
    replies += replies[:1] * 2
    shown = spending.progress()
    assert (shown.done, shown.tokens, shown.cost) == (5, 255, 255.0)
    assert shown.seconds_left is not None


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


def test_a_line_in_a_log_is_one_of_its_own() -> None:
    file = GuardedFile(io.StringIO())
    file.write("test_x.py .")
    file.log("LINE")
    file.log("LINE")
    file.write(".\n")
    assert file.file.getvalue() == "test_x.py .\nLINE\nLINE\n.\n"  # type: ignore[attr-defined]


def steady(lines: Sequence[str]) -> list[str]:
    """Without what differs from run to run: times, and the order and names of
    workers.
    """
    plain = [
        re.sub(r"\d+\.\d+ ?s?|\[gw\d\] *|=+| *\[ *\d+%\]", "#", line) for line in lines
    ]
    own = ("─", "  with the skill: tokens")  # with -v, seconds are among the numbers
    return sorted(line for line in plain if line and not line.startswith(own))


@pytest.fixture
def run_slowly(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SkillRun]:
    """A run that gets each answer only after another line of progress is written."""
    written = threading.Event()

    def noticed(
        write: Callable[[GuardedFile, str], None],
    ) -> Callable[[GuardedFile, str], None]:
        def write_and_notice(file: GuardedFile, line: str) -> None:
            write(file, line)
            written.set()

        return write_and_notice

    def answer(_: Asked) -> Reply:
        written.clear()
        written.wait(60)
        return Reply("yes")

    for name in ("draw", "log"):
        monkeypatch.setattr(GuardedFile, name, noticed(getattr(GuardedFile, name)))
    for name in ("_DRAW_SECONDS", "_LOG_SECONDS"):
        monkeypatch.setattr(progress, name, 0.01)
    write_skill(pytester.path / "skills/gate", CASES)

    def run(*args: str) -> SkillRun:
        with LoopbackServer(answer) as server:
            return run_skills(pytester, server, "--skill-fresh", *args)

    return run


@pytest.mark.parametrize("options", [[], ["-v"]], ids=" ".join)
def test_on_a_terminal_it_is_gone_before_pytest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
    run_slowly: Callable[..., SkillRun],
    options: list[str],
) -> None:
    monkeypatch.setattr(progress, "can_draw", lambda *_: True)
    written = run_slowly("--color=no", *options).result.stdout.str()
    assert re.search(r"upskill: \d of 6 answers, \d in flight", written)
    screen = "\n".join(seen(written.replace("\n", "\r\n"), 60))
    assert "in flight" not in screen
    assert "PASSED" in screen if options else f"{'.' * 3} " in screen


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "rows"),
    [([], 8), (["-v"], 8), (["-s"], 50), (["-n4"], 50), (["-n4", "-v"], 8)],
)
def test_on_a_terminal_it_leaves_no_trace(
    pytester: pytest.Pytester, options: list[str], rows: int
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makepyfile(
        test_other="def test_other():\n    print('said by a test')",
        fake="""
        import os
        import threading

        from pytest_upskill.plugin.progress import GuardedFile

        drawn = threading.Event()
        draw = GuardedFile.draw

        def draw_and_notice(file, line):
            draw(file, line)
            drawn.set()

        GuardedFile.draw = draw_and_notice

        def answer(question):
            if os.environ["TERM"] != "dumb":
                drawn.clear()
                drawn.wait(60)
            return "yes"
        """,
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--skill",
        "skills",
        "skills",
        "test_other.py",
    ]
    command += ["--model", "scripted:fake.py:answer", "--color=no", *options]
    environ = {key: value for key, value in os.environ.items() if key != "CI"}

    def look(term: str) -> tuple[str, list[str]]:
        written = run_on_terminal(
            command, pytester.path, environ | {"TERM": term}, rows
        )
        return written, seen(written, rows)

    drawn, screen = look("xterm")
    assert re.search(r"upskill: \d+ of 6 answers, \d+ in flight", drawn)
    plain, expected = look("dumb")
    assert "in flight" not in plain
    assert "in flight" not in "\n".join(screen)
    assert steady(screen) == steady(expected)


@pytest.mark.parametrize(
    "options",
    [
        *([], ["-v"], ["-s"]),
        *(
            pytest.param(more, marks=pytest.mark.nightly)
            for more in (["-n2"], ["-n2", "-v"])
        ),
    ],
    ids=" ".join,
)
def test_in_a_log_there_is_a_plain_line_now_and_then(
    run_slowly: Callable[..., SkillRun], options: list[str]
) -> None:
    run = run_slowly(*options)
    assert run.outcomes == {"passed": 3}
    outlines = run.result.outlines
    lines = [line for line in outlines if "in flight" in line]
    assert lines
    assert all(
        re.fullmatch(r"upskill: \d of 6 answers, .* tokens?", line) for line in lines
    )
    assert "\x1b" not in run.screen
    rows = [line for line in outlines if line.endswith("%]")]
    if "-v" in options and "-n2" not in options:
        assert ["PASSED" in row for row in rows] == [True] * 3


def test_other_tests_are_named_in_a_log_before_they_run(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    (pytester.path / "a.json").write_text('[{"answer": "yes"}]')
    pytester.makepyfile(test_crash="import os\n\ndef test_crash():\n    os._exit(3)")
    args = ["skills", "test_crash.py", "-v"]
    run = run_skills(pytester, "scripted:a.json", *args, subprocess=True)
    assert run.status == 3
    assert run.result.outlines[-1].startswith("test_crash.py::test_crash")


class FakeSpending:
    """Counts how often it is asked, so that a test can wait
    for that and not for a time.
    """

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
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.001)
    config, spending = FakeConfig(), FakeSpending()
    written = config.writer._file
    line = ProgressLine(config, spending)  # type: ignore[arg-type]
    spending.wait(3)
    assert written.getvalue() == ""
    with line.waiting():
        # The second at the latest is written before the third is asked
        spending.wait(3)
    assert "34 of 1,200 answers" in written.getvalue()
    line.close()
    assert config.writer._file is written
