"""The history of a project: one file per run in a folder, sorted by name.

A file is the JSON of --skill-json, compressed. gzip has room for a comment in front of the
compressed data: there stands what a list of runs needs, so that hundreds of runs are listed
without unpacking them. No index can be out of step with the files, and zcat shows plain JSON.
"""

import json
import re
import secrets
import struct
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from .._util.files import open_file
from .._util.git import Commit
from .._util.texts import counted, one_line
from ..engine.database import make_folder
from ..engine.store import FOLDER
from ..errors import ResultsError
from ..settings import Score
from ..trials.subject import CHAT
from .number_forms import Number, Seconds, Whole
from .run import RunResults
from .to_json import AsRead, in_bytes, label_of, results_report

RUNS_FOLDER: Final = "runs"
_SUFFIX: Final = ".json.gz"
_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
_DRAFT: Final = re.compile(rf"\.{_ID.pattern}\.draft")
_LAST: Final = re.compile(r"last(?:~(\d{1,9}))?")
_DAY: Final = 86_400
_MOST_NAMES: Final = 3
_LIST: Final = "List the runs with `pytest-upskill runs`."

# The header of gzip: magic number, deflate, with a comment, no time, any system.
_START: Final = bytes([0x1F, 0x8B, 8, 16, 0, 0, 0, 0, 0, 255])
_LONGEST_HEAD: Final = 8_000_000
_AT_ONCE: Final = 100  # records, and others like them
_LEVEL: Final = 3  # of 9: 6 takes twice as long to save a tenth of the bytes


_Moment = Annotated[
    AwareDatetime, Field(ge=datetime(1970, 12, 31, tzinfo=UTC), lt=datetime(3000, 1, 2, tzinfo=UTC))
]


@dataclass(frozen=True)
class Row:
    """A skill on a model, as in ``summary`` of the JSON."""

    skill: str
    model: str
    model_id: str
    cases: Whole
    runs: Whole
    errored: Whole
    baseline_rate: Number | None
    skill_rate: Number | None
    lift: Number | None
    lift_low: Number | None
    lift_high: Number | None
    baseline_tokens: Number | None
    skill_tokens: Number | None
    token_change: Number | None
    baseline_cost: Number | None
    skill_cost: Number | None
    verdict: str | None
    skill_rate_low: Number | None = None
    skill_rate_high: Number | None = None
    score: Score = "pass"  # what lift and verdict are of; runs of earlier versions have just rates
    baseline_score: Number | None = None
    skill_score: Number | None = None
    rate_lift: Number | None = None
    rate_lift_low: Number | None = None
    rate_lift_high: Number | None = None
    score_lift: Number | None = None
    score_lift_low: Number | None = None
    score_lift_high: Number | None = None
    digest: str = ""  # of the skill
    of: Whole = 0  # cases of the skill; -k or --lf may have selected fewer
    interrupted: bool = False  # the run was stopped before its end
    agent: str = CHAT  # ``model`` is then the label of the agent on its model
    baseline_turns: Number | None = None
    skill_turns: Number | None = None
    baseline_tool_calls: Number | None = None
    skill_tool_calls: Number | None = None
    activated: Whole | None = None  # trials that opened the skill
    activated_trials: Whole | None = None
    activated_rate: Number | None = None
    activated_low: Number | None = None
    activated_high: Number | None = None
    agent_version: str | None = None
    recall: Number | None = None  # of the queries of triggers
    recall_low: Number | None = None
    recall_high: Number | None = None
    false_alarms: Number | None = None
    false_alarms_low: Number | None = None
    false_alarms_high: Number | None = None

    @property
    def subset(self) -> bool:
        return self.cases < self.of

    @property
    def whole(self) -> bool:
        return not self.subset and not self.interrupted


@dataclass(frozen=True)
class Head:
    """What a list of runs shows, known without unpacking the file."""

    started: _Moment
    seconds: Seconds
    commit: Commit | None
    passed: bool | None  # its gates; None without gates
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class KeptRun:
    """A run of the history; its file is read only when needed."""

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


