"""The runs of a project, kept in a folder: a file for each, newest known by its name."""

import re
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from .._util.texts import counted, one_line
from ..engine.store import FOLDER, make_folder
from ..errors import ResultsError
from .kept_run import Head, Row, packed, read_head
from .run import RunResults
from .to_json import results_report

RUNS_FOLDER: Final = "runs"
_SUFFIX: Final = ".json.gz"
_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_DRAFT: Final = re.compile(rf"\.{_ID.pattern}\.draft")
_LAST: Final = re.compile(r"last(?:~(\d{1,9}))?")
_DAY: Final = 86_400
_MOST_NAMES: Final = 3


@dataclass(frozen=True)
class KeptRun:
    """A run of the history; read when it is asked for."""

    id: str
    path: Path

    @cached_property
    def head(self) -> Head:
        """ResultsError if the file is damaged."""
        return read_head(self.path)


@dataclass(frozen=True)
class KeptRow:
    """A skill on a model, in a run."""

    run: KeptRun
    row: Row


def default_folder(root: Path) -> Path:
    """Where the runs of a project are kept, if nobody says where."""
    return root / FOLDER / RUNS_FOLDER


def worth_keeping(results: RunResults) -> bool:
    """Whether anything was answered at all."""
    return any(record.outcome != "errored" for record in results.records)


def keep(results: RunResults, folder: Path, size_limit: int) -> Path:
    """Write a run into the history and forget the oldest beyond so many bytes.

    OSError or ValueError if that can't be done.
    """
    if folder.parent.name == FOLDER:  # another folder was chosen, perhaps to be committed
        make_folder(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    data = packed(results_report(results))
    file, draft = _reserved(folder, results.started)
    try:
        draft.write_bytes(data)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    _prune(folder, size_limit, file)
    return file


def _reserved(folder: Path, started: datetime) -> tuple[Path, Path]:
    """A name that nobody else has, and the draft that holds it until its file is there."""
    moment = started.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    while True:
        name = f"{moment}-{secrets.token_hex(3)}"
        file, draft = folder / f"{name}{_SUFFIX}", folder / f".{name}.draft"
        try:
            draft.touch(exist_ok=False)
        except FileExistsError:
            continue
        if not file.exists():  # looked at only now: who had the name before has no draft any more
            return file, draft
        draft.unlink()


def runs(folder: Path) -> list[KeptRun]:
    """The kept runs, newest first; none if there is no such folder. Nothing is read yet."""
    try:
        names = [file.name for file in folder.iterdir()]
    except OSError:
        return []
    ids = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
    return [
        KeptRun(run_id, folder / f"{run_id}{_SUFFIX}")
        for run_id in sorted(filter(_ID.fullmatch, ids), reverse=True)
    ]


def short_ids(known: Sequence[KeptRun]) -> dict[str, str]:
    """The least that names each run: the end of its id, unless another has the same."""
    ends = {run.id: run.id.rpartition("-")[2] for run in known}
    often = Counter(ends.values())
    return {run_id: end if often[end] == 1 else run_id for run_id, end in ends.items()}


def find(known: Sequence[KeptRun], text: str) -> KeptRun:
    """The run that somebody means by its id, the beginning or the end of it, ``last`` or
    ``last~2``; ResultsError if there is none or more than one."""
    if match := _LAST.fullmatch(text):
        back = int(match[1] or 0)
        if back < len(known):
            return known[back]
        problem = f"there are {counted(len(known), 'kept run')}"
        raise ResultsError(one_line(text, 60), problem, "pytest-upskill runs lists them.")
    wanted = text.removesuffix(_SUFFIX)
    found = [run for run in known if wanted and run.id.startswith(wanted)]
    found = found or [run for run in known if wanted and run.id.endswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        hint = "pytest-upskill runs lists them; last and last~1 are the newest two."
        raise ResultsError(one_line(text, 60), "no kept run has such an id", hint)
    more = [f"and {len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    names = ", ".join([*(run.id for run in found[:_MOST_NAMES]), *more])
    raise ResultsError(one_line(text, 60), f"several runs are meant: {names}", "Give more of it.")


def newest(folder: Path) -> dict[str, dict[str, KeptRow]]:
    """By skill and model the newest run. Damaged files are passed by."""
    found: dict[str, dict[str, KeptRow]] = {}
    for run in runs(folder):
        with suppress(ResultsError):
            for row in run.head.rows:
                found.setdefault(row.skill, {}).setdefault(row.model, KeptRow(run, row))
    return found


def _prune(folder: Path, size_limit: int, own: Path) -> None:
    """Forget the oldest runs beyond the size, and drafts of runs that were killed.

    The newest and the own run stay, however large. What others delete meanwhile is gone anyway.
    """
    total = 0
    for number, run in enumerate(runs(folder)):
        with suppress(OSError):
            total += run.path.stat().st_size
            if total > size_limit and number and run.path != own:
                run.path.unlink()
    for file in folder.iterdir():
        with suppress(OSError):
            if _DRAFT.fullmatch(file.name) and time.time() - file.stat().st_mtime > _DAY:
                file.unlink()
