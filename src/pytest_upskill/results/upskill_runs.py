"""Runs that upskill logged, as entries of the history.

upskill writes a folder for each command, named by the local minute: ``2026_01_21_15_30`` with
``run_1/run_result.json`` and so on, and at the end ``batch_summary.json`` with all of them. They
have totals only: no cases, no answers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, ValidationError

from .._util.files import read_file, reason_of
from .._util.json_forms import form_of
from .._util.texts import one_line
from ..errors import ResultsError
from .history import KeptRun, RunHead, runs
from .summary_row import SummaryRow

_BATCH: Final = re.compile(r"\d{4}(_\d\d){4}")
_SUMMARY: Final = "batch_summary.json"
_RESULT: Final = "run_result.json"
_UNNAMED: Final = "unknown"  # upskill's word for it
_NO_DATE: Final = datetime.min.replace(tzinfo=UTC)
_DELETE: Final = "Delete it."
_Count = Annotated[int, Field(ge=0, le=10**15)]
_Form = TypeVar("_Form")


@dataclass(frozen=True)
class _Metadata:
    model: str
    run_number: int = 0


@dataclass(frozen=True)
class _Stats:
    total_tokens: _Count = 0
    conversation_span_ms: Annotated[float, Field(ge=0, le=1e15)] = 0.0


@dataclass(frozen=True)
class _Result:
    """One arm of a run."""

    metadata: _Metadata
    stats: _Stats = field(default_factory=_Stats)
    assertions_passed: _Count = 0
    assertions_total: _Count = 0
    run_type: Literal["with_skill", "baseline"] = "with_skill"
    skill_name: str | None = None

    @property
    def rate(self) -> float | None:
        total = self.assertions_total
        return min(self.assertions_passed / total, 1.0) if total else None

    @property
    def tokens(self) -> float | None:
        """Per answer; upskill writes 0 if it does not know."""
        return self.stats.total_tokens / self.assertions_total if self.assertions_total else None


@dataclass(frozen=True)
class _Batch:
    results: list[_Result]


class UpskillFolder(KeptRun):
    """A folder that one command of upskill wrote."""

    @cached_property
    def head(self) -> RunHead:
        """ResultsError if a file in it is damaged, or nothing was finished."""
        results = _results(self.path)
        pairs: dict[tuple[str, str], list[_Result]] = {}
        for result in results:
            key = (result.skill_name or _UNNAMED, result.metadata.model)
            pairs.setdefault(key, []).append(result)
        rows = [_row(skill, model, group) for (skill, model), group in pairs.items()]
        seconds = sum(result.stats.conversation_span_ms for result in results) / 1000
        return RunHead(1, _moment(self), seconds, None, tuple(row for row in rows if row))


def all_runs(folder: Path) -> list[KeptRun]:
    """Our runs and those of upskill in a folder, newest first; nothing is read yet."""
    return sorted(
        [*runs(folder), *upskill_runs(folder)], key=lambda run: (_moment(run), run.id), reverse=True
    )


def upskill_runs(folder: Path) -> list[UpskillFolder]:
    """The runs of upskill in a folder; nothing is read yet."""
    try:
        named = [path for path in folder.iterdir() if _BATCH.fullmatch(path.name)]
    except OSError:
        return []
    folders = [UpskillFolder(path.name, path) for path in named if path.is_dir()]
    return [run for run in folders if _moment(run) != _NO_DATE]


def _moment(run: KeptRun) -> datetime:
    """When a run started, by its id."""
    try:
        if isinstance(run, UpskillFolder):
            return datetime.strptime(run.id, "%Y_%m_%d_%H_%M").astimezone()
        return datetime.strptime(run.id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # digits that are no date
        return _NO_DATE


def _results(batch: Path) -> list[_Result]:
    """Those of the summary, else of the folders of a batch that did not end."""
    summary = batch / _SUMMARY
    if summary.is_file():
        return _read(summary, _Batch).results
    files = [path / _RESULT for path in sorted(batch.glob("run_*"))]
    results = [_read(file, _Result) for file in files if file.is_file()]
    if not results:
        raise ResultsError(batch, "no results: the run did not finish", _DELETE)
    return results


def _read(file: Path, form: type[_Form]) -> _Form:
    try:
        return form_of(form).validate_json(read_file(file))
    except OSError as error:
        raise ResultsError(file, reason_of(error), "Check the file.") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        problem = one_line(f"{key}: {first['msg']}" if key else first["msg"], 100)
        raise ResultsError(file, problem, _DELETE) from None


def _row(skill: str, model: str, results: Sequence[_Result]) -> SummaryRow | None:
    """A skill on a model; None if it was never asked with the skill.

    Several pairs of arms are attempts of ``generate``, of which upskill keeps the last. Several
    runs without a baseline are repeats.
    """
    ordered = sorted(results, key=lambda result: result.metadata.run_number)
    skills = [result for result in ordered if result.run_type == "with_skill"]
    baselines = [result for result in ordered if result.run_type == "baseline"]
    if not skills:
        return None
    skills = skills[-1:] if baselines else skills
    baselines = baselines[-1:]
    baseline_rate, skill_rate = _mean(baselines, "rate"), _mean(skills, "rate")
    lift = None if baseline_rate is None or skill_rate is None else skill_rate - baseline_rate
    before, after = _mean(baselines, "tokens") or None, _mean(skills, "tokens") or None
    return SummaryRow(
        skill=skill,
        model=model,
        model_id=model,
        cases=max(result.assertions_total for result in skills),
        runs=len(skills),
        baseline_rate=baseline_rate,
        skill_rate=skill_rate,
        lift=lift,
        baseline_tokens=before,
        skill_tokens=after,
        token_change=after / before - 1 if after and before else None,
    )


def _mean(results: Sequence[_Result], name: Literal["rate", "tokens"]) -> float | None:
    numbers = [value for result in results if (value := getattr(result, name)) is not None]
    return fmean(numbers) if numbers else None