# The folder.


def default_folder(root: Path) -> Path:
    """The default folder of a project's runs."""
    return root / FOLDER / RUNS_FOLDER


def worth_keeping(results: RunResults) -> bool:
    """Whether there is any answer."""
    return any(record.outcome != "errored" for record in results.all_records)


def keep(results: RunResults, folder: Path, size_limit: int) -> Path:
    """Write a run into the history, and delete the oldest runs beyond ``size_limit`` bytes.

    Raises OSError or ValueError if that fails.
    """
    if folder.parent.name == FOLDER:  # else a folder of the user's choice, perhaps committed
        make_folder(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)
    data = packed(results_report(results, AsRead))
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
    return [
        KeptRun(run_id, folder / f"{run_id}{_SUFFIX}")
        for run_id in sorted(filter(_ID.fullmatch, ids), reverse=True)
    ]


def short_ids(known: Sequence[KeptRun]) -> dict[str, str]:
    """The shortest name of each run: the end of its id, if unique."""
    ends = {run.id: run.id.rpartition("-")[2] for run in known}
    often = Counter(ends.values())
    return {run_id: end if often[end] == 1 else run_id for run_id, end in ends.items()}


def find(known: Sequence[KeptRun], text: str) -> KeptRun:
    """The run with this id, start or end of an id, ``last`` or ``last~2``.

    Raises ResultsError if there is none, or more than one.
    """
    if match := _LAST.fullmatch(text):
        back = int(match[1] or 0)
        if back < len(known):
            return known[back]
        problem = f"the history has {counted(len(known), 'run')}"
        raise ResultsError(one_line(text, 60), problem, _LIST)
    wanted = text.removesuffix(_SUFFIX)
    found = [run for run in known if wanted and run.id.startswith(wanted)]
    found = found or [run for run in known if wanted and run.id.endswith(wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        hint = f"{_LIST} last and last~1 are the newest two."
        raise ResultsError(one_line(text, 60), "no such run in the history", hint)
    more = [f"and {len(found) - _MOST_NAMES} more"] if len(found) > _MOST_NAMES else []
    names = ", ".join([*(run.id for run in found[:_MOST_NAMES]), *more])
    raise ResultsError(one_line(text, 60), f"matches several runs: {names}", "Give more of the id.")


def newest(folder: Path) -> dict[str, dict[str, KeptRow]]:
    """The newest row by skill and model; damaged files are skipped."""
    found: dict[str, dict[str, KeptRow]] = {}
    for run in runs(folder):
        with suppress(ResultsError):
            for row in run.head.rows:
                found.setdefault(row.skill, {}).setdefault(row.model, KeptRow(run, row))
    return found


def run_before(folder: Path, results: RunResults) -> KeptRun | None:
    """The newest run with a skill of these results on one of its models.

    One that has fewer cases, by -k, --lf or Ctrl-C, is passed over if there is an older one that
    has as many or all. Only heads are read; damaged files are skipped.
    """
    cases = Counter(test.pair for test in results.tests)
    pairs = {test.pair for test in results.all_tests}
    fewer = None
    for run in runs(folder):
        with suppress(ResultsError):
            known = [row for row in run.head.rows if (row.skill, row.model) in pairs]
            if any(row.whole or row.cases >= cases[row.skill, row.model] for row in known):
                return run
            fewer = fewer or (run if known else None)
    return fewer


def _prune(folder: Path, size_limit: int, own: Path) -> None:
    """Delete the oldest runs beyond the size limit, and drafts of killed runs.

    The newest run and this one stay, however large.
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


# A file.


@cache
def _form() -> TypeAdapter[Head]:
    """Built on the first read, so that writing does not wait for it."""
    return TypeAdapter(Head)


def packed(report: Mapping[str, Any]) -> bytes:
    """The file of a run, from its JSON values; ValueError if a number is infinite."""
    # ASCII, since the comment is Latin-1 and ends at the first zero byte.
    head = json.dumps(_head(report), allow_nan=False).encode("ascii")
    pack = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts, size, check = [_START, head, b"\0"], 0, 0
    for text in _in_pieces(report):
        data = in_bytes(text)
        size, check = size + len(data), zlib.crc32(data, check)
        parts.append(pack.compress(data))
    end = struct.pack("<LL", check, size & 0xFFFFFFFF)
    return b"".join([*parts, pack.flush(), end])


def _in_pieces(value: Any) -> Iterator[str]:
    """What json.dumps makes of a report, without ever having all of it."""
    if isinstance(value, AsRead):
        yield "["
        parts, between = iter(value), ""
        while some := list(islice(parts, _AT_ONCE)):
            yield between + json.dumps(some, ensure_ascii=False)[1:-1]
            between = ", "
        yield "]"
    elif isinstance(value, list):
        yield "["
        for number, one in enumerate(value):
            yield ", " if number else ""
            yield from _in_pieces(one)
        yield "]"
    elif isinstance(value, Mapping) and any(isinstance(one, AsRead) for one in value.values()):
        yield "{"
        for number, (key, one) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json.dumps(key)}: "
            yield from _in_pieces(one)
        yield "}"
    else:
        yield json.dumps(value, ensure_ascii=False)


def read_head(file: Path) -> Head:
    """The head of a run; ResultsError if it can't be read.

    A file without one, such as a copy of a --skill-json file, is read whole.
    """
    try:
        with open_file(file) as stream:
            if stream.read(len(_START)) == _START:
                return _form().validate_json(_until_zero(stream))
    except (OSError, ValidationError):
        pass  # reading the whole file reports what is wrong with it
    from .from_json import read_run  # slow to import, and seldom needed

    try:
        return _form().validate_python(_head(results_report(read_run(file))))
    except ValidationError as error:
        problem = f"number out of range: {error.errors()[0]['loc']}"
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
    """The values of a Head."""
    digests = {skill["name"]: skill["digest"] for skill in report["skills"]}
    sizes: dict[tuple[str, str], int] = {}
    for test in report["tests"]:
        pair = (test["skill"], label_of(test))
        sizes[pair] = max(sizes.get(pair, 0), test["of"])
    names, shares = [field.name for field in fields(Row)], ("recall", "false_alarms")
    rows = {
        (row["skill"], label_of(row)): {
            **{name: row[name] for name in names if name in row},
            "model": label_of(row),
            "digest": digests[row["skill"]],
            "of": sizes.get((row["skill"], label_of(row)), 0),
            "interrupted": report["interrupted"] is not None,
        }
        for row in report["summary"]
    }
    for row in report["triggers"]:
        known = {f"{name}{end}": row[f"{name}{end}"] for name in shares for end in _ENDS}
        place = (row["skill"], label_of(row))
        rows[place] = (rows.get(place) or _without_cases(row, report, digests)) | known
    known = {key: report[key] for key in ("started", "seconds", "commit")}
    return {**known, "passed": report["gate"]["passed"], "rows": list(rows.values())}


_ENDS: Final = ("", "_low", "_high")


def _without_cases(
    row: Mapping[str, Any], report: Mapping[str, Any], digests: Mapping[str, str]
) -> dict[str, Any]:
    """Of a skill on a model that only queries of triggers were asked about."""
    unknown = [field.name for field in fields(Row) if field.default is MISSING]
    return {
        **dict.fromkeys(unknown),
        **{"skill": row["skill"], "model": label_of(row), "model_id": row["model_id"] or ""},
        **{"cases": 0, "runs": row["runs"], "errored": row["errored"]},
        **{"verdict": row["verdict"], "digest": digests.get(row["skill"], "")},
        **{"agent": row["agent"], "agent_version": row["agent_version"]},
        "interrupted": report["interrupted"] is not None,
    }
