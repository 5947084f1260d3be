"""Accepted results: skill_results.json beside SKILL.md, and what of it a run expects."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, model_validator

from .._util.files import replace_file
from .._util.json_forms import Strict, read_json_form
from .._util.texts import digest
from ..errors import AcceptedError, Setting
from ..settings import Settings
from ..skills.case import Case
from ..skills.folder import read_skill_file
from ..skills.trigger_loading import Trigger
from ..trials.number_types import Runs, Whole
from ..trials.plan import Count, Expectation, PlannedCase
from ..trials.records import Record
from ..trials.trial import Trial, of_workspace, sample_of, sample_of_texts, user_text

RESULTS_NAME: Final = "skill_results.json"
PYTHON_MARK: Final = "::"  # in the names of Python tests, which no file of cases lists
_DEEPEST: Final = 20  # that checks are looked for
DIGITS: Final = 12  # of a digest, enough to see a change
_HINT: Final = ("Restore it, or delete it and run pytest with ", Setting("accept"), ".")


@dataclass(frozen=True)
class CaseResult:
    """What a case reached on a model; ``tokens`` are the mean of an answer with the skill."""

    passes: int
    runs: int
    baseline_passes: int | None
    tokens: int | None
    case_digest: str

    @property
    def count(self) -> Count:
        return Count(self.passes, self.runs)


@dataclass(frozen=True)
class ModelResults:
    """What the cases of a skill reached on a model; ``date`` is that of the last update."""

    model_id: str
    date: str
    skill_digest: str
    cases: Mapping[str, CaseResult]
    agent_version: str = ""

    def expectation(self, case: str, case_digest: str) -> Expectation | None:
        """The accepted result of a case; None if it is new or has changed since.

        A case that asks the same under another id is the same case.
        """
        others = (
            [] if PYTHON_MARK in case else [one for one in self.cases if PYTHON_MARK not in one]
        )
        for name in (case, *others):
            known = self.cases.get(name)
            if known and known.case_digest == case_digest:
                return Expectation(known.count, self.date, len(self.cases), self.agent_version)
        return None


Results = Mapping[str, ModelResults]  # by the names of models as users write them
_TRIGGERS: Final = " (triggers)"


def of_triggers(model: str) -> str:
    """The name that queries on a model have in `Results`.

    They have a place of their own, as earlier releases take no new keys, and would miss queries
    among the cases.
    """
    return f"{model}{_TRIGGERS}"


def without_triggers(results: Results) -> Results:
    """The results of cases alone."""
    return {name: own for name, own in results.items() if not name.endswith(_TRIGGERS)}


# The file.


class _CaseForm(Strict):
    passes: Whole
    runs: Runs
    baseline_passes: Whole | None
    tokens: Whole | None
    case_digest: str

    @model_validator(mode="after")
    def _no_more_passes_than_runs(self) -> "_CaseForm":
        if max(self.passes, self.baseline_passes or 0) > self.runs:
            raise ValueError("more passes than runs")
        return self


class _ModelForm(Strict):
    model_id: str
    date: str
    skill_digest: str
    cases: dict[str, _CaseForm]


class _FileForm(Strict):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    models: dict[str, _ModelForm]


_FORM: Final = TypeAdapter(_FileForm)


def read_results(folder: Path) -> Results:
    """The accepted results of a skill; empty if there is no file."""
    file = folder / RESULTS_NAME
    if not file.exists():
        return {}
    form: _FileForm = read_json_form(file, _FORM, AcceptedError, _HINT)
    found = dict[str, ModelResults]()
    for name, model in form.models.items():
        model_id, version = _without_version(name, model.model_id)
        cases = {case: CaseResult(**result.model_dump()) for case, result in model.cases.items()}
        found[name] = ModelResults(model_id, model.date, model.skill_digest, cases, version)
    return found


def _before_version(name: str) -> str:
    """What stands between a model's id and its agent's version.

    They share a key, as earlier releases take no new ones.
    """
    return f" ({name.partition('/')[0]} "


def _without_version(name: str, model_id: str) -> tuple[str, str]:
    """The id of a model, and the version of the agent that follows it."""
    plain_id, found, version = model_id.partition(_before_version(name))
    if "/" in name and found and version.endswith(")"):
        return plain_id, version[:-1]
    return model_id, ""


def updated(
    results: Results,
    model: str,
    present: ModelResults,
    existing: Collection[str] = (),
    dropped: Collection[str] = (),
) -> Results:
    """The results with the cases of this run on a model added, and others dropped.

    ``existing`` lists the cases of the skill's file: any other with the question of a case of this
    run is the same one under an earlier id.
    """
    before = results[model].cases if model in results else {}
    digests = {result.case_digest for result in present.cases.values()}
    kept = {
        case: result
        for case, result in before.items()
        if case not in dropped
        and (case in existing or PYTHON_MARK in case or result.case_digest not in digests)
    }
    return {**results, model: replace(present, cases={**kept, **present.cases})}


def without(results: Results, model: str, dropped: Collection[str]) -> Results:
    """The results without some cases of a model, and without the model if these were all."""
    known = results[model]
    cases = {case: result for case, result in known.cases.items() if case not in dropped}
    others = {name: of_model for name, of_model in results.items() if name != model}
    return {**others, model: replace(known, cases=cases)} if cases else others


def write_results(folder: Path, results: Results) -> None:
    replace_file(folder / RESULTS_NAME, results_text(results))


def results_text(results: Results) -> str:
    """Sorted, one line per case, so that a diff shows what changed."""
    models = ",\n".join(_model_text(name, results[name]) for name in sorted(results))
    return f'{{\n "schema": 1,\n "models": {{\n{models}\n }}\n}}\n'


def _model_text(name: str, model: ModelResults) -> str:
    about = {key: getattr(model, key) for key in ("model_id", "date", "skill_digest")}
    if model.agent_version:
        about["model_id"] += f"{_before_version(name)}{model.agent_version})"
    lines = [f"   {_json(key)}: {_json(value)}," for key, value in about.items()]
    cases = [
        f"    {_json(case)}: {_json(asdict(model.cases[case]))}" for case in sorted(model.cases)
    ]
    inside = "\n".join([*lines, '   "cases": {', ",\n".join(cases), "   }"])
    return f"  {_json(name)}: {{\n{inside}\n  }}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)  # a lone surrogate can be written too


# The cases of a run.


def case_result(records: Sequence[Record], case_digest: str) -> CaseResult | None:
    """The result of a case; None if an answer is missing."""
    with_skill = [record for record in records if record.arm == "skill"]
    if not with_skill or any(record.outcome == "errored" for record in records):
        return None
    baselines = [record for record in records if record.arm == "baseline"]
    tokens = [record.tokens for record in with_skill if record.tokens is not None]
    return CaseResult(
        passes=_passes(with_skill),
        runs=len(with_skill),
        baseline_passes=_passes(baselines) if baselines else None,
        tokens=round(fmean(tokens)) if len(tokens) == len(with_skill) else None,
        case_digest=case_digest,
    )


def _passes(records: Sequence[Record]) -> int:
    return sum(record.outcome == "passed" for record in records)


def case_digest(case: Case, folder: Path | None = None) -> str:
    """Changes with the question and what is expected of the answer, not with SKILL.md.

    Checks in Python change with their file in the skill's ``folder``.
    """
    turns = [text for message in case.earlier for text in message]
    expected = json.dumps([case.expected, case.validator], sort_keys=True, default=str)
    code = _code([case.expected], folder) if folder else ()
    asked = [*turns, user_text(case), case.system or "", *of_workspace(case)]
    return short_digest(*asked, expected, *code)


def _code(expected: Any, folder: Path, depth: int = 0) -> Iterator[str]:
    """The files of the checks in Python."""
    inside = expected.items() if isinstance(expected, dict) else enumerate(expected)
    for name, argument in inside:
        if name == "python" and isinstance(argument, str):
            with suppress(ValueError, OSError):  # which collection reports
                yield read_skill_file(folder, argument.partition(":")[0])
        elif isinstance(argument, dict | list) and depth < _DEEPEST:
            yield from _code(argument, folder, depth + 1)


def short_digest(*parts: str) -> str:
    return digest(*parts)[:DIGITS]


def trigger_digest(trigger: Trigger) -> str:
    """Changes with the query and with what should come of it."""
    return short_digest("trigger", trigger.query, str(trigger.should_trigger))


def planned_trigger(
    nodeid: str,
    trigger: Trigger,
    trials: Sequence[Trial],
    settings: Settings,
    *,
    folder: Path | None = None,
    file: str = "",
    compared: bool = True,
    accepted: Results | None = None,
    siblings: tuple[str, ...] = (),
    of: int = 0,
) -> PlannedCase:
    """A query on the model of its trials; ``of`` counts the queries of the skill."""
    first, digest = trials[0], trigger_digest(trigger)
    of_model = None if settings.accept else (accepted or {}).get(of_triggers(first.label))
    expected = of_model.expectation(trigger.id, digest) if of_model else None
    return PlannedCase(
        nodeid,
        first.skill,
        trigger.id,
        first.model,
        tuple(trials),
        digest=digest,
        sample=sample_of_texts([trigger.query]),
        folder=str(folder or ""),
        file=file,
        line=trigger.line,
        # At least half of the runs must open it; of one that should not, less than half may.
        threshold=0.5 if trigger.should_trigger else None,
        compared=compared,
        expected=expected,
        new=of_model is not None and expected is None,
        siblings=siblings,
        of=of,
        agent=first.agent,
        should_trigger=trigger.should_trigger,
    )


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
    accepted: Results | None = None,
    siblings: tuple[str, ...] = (),
    of: int = 0,
) -> PlannedCase:
    """A case on the model of its trials; a Python test brings its own ``digest``."""
    first, digest = trials[0], digest or case_digest(case, folder)
    # A run that accepts its results is not compared with older ones.
    of_model = None if settings.accept else (accepted or {}).get(first.label)
    expected = of_model.expectation(case.id, digest) if of_model else None
    return PlannedCase(
        nodeid,
        first.skill,
        case.id,
        first.model,
        tuple(trials),
        digest=digest,
        sample="" if first.is_open else sample_of(case),
        folder=str(folder or ""),
        file=file,
        line=case.line,
        tags=case.tags,
        threshold=case.threshold or settings.case_threshold,
        compared=compared,
        expected=expected,
        new=of_model is not None and expected is None,
        siblings=siblings,
        of=of,
        agent=first.agent,
        own_runs=case.runs is not None,
    )
