"""Accepted results: skill_results.json beside SKILL.md, and what of it a run
expects.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal, Self

from pydantic import ConfigDict, model_validator

from .._util.files import replace_file
from .._util.json_forms import (
    MOST_TIME,
    Time,
    Whole,
    form_of,
    json_values,
    read_json_form,
)
from .._util.texts import digest
from ..errors import AcceptedError, Setting
from ..settings import MOST_RUNS, OnDrift, Settings
from ..skills.case import Case
from ..skills.folder import read_skill_file
from ..skills.task_files import verifier_files
from ..trials.arm import SKILL
from ..trials.plan import (
    FAILURES_OF_A_REGRESSION,
    Count,
    Expectation,
    PlannedCase,
    Runs,
)
from ..trials.records import Record
from ..trials.subject import ORACLE
from ..trials.trial import Trial, of_workspace, sample_of, user_text

RESULTS_NAME: Final = "skill_results.json"
PYTHON_MARK: Final = "::"  # in the names of Python tests, which no file of cases lists
_DEEPEST: Final = 20  # that checks are looked for
DIGITS: Final = 12  # of a digest, enough to see a change
# Of an accepted result: as many more would hardly change what it shows
ENOUGH_RUNS: Final = 30
_HINT: Final = ("Restore it, or delete it and run pytest with ", Setting("accept"), ".")


@dataclass(frozen=True)
class CaseResult:
    """What a case reached on a model; ``tokens`` are the mean of
    an answer with the skill.

    ``setup`` changes with the skill, the id of the model, the agent's version, the
    judge and settings that change what is asked; ``asked_at`` is when the last of the
    answers was given, in seconds since the epoch.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    passes: Whole
    runs: Runs
    baseline_passes: Whole | None
    tokens: Whole | None
    case_digest: str
    setup: str = ""
    asked_at: Time | None = None

    @model_validator(mode="after")
    def _no_more_passes_than_runs(self) -> Self:
        if max(self.passes, self.baseline_passes or 0) > self.runs:
            raise ValueError("more passes than runs")
        return self

    @property
    def count(self) -> Count:
        return Count(self.passes, self.runs)

    @property
    def baseline(self) -> Count | None:
        passes = self.baseline_passes
        return None if passes is None else Count(passes, self.runs)

    def pooled(self, records: Sequence[Record]) -> "CaseResult":
        """With the runs of these records that were asked since.

        The same stored answers may be accepted again, which makes them no new evidence.
        """
        last = MOST_TIME if self.asked_at is None else self.asked_at
        stored = (record for record in records if record.stored)
        counted = {record.run for record in stored if (record.asked_at or 0) <= last}
        new_records = [record for record in records if record.run not in counted]
        new = case_result(new_records, self.case_digest, self.setup)
        if new is None or (new.baseline_passes is None) != (
            self.baseline_passes is None
        ):
            return self
        if self.runs >= ENOUGH_RUNS or self.runs + new.runs > MOST_RUNS:
            return max(self, new, key=lambda result: result.runs)
        baseline = None
        if self.baseline_passes is not None and new.baseline_passes is not None:
            baseline = self.baseline_passes + new.baseline_passes
        passes, runs = self.passes + new.passes, self.runs + new.runs
        return replace(new, passes=passes, runs=runs, baseline_passes=baseline)


