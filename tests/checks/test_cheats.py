"""An agent's code must not decide how a check of its work ends."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents import needs as needs_module
from pytest_upskill.agents.sandboxes.sandbox import (
    PACKAGES,
    CommandResult,
    Mount,
    SandboxSpec,
)
from pytest_upskill.agents.snapshot import Link, Snapshot, pack
from pytest_upskill.checks import command_check, grade, parse_checks
from pytest_upskill.checks.command_check import commands_in
from pytest_upskill.checks.final_workspace import Workspace, WorkspaceCommand
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.checks.pytest_report import runs_pytest
from pytest_upskill.skills.case import SandboxNeeds, WorkspaceFile
from pytest_upskill.trials.records import Grade
from support.checking import agent_answer
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap

GOOD = "def add(a, b): return a + b\n"
WRONG = "def add(a, b): return 0\n"
TEST = """
import csv, unittest
from sums import add

def test_add():
    assert add(1, 2) == 3

def test_of_nothing():
    assert True

class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
"""
# Plugins of the machine would take two seconds to load.
ALONE = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
OPTIONS = "-q -p no:cacheprovider test_sums.py"
RUN = f"{ALONE} python3 -m pytest {OPTIONS}"
PACKAGES_OF_TESTS = str(Path(pytest.__file__).parent.parent)
NO_REPORT = "pytest did not report its end: what it ran ended it, or replaced it"


def in_gate(values: dict[str, Any], *names: str) -> list[Any]:
    """Parameters, of which the night has all and the gate these: one of each way."""
    return [
        pytest.param(value, id=name, marks=() if name in names else pytest.mark.nightly)
        for name, value in values.items()
    ]


def files(texts: dict[str, str]) -> tuple[WorkspaceFile, ...]:
    return tuple(WorkspaceFile(path, text.encode()) for path, text in texts.items())


def ran(
    run: str,
    left: dict[str, str],
    hidden: dict[str, str],
    *,
    status: int | None = 0,
) -> CommandResult:
    """What comes of a command in what an agent left, as the check has it run."""
    command = WorkspaceCommand(run, 300, files(hidden), exit=status)
    packed = pack(Snapshot(files(left)))
    answer = replace(agent_answer(), workspace=packed)
    commands = commands_in("bwrap", "", SandboxNeeds())
    return Workspace(answer, run=commands).run(command)


@pytest.fixture(autouse=True)
def with_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox has the pytest of these tests."""

    def spec_for(needs: SandboxNeeds) -> SandboxSpec:
        spec = needs_module.spec_for(needs)
        return replace(spec, mounts=(Mount(PACKAGES_OF_TESTS, PACKAGES),))

    monkeypatch.setattr(command_check, "spec_for", spec_for)


def run_tests(
    left: dict[str, str], run: str = RUN, *, status: int | None = 0
) -> CommandResult:
    """What comes of hidden tests that import what an agent left."""
    hidden = {"test_sums.py": TEST}
    return ran(run, left, hidden, status=status)


FAKE_REPORT = "open('/tmp/upskill-report/report', 'w').write('0\\n0\\n')"
# What an agent may write to have tests pass that its work fails: code in place of
# that of its module, and files beside that.
CHEATS = {
    "os._exit": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit(0)",
    "SystemExit": "raise SystemExit",
    "quit": "quit()",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "ctypes": "import ctypes; ctypes.CDLL(None)._exit(0)",
    "atexit": "import atexit, os; atexit.register(os._exit, 0)",
    "thread": "import os, threading; threading.Timer(0, os._exit, [0]).start()",
    "__del__": "import os; type('X', (), {'__del__': lambda s: os._exit(0)})()",
    "signal": "import os, signal; signal.signal(14, lambda *_: os._exit(0));"
    " signal.alarm(1); signal.pause()",
    "parent": "import os; os.kill(os.getppid(), 15)",
    "faulthandler": "import faulthandler; faulthandler.dump_traceback_later("
    "0.1, exit=True); input()",
    "ptrace": "import ctypes; ctypes.CDLL(None).ptrace(16, __import__('os').getppid())",
    "pytest.exit": "import pytest; pytest.exit('x', 0)",
    "pytest.skip": "import pytest; pytest.skip('x', allow_module_level=True)",
    "pytest.xfail": "import pytest; pytest.xfail('x')",
    "pytest.main": "import pytest; pytest.main = lambda *a: 0",
    "sys.modules": "import sys; sys.modules['pytest'] = sys",
    "unittest": "import unittest; unittest.TestCase.run = lambda *a: None",
    "assertEqual": "import unittest; unittest.TestCase.assertEqual.__code__ ="
    " (lambda *a: None).__code__",
    "runtest": "import _pytest.python as p; p.Function.runtest = lambda self: None",
    "report": f"import os; {FAKE_REPORT}; os._exit(0)",
}


