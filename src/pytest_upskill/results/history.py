"""The history of a project: one file per run in a folder, sorted by name.

A file is the JSON of --skill-json with the transcripts of agents, compressed. What a
list of runs needs is its first line, so that hundreds of runs are listed without
unpacking them, and no index can be out of step with the files.
"""

import gzip
import json
import re
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from .._util.files import open_file
from .._util.git import Commit
from .._util.json_forms import Seconds, form_of
from .._util.texts import counted, first_few, one_line
from ..engine.store import FOLDER, make_folder
from ..errors import ResultsError
from .run import Moment, RunResults
from .run_file import in_bytes, read_run, results_values
from .summary_row import SummaryRow

RUNS_FOLDER: Final = "runs"
_SUFFIX: Final = ".json.gz"
_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_DRAFT: Final = re.compile(rf"\.{_ID.pattern}\.draft")
_LAST: Final = re.compile(r"last(?:~(\d{1,9}))?")
_DAY: Final = 86_400
_MOST_NAMES: Final = 3
_LIST: Final = "List the runs with `pytest-upskill runs`."
_LONGEST_HEAD: Final = 8_000_000
_COMPRESSION: Final = 3  # of 9: 6 takes twice as long to save a tenth of the bytes


@dataclass(frozen=True)
class RunHead:
    """What a list of runs shows: the first line of a file."""

    schema: Literal[1]
    started: Moment
    seconds: Seconds
    commit: Commit | None
    tested: Mapping[str, tuple[str, ...]]
    summary: tuple[SummaryRow, ...]


_HEAD_KEYS: Final = tuple(field.name for field in fields(RunHead))


@dataclass(frozen=True)
class KeptRun:
    """A run of the history; its file is read only when needed."""

    id: str
    path: Path
    short: str = ""  # the end of its id, if no other run has the same

    @cached_property
    def head(self) -> RunHead:
        """ResultsError if the file is damaged."""
        return read_head(self.path)


@dataclass(frozen=True)
class KeptRow:
    """A skill on a model, in a run."""

    run: KeptRun
    row: SummaryRow


# The folder.


def default_folder(root: Path) -> Path:
    """The default folder of a project's runs."""
    return root / FOLDER / RUNS_FOLDER


def worth_keeping(results: RunResults) -> bool:
    """Whether there is any answer, but not of cases that were
    selected because they failed.
    """
    return not results.selected_to_fail and any(
        record.outcome != "errored" for record in results.records
    )


