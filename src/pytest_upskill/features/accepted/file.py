"""Accepted results as a file: skill_results.json beside SKILL.md."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import ConfigDict, model_validator

from ..._util.files import replace_file
from ..._util.json_forms import Whole, form_of, json_values, read_json_form
from ...errors import AcceptedError, Setting
from ...results.standings import KeptResult
from ...trials.plan import Count, Runs

RESULTS_NAME: Final = "skill_results.json"
_HINT: Final = ("Restore it, or delete it and run pytest with ", Setting("accept"), ".")


@dataclass(frozen=True)
class CaseResult:
    """What a case reached on a model; ``tokens`` are the mean of an answer with the
    skill. ``setup`` changes with all that the answers depend on.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    passes: Whole
    runs: Runs
    baseline_passes: Whole | None
    tokens: Whole | None
    case_digest: str
    setup: str = ""

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


@dataclass(frozen=True)
class ModelResults:
    """What the cases of a skill reached on a model, as of the last update."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    model_id: str
    date: str
    skill_digest: str
    cases: Mapping[str, CaseResult]
    agent_version: str = ""

    def find(self, case: str, case_digest: str) -> CaseResult | None:
        """The accepted result of a case; None if it is new or has changed since.

        A case that asks the same under another id is the same case.
        """
        names = [case] if is_in_python(case) else [case, *self.cases]
        for name in names:
            result = self.cases.get(name)
            if result and result.case_digest == case_digest:
                return result
        return None

    def update(self, now: "ModelResults", dropped: Collection[str]) -> "ModelResults":
        """With the cases of ``now``, which may have had other ids."""
        digests = {result.case_digest for result in now.cases.values()}
        cases = {}
        for name, result in self.cases.items():
            is_renamed = result.case_digest in digests and not is_in_python(name)
            if name not in dropped and not is_renamed:
                cases[name] = result
        return replace(now if now.cases else self, cases={**cases, **now.cases})


NOTHING: Final = ModelResults("", "", "", {})


@dataclass(frozen=True)
class AcceptedResults:
    """The file: results by the names of models as users write them."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    models: Mapping[str, ModelResults]
    schema: Literal[1] = 1


def is_in_python(case: str) -> bool:
    """Whether it is the name of a test in Python, which no file of cases lists."""
    return "::" in case


def read_results(folder: Path) -> Mapping[str, ModelResults]:
    """The accepted results of a skill by model; empty if there is no file."""
    file = folder / RESULTS_NAME
    if not file.exists():
        return {}
    results = read_json_form(file, form_of(AcceptedResults), AcceptedError, _HINT)
    assert isinstance(results, AcceptedResults)
    return results.models


def kept_results(folder: Path) -> Iterator[KeptResult]:
    """What a skill reached on each model."""
    for model, results in read_results(folder).items():
        cases = results.cases.values()
        baselines = [case.baseline.share for case in cases if case.baseline]
        yield KeptResult(
            model,
            results.date,
            results.skill_digest,
            rates=[case.count.share for case in cases],
            baseline_rates=baselines if len(baselines) == len(cases) else [],
        )


def write_results(folder: Path, models: Mapping[str, ModelResults]) -> None:
    """Write names sorted and a line for each case, so that a diff shows what changed;
    without models that have no case.
    """
    kept = {name: results for name, results in models.items() if results.cases}
    values = json_values(AcceptedResults(kept), brief=True)
    text = _lay_out({"schema": 1, **values}, depth=4)
    replace_file(folder / RESULTS_NAME, f"{text}\n")


def _lay_out(value: Any, *, depth: int, indent: str = "\n") -> str:
    """JSON with a line for each key, as deep as ``depth``."""
    if not depth or not isinstance(value, dict) or not value:
        return json.dumps(value)

    inner = f"{indent} "
    lines = []
    # Names are at odd depths; fields stay in their order.
    for key in sorted(value) if depth % 2 else value:
        text = _lay_out(value[key], depth=depth - 1, indent=inner)
        lines.append(f"{inner}{json.dumps(key)}: {text}")
    return f"{{{','.join(lines)}{indent}}}"
