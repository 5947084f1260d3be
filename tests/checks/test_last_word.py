"""An agent's code must not decide how a check of its work ends."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.sandboxes.sandbox import CommandResult
from pytest_upskill.agents.snapshot import Link, Snapshot, pack
from pytest_upskill.checks import command_check, grade, parse_checks
from pytest_upskill.checks.command_check import commands_in
from pytest_upskill.checks.final_workspace import Workspace, WorkspaceCommand
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.skills.case import SandboxNeeds, WorkspaceFile
from pytest_upskill.trials.records import Grade
from support.checking import agent_answer
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap

CHECK = "import csv, json\nfrom sums import add\nassert add(1, 2) == 3\nprint('fine')\n"
TEST = """
import csv, unittest
from sums import add
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
"""
GOOD = "def add(a, b): return a + b\n"
RUNS = {
    "script": "python3 check.py",
    "unittest": "python3 -m unittest -q test_sums",
    "discover": "python3 -m unittest discover -q",
    "inline": "python3 -c 'import csv; from sums import add; assert add(1, 2) == 3'",
    "path": "PYTHONPATH=. python3 check.py",
    "quoted path": "PYTHONPATH='/nowhere:.'; export PYTHONPATH; python3 check.py",
}
HIDDEN = {"check.py": CHECK, "test_sums.py": TEST}


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
    hidden: dict[str, str] = HIDDEN,
    left_out: Sequence[str] = (),
    sandbox: str = "bwrap",
) -> CommandResult:
    command = WorkspaceCommand(run, 300, files(hidden), left_out=tuple(left_out))
    return commands_in(sandbox, "", SandboxNeeds())(
        pack(Snapshot(files(left))), command
    )


@pytest.mark.parametrize("run", in_gate(RUNS, "unittest", "quoted path"))
def test_a_good_answer_passes_without_a_sandbox(run: str) -> None:
    result = ran(run, {"sums.py": GOOD}, sandbox="none")
    assert result.exit == 0, result.output


ENDS = {
    "os._exit": "import os; os._exit(0)",
    "posix._exit": "import posix; posix._exit(0)",
    "timer": "import os, threading; threading.Timer(0, os._exit, [0]).start(); input()",
    "sys.exit": "import sys; sys.exit(0)",
    "no status": "import sys; sys.exit()",
    "SystemExit": "raise SystemExit",
    "quit": "quit()",
    "false name": "exec(compile('raise SystemExit', '/usr/lib/x.py', 'exec'))",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "ctypes": "import ctypes; ctypes.CDLL(None)._exit(0)",
    "Py_Exit": "import ctypes; ctypes.pythonapi.Py_Exit(0)",
    "argparse": "import argparse; argparse.ArgumentParser().parse_args(['-h'])",
    "Quitter": "import _sitebuiltins; _sitebuiltins.Quitter('a', 'b')()",
    "code": "import sys; exec(compile('raise SystemExit', sys.argv[0], 'exec'))",
    "getpid": "import os; os.getpid = lambda: 1; os._exit(0)",
    "second posix": (
        "import sys; del sys.modules['posix']; import posix; posix._exit(0)"
    ),
}


GATE = (
    "os._exit",
    "timer",
    "sys.exit",
    "SystemExit",
    "quit",
    "exec",
    "ctypes",
    "code",
    "getpid",
)


@pytest.mark.parametrize("code", in_gate(ENDS, *GATE, "second posix"))
def test_code_of_an_agent_that_ends_a_check_fails_it(code: str) -> None:
    result = ran(RUNS["script"], {"sums.py": f"def add(a, b):\n    {code}\n"})
    assert result.exit == 97, result.output
    assert b"of the agent's code ended the check before its own end" in result.output


@pytest.mark.parametrize(
    "code", ["os._exit(0)", "sys.exit(0)", "atexit.register(os._exit, 0)"]
)
def test_code_of_an_agent_that_ends_tests_fails_them(code: str) -> None:
    result = ran(
        RUNS["unittest"],
        {"sums.py": f"import atexit, os, sys\n{code}\ndef add(a, b): 0"},
    )
    assert result.exit == 97, result.output


PYTEST = {
    "good": (GOOD, 0),
    "wrong": ("def add(a, b): return 0", 1),
    "exit": ("import pytest\ndef add(a, b): pytest.exit('x', 0)", 97),
    "skip": ("import pytest\ndef add(a, b): pytest.skip()", 97),
}
FUNCTION = (
    "import csv\nfrom sums import add\ndef test_add():\n    assert add(1, 2) == 3\n"
)
PLUGIN = {
    "evil.py": "def pytest_sessionfinish(session): session.exitstatus = 0",
    "evil-1.dist-info/METADATA": "Name: evil\nVersion: 1\n",
    "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only -p evil'\n",
}


@pytest.mark.parametrize("sums_and_status", in_gate(PYTEST, "good", "exit", "skip"))
def test_pytest_must_have_run_the_tests(
    monkeypatch: pytest.MonkeyPatch, sums_and_status: tuple[str, int]
) -> None:
    sums, status = sums_and_status
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    # Plugins of the machine would be compiled again, for two seconds.
    options = (
        "-p no:cacheprovider -p no:hypothesispytest -p no:upskill -p no:xdist -p"
        " no:anyio"
    )
    run = f"python -m pytest -q {options} test_sums.py"
    result = ran(
        run, {"sums.py": sums, **PLUGIN}, {"test_sums.py": FUNCTION}, sandbox="none"
    )
    assert result.exit == status, result.output


@pytest.mark.parametrize(("sums", "status"), [PYTEST["good"], PYTEST["wrong"]])
def test_pytest_can_do_without_the_guard(
    monkeypatch: pytest.MonkeyPatch, sums: str, status: int
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    run = "python -I -m pytest -q -p no:cacheprovider test_sums.py"
    result = ran(run, {"sums.py": sums}, {"test_sums.py": FUNCTION}, sandbox="none")
    assert result.exit == status, result.output


SHADOWS = {
    "json.py": "import os; os._exit(0)",
    "json/__init__.py": "import os; os._exit(0)",
    "csv.py": "import os; os._exit(0)",
    "threading.py": "import os; os._exit(0)",
    "types.py": "import os; os._exit(0)",
    "encodings/__init__.py": "import os; os._exit(0)",
    "unittest.py": "raise SystemExit(0)",
    "unittest/__main__.py": "raise SystemExit(0)",
    "sitecustomize.py": "raise SystemExit(0)",
    "usercustomize.py": "import os; os._exit(0)",
    "check/__main__.py": "pass",
    "test_sums/__init__.py": "",
    "a.pth": "import os; os._exit(0)",
    "__pycache__/check.cpython-311.pyc": "x",
}


@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_no_file_of_an_agent_takes_the_place_of_an_installed_or_hidden_one(
    run: str,
) -> None:
    wrong = ran(run, {"sums.py": "def add(a, b): return 0\n", **SHADOWS})
    assert wrong.exit == 1, wrong.output
    result = ran(run, {"sums.py": GOOD, **SHADOWS})
    assert result.exit == 0, result.output


def test_hidden_files_displace_no_module_of_another_folder() -> None:
    left = {"sums.py": "from helpers import add\n", "helpers.py": GOOD}
    result = ran(RUNS["script"], left, {**HIDDEN, "tests/helpers.py": ""})
    assert result.exit == 0, result.output
    left["sums.py"] = "import helpers\nadd = lambda a, b: 3 if helpers.MINE else 0\n"
    result = ran(RUNS["script"], left, {**HIDDEN, "helpers.py": "MINE = True"})
    assert result.exit == 0, result.output


def test_programs_of_an_agent_run_as_elsewhere() -> None:
    tool = "import os, sys\nimport json\nprint(json.MINE)\nos._exit(int(sys.argv[1]))\n"
    left = {"tools/tool.py": tool, "tools/json.py": "MINE = 'its own'\n"}
    for status in (0, 3):
        result = ran(f"python3 -u tools/tool.py {status}", left, {})
        assert (result.exit, result.output) == (status, b"its own\n")
    package = {
        "app/__init__.py": "",
        "app/__main__.py": "from app.core import x\nraise SystemExit",
    }
    assert ran("python3 -m app", {**package, "app/core.py": "x = 1\n"}, {}).exit == 0


def test_a_check_may_end_as_it_likes_and_catch_exits_of_the_agent() -> None:
    sums = "import os, sys\ndef main(): sys.exit(0)\ndef fork():\n"
    sums += "    if not os.fork(): os._exit(0)\n    return os.wait()[1]\n"
    check = """
import multiprocessing, subprocess, sys, sums
try:
    sums.main()
except SystemExit as error:
    assert error.code == 0
assert sums.fork() == 0
server = subprocess.Popen([sys.executable, "-m", "http.server", "0"])
server.terminate()
server.wait()
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]
    sys.exit({})
"""
    for status in (0, 4):
        result = ran(
            "python3 check.py", {"sums.py": sums}, {"check.py": check.format(status)}
        )
        assert result.exit == status, result.output


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


@pytest.mark.parametrize(("asked", "status"), [([], 97), (["--collect-only"], 0)])
def test_only_who_calls_pytest_may_leave_tests_out(
    tmp_path: Path, asked: list[str], status: int
) -> None:
    (tmp_path / "test_sums.py").write_text("def test_add(): assert 0\n")
    (tmp_path / "pyproject.toml").write_text(
        PLUGIN["pyproject.toml"].replace(" -p evil", "")
    )
    plugin = Path(command_check.__file__).parent / "guard" / "upskill_pytest.py"
    shutil.copy(plugin, tmp_path)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "UPSKILL_ENDED_EARLY": "97"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "upskill_pytest",
        *asked,
        "test_sums.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == status, done.stdout
