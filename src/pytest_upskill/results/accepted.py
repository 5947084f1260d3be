"""Accepted results: skill_results.json beside SKILL.md, and what of it a run
expects.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
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
from ..settings import MOST_RUNS, Settings
from ..skills.case import Case
from ..skills.folder import read_skill_file
from ..skills.task_files import verifier_files
from ..trials.arm import BASELINE, SKILL
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
_MAX_DEPTH: Final = 20  # of checks in which files are looked for
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
        if self.baseline_passes is None:
            return None
        return Count(self.baseline_passes, self.runs)

    def pool(self, records: Sequence[Record]) -> "CaseResult":
        """With the runs of these records that were asked since.

        The same stored answers may be accepted again, which makes them no new evidence.
        """
        last = MOST_TIME if self.asked_at is None else self.asked_at
        known = set()
        for record in records:
            if record.stored and (record.asked_at or 0) <= last:
                known.add(record.run)

        new_records = [record for record in records if record.run not in known]
        new = case_result(new_records, self.case_digest, self.setup)
        if new is None or (new.baseline is None) != (self.baseline is None):
            return self

        runs = self.runs + new.runs
        if self.runs >= ENOUGH_RUNS or runs > MOST_RUNS:
            return max(self, new, key=lambda result: result.runs)

        baseline_passes = None
        if self.baseline_passes is not None:
            baseline_passes = self.baseline_passes + (new.baseline_passes or 0)
        return replace(
            new,
            passes=self.passes + new.passes,
            runs=runs,
            baseline_passes=baseline_passes,
        )


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
        result = self.cases.get(case)
        if result and result.case_digest == case_digest:
            return result
        if PYTHON_MARK in case:
            return None

        for name, result in self.cases.items():
            if result.case_digest == case_digest and PYTHON_MARK not in name:
                return result
        return None

    def expectation(self, case: str, case_digest: str) -> Expectation | None:
        result = self.result_of(case, case_digest)
        if result is None:
            return None
        return Expectation(
            result.count,
            self.date,
            version=self.agent_version,
            baseline=result.baseline,
            model_id=self.model_id,
            setup=result.setup,
        )


@dataclass(frozen=True, kw_only=True)
class AcceptedResults:
    """The file: results by the names of models as users write them."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    schema: Literal[1] = 1
    models: Mapping[str, ModelResults]

    def update(
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
        digests = {result.case_digest for result in present.cases.values()}
        cases: dict[str, CaseResult] = {}
        if accepted := self.models.get(model):
            for case, result in accepted.cases.items():
                is_named = case in existing or PYTHON_MARK in case
                is_renamed = not is_named and result.case_digest in digests
                if case not in dropped and not is_renamed:
                    cases[case] = result
        cases.update(present.cases)

        models = {**self.models, model: replace(present, cases=cases)}
        kept = {name: results for name, results in models.items() if results.cases}
        return replace(self, models=kept)


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
    return _lay_out(values, depth=4) + "\n"


def _lay_out(value: Any, *, depth: int, indent: str = "") -> str:
    """JSON with a line for each key, as deep as ``depth``; names are sorted, fields
    are not.
    """
    if not depth or not isinstance(value, dict) or not value:
        # A lone surrogate can be written too.
        return json.dumps(value, ensure_ascii=True)

    inner = indent + " "
    lines = []
    for key in sorted(value) if depth % 2 else value:
        text = _lay_out(value[key], depth=depth - 1, indent=inner)
        lines.append(f"{inner}{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


# The cases of a run.


def case_result(
    records: Sequence[Record], case_digest: str, setup: str = ""
) -> CaseResult | None:
    """The result of a case; None if an answer is missing."""
    with_skill = [record for record in records if record.arm == SKILL]
    if not with_skill or any(record.outcome == "errored" for record in records):
        return None

    baselines = [record for record in records if record.arm == BASELINE]
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
    parts = list(chain.from_iterable(case.earlier))
    parts += [user_text(case), case.system or "", *of_workspace(case)]
    parts += case.invoke or ()
    expected = [case.expected, case.validator]
    parts.append(json.dumps(expected, sort_keys=True, default=str))
    if folder:
        parts += _read_code([case.expected], folder)
    return short_digest(*parts)


def _read_code(expected: Any, folder: Path, depth: int = 0) -> Iterator[str]:
    """The files of checks in Python, and of verifiers."""
    inside = expected.items() if isinstance(expected, dict) else enumerate(expected)
    for name, argument in inside:
        # Collection reports files that can't be read.
        with suppress(ValueError, OSError):
            if name == "python" and isinstance(argument, str):
                yield read_skill_file(folder, argument.partition(":")[0])
            elif name == "verifier" and isinstance(argument, dict):
                for file in verifier_files(folder, str(argument.get("run"))):
                    yield file.digest
            elif isinstance(argument, dict | list) and depth < _MAX_DEPTH:
                yield from _read_code(argument, folder, depth + 1)


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
    first = trials[0]
    digest = digest or case_digest(case, folder)
    threshold = case.threshold or settings.case_threshold
    if case.is_trigger:
        # At least half of the runs must open it; or less than half may.
        threshold = 0.5 if case.should_open else None

    # A skill is not compared with itself, nor is a run that accepts its results. The
    # oracle is no model.
    is_compared = compared and not settings.aa and first.agent != ORACLE
    of_model = accepted.models.get(first.label)
    if settings.accept or settings.aa or first.agent == ORACLE:
        of_model = None
    expected = of_model.expectation(case.id, digest) if of_model else None
    extra_trials: tuple[Trial, ...] = ()
    if compared and expected and expected.always_passed:
        extra_trials = _make_extra_trials(trials)
    return PlannedCase(
        nodeid,
        first.skill,
        case=case.id,
        model=first.model,
        trials=tuple(trials),
        extra_trials=extra_trials,
        digest=digest,
        asked=_asked(trials),
        sample="" if first.is_open else sample_of(case),
        case_group=case.group,
        folder=str(folder or ""),
        file=file,
        line=case.line,
        tags=case.tags,
        threshold=threshold,
        compared=is_compared,
        expected=expected,
        new=of_model is not None and expected is None,
        siblings=siblings,
        of=of,
        agent=first.agent,
        is_trigger=case.is_trigger,
        skill_only=case.skill_only and first.agent != ORACLE,
    )


def _make_extra_trials(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    last = [trial for trial in trials if trial.arm == SKILL][-1]
    extra_trials = []
    for run in range(last.run + 1, FAILURES_OF_A_REGRESSION + 1):
        question = replace(last.question, run=run)
        extra_trials.append(replace(last, run=run, question=question, extra=True))
    return tuple(extra_trials)


def _asked(trials: Sequence[Trial]) -> str:
    """A digest of all that is sent with the skill, and of who judges it."""
    trial = next((trial for trial in trials if trial.arm == SKILL), trials[0])
    judge = [trial.rubric.judge, str(trial.rubric.votes)] if trial.rubric else []
    return short_digest(trial.question.content, *judge)
