"""Made-up values for tests: records, rows and whole runs, of cases and of triggers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pytest_upskill._util.git import Commit
from pytest_upskill.features.queries import QUERY
from pytest_upskill.features.queries.results import Queries, QuerySummary
from pytest_upskill.results.comparison import Comparison
from pytest_upskill.results.history import KeptRow, KeptRun, RunHead, keep, runs
from pytest_upskill.results.row import ArmSummary, Row
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates, Score
from pytest_upskill.skills.case import OPENS, STAYS_CLOSED, Case
from pytest_upskill.stats import Change, Lift
from pytest_upskill.trials.plan import Count, Expectation, PlannedCase, SkillInfo
from pytest_upskill.trials.records import Grade, Outcome, Record
from pytest_upskill.trials.subject import CHAT, SkillOnSubject, Subject
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.trial import sample_of

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_OUTCOMES: Final[dict[str, Outcome]] = {"P": "passed", "F": "failed", "E": "errored"}
REASONS = ('"gate up" is not in the answer', '"gate up" is in the answer')

Passes = Callable[[int, str, str, int], bool]  # number of the case, model, arm, run


def helps(case: int, _model: str, arm: str, run: int) -> bool:
    """Every third case passes without the skill, all but every fifth with it."""
    return case % 3 == 0 if arm == "baseline" else (case + run) % 5 != 0


def by_count(*counts: tuple[int, int]) -> Passes:
    """Of each case so many of the first runs pass, without the skill and with it."""

    def passes(case: int, _model: str, arm: str, run: int) -> bool:
        without, with_skill = counts[case]
        return run <= (without if arm == "baseline" else with_skill)

    return passes


def pair_of(skill: str, model: str, agent: str = CHAT) -> SkillOnSubject:
    return SkillOnSubject(skill, Subject(agent, model))


def made_record(
    skill: str,
    case: str,
    model: str,
    arm: str,
    run: int,
    *,
    passed: bool = True,
    **more: Any,
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


def made_records(arms: Mapping[str, str], case: str = "a", **more: Any) -> list[Record]:
    """Bare records of a case, one letter a run: passed, failed or errored."""
    return [
        Record("gate", case, "haiku", arm, run, _OUTCOMES[letter], **more)
        for arm, letters in arms.items()
        for run, letter in enumerate(letters, start=1)
    ]


def made_run(
    *,
    skills: Sequence[str] = ("gate",),
    models: Sequence[str] = ("haiku",),
    cases: int = 6,
    runs: int = 1,
    passes: Passes = helps,
    arms: Sequence[str] = ("baseline", "skill"),
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
                expected = (accepted or {}).get(number)
                tests.append(
                    PlannedCase(
                        f"{file}::{name}[{model}]",
                        skill,
                        name,
                        model,
                        digest=f"{number:012d}",
                        folder=f"skills/{skill}",
                        file=file,
                        line=number + 1,
                        tags=("even",) if number % 2 == 0 else (),
                        expected=expected,
                        of=cases,
                    )
                )
                records += [
                    made_record(
                        skill,
                        name,
                        model,
                        arm,
                        run,
                        passed=passes(number, model, arm, run),
                    )
                    for run in range(1, runs + 1)
                    for arm in arms
                ]
    values: dict[str, Any] = {
        "started": STARTED,
        "seconds": 12.5,
        "skills": tuple(
            SkillInfo(skill, f"skills/{skill}", "0" * 64, 127) for skill in skills
        ),
        "model_ids": {model: f"id-of-{model}" for model in models},
        "tests": tuple(tests),
        "records": tuple(records),
        "questions": {(t.skill, t.case): f"How do I open {t.case}?" for t in tests},
        "gates": gates or Gates(),
        "commit": Commit("c0ffee" * 6 + "c0ff", dirty=False),
        "versions": {"pytest-upskill": "1.2.3"},
    }
    return RunResults(**{**values, **more})


def checked_run(
    counts: Sequence[tuple[int, int]], of: int = 7, score: Score = "checks", **more: Any
) -> RunResults:
    """A run whose answers pass so many of their checks, without and with the skill."""
    made = made_run(cases=len(counts), **more)

    def checked(record: Record) -> Record:
        number = int(record.case.removeprefix("case-"))
        passed = counts[number][record.arm == "skill"]
        checks = tuple(
            Grade("judge", n < passed, f"criterion {n + 1}") for n in range(of)
        )
        outcome: Outcome = "passed" if passed == of else "failed"
        return replace(record, outcome=outcome, checks=checks, score=passed / of)

    return replace(
        made,
        skills=tuple(replace(skill, score=score) for skill in made.skills),
        records=tuple(map(checked, made.records)),
    )


def accepted_count(passes: int, runs: int = 1) -> Expectation:
    return Expectation(Count(passes, runs), "2026-01-01")


def with_missing_cases(run: RunResults, number: int) -> RunResults:
    """A merged run whose files lack so many cases, or queries, of each skill and
    model.
    """
    tests = tuple(replace(test, of=test.of + number) for test in run.tests)
    return replace(run, tests=tests, expects_all=True)


NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def made_row(lift: float | None = 0.5, **changes: Any) -> Row:
    """A row of 12 cases in 3 runs; without a lift, it has no baseline."""
    skill = ArmSummary(
        rate=0.25 + (lift or 0.0), tokens=1150.4, cost=0.0015, samples=12
    )
    row = Row(
        skill="wick",
        model="haiku",
        model_id="id",
        cases=12,
        runs=3,
        samples=12,
        all_cases=12,
        arms={"skill": skill},
    )
    if lift is not None:
        over = Comparison(
            lift=Lift(lift, lift - 0.1, lift + 0.1, 0.01),
            changes={"tokens": Change(2.0, 1.5, 2.5)},
        )
        baseline = ArmSummary(rate=0.25, tokens=383.5, cost=0.0005, samples=12)
        row = replace(
            row,
            arms={"baseline": baseline, "skill": skill},
            comparisons={"baseline": over},
            verdict="helps" if lift > 0.1 else "unclear",
        )
    return replace(row, **changes)


def made_entry(
    days_ago: float, row: Row, commit: str | None = None, *, dirty: bool = False
) -> KeptRow:
    """A row of a run that has no file."""
    short = f"{int(days_ago * 10):06x}"
    run = KeptRun(f"2026-{short}", Path(), short)
    vars(run)["head"] = RunHead(
        schema=1,
        started=NOW - timedelta(days=days_ago),
        seconds=1.0,
        commit=Commit(commit, dirty) if commit else None,
        tested={},
        failed={},
        summary=(row,),
        looks={},
        gone={},
    )
    return KeptRow(run, row)


def kept_rows(results: RunResults, folder: Path) -> list[KeptRow]:
    """The rows of a run as the history reads them back."""
    file = keep(results, folder, 10**9)
    run = next(run for run in runs(folder) if run.path == file)
    return [KeptRow(run, row) for row in run.head.summary]


# Triggers.

Decisions = Sequence[str]  # one text for each query, one letter for each run


def query_summaries(results: RunResults) -> list[QuerySummary]:
    return Queries(results).trigger_summaries


def made_query(
    number: int, decisions: str, should: bool, skill: str, label: str, **more: Any
) -> tuple[PlannedCase, list[Record]]:
    name = f"trigger-{'needs' if should else 'spares'}-{number}"
    agent, _, model = label.rpartition("/")
    file = f"skills/{skill}/evals/triggers.json"
    values: dict[str, Any] = {
        "digest": f"{number:011d}{int(should)}",
        "file": file,
        "line": number + 1,
        "threshold": 0.5 if should else None,
        "agent": agent or CHAT,
        "kind": QUERY,
        "tags": (OPENS if should else STAYS_CLOSED,),
        "sample": sample_of(Case(name, name)),
        **more,
    }
    test = PlannedCase(f"{file}::{name}[{label}]", skill, name, model, **values)
    return test, [
        made_decision(test, run, letter)
        for run, letter in enumerate(decisions, start=1)
    ]


def made_decision(test: PlannedCase, run: int, letter: str) -> Record:
    """``o`` opened, ``-`` not, ``x`` another skill instead, ``E`` errored."""
    base = Record(
        test.skill, test.case, test.model, "skill", run, "errored", agent=test.agent
    )
    if letter == "E":
        return replace(base, error="timed out")
    opened = letter == "o"
    names = (test.skill,) if opened else ("docs-writer",) if letter == "x" else ()
    own = ((test.agent, "1.2.3"),) if test.agent != CHAT else ()
    return replace(
        base,
        outcome="passed" if opened == test.should_open else "failed",
        output="",
        input_tokens=900,
        output_tokens=100,
        cached_tokens=0,
        seconds=0.5,
        score=float(opened == test.should_open),
        cost=0.001,
        activity=Activity(1, 1, opened, names, agents=own),
    )


def made_triggers(
    needs: Decisions = ("ooo", "oo-", "xx-", "ooo"),
    spares: Decisions = ("---", "o--", "---"),
    *,
    skills: Sequence[str] = ("gate",),
    models: Sequence[str] = ("claude/haiku",),
    accepted: Mapping[str, Expectation] | None = None,  # by the id of a query
    only: bool = True,  # no cases
    **more: Any,
) -> RunResults:
    """Queries ``trigger-needs-0``, … and ``trigger-spares-0``, …; cases too,
    unless ``only``.
    """
    tests, records = [], []
    of = len(needs) + len(spares)
    for skill in skills:
        for label in models:
            for should, queries in ((True, needs), (False, spares)):
                for number, decisions in enumerate(queries):
                    test, own = made_query(
                        number, decisions, should, skill, label, of=of
                    )
                    expected = (accepted or {}).get(test.case)
                    tests.append(replace(test, expected=expected))
                    records += own
    base = made_run(skills=skills, models=models, cases=0 if only else 6)
    for label in models:
        agent, _, model = label.rpartition("/")
        subject: dict[str, Any] = {"agent": agent or CHAT, "model": model}
        base = replace(
            base,
            tests=tuple(
                replace(t, **subject) if t.model == label else t for t in base.tests
            ),
            records=tuple(
                replace(r, **subject) if r.model == label else r for r in base.records
            ),
        )
    queries_asked = {(test.skill, test.case): f"Please {test.case}" for test in tests}
    values: dict[str, Any] = {
        "tests": (*base.tests, *tests),
        "records": (*base.records, *records),
        "questions": {**base.questions, **queries_asked},
        **more,
    }
    return replace(base, **values)
