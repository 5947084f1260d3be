"""The file of a run, as --skill-json and the history write it;
`RunResults` is its form.
"""

import json
from pathlib import Path
from typing import Any, Final

from .._util.files import LARGEST, inflated, read_file
from .._util.json_forms import form_of, json_values, read_json_form
from .._util.keys import without_keys
from ..errors import ResultsError
from ..registry import kind_section_types
from .run import RunResults

_GZIP_MAGIC: Final = b"\x1f\x8b"
_SMALL: Final = 16_000_000  # bytes that any file may unpack to
_MOST_REPETITIVE: Final = 100  # times that a run is larger than its compressed file
_HINT: Final = "Give a JSON report of a run, or a run from the history."


def results_values(results: RunResults, *, transcripts: bool = False) -> dict[str, Any]:
    """The whole run as JSON values; null means not known."""
    values: dict[str, Any] = json_values(results, context=transcripts)
    for section in results.kind_sections:
        values |= json_values(section)
    return values


def results_text(results: RunResults) -> str:
    return json.dumps(results_values(results), indent=1, ensure_ascii=False) + "\n"


def results_bytes(results: RunResults) -> bytes:
    return in_bytes(results_text(results))


def in_bytes(text: str) -> bytes:
    # A lone surrogate in an answer becomes \udXXX, which JSON reads back as the same.
    return without_keys(text).encode("utf-8", "backslashreplace")


def results_schema() -> dict[str, Any]:
    """The JSON schema of --skill-json."""
    schema = form_of(RunResults).json_schema(mode="serialization")
    for section in kind_section_types():
        more = form_of(section).json_schema(mode="serialization")
        # A section may add rows, and nothing else.
        if "$defs" in more:
            schema["$defs"] |= more["$defs"]
            schema["properties"] |= more["properties"]
            schema["required"] += more["required"]
    return schema


def read_run(file: Path) -> RunResults:
    """The results of a run; ResultsError with the place of the problem."""
    results: RunResults = read_json_form(
        file, form_of(RunResults), ResultsError, _HINT, unpacked
    )
    return results


def unpacked(file: Path) -> bytes:
    """The content of a file, compressed or not; OSError or
    ValueError if it can't be read.
    """
    data = read_file(file)
    if not data.startswith(_GZIP_MAGIC):
        return data
    return inflated(data, min(LARGEST, _SMALL + _MOST_REPETITIVE * len(data)))
