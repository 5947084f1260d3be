"""What people see of the embedded model: a bar while its weights come, a note under results."""

from collections.abc import Iterable
from typing import Final

import pytest

from ..models import ModelSpec
from ..models.weights import DOWNLOAD_BYTES, LABEL, fetch_weights, have_weights, weights_file

_BAR: Final = 30
_MB: Final = 1_000_000.0


def fetch_with_bar(spec: ModelSpec, config: pytest.Config) -> None:
    """Fetch the default weights if a model needs them and they are not here."""
    if spec.model_id or have_weights():
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        fetch_weights(lambda _done, _total: None)
        return
    writer = config.get_terminal_writer()
    what = f"fetching {LABEL} ({DOWNLOAD_BYTES / _MB:.0f} MB, once, to {weights_file().parent})"
    reporter.write_line(f"upskill: {what}")

    def show(done: int, total: int) -> None:
        full = _BAR * done // total
        bar = "#" * full + "." * (_BAR - full)
        writer.write(f"\r[{bar}] {done / _MB:.0f} of {total / _MB:.0f} MB", flush=True)

    if reporter.isatty:
        fetch_weights(show)
        reporter.write_line("")
    else:
        fetch_weights(lambda _done, _total: None)


def small_model_notes(specs: Iterable[ModelSpec]) -> list[str]:
    """A small model is for trying things out, and whoever reads its numbers must know."""
    return [
        f"{spec.name} is {LABEL}: a small model to try things out with, no measure of a skill."
        for spec in specs
        if spec.protocol == "local" and not spec.model_id
    ]
