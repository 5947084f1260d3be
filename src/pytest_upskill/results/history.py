"""The history of a project: one file per run in a folder, sorted by name.

A file is the JSON of --skill-json with the transcripts of agents, compressed. What a
list of runs needs is its first line, so that hundreds of runs are listed without
unpacking them, and no index can be out of step with the files.
"""

import gzip
import json
import re
import secrets
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from .._util.files import open_file, replace_file
from .._util.git import Commit
from .._util.json_forms import Seconds, Whole, form_of
from .._util.texts import counted, first_few, one_line
from ..engine.database import make_folder
from ..engine.store import FOLDER
from ..errors import ResultsError
from ..trials.arm import SKILL
from .row import Row
from .run import Moment, RunResults
from .run_file import in_bytes, read_run, results_values

RUNS_FOLDER: Final = "runs"
_SUFFIX: Final = ".json.gz"
_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_LAST: Final = re.compile(r"last(?:~(\d{1,9}))?")
_MOST_NAMES: Final = 3
_RUNS_OF_RATES: Final = 10
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
    summary: tuple[Row, ...]
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    looks: Mapping[str, Whole] = field(default_factory=dict)
    gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_HEAD_KEYS: Final = tuple(each.name for each in fields(RunHead))


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
    row: Row


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
    """Write a run into the history, and delete the oldest runs beyond ``size_limit``
    bytes.

    OSError or ValueError if that fails.
    """
    # Any other folder is of the user's choice, and may be committed.
    if folder.parent.name == FOLDER:
        make_folder(folder.parent)

    file = _choose_file(folder, results.started)
    replace_file(file, packed(results))
    _prune(folder, size_limit, file)
    return file


def _choose_file(folder: Path, started: datetime) -> Path:
    moment = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    while True:
        file = folder / f"{moment}-{secrets.token_hex(3)}{_SUFFIX}"
        if not file.exists():
            return file


def runs(folder: Path) -> list[KeptRun]:
    """The runs in a folder, newest first; nothing is read yet."""
    ids = []
    with suppress(OSError):
        for file in folder.iterdir():
            run_id = file.name.removesuffix(_SUFFIX)
            if file.name.endswith(_SUFFIX) and _ID.fullmatch(run_id):
                ids.append(run_id)

    ends = Counter(_get_end(run_id) for run_id in ids)
    kept = []
    for run_id in sorted(ids, reverse=True):
        end = _get_end(run_id)
        short = end if ends[end] == 1 else run_id
        kept.append(KeptRun(run_id, folder / f"{run_id}{_SUFFIX}", short))
    return kept


def _get_end(run_id: str) -> str:
    return run_id.rpartition("-")[2]


def readable(kept: Iterable[KeptRun]) -> Iterator[tuple[KeptRun, RunHead]]:
    """Runs with their heads, without damaged files; one is read when it is reached."""
    for run in kept:
        try:
            head = run.head
        except ResultsError:
            continue
        yield run, head


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
    fits: Callable[[Row], bool] = lambda row: row.skill_rate is not None,
) -> dict[str, dict[str, KeptRow]]:
    """The newest row that fits, by skill and model.

    Of a run of triggers alone, a row has no pass rate.
    """
    rows: dict[str, dict[str, KeptRow]] = {}
    for run, head in readable(runs(folder)):
        for row in filter(fits, head.summary):
            rows.setdefault(row.skill, {}).setdefault(row.label, KeptRow(run, row))
    return rows


def run_before(folder: Path, results: RunResults) -> KeptRun | None:
    """The newest run that has all tests of these results; else the one that has most of
    them.
    """
    wanted = _places(results.tested)
    best = None
    most = 0
    for run, head in readable(runs(folder)):
        shared = len(wanted & _places(head.tested))
        if shared > most:
            best = run
            most = shared
        if most == len(wanted):
            break
    return best


def last_rates(folder: Path) -> dict[str, list[float]]:
    """How much passed with the skill in the last runs, by skill and model.

    The oldest comes first.
    """
    rates: dict[str, list[float]] = {}
    for _, head in readable(reversed(runs(folder)[:_RUNS_OF_RATES])):
        for row in head.summary:
            if row.skill_rate is not None:
                rates.setdefault(f"{row.pair}", []).append(row.skill_rate)
    return rates


def _places(tested: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    return {(pair, case) for pair, cases in tested.items() for case in cases}


def _prune(folder: Path, size_limit: int, newest_file: Path) -> None:
    """Delete the oldest runs beyond the size limit.

    The newest run and this one stay, however large.
    """
    total = 0
    for number, run in enumerate(runs(folder)):
        with suppress(OSError):
            total += run.path.stat().st_size
            if total > size_limit and number and run.path != newest_file:
                run.path.unlink()


# A file.


def packed(results: RunResults) -> bytes:
    """The file of a run; ValueError if a number is infinite."""
    report = results_values(results, transcripts=True)
    report["tested"] = results.tested
    report["failed"] = _find_failed(results)
    head = {key: report.pop(key) for key in _HEAD_KEYS}
    text = f"{_to_json(head)[:-1]},\n{_to_json(report)[1:]}\n"
    return gzip.compress(in_bytes(text), _COMPRESSION, mtime=0)


def _to_json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, allow_nan=False)


def _find_failed(results: RunResults) -> dict[str, list[str]]:
    """Cases that failed with the skill, by skill and model."""
    failed: dict[str, dict[str, None]] = {}
    for record in results.case_records:
        if record.arm == SKILL and record.outcome == "failed":
            failed.setdefault(f"{record.pair}", {})[record.case] = None
    return {pair: list(cases) for pair, cases in failed.items()}


def read_head(file: Path) -> RunHead:
    """The head of a run; ResultsError if it can't be read."""
    try:
        with open_file(file) as stream, gzip.GzipFile(fileobj=stream) as unzipped:
            line = unzipped.readline(_LONGEST_HEAD).decode()
        values = json.loads(line.removesuffix(",\n") + "}")
        return form_of(RunHead).validate_python(values)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        read_run(file)  # says what is wrong with it
        problem = "not written as a run of the history"
        raise ResultsError(file, problem, "Delete it.") from None