def keep(results: RunResults, folder: Path, size_limit: int) -> Path:
    """Write a run into the history, and delete the oldest runs
    beyond ``size_limit`` bytes.

    Raises OSError or ValueError if that fails.
    """
    # Else a folder of the user's choice, perhaps committed
    if folder.parent.name == FOLDER:
        make_folder(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    data = packed(results)
    file, draft = _reserved(folder, results.started)
    try:
        draft.write_bytes(data)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    _prune(folder, size_limit, file)
    return file


def _reserved(folder: Path, started: datetime) -> tuple[Path, Path]:
    """A unique name, and the draft file that reserves it."""
    moment = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    while True:
        name = f"{moment}-{secrets.token_hex(3)}"
        file, draft = folder / f"{name}{_SUFFIX}", folder / f".{name}.draft"
        try:
            draft.touch(exist_ok=False)
        except FileExistsError:
            continue
        if not file.exists():  # checked last: a finished run has no draft any more
            return file, draft
        draft.unlink()


def runs(folder: Path) -> list[KeptRun]:
    """The runs in a folder, newest first; nothing is read yet."""
    try:
        names = [file.name for file in folder.iterdir()]
    except OSError:
        return []
    ids = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
    ends = {run_id: run_id.rpartition("-")[2] for run_id in filter(_ID.fullmatch, ids)}
    often = Counter(ends.values())
    return [
        KeptRun(
            run_id, folder / f"{run_id}{_SUFFIX}", end if often[end] == 1 else run_id
        )
        for run_id, end in sorted(ends.items(), reverse=True)
    ]


def find(kept: Sequence[KeptRun], text: str) -> KeptRun:
    """The run with this id, start or end of an id, ``last`` or ``last~2``.

    Raises ResultsError if there is none, or more than one.
    """
    if match := _LAST.fullmatch(text):
        back = int(match[1] or 0)
        if back < len(kept):
            return kept[back]
        problem = f"the history has {counted(len(kept), 'run')}"
        raise ResultsError(one_line(text, 60), problem, _LIST)
    part = text.removesuffix(_SUFFIX)
    matches = [run for run in kept if part and run.id.startswith(part)]
    matches = matches or [run for run in kept if part and run.id.endswith(part)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        hint = f"{_LIST} last and last~1 are the newest two."
        raise ResultsError(one_line(text, 60), "no such run in the history", hint)
    names = first_few([run.id for run in matches], _MOST_NAMES)
    raise ResultsError(
        one_line(text, 60), f"matches several runs: {names}", "Give more of the id."
    )


def newest(
    folder: Path,
    fits: Callable[[SummaryRow], bool] = lambda row: row.skill_rate is not None,
) -> dict[str, dict[str, KeptRow]]:
    """The newest row that fits, by skill and model; damaged files are skipped.

    Of a run of triggers alone, a row has no pass rate.
    """
    rows: dict[str, dict[str, KeptRow]] = {}
    for run in runs(folder):
        with suppress(ResultsError):
            for row in run.head.summary:
                if fits(row):
                    rows.setdefault(row.skill, {}).setdefault(
                        row.label, KeptRow(run, row)
                    )
    return rows


def run_before(folder: Path, results: RunResults) -> KeptRun | None:
    """The newest run that has all tests of these results;
    else the one that has most of them.

    Only heads are read; damaged files are skipped.
    """
    wanted = _places(results.tested)
    best, most = None, 0
    for run in runs(folder):
        with suppress(ResultsError):
            shared = len(wanted & _places(run.head.tested))
            if shared > most:
                best, most = run, shared
            if most == len(wanted):
                break
    return best


def _places(tested: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    return {(pair, case) for pair, cases in tested.items() for case in cases}


def _prune(folder: Path, size_limit: int, newest_file: Path) -> None:
    """Delete the oldest runs beyond the size limit, and drafts of killed runs.

    The newest run and this one stay, however large.
    """
    total = 0
    for number, run in enumerate(runs(folder)):
        with suppress(OSError):
            total += run.path.stat().st_size
            if total > size_limit and number and run.path != newest_file:
                run.path.unlink()
    for file in folder.iterdir():
        with suppress(OSError):
            if (
                _DRAFT.fullmatch(file.name)
                and time.time() - file.stat().st_mtime > _DAY
            ):
                file.unlink()


# A file.


def packed(results: RunResults) -> bytes:
    """The file of a run; ValueError if a number is infinite."""
    report = _values(results)
    head, rest = (
        json.dumps(
            {key: report[key] for key in keys}, ensure_ascii=False, allow_nan=False
        )
        for keys in (_HEAD_KEYS, [key for key in report if key not in _HEAD_KEYS])
    )
    return gzip.compress(in_bytes(f"{head[:-1]},\n{rest[1:]}\n"), _COMPRESSION, mtime=0)


def _values(results: RunResults) -> dict[str, Any]:
    return {**results_values(results, transcripts=True), "tested": results.tested}


def read_head(file: Path) -> RunHead:
    """The head of a run; ResultsError if it can't be read.

    A file without one, such as a copy of a --skill-json file, is read whole.
    """
    try:
        with open_file(file) as stream, gzip.GzipFile(fileobj=stream) as unzipped:
            line = unzipped.readline(_LONGEST_HEAD).decode()
        return form_of(RunHead).validate_python(
            json.loads(line.removesuffix(",\n") + "}")
        )
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        pass  # reading the whole file reports what is wrong with it
    report = _values(read_run(file))
    try:
        return form_of(RunHead).validate_python(
            {key: report[key] for key in _HEAD_KEYS}
        )
    except ValidationError as error:
        problem = f"number out of range: {error.errors()[0]['loc']}"
        raise ResultsError(file, problem, "Delete it.") from None
