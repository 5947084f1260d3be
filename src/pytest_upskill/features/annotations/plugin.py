"""The pytest plugin of annotations."""

import os
from pathlib import Path

import pytest

from ...plugin.paths import relative
from ...plugin.run import RUN


class Annotations:
    """Writes the annotations of a run above pytest's summary."""

    def __init__(self) -> None:
        self._failed_at: dict[str, tuple[str, int]] = {}  # by node id

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            file, line, _ = report.location
            self._failed_at[report.nodeid] = (file, (line or 0) + 1)

    # After the results are there, and before the summary
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        config = session.config
        results = config.stash[RUN].results
        reporter = config.pluginmanager.getplugin("terminalreporter")
        if not results or not reporter or os.environ.get("GITHUB_ACTIONS") != "true":
            return

        from .lines import annotations

        # GitHub wants paths relative to the repository, and the
        # rootdir may be a part of that.
        root = config.rootpath
        top = Path(os.environ.get("GITHUB_WORKSPACE") or root)
        lines = annotations(
            results, lambda file: relative(root / file, top), self._failed_at
        )
        if not lines:
            return

        reporter.ensure_newline()
        if config.get_terminal_writer().width_of_current_line:  # the dots of xdist
            reporter.write_line("")
        for line in lines:
            reporter.write_line(line)
