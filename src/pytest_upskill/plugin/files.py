"""The files that a run writes at its end, each if it was asked for."""

from collections.abc import Sequence

from ..results import RunResults
from ..results_json import results_bytes
from ..settings import Settings


def write(settings: Settings, results: RunResults, notes: Sequence[str]) -> None:
    if settings.json_file:
        settings.json_file.write_bytes(results_bytes(results))
    if settings.html_file:
        from ..reports.html import html_report  # what few runs want is loaded for them alone

        settings.html_file.write_bytes(html_report(results, notes).encode())
