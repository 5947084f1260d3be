"""Annotations of GitHub Actions: lines of the log that it shows beside the lines of a file."""

from collections.abc import Iterable, Sequence

from ..._util.texts import one_line
from ...results.regressions import AcceptedComparison

_LIMIT = 500


def annotations(compared: Sequence[AcceptedComparison], gate: Iterable[str]) -> list[str]:
    """An error for each regression, where its case stands, and for each gate that did not pass."""
    lines: list[str] = []
    told: list[str] = []
    for comparison in compared:
        # One reason for each case that got worse, then perhaps one for all together.
        places = [(case.info.file, case.info.line) for case in comparison.worse]
        places += [(case.info.file, 1) for case in comparison.cases[:1]]
        told += comparison.reasons
        for (file, line), reason in zip(places, comparison.reasons, strict=False):
            where = f"file={_value(file)},line={line}"
            lines.append(_error(f"{where},title={_value('regression of a skill')}", reason))
    lines += [_error("title=gate of a skill", reason) for reason in gate if reason not in told]
    return lines


def _error(properties: str, message: str) -> str:
    return f"::error {properties}::{_data(one_line(message, _LIMIT))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
