"""The files that a run writes at its end, each if it was asked for."""

from pathlib import Path

from .. import history
from ..errors import shown
from ..results import RunResults
from ..results_json import results_bytes
from ..settings import Settings
from ..texts import one_line


def write(settings: Settings, results: RunResults) -> None:
    if settings.json_file:
        settings.json_file.write_bytes(results_bytes(results))


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
