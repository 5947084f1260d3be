"""A pytest plugin for hidden tests: a run that leaves tests out, or passes none,
has failed.

The agent's code could end it with ``pytest.exit(returncode=0)``, or skip every test.
"""

from __future__ import annotations

import os

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_outcomes: list[str] = []
_ended: list[str] = []


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call":
        _outcomes.append(report.outcome)
    elif report.when == "teardown":
        _ended.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: Any) -> None:
    done = "passed" in _outcomes and len(_ended) >= session.testscollected
    # Whoever calls pytest may only want to see the tests;
    # a file of the agent may not say so.
    asked = {*session.config.invocation_params.args} & {"--collect-only", "--co"}
    if session.exitstatus == 0 and not done and not asked:
        session.exitstatus = int(os.environ["UPSKILL_ENDED_EARLY"])
