"""A pytest plugin: says how a run of tests ended, by a word that nobody else knows.

It takes the word before any code of an agent runs. That code shares the process with
pytest, so this keeps it from ending a run early or changing the runner, and not from
everything: see "An agent against its checks" in docs/agents.md.

It runs on the Python and the pytest of any image, so its syntax is old.
"""

from __future__ import annotations

import os
import sys
import unittest

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_WORD = os.path.join(_FOLDER, "word")
_RUNNER = ("builtins", "pluggy", "pytest", "_pytest", unittest.__name__)


class _Tests:
    """What became of the tests of one run."""

    def __init__(self) -> None:
        self.runner: dict[Any, Any] = {}
        self.is_changed = False
        self.collected = 0
        self.reports: list[Any] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        self.runner = _functions_of_runner()

    def pytest_collection_finish(self, session: Any) -> None:
        self.collected = len(session.items)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.reports.append(report)

    pytest_collectreport = pytest_runtest_logreport

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self.is_changed = not self.runner.items() <= _functions_of_runner().items()

    def problem(self) -> str:
        """Why an exit status of 0 is not to be believed; empty if it is."""
        if self.is_changed:
            return "the test runner was changed while it ran"
        if any(report.failed for report in self.reports):
            return "a test failed"

        ended = sum(report.when == "teardown" for report in self.reports)
        skipped = sum(map(_is_skipped_from_outside, self.reports))
        left_out = max(skipped, self.collected - ended)
        if left_out:
            return f"{left_out} of {self.collected} tests were left out"
        passed = [r for r in self.reports if r.passed and r.when == "call"]
        return "" if passed else "no test passed"


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_cmdline_main(config: Any) -> Iterator[None]:
    """Report the end of the first run of tests; what that runs in turn has no word."""
    try:
        with open(_WORD) as file:
            word = file.read()
        os.remove(_WORD)
    except OSError:
        yield
        return

    _add_paths()
    tests = _Tests()
    config.pluginmanager.register(tests)

    outcome: Any = yield

    if not tests.runner:  # --version, say
        with open(_WORD, "w") as file:
            file.write(word)
        return
    status = int(outcome.get_result())
    asked = {"--collect-only", "--co"}.intersection(config.invocation_params.args)
    problem = "" if asked or status else tests.problem()
    with open(os.path.join(_FOLDER, "report"), "w") as file:
        file.write(f"{word}\n{status}\n{problem}")


def _add_paths() -> None:
    """Add what is only left out for pytest itself not to be taken from there."""
    os.environ.pop("PYTHONSAFEPATH", None)
    paths = os.environ.get("UPSKILL_PATH")  # the PYTHONPATH of the command
    if paths:
        os.environ["PYTHONPATH"] = paths
        sys.path += paths.split(os.pathsep)
    if os.path.basename(sys.argv[0]) == "__main__.py":
        sys.path.append(os.getcwd())


def _is_skipped_from_outside(report: Any) -> bool:
    """Whether neither the test's own file nor a conftest.py skipped it."""
    if not report.skipped:
        return False
    if hasattr(report, "wasxfail"):
        return "xfail" not in report.keywords
    if not isinstance(report.longrepr, tuple):
        return False
    path = str(report.longrepr[0])
    own = report.nodeid.split("::")[0]
    return not path.endswith(own) and os.path.basename(path) != "conftest.py"


def _functions_of_runner() -> dict[Any, Any]:
    """What is called by pytest and unittest, by name, and its code."""
    found: dict[Any, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in _RUNNER:
            continue
        owners: list[Any] = [module]
        owners += [value for value in vars(module).values() if isinstance(value, type)]
        for owner in owners:
            for key, value in list(vars(owner).items()):
                if callable(value):
                    code = getattr(value, "__code__", None)
                    place = (name, getattr(owner, "__qualname__", ""), key)
                    found[place] = (id(value), id(code))
    return found
