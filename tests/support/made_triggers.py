"""Made-up runs of triggers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_upskill.results.run import RunResults
from pytest_upskill.trials.activity import Activity
from pytest_upskill.trials.plan import Expectation, PlannedCase
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.subject import CHAT
from pytest_upskill.trials.trial import sample_of_texts
from support.made import made_run

Decisions = Sequence[str]  # one text for each query, one letter for each run


def made_query(
    number: int, decisions: str, should: bool, skill: str, label: str, **more: Any
) -> tuple[PlannedCase, list[Record]]:
    name = f"trigger-{'needs' if should else 'spares'}-{number}"
    file = f"skills/{skill}/evals/triggers.json"
    values: dict[str, Any] = {
        "digest": f"{number:011d}{int(should)}",
        "file": file,
        "line": number + 1,
        "threshold": 0.5 if should else None,
        "agent": label.partition("/")[0] if "/" in label else CHAT,
        "should_trigger": should,
        "sample": sample_of_texts([name]),
        **more,
    }
    test = PlannedCase(f"{file}::{name}[{label}]", skill, name, label, **values)
    return test, [made_decision(test, run, letter) for run, letter in enumerate(decisions, start=1)]


def made_decision(test: PlannedCase, run: int, letter: str) -> Record:
    """``o`` opened, ``-`` not, ``x`` another skill instead, ``E`` errored."""
    base = Record(test.skill, test.case, test.model, "skill", run, "errored", agent=test.agent)
    if letter == "E":
        return replace(base, error="timed out")
    opened = letter == "o"
    names = (test.skill,) if opened else ("docs-writer",) if letter == "x" else ()
    own = ((test.agent, "1.2.3"),) if test.agent != CHAT else ()
    return replace(
        base,
        outcome="passed" if opened == test.should_trigger else "failed",
        output="",
        input_tokens=900,
        output_tokens=100,
        cached_tokens=0,
        seconds=0.5,
        score=1.0,
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
    """Queries ``trigger-needs-0``, … and ``trigger-spares-0``, …; cases too, unless ``only``."""
    tests, records = [], []
    of = len(needs) + len(spares)
    for skill in skills:
        for label in models:
            for should, queries in ((True, needs), (False, spares)):
                for number, decisions in enumerate(queries):
                    test, own = made_query(number, decisions, should, skill, label, of=of)
                    expected = (accepted or {}).get(test.case)
                    new = bool(accepted) and expected is None
                    tests.append(replace(test, expected=expected, new=new))
                    records += own
    base = made_run(skills=skills, models=models, cases=0 if only else 6)
    queries_asked = {(test.skill, test.case): f"Please {test.case}" for test in tests}
    values: dict[str, Any] = {
        "triggers": tuple(tests),
        "trigger_records": tuple(records),
        "questions": {**base.questions, **queries_asked},
        **more,
    }
    return replace(base, **values)
