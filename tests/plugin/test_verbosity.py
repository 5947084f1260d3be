"""-v, -q and the terminal: which lines there are,
and the numbers on the line of a test.
"""

import os
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_upskill.plugin.item_lines import ItemLines
from support.kit import case, commit_all, write_skill
from support.made import made_records
from support.runs import run_skills
from support.terminal import run_on_terminal, seen

FAKE = """
    def answer(question):
        if "errs" in question.messages[-1][1]:
            raise ValueError
        if "gate up" not in (question.system or ""):
            return "gate up" if question.run == 1 else "No idea."
        return "Push it." if "fail" in question.messages[-1][1] else "Type gate up."
"""
MODEL = "scripted:fake.py:answer"
RUNS = ["--skill-runs", "3"]


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester) -> None:
    cases = [
        case(f"{name}?", "gate up", id=name) for name in ("fails", "opens", "xfails")
    ]
    cases[2]["xfail"] = "too hard"
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makepyfile(fake=FAKE)


@pytest.fixture(autouse=True)
def usual_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")


def test_v_puts_the_numbers_on_the_line_of_each_test_of_a_skill(
    pytester: pytest.Pytester,
) -> None:
    cases = [
        case(f"{name}?", "gate up", id=name)
        for name in ("fails", "xfails", "later", "errs")
    ]
    cases[1] |= {"xfail": "too hard"}
    cases[2] |= {"skip": "not yet"}
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makepyfile(
        test_python="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_it(ask):
            assert "gate up" in ask("How do I open the gate?")

        def test_other():
            pass
        """
    )
    commit_all(pytester.path)
    args = [*RUNS, "--skill-against", "main", "-v", "skills", "test_python.py"]
    run = run_skills(pytester, MODEL, *args)
    counts = {
        name: (word, numbers)
        for name, word, numbers in re.findall(
            r"::(\w+)\S* ([A-Z]+) (.*?)(?: · [^·]* tokens.*)? +\[ *\d+%\]$",
            run.screen,
            re.M,
        )
    }
    assert counts == {
        "fails": ("FAILED", "0/3 · without 1/3 · at main 0/3"),
        "xfails": ("XFAIL", "0/3 · without 1/3 · at main 0/3"),
        "later": ("SKIPPED", ""),
        "errs": ("ERROR", ""),
        "test_it": ("PASSED", "3/3 · without 1/3 · at main 3/3"),
        "test_other": ("PASSED", ""),
    }
    assert re.search(
        rf"^FAILED skills/gate/skill_meta.json::fails\[{MODEL}\] - ", run.screen, re.M
    )


def test_without_v_there_are_no_numbers(pytester: pytest.Pytester) -> None:
    assert "without 1/3" not in run_skills(pytester, MODEL, *RUNS).screen


@pytest.mark.nightly
def test_the_numbers_come_before_the_name_under_xdist(
    pytester: pytest.Pytester,
) -> None:
    run = run_skills(pytester, MODEL, *RUNS, "-v", "-n2", "--skill-no-baseline")
    for word, name in (("FAILED 0/3", "fails"), ("PASSED 3/3", "opens")):
        assert re.search(
            rf"^\[gw\d\] \[ *\d+%\] {word} · .* tokens .*::{name}", run.screen, re.M
        )


class FakeConfig:
    """As much of pytest's config as the line of a test needs."""

    def __init__(self, *, isatty: bool, columns: int) -> None:
        reporter = SimpleNamespace(isatty=isatty)
        self.pluginmanager = SimpleNamespace(
            getplugin=lambda _: reporter, hasplugin=lambda _: False
        )
        self.writer = SimpleNamespace(width_of_current_line=40, fullwidth=columns)

    def get_verbosity(self, _: str | None = None) -> int:
        return 1

    def get_terminal_writer(self) -> Any:
        return self.writer


@pytest.mark.parametrize(
    ("isatty", "columns", "word"),
    [
        (True, 72, "PASSED 1/1 · without 0/1"),
        (True, 71, "PASSED\n    1/1 · without 0/1"),
        (False, 72, "PASSED 1/1 · without 0/1"),
    ],
)
def test_numbers_that_do_not_fit_get_a_line_on_a_terminal(
    isatty: bool, columns: int, word: str
) -> None:
    config: Any = FakeConfig(isatty=isatty, columns=columns)
    records = made_records({"baseline": "F", "skill": "P"})
    run: Any = SimpleNamespace(config=config, settings=SimpleNamespace(against=None))
    ledger: Any = SimpleNamespace(records_of=lambda _: records)
    report = SimpleNamespace(when="call", nodeid="")
    status = ItemLines(run, ledger).pytest_report_teststatus(report)
    next(status)
    with pytest.raises(StopIteration) as stopped:
        status.send(("passed", ".", "PASSED"))
    assert stopped.value.value == ("passed", ".", word)


@pytest.mark.nightly
@pytest.mark.parametrize("columns", [80, 120])
def test_the_width_of_a_terminal_is_used(
    pytester: pytest.Pytester, columns: int
) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--skill",
        "skills",
    ]
    command += ["--model", MODEL, *RUNS, "-v"]
    environ = {**os.environ, "TERM": "xterm"}
    shown = seen(
        run_on_terminal(command, pytester.path, environ, 60, columns), 60, columns
    )
    numbered = [line for line in shown if "without 1/3" in line]
    # The reason of an expected failure is written by pytest where there is room.
    assert all(
        re.search(r"tokens( \(too .*\))? +\[[ \d]+%\]$", line) for line in numbered
    )
    assert [len(line) for line in numbered] == [columns - 1] * 3
    names = [line for line in shown if line.startswith("skills/gate/skill_meta.json::")]
    assert ["without" in name for name in names] == [columns == 120] * 3


def test_q_shows_only_the_last_lines(pytester: pytest.Pytester) -> None:
    run = run_skills(pytester, MODEL, *RUNS, "-q", "-k", "opens")
    lines = run.result.outlines
    passed = next(n for n, line in enumerate(lines) if line.startswith("1 passed"))
    assert lines[passed - 1].startswith(".")
    assert [line.split()[0] for line in run.ending] == ["·", "spent", "next:"]
    assert any(line.startswith("upskill: up to ") for line in lines)


def test_qq_shows_a_failed_gate_and_nothing_else(pytester: pytest.Pytester) -> None:
    run = run_skills(
        pytester, MODEL, *RUNS, "-qq", "-k", "opens", "--skill-min-lift", "0.9"
    )
    assert run.status == 1
    assert len(run.gate["reasons"]) == 1
    assert any(line.startswith("✘ gate failed: ") for line in run.result.outlines)
    assert "= skills =" not in run.screen
    assert "upskill: up to" not in run.screen


@pytest.mark.parametrize(
    "args",
    [["-v"], pytest.param(["-vv", "-n2"], marks=pytest.mark.nightly)],
    ids=" ".join,
)
def test_a_terminal_without_the_characters_gets_ascii(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    text = run_skills(pytester, MODEL, *RUNS, *args, subprocess=True).screen
    assert text.isascii()
    assert "\\u" not in text
    assert all(mark in text for mark in ("->", ">>gate up<<", "\nFAIL 1 of 3 tests"))
