"""The files that a run writes at its end, each if it was asked for."""

from collections.abc import Iterator
from functools import partial

from ..engine import Engine
from ..report_files import Writer, report_writers
from ..results import RunResults
from ..settings import Settings
from .ledger import Ledger


def reports(settings: Settings, results: RunResults, markdown: str) -> Iterator[Writer]:
    wanted = {
        "--skill-json": settings.json_file,
        "--skill-csv": settings.csv_file,
        "--skill-markdown": settings.markdown_file,
        "--skill-benchmark": settings.benchmark_folder,
    }
    yield from report_writers(results, markdown, wanted)


def recording(settings: Settings, ledger: Ledger, engine: Engine) -> Iterator[Writer]:
    if settings.record_file:
        yield "--skill-record", partial(ledger.write_recording, settings.record_file, engine)
