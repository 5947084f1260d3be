"""Results of runs that nobody made: for tests of what is made of them."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from pytest_upskill._util.git import Commit
from pytest_upskill.results.accepted import Count, Expectation
from pytest_upskill.results.run import AskedCase, RunResults
from pytest_upskill.settings import Gates
from pytest_upskill.trials.records import Grade, Record
from pytest_upskill.trials.trial import Arm, CaseInfo, SkillInfo

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REASONS = ('"gate up" is not in the answer', '"gate up" is in the answer')

Passes = Callable[[int, str, Arm, int], bool]  # number of the case, model, arm, run


def helps(case: int, _model: str, arm: Arm, run: int) -> bool:
    """Every third case passes without the skill, all but every fifth with it."""
    return case % 3 == 0 if arm == "baseline" else (case + run) % 5 != 0


def made_record(
    skill: str, case: str, model: str, arm: Arm, run: int, *, passed: bool = True, **more: Any
) -> Record:
    values: dict[str, Any] = {
        "outcome": "passed" if passed else "failed",
        "output": "Type gate up." if passed else "No idea.",
        "input_tokens": 120 if arm == "skill" else 20,
        "output_tokens": 30,
        "cached_tokens": 0,
        "seconds": 1.25,
        "checks": (Grade("contains", passed, REASONS[passed]),),
        "score": float(passed),
        "cost": 0.0015 if arm == "skill" else 0.0005,
    }
    return Record(skill, case, model, arm, run, **{**values, **more})


def made_run(
    *,
    skills: Sequence[str] = ("gate",),
    models: Sequence[str] = ("haiku",),
    cases: int = 6,
    runs: int = 1,
    passes: Passes = helps,
    arms: Sequence[Arm] = ("baseline", "skill"),
    accepted: dict[int, Expectation] | None = None,  # by the number of the case
    gates: Gates | None = None,
    **more: Any,
) -> RunResults:
    """Cases ``case-0``, ``case-1`` and so on; every test ran."""
    tests, records = [], []
    for skill in skills:
        for number in range(cases):
            for model in models:
                name = f"case-{number}"
                file = f"skills/{skill}/skill_meta.json"
                info = CaseInfo(
                    folder=f"skills/{skill}",
                    digest=f"{number:012d}",
                    file=file,
                    line=number + 1,
                    of=cases,
                    tags=("even",) if number % 2 == 0 else (),
                )
                expected = (accepted or {}).get(number)
                new = bool(accepted) and not expected
                nodeid = f"{file}::{name}[{model}]"
                tests.append(AskedCase(nodeid, skill, name, model, info, expected, new))
                records += [
                    made_record(
                        skill, name, model, arm, run, passed=passes(number, model, arm, run)
                    )
                    for run in range(1, runs + 1)
                    for arm in arms
                ]
    values: dict[str, Any] = {
        "started": STARTED,
        "seconds": 12.5,
        "skills": tuple(SkillInfo(skill, f"skills/{skill}", "0" * 64, 127) for skill in skills),
        "model_ids": {model: f"id-of-{model}" for model in models},
        "tests": tuple(tests),
        "records": tuple(records),
        "questions": {(t.skill, t.case): f"How do I open {t.case}?" for t in tests},
        "gates": gates or Gates(),
        "commit": Commit("c0ffee" * 6 + "c0ff", False),
        "versions": {"pytest-upskill": "1.2.3"},
    }
    return RunResults(**{**values, **more})


def accepted_count(passes: int, runs: int = 1, among: int = 6) -> Expectation:
    return Expectation(Count(passes, runs), "2026-01-01", among)
