"""A run as its history keeps it: the JSON of --skill-json, compressed, and its head.

gzip has room for a comment in front of what is compressed. There stands what a list of runs
needs, so that hundreds of them are listed without being unpacked; no index can be out of step
with the files, and zcat shows the plain JSON.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import AwareDatetime, FiniteFloat, TypeAdapter, ValidationError

from .._util.git import Commit
from ..errors import ResultsError
from .to_json import in_bytes, results_report

# The header of gzip: its mark, deflated, with a comment, of no time, of any system.
_START: Final = bytes([0x1F, 0x8B, 8, 16, 0, 0, 0, 0, 0, 255])
_LONGEST_HEAD: Final = 8_000_000
_LEVEL: Final = 3  # of 9: half as quick would save a tenth of the bytes


@dataclass(frozen=True)
class Row:
    """A skill on a model, as in ``summary`` of the JSON."""

    skill: str
    model: str
    model_id: str
    cases: int
    runs: int
    errored: int
    baseline_rate: FiniteFloat | None
    skill_rate: FiniteFloat | None
    lift: FiniteFloat | None
    lift_low: FiniteFloat | None
    lift_high: FiniteFloat | None
    baseline_tokens: FiniteFloat | None
    skill_tokens: FiniteFloat | None
    token_change: FiniteFloat | None
    baseline_cost: FiniteFloat | None
    skill_cost: FiniteFloat | None
    verdict: str | None
    skill_rate_low: FiniteFloat | None = None
    skill_rate_high: FiniteFloat | None = None
    digest: str = ""  # of the skill
    of: int = 0  # cases that the skill has; fewer may have been asked, by -k or --lf

    @property
    def subset(self) -> bool:
        return self.cases < self.of


@dataclass(frozen=True)
class Head:
    """What is known of a run without reading its records."""

    started: AwareDatetime
    seconds: FiniteFloat
    commit: Commit | None
    passed: bool | None  # its gates; None if it had none
    rows: tuple[Row, ...]


@cache
def _form() -> TypeAdapter[Head]:
    """Made when a run is read: who only keeps one does not wait for it."""
    return TypeAdapter(Head)


def packed(report: Mapping[str, Any]) -> bytes:
    """The file of a run, of its JSON as values; ValueError if a number is infinite."""
    # As ASCII, since the comment is of Latin-1 and ends with the first zero byte.
    head = json.dumps(_head(report), allow_nan=False).encode("ascii")
    data = in_bytes(json.dumps(report, ensure_ascii=False))
    pack = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    end = struct.pack("<LL", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join([_START, head, b"\0", pack.compress(data), pack.flush(), end])


def read_head(file: Path) -> Head:
    """The head of a kept run; ResultsError if it can't be read.

    A file without one, say a copy of what --skill-json wrote, is read as a whole.
    """
    try:
        with file.open("rb") as stream:
            if stream.read(len(_START)) == _START:
                return _form().validate_json(_until_zero(stream))
    except (OSError, ValidationError):
        pass  # what is wrong with the file as a whole is told by what reads it
    from .from_json import read_run  # takes its time, and is seldom needed

    try:
        return _form().validate_python(_head(results_report(read_run(file))))
    except ValidationError as error:
        problem = f"a number is out of bounds: {error.errors()[0]['loc']}"
        raise ResultsError(file, problem, "Delete it.") from None


def _until_zero(stream: Any) -> bytes:
    found = b""
    while b"\0" not in found and len(found) < _LONGEST_HEAD:
        more = stream.read(1 << 16)
        if not more:
            break
        found += more
    return found.partition(b"\0")[0]


def _head(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a Head is made of."""
    digests = {skill["name"]: skill["digest"] for skill in report["skills"]}
    sizes: dict[tuple[str, str], int] = {}
    for test in report["tests"]:
        pair = (test["skill"], test["model"])
        sizes[pair] = max(sizes.get(pair, 0), test["of"])
    rows = [
        {
            **{field.name: row[field.name] for field in fields(Row) if field.name in row},
            "digest": digests[row["skill"]],
            "of": sizes.get((row["skill"], row["model"]), 0),
        }
        for row in report["summary"]
    ]
    known = {key: report[key] for key in ("started", "seconds", "commit")}
    return {**known, "passed": report["gate"]["passed"], "rows": rows}
