"""What a run writes at its end, if it was asked for, and its place in the history."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from .. import history
from ..engine import Engine
from ..errors import shown
from ..results import RunResults
from ..settings import Settings
from ..texts import one_line
from ..writing import ReportFiles, Writer, report_writers
from .ledger import Ledger


def recording(settings: Settings, ledger: Ledger, engine: Engine) -> Iterator[Writer]:
    if settings.record_file:
        yield "--skill-record", partial(ledger.write_recording, settings.record_file, engine)


def reports(
    settings: Settings, results: RunResults, markdown: str, notes: Sequence[str]
) -> Iterator[Writer]:
    files = ReportFiles(
        json=settings.json_file,
        csv=settings.csv_file,
        markdown=settings.markdown_file,
        html=settings.html_file,
        benchmark=settings.benchmark_folder,
    )
    return report_writers(files, results, markdown, notes, "--skill-")


def keep(settings: Settings, results: RunResults, root: Path) -> str | None:
    """Keep the run in the history of the project; what is wrong if that can't be done."""
    if not settings.history or not history.worth_keeping(results):
        return None
    folder = settings.runs_folder or history.default_folder(root)
    try:
        history.keep(results, folder, settings.history_mb * 1_000_000)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        return f"this run is not kept: {shown(folder)}: {one_line(problem, 200)}"
    return None