@dataclass(frozen=True)
class ModelResults:
    """What the cases of a skill reached on a model;
    ``date`` is that of the last update.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    model_id: str
    date: str
    skill_digest: str
    cases: Mapping[str, CaseResult]
    agent_version: str = ""

    def setup_of(self, test: PlannedCase) -> str:
        return short_digest(
            self.skill_digest, self.model_id, self.agent_version, test.asked
        )

    def result_of(self, case: str, case_digest: str) -> CaseResult | None:
        """The accepted result of a case; None if it is new or has changed since.

        A case that asks the same under another id is the same case.
        """
        renamed = (
            ()
            if PYTHON_MARK in case
            else (id for id in self.cases if PYTHON_MARK not in id)
        )
        for name in (case, *renamed):
            result = self.cases.get(name)
            if result and result.case_digest == case_digest:
                return result
        return None

    def expectation(
        self, case: str, case_digest: str, drift: OnDrift = "fail"
    ) -> Expectation | None:
        if not (result := self.result_of(case, case_digest)):
            return None
        return Expectation(
            result.count,
            self.date,
            self.agent_version,
            result.baseline,
            self.model_id,
            drift,
            result.setup,
        )


@dataclass(frozen=True, kw_only=True)
class AcceptedResults:
    """The file: results by the names of models as users write them."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    schema: Literal[1] = 1
    models: Mapping[str, ModelResults]

    def updated(
        self,
        model: str,
        present: ModelResults,
        existing: Collection[str] = (),
        dropped: Collection[str] = (),
    ) -> "AcceptedResults":
        """With the cases of this run on a model added, and others dropped;
        without empty models.

        ``existing`` lists the cases of the skill's file: any other with the question of
        a case of this run is the same one under an earlier id.
        """
        accepted = self.models.get(model)
        digests = {result.case_digest for result in present.cases.values()}
        unchanged = {
            case: result
            for case, result in (accepted.cases if accepted else {}).items()
            if case not in dropped
            and (
                case in existing
                or PYTHON_MARK in case
                or result.case_digest not in digests
            )
        }
        results = replace(present, cases={**unchanged, **present.cases})
        models = {**self.models, model: results}
        return replace(
            self, models={name: of for name, of in models.items() if of.cases}
        )


NOTHING_ACCEPTED: Final = AcceptedResults(models={})


def read_results(folder: Path) -> AcceptedResults:
    """The accepted results of a skill; empty if there is no file."""
    file = folder / RESULTS_NAME
    if not file.exists():
        return NOTHING_ACCEPTED
    results: AcceptedResults = read_json_form(
        file, form_of(AcceptedResults), AcceptedError, _HINT
    )
    return results


def write_results(folder: Path, results: AcceptedResults) -> None:
    replace_file(folder / RESULTS_NAME, results_text(results))


def results_text(results: AcceptedResults) -> str:
    """Sorted, one line per case, so that a diff shows what changed."""
    values = {"schema": results.schema, **json_values(results, brief=True)}
    return _laid_out(values, 4) + "\n"


