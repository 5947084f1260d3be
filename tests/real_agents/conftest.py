"""The table of what came is shown at the end, and accepted if that is asked for."""

from typing import cast

import pytest

from real_agents.table import Cells, Table, accept, rendered


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="Take what came for what is expected."
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Collector(config), "real-agents")


class _Collector:
    """Gathers the cells, also of workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._came: Table = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if report.when != "call" or "cells" not in properties:
            return
        name, version, cells = cast(
            "tuple[str, str, dict[str, str]]", properties["cells"]
        )
        row = self._came.setdefault(name, Cells(version, {}))
        row.cells |= cells

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        if self._came:
            terminalreporter.section("real agents")
            terminalreporter.write_line("\n\n".join(rendered(self._came)))
            if self._config.getoption("--accept", default=False):
                accept(self._came)
