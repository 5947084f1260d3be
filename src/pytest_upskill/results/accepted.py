"""skill_results.json beside SKILL.md: what models reached when somebody said that it will do."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, model_validator

from .._util.json_forms import FormError, Strict, json_path, line_of, read_form
from .._util.texts import digest
from ..errors import AcceptedError, shown
from ..settings import Settings
from ..skills.cases import Case
from ..trials.plan import Count, Expectation, PlannedCase
from ..trials.records import Record
from ..trials.trial import Trial, user_text

RESULTS_NAME: Final = "skill_results.json"
PYTHON_MARK: Final = "::"  # stands in the names of tests in Python, which no file of cases lists
DIGITS: Final = 12  # of a digest, enough to see a change by
_HINT: Final = "Restore it, or delete it and run with --skill-accept."

_Count = Annotated[int, Field(ge=0)]


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
    """What the cases of a skill reached on a model; the date is that of the last update."""

    model_id: str
    date: str
    skill_digest: str
    cases: Mapping[str, CaseResult]

    def expectation(self, case: str, case_digest: str) -> Expectation | None:
        """What is accepted of a case; None if it is new, or was changed since."""
        known = self.cases.get(case)
        if known is None or known.case_digest != case_digest:
            return None
        return Expectation(known.count, self.date, len(self.cases))


Results = Mapping[str, ModelResults]  # by the names of models as users write them


class _CaseForm(Strict):
    passes: _Count
    runs: Annotated[int, Field(ge=1)]
    baseline_passes: _Count | None
    tokens: _Count | None
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
    """The accepted results of a skill; nothing if none were accepted yet."""
    file = folder / RESULTS_NAME
    try:
        text = file.read_bytes().decode("utf-8-sig")
        form: _FileForm = read_form(_FORM, json.loads(text))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise AcceptedError(file, error.strerror or str(error), "Check the path.") from None
    except FormError as error:
        place, problem = error.problems[0]
        where = f"{shown(file)}:{line_of(text, place)}"
        raise AcceptedError(where, f"{json_path(place)}: {problem}", _HINT) from None
    except json.JSONDecodeError as error:
        where = f"{shown(file)}:{error.lineno}:{error.colno}"
        raise AcceptedError(where, f"this is not JSON: {error.msg}", _HINT) from None
    except (RecursionError, ValueError) as error:  # not UTF-8, nested too deep
        raise AcceptedError(file, f"this can't be read: {error}", _HINT) from None
    return {
        name: ModelResults(
            model.model_id,
            model.date,
            model.skill_digest,
            {case: CaseResult(**result.model_dump()) for case, result in model.cases.items()},
        )
        for name, model in form.models.items()
    }


def updated(
    results: Results, model: str, present: ModelResults, existing: Collection[str] | None = None
) -> Results:
    """With the cases of this run on a model, and all else as it was.

    ``existing`` are the cases that there still are, if all of them ran: others are dropped.
    """
    before = results[model].cases if model in results else {}
    kept = {
        case: result
        for case, result in before.items()
        if existing is None or case in existing or PYTHON_MARK in case
    }
    return {**results, model: replace(present, cases={**kept, **present.cases})}


def write_results(folder: Path, results: Results) -> None:
    """Whole or not at all: who is interrupted keeps the old file."""
    file = folder / RESULTS_NAME
    draft = file.with_name(f".{RESULTS_NAME}.{os.getpid()}")
    try:
        draft.write_text(results_text(results), encoding="utf-8", newline="\n")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def results_text(results: Results) -> str:
    """Sorted, and a line for each case, so that a diff reads as what changed."""
    models = ",\n".join(_model_text(name, results[name]) for name in sorted(results))
    return f'{{\n "schema": 1,\n "models": {{\n{models}\n }}\n}}\n'


def _model_text(name: str, model: ModelResults) -> str:
    about = {key: value for key, value in vars(model).items() if key != "cases"}
    lines = [f"   {_json(key)}: {_json(value)}," for key, value in about.items()]
    cases = [
        f"    {_json(case)}: {_json(asdict(model.cases[case]))}" for case in sorted(model.cases)
    ]
    inside = "\n".join([*lines, '   "cases": {', ",\n".join(cases), "   }"])
    return f"  {_json(name)}: {{\n{inside}\n  }}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)  # so that a lone surrogate is written too


def case_result(records: Sequence[Record], case_digest: str) -> CaseResult | None:
    """What the runs of a case amount to; None if one of them was not answered."""
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


def case_digest(case: Case) -> str:
    """Of what is asked and expected: an edit of it makes a case another, one of SKILL.md not."""
    turns = [text for message in case.earlier for text in message]
    expected = json.dumps([case.expected, case.validator], sort_keys=True, default=str)
    return short_digest(*turns, user_text(case), case.system or "", expected)


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
    accepted: Results | None = None,
    siblings: tuple[str, ...] = (),
    of: int = 0,
) -> PlannedCase:
    """A case on the model of its trials; ``digest`` is given for a test in Python."""
    first, digest = trials[0], digest or case_digest(case)
    # What is being accepted is not held against what was.
    of_model = None if settings.accept else (accepted or {}).get(first.model)
    expected = of_model.expectation(case.id, digest) if of_model else None
    return PlannedCase(
        nodeid,
        first.skill,
        case.id,
        first.model,
        tuple(trials),
        digest=digest,
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
    )
