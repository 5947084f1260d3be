"""Made-up values for tests: records, summaries and whole runs,
of cases and of triggers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from pytest_upskill._util.git import Commit
from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.results.history import KeptRow, KeptRun, RunHead, keep, runs
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.summary import ArmSummary, CaseSummary, Summary
from pytest_upskill.results.summary_row import SummaryRow
from pytest_upskill.results.verdict import verdicts_of
from pytest_upskill.settings import Gates, Score
from pytest_upskill.skills.case import OPENS, STAYS_CLOSED
from pytest_upskill.trials.plan import Count, Expectation, PlannedCase, SkillInfo
from pytest_upskill.trials.records import Grade, Outcome, Record
from pytest_upskill.trials.subject import CHAT, SkillOnSubject, Subject
from pytest_upskill.trials.transcript import Activity
from pytest_upskill.trials.trial import sample_of_texts

from .words import HELPS

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_OUTCOMES: Final[dict[str, Outcome]] = {"P": "passed", "F": "failed", "E": "errored"}
REASONS = ('"gate up" is not in the answer', '"gate up" is in the answer')

Passes = Callable[[int, str, str, int], bool]  # number of the case, model, arm, run


def helps(case: int, _model: str, arm: str, run: int) -> bool:
    """Every third case passes without the skill, all but every fifth with it."""
    return case % 3 == 0 if arm == "baseline" else (case + run) % 5 != 0


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
                        new=bool(accepted) and not expected,
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


# Pass rates and tokens of a case, without the skill and with it; None is no baseline.
Pair = tuple[float | None, float]
Tokens = tuple[float | None, float | None]

PAID: Final[dict[str, Any]] = {"baseline_cost": 0.0142, "skill_cost": 1.2345}
LONG_MODEL: Final = "unsloth/GLM-4.7-Flash-GGUF:Q4_0"
GATE: Final = SkillInfo("gate", "skills/gate", "0" * 64, 1234)
_ARMS: Final = ("baseline", "previous", "trace", "skill")
_PAIR: Final[tuple[str, str]] = ("baseline", "skill")
_COUNTS: Final = {"checks_passed", "checks_total", "graded", "errored"}
_NUMBERS: Final = {field.name for field in fields(ArmSummary)} - _COUNTS


def made_cases(
    rates: Sequence[Pair], tokens: Tokens = (None, None)
) -> tuple[CaseSummary, ...]:
    """``case-0`` and so on, one run each."""
    return tuple(
        CaseSummary(
            f"case-{number}",
            1,
            {
                arm: ArmSummary(1, rate, rate, tokens=used)
                for arm, rate, used in zip(_PAIR, pair, tokens, strict=True)
                if rate is not None
            },
        )
        for number, pair in enumerate(rates)
    )


def made_summary(
    model: str = "haiku",
    skill: str = "gate",
    *,
    rates: Sequence[Pair] | None = None,
    tokens: Tokens = (None, None),
    **more: Any,
) -> Summary:
    """A summary of ten-odd cases, or of those with these ``rates``.

    ``baseline_rate=0.5`` sets a number of an arm, ``errored=1`` a count of the skill's.
    """
    if rates is None:
        unknown = tuple(
            CaseSummary(f"case-{n}", more.get("runs", 3), {}) for n in range(12)
        )
        values: dict[str, Any] = {"cases": 12, "runs": 3, "by_case": unknown}
        numbers: dict[str, dict[str, Any]] = {
            "baseline": {
                "rate": 0.42,
                "score": 0.5,
                "tokens": 12345.0,
                "seconds": 12.3,
            },
            "skill": {"rate": 0.83, "score": 0.9, "tokens": 23456.0, "seconds": 45.6},
        }
        for one, passed in zip(_PAIR, (54, 90), strict=True):
            numbers[one] |= {"checks_passed": passed, "checks_total": 108, "graded": 36}
    else:
        values = {"cases": len(rates), "runs": 1, "by_case": made_cases(rates, tokens)}
        numbers = {
            arm: (
                {**dict.fromkeys(("rate", "score"), fmean(known)), "tokens": used}
                | {"samples": len(known)}
            )
            for arm, n, used in zip(_PAIR, (0, 1), tokens, strict=True)
            if (known := [rate for pair in rates if (rate := pair[n]) is not None])
        }
    for name in [*more]:
        arm, _, number = name.partition("_")
        if arm in _ARMS and number in _NUMBERS:
            numbers.setdefault(arm, {})[number] = more.pop(name)
        elif name in _COUNTS:
            numbers.setdefault("skill", {})[name] = more.pop(name)
    arms: dict[str, ArmSummary] = {
        arm: ArmSummary(**numbers[arm]) for arm in _ARMS if arm in numbers
    }
    return Summary(skill, model, f"id-of-{model}", arms=arms, **{**values, **more})


def lines(
    *rows: Summary,
    notes: Sequence[str] = (),
    **look: Any,
) -> list[str]:
    """What a terminal shows of them; it has 120 columns if ``look`` says nothing
    else.
    """
    names = dict.fromkeys(row.skill for row in rows)
    skills = [
        GATE,
        *(SkillInfo(n, f"skills/{n}", "1" * 64, 99) for n in names if n != "gate"),
    ]
    terminal = TerminalLook(**{"width": 120, **look})
    return summary_lines(skills, verdicts_of(rows), terminal, notes)


def with_missing_cases(run: RunResults, number: int) -> RunResults:
    """A merged run whose files lack so many cases, or queries, of each skill and
    model.
    """
    tests = tuple(replace(test, of=test.of + number) for test in run.tests)
    return replace(run, tests=tests, expects_all=True)


NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def made_row(lift: float | None = 0.5, **more: Any) -> SummaryRow:
    """A skill on a model as the history keeps it."""
    rate = None if lift is None else max(0.0, lift)
    values: dict[str, Any] = {
        "skill": "wick",
        "model": "haiku",
        "model_id": "id",
        "cases": 12,
        "runs": 3,
        "errored": 0,
        "baseline_rate": 0.25,
        "skill_rate": rate,
        "lift": lift,
        "lift_low": lift and lift - 0.1,
        "lift_high": lift and lift + 0.1,
        "baseline_tokens": 50.0,
        "skill_tokens": 1150.4,
        "token_change": 2.0,
        "baseline_cost": 0.0005,
        "skill_cost": 0.0015,
        "verdict": HELPS,
        "all_cases": 12,
    }
    return SummaryRow(**{**values, **more})


def made_entry(
    days_ago: float, row: SummaryRow, commit: str | None = None, *, dirty: bool = False
) -> KeptRow:
    """A row of a run that has no file."""
    short = f"{int(days_ago * 10):06x}"
    known = Commit(commit, dirty) if commit else None
    run = KeptRun(f"2026-{short}", Path(), short)
    vars(run)["head"] = RunHead(
        1, NOW - timedelta(days=days_ago), 1.0, known, {}, (row,)
    )
    return KeptRow(run, row)


ENTRIES = [
    made_entry(0, made_row(0.7), "c0ffee123456"),
    made_entry(0, made_row(0.6, model=LONG_MODEL), "c0ffee123456"),
    made_entry(3, made_row(0.5, cases=5), "abcdef123456", dirty=True),
    made_entry(30, made_row(None, baseline_rate=None, verdict=None)),
]


def kept_rows(results: RunResults, folder: Path) -> list[KeptRow]:
    """The rows of a run as the history reads them back."""
    file = keep(results, folder, 10**9)
    run = next(run for run in runs(folder) if run.path == file)
    return [KeptRow(run, row) for row in run.head.summary]


MODELS = ["haiku", "sonnet", "opus", "openai:gpt-5.4-mini", LONG_MODEL]


def ten_cases(model: str, skill: str, before: int, after: int, **more: Any) -> Summary:
    """Of ten cases so many pass without the skill, and with it."""
    rates = [(float(n < before), float(n < after)) for n in range(10)]
    numbers = {"baseline_tokens": 812.0, "skill_tokens": 640.0, "cases": 12, **more}
    return made_summary(model, skill, rates=rates, tokens=(9.0, 12.0), **numbers)


def many_rows(**more: Any) -> list[Summary]:
    """Fifteen rows less one: three skills on five models."""
    helped = [
        ten_cases(model, f"skill-{n}", 0, 9, **more)
        for n in range(3)
        for model in MODELS
    ]
    return helped[:-1]


# Triggers.

Decisions = Sequence[str]  # one text for each query, one letter for each run


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
        "is_trigger": True,
        "tags": (OPENS if should else STAYS_CLOSED,),
        "sample": sample_of_texts([name]),
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
                    new = bool(accepted) and expected is None
                    tests.append(replace(test, expected=expected, new=new))
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
