"""Why a query of a trigger failed."""

from dataclasses import replace

from pytest_upskill.reports.terminal.trigger_failure import trigger_failure
from pytest_upskill.results.triggers import QueryRate
from pytest_upskill.trials.records import Grade
from support.made import made_query

RATE = QueryRate("trigger-paint", "Paint the gate", False, 2, 3, 0, {})
WHERE = "skills/gate/evals/triggers.json:14"


def shown(rate: QueryRate, *reasons: str, standing: str = "") -> list[str]:
    _, records = made_query(0, "o" * len(reasons), False, "gate", "haiku")
    graded = [
        replace(record, checks=(Grade("trigger", False, reason),))
        for record, reason in zip(records, reasons, strict=True)
    ]
    return trigger_failure(rate, graded, standing=standing, where=WHERE).splitlines()


def test_runs_that_went_the_same_way_share_a_line() -> None:
    assert shown(RATE, "opened gate", "not opened", "opened gate", standing="regression") == [
        "regression: opened in 2 of 3, should be less than half",
        f"Query ({WHERE}, should not open the skill):",
        "  Paint the gate",
        "  runs 1, 3: opened gate",
        "  run 2: not opened",
    ]


def test_a_query_that_needs_the_skill() -> None:
    lines = shown(replace(RATE, should_trigger=True, opened=0))
    assert lines[0] == "opened in 0 of 3, should be at least half"
    assert "should open the skill" in lines[1]


def test_a_hostile_query_is_shown_harmlessly() -> None:
    evil = "::error::gate\n\x1b[31m<script>alert(1)</script> " + "long " * 50_000
    lines = shown(replace(RATE, query=evil), evil)
    assert len(lines) == 4
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "\n::error" not in text
    assert len(text) < 2_000