CHEATS_IN_GATE = [
    "os._exit",
    "sys.exit",
    "atexit",
    "thread",
    "pytest.exit",
    "runtest",
    "assertEqual",
    "report",
]


@pytest.mark.parametrize(
    "when", ["imported", pytest.param("called", marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("code", in_gate(CHEATS, *CHEATS_IN_GATE))
def test_no_line_of_an_agent_makes_pytest_pass(code: str, when: str) -> None:
    sums = f"{code}\n{WRONG}"
    if when == "called":
        sums = f"def add(a, b):\n    {code}\n    return 0\n"
    result = run_tests({"sums.py": sums})
    assert result.exit != 0 or result.problem, result.output


EVIL = "def pytest_sessionfinish(session): session.exitstatus = 0"
FILES = {
    "conftest": {"conftest.py": EVIL},
    "pytest.ini": {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    "pyproject": {
        "pyproject.toml": "[tool.pytest.ini_options]\npython_functions = 'test_of'\n"
        "python_classes = 'X'\naddopts = '-p evil'\n",
        "evil.py": EVIL,
    },
    "plugin": {
        "evil.py": EVIL,
        "evil-1.dist-info/METADATA": "Name: evil\nVersion: 1\n",
        "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    },
    "sitecustomize": {"sitecustomize/__init__.py": "import os; os._exit(0)"},
    "usercustomize": {"usercustomize.py": "import os; os._exit(0)"},
    "pytest": {"pytest.py": "raise SystemExit(0)"},
    "_pytest": {"_pytest/__init__.py": "raise SystemExit(0)"},
    "json": {"json.py": "import os; os._exit(0)"},
    "plugin of ours": {"upskill_report.py": ""},
    "test": {"test_sums/__init__.py": "def test_add(): pass\n"},
    "bytecode": {"__pycache__/test_sums.cpython-311.pyc": "x"},
}


@pytest.mark.parametrize("beside", in_gate(FILES, "pyproject", "pytest", "json"))
@pytest.mark.parametrize("path", ["", "PYTHONPATH=. "])
def test_no_file_of_an_agent_makes_pytest_pass(
    beside: dict[str, str], path: str
) -> None:
    result = run_tests(
        {"sums.py": WRONG, **beside}, RUN.replace("python3", f"{path}python3")
    )
    assert (result.exit, result.problem) == (1, ""), result.output


@pytest.mark.parametrize(
    "run",
    [
        RUN,
        f"PYTHONPATH='/nowhere:.' {ALONE} python3 -m pytest {OPTIONS}",
        f"python3 -m pytest --version && {RUN} > out.txt",
        f"cd . && {RUN} | tail -1",
    ],
)
def test_good_work_passes(run: str) -> None:
    beside = {"json.py": "x = 1\n", "pyproject.toml": "[tool.pytest]\n"}
    result = run_tests({"sums.py": GOOD, **beside}, run)
    assert (result.exit, result.problem) == (0, ""), result.output


def test_tests_may_skip_themselves_and_start_programs_of_the_agent() -> None:
    test = """
import subprocess, sys, pytest

def test_skipped():
    pytest.skip("not here")

@pytest.mark.xfail
def test_wrong():
    assert 0

def test_program():
    assert subprocess.run([sys.executable, "tools/tool.py"]).returncode == 3
"""
    tool = {"tools/tool.py": "import own\nexit(own.MINE)", "tools/own.py": "MINE = 3"}
    result = ran(RUN, tool, {"test_sums.py": test})
    assert (result.exit, result.problem) == (0, ""), result.output


@pytest.mark.parametrize(
    ("left", "run", "status", "problem"),
    [
        (GOOD, f"{RUN} --collect-only", 0, ""),
        (WRONG, RUN, 1, ""),
        (GOOD, f"{RUN}; false", 1, "pytest reported exit 0, not 1"),
        (WRONG, f"{RUN} | tail -1", 0, "pytest reported exit 1, not 0"),
        (WRONG, f"{RUN} | tail -1", None, ""),
        ("import os; os._exit(0)", RUN, None, NO_REPORT),
        (GOOD, f"{RUN} -k zzz || true", 0, "pytest reported exit 5, not 0"),
        (
            "import pytest\ndef add(a, b): pytest.skip()",
            RUN,
            0,
            "pytest reported that 2 of 3 tests were left out",
        ),
        (
            CHEATS["runtest"] + "\n" + WRONG,
            f"{RUN} -k 'not TestAdd'",
            0,
            "pytest reported that the test runner was changed while it ran",
        ),
        (GOOD, f"python3 -I -m pytest {OPTIONS}; true", 0, NO_REPORT),
    ],
)
def test_what_pytest_reports_must_fit(
    left: str, run: str, status: int | None, problem: str
) -> None:
    result = run_tests({"sums.py": left}, run, status=status)
    assert result.problem == problem, result.output


@pytest.mark.parametrize(
    ("run", "runs"),
    [
        ("pytest", True),
        ("cd app && CI=1 pytest -q", True),
        ("python3 -m pytest tests", True),
        ("uv run --frozen pytest -q", True),
        ("uvx \\\n  -w pytest==8.4.1 \\\n  pytest /tests/test.py", True),
        (".venv/bin/pytest; echo", True),
        ("uvx -w pytest python x.py", False),
        ("pip install pytest", False),
        ("cat pytest.ini", False),
        ("grep pytest requirements.txt", False),
        ("python check.py", False),
    ],
)
def test_a_command_that_runs_pytest_is_known(run: str, *, runs: bool) -> None:
    assert runs_pytest(run) == runs


def test_a_last_word_of_any_language_must_be_said() -> None:
    hidden = {"check.sh": ". ./env.sh\necho done UPSKILL_LAST_WORD\n"}
    said = ran("sh check.sh", {"env.sh": "A=1\n"}, hidden)
    assert (said.exit, said.problem, said.output) == (0, "", b"done \n")
    silent = ran(
        "sh check.sh", {"env.sh": "echo done UPSKILL_LAST_WORD; exit 0\n"}, hidden
    )
    assert silent.problem == "it ended without its last word"


def graded(
    expected: object,
    left: dict[str, str],
    start: dict[str, str],
    links: tuple[Link, ...] = (),
    *,
    has_setup: bool = False,
) -> tuple[Grade, ...]:
    answer = replace(agent_answer(), workspace=pack(Snapshot(files(left), links)))
    run = commands_in("bwrap", "", SandboxNeeds())
    checks = parse_checks({"command": expected}, KINDS, ())
    workspace = Workspace(answer, files(start), has_setup=has_setup, run=run)
    return grade(checks, answer, workspace=workspace)


SHOW = "cat conftest.py sub/conftest.py GNUmakefile 2>/dev/null; true"


@pytest.mark.parametrize(
    ("left", "start", "more", "output"),
    [
        ({"conftest.py": "agent"}, {}, {}, ""),
        ({"conftest.py": "agent"}, {}, {"keep": ["conftest.py"]}, "agent"),
        ({"conftest.py": "agent"}, {}, {"hidden_files": None}, "agent"),
        ({"conftest.py": "mine"}, {"conftest.py": "mine"}, {}, "mine"),
        ({"conftest.py": "agent"}, {"conftest.py": "mine"}, {}, "mine"),
        ({"sub/conftest.py": "agent"}, {"conftest.py": "mine"}, {}, ""),
        (
            {"conftest.py": "agent"},
            {},
            {"hidden_files": {"conftest.py": "hidden"}},
            "hidden",
        ),
        ({"GNUmakefile": "agent"}, {}, {}, "agent"),
        ({"GNUmakefile": "agent"}, {}, {"hidden_files": {"Makefile": "all:"}}, ""),
    ],
)
def test_files_of_an_agent_that_steer_hidden_ones_are_left_out(
    left: dict[str, str], start: dict[str, str], more: dict[str, object], output: str
) -> None:
    written = {
        "run": SHOW,
        "hidden_files": {"t.py": ""},
        "regex": f"^{output}$",
        **more,
    }
    written = {key: value for key, value in written.items() if value is not None}
    for only in graded(written, left, start):
        assert only.passed, only.reason


def test_the_reason_names_what_was_left_out() -> None:
    written = {"run": "exit 1", "hidden_files": {"t.py": ""}}
    link = (Link("sub/conftest.py", "../evil.py"),)
    (only,) = graded(written, {"conftest.py": "x", "evil.py": ""}, {}, link)
    assert (
        only.reason == "exit 1: exit 1, not 0; left out: conftest.py, sub/conftest.py"
    )
