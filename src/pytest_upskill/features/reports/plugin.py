"""The pytest plugin that writes reports."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..._util.keys import without_keys
from ...plugin.run import RUN, Run

if TYPE_CHECKING:
    from ...results.run import RunResults


class Reports:
    """Writes the JSON, the page, Markdown and other files of the options, and the
    summary of a job of GitHub Actions.
    """

    @pytest.hookimpl(tryfirst=True)  # before the hooks of conftest files
    def pytest_upskill_finished(
        self, config: pytest.Config, results: "RunResults"
    ) -> None:
        # Slow to import, and not for xdist workers.
        from ...plugin.finishing import write_files
        from ...plugin.notes import collect_notes, comment_results
        from ...reports.markdown import markdown_summary
        from ...reports.writers import Finished, report_paths, report_writers

        run = config.stash[RUN]

        @cache
        def markdown() -> str:
            notes = comment_results(run, results)
            return markdown_summary(results, notes, run.session.testsfailed)

        finished = Finished(results, markdown, collect_notes(run, results), run.earlier)
        write_files(run, report_writers(finished, report_paths(run.settings)))
        if results.summary:
            _write_job_summary(run, markdown)


def _write_job_summary(run: Run, markdown: Callable[[], str]) -> None:
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return

    try:
        with Path(file).open(
            "a", encoding="utf-8", errors="backslashreplace"
        ) as summary:
            summary.write(without_keys(f"{markdown()}\n"))
    except OSError as error:
        run.note(f"could not write the job summary (GITHUB_STEP_SUMMARY): {error}")
