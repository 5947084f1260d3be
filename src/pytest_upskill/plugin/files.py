"""What a run writes at its end, if it was asked for, and its place in the history."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from .._util.texts import one_line
from ..engine import Engine
from ..errors import shown
from ..reports.writers import Writer, report_writers
from ..results import history
from ..results.run import RunResults
from ..settings import Settings
from .ledger import Ledger


def reports(
    settings: Settings, results: RunResults, markdown: str, notes: Sequence[str]
) -> Iterator[Writer]:
    return report_writers(results, markdown, notes, report_paths(settings))


def report_paths(settings: Settings) -> dict[str, Path | None]:
    """Where each report goes, by its option."""
    return {
        "--skill-json": settings.json_file,
        "--skill-csv": settings.csv_file,
        "--skill-markdown": settings.markdown_file,
        "--skill-html": settings.html_file,
        "--skill-benchmark": settings.benchmark_folder,
    }


def recording(settings: Settings, ledger: Ledger, engine: Engine) -> Iterator[Writer]:
    if settings.record_file:
        yield "--skill-record", partial(ledger.write_recording, settings.record_file, engine)


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
