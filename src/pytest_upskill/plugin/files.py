"""The files that a run writes at its end, each if it was asked for."""

from ..results import RunResults
from ..results_json import results_bytes
from ..settings import Settings


def write(settings: Settings, results: RunResults) -> None:
    if settings.json_file:
        settings.json_file.write_bytes(results_bytes(results))