def _laid_out(value: Any, depth: int, indent: str = "") -> str:
    """JSON with a line for each key, as deep as ``depth``; names are sorted,
    fields are not.
    """
    if not depth or not isinstance(value, dict) or not value:
        # A lone surrogate can be written too
        return json.dumps(value, ensure_ascii=True)
    items = sorted(value.items()) if depth % 2 else value.items()
    lines = [
        f"{indent} {json.dumps(k)}: {_laid_out(v, depth - 1, indent + ' ')}"
        for k, v in items
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


# The cases of a run.


def case_result(
    records: Sequence[Record], case_digest: str, setup: str = ""
) -> CaseResult | None:
    """The result of a case; None if an answer is missing."""
    with_skill = [record for record in records if record.arm == "skill"]
    if not with_skill or any(record.outcome == "errored" for record in records):
        return None
    baselines = [record for record in records if record.arm == "baseline"]
    tokens = [record.tokens for record in with_skill if record.tokens is not None]
    times = [record.asked_at for record in records if record.asked_at is not None]
    return CaseResult(
        passes=_passes(with_skill),
        runs=len(with_skill),
        baseline_passes=_passes(baselines) if baselines else None,
        tokens=round(fmean(tokens)) if len(tokens) == len(with_skill) else None,
        case_digest=case_digest,
        setup=setup,
        asked_at=max(times, default=None),
    )


def _passes(records: Sequence[Record]) -> int:
    return sum(record.outcome == "passed" for record in records)


def case_digest(case: Case, folder: Path | None = None) -> str:
    """Changes with the question and what is expected of the answer, not with SKILL.md.

    Checks in Python and verifiers change with their files in the skill's ``folder``.
    """
    turns = [text for message in case.earlier for text in message]
    expected = json.dumps([case.expected, case.validator], sort_keys=True, default=str)
    code = _code([case.expected], folder) if folder else ()
    asked = [
        *turns,
        user_text(case),
        case.system or "",
        *of_workspace(case),
        *(case.invoke or ()),
    ]
    return short_digest(*asked, expected, *code)


def _code(expected: Any, folder: Path, depth: int = 0) -> Iterator[str]:
    """The files of checks in Python, and of verifiers."""
    inside = expected.items() if isinstance(expected, dict) else enumerate(expected)
    for name, argument in inside:
        if name == "python" and isinstance(argument, str):
            with suppress(ValueError, OSError):  # which collection reports
                yield read_skill_file(folder, argument.partition(":")[0])
        elif name == "verifier" and isinstance(argument, dict):
            with suppress(ValueError, OSError):
                yield from (
                    f.digest for f in verifier_files(folder, str(argument.get("run")))
                )
        elif isinstance(argument, dict | list) and depth < _DEEPEST:
            yield from _code(argument, folder, depth + 1)


def short_digest(*parts: str) -> str:
    return digest(*parts)[:DIGITS]


def planned_case(
    nodeid: str,
    case: Case,
    trials: Sequence[Trial],
    settings: Settings,
    *,
    digest: str = "",
    folder: Path | None = None,
    file: str = "",
    compared: bool = True,
    accepted: AcceptedResults = NOTHING_ACCEPTED,
    siblings: tuple[str, ...] = (),
    of: int = 0,
) -> PlannedCase:
    """A case on the model of its trials; a Python test brings its own ``digest``."""
    first, digest = trials[0], digest or case_digest(case, folder)
    threshold = case.threshold or settings.case_threshold
    if case.is_trigger:  # at least half of the runs must open it; or less than half may
        threshold = 0.5 if case.should_open else None
    # A run that accepts its results is not compared with older ones, nor is a skill
    # with itself. The oracle is no model: its results are never accepted.
    alone = settings.accept or settings.aa or first.agent == ORACLE
    of_model = None if alone else accepted.models.get(first.label)
    expected = (
        of_model.expectation(case.id, digest, settings.drift) if of_model else None
    )
    extra_trials: tuple[Trial, ...] = ()
    if compared and expected and expected.always_passed:
        extra_trials = _extra_trials(trials)
    return PlannedCase(
        nodeid,
        first.skill,
        case.id,
        first.model,
        tuple(trials),
        extra_trials,
        digest=digest,
        asked=_asked(trials),
        sample="" if first.is_open else sample_of(case),
        case_group=case.group,
        folder=str(folder or ""),
        file=file,
        line=case.line,
        tags=case.tags,
        threshold=threshold,
        compared=compared and not settings.aa and first.agent != ORACLE,
        expected=expected,
        new=of_model is not None and expected is None,
        siblings=siblings,
        of=of,
        agent=first.agent,
        is_trigger=case.is_trigger,
        skill_only=case.skill_only and first.agent != ORACLE,
    )


def _extra_trials(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    last = [trial for trial in trials if trial.arm == SKILL][-1]
    return tuple(
        replace(last, run=run, question=replace(last.question, run=run), extra=True)
        for run in range(last.run + 1, FAILURES_OF_A_REGRESSION + 1)
    )


def _asked(trials: Sequence[Trial]) -> str:
    """A digest of all that is sent with the skill, and of who judges it."""
    trial = next((trial for trial in trials if trial.arm == SKILL), trials[0])
    judge = [trial.rubric.judge, str(trial.rubric.votes)] if trial.rubric else []
    return short_digest(trial.question.content, *judge)
