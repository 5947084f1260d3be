"""The pytest plugin that records."""

from functools import partial
from pathlib import Path

import pytest

from ...plugin.run import RUN, Run


class Recording:
    """Writes the file of --skill-record."""

    @pytest.hookimpl(tryfirst=True)  # before the hooks of conftest files
    def pytest_upskill_finished(self, config: pytest.Config) -> None:
        run = config.stash[RUN]
        if file := run.settings.record_file:
            from ...plugin.finishing import write_files

            write_files(run, [("record_file", partial(_record, run, file))])


def _record(run: Run, file: Path) -> list[Path]:
    from .answers import record_answers

    if run.ledger and run.asking.engine:
        record_answers(file, run.ledger, run.asking.engine, run.config.rootpath)
    return [file]
