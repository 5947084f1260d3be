"""When the arms were asked, in numbers, in words, and in the verdict."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.settings import Gates
from support.made import made_run

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def run_of(
    baseline: datetime, skill: datetime = NOW, max_age: timedelta = DAY
) -> RunResults:
    """Arms asked at these times, one second a case; the run is of ``NOW``."""
    made = made_run(passes=lambda _case, _model, arm, _run: arm == "skill")
    moments = {"baseline": baseline, "skill": skill}
    records = [
        replace(
            record, asked_at=int(moments[record.arm].timestamp()) + int(record.case[-1])
        )
        for record in made.records
    ]
    seconds = max_age.total_seconds()
    return replace(made, records=tuple(records), started=NOW, max_age=seconds)


def test_the_summary_has_the_first_and_last_time_of_each_arm() -> None:
    (row,) = run_of(NOW - HOUR).summary
    assert row.baseline_asked_first == NOW - HOUR
    assert row.baseline_asked_last == NOW - HOUR + timedelta(seconds=5)
    assert (row.skill_asked_first, row.previous_asked_first) == (NOW, None)


@pytest.mark.parametrize("max_age", [DAY, 2 * DAY])
def test_no_verdict_on_arms_that_are_too_far_apart(max_age: timedelta) -> None:
    run = run_of(NOW - 1.5 * DAY, max_age=max_age)
    (verdict,), (row,) = run.verdicts, run.summary
    if max_age > DAY:
        assert (row.verdict, row.lift) == ("helps", 1.0)
        return
    assert (row.verdict, row.lift, row.p_value, verdict.lift) == (
        "incomplete",
        None,
        None,
        None,
    )
    assert row.skill_rate == 1.0
    reasons = gate_reasons([verdict], Gates(min_lift=0.1))
    for text in (row.sentence, *reasons):
        assert "more than 1d apart" in text
        assert "baseline asked 2026-11-16, skill 2026-11-17" in text


def test_one_case_of_another_day_is_enough() -> None:
    run = run_of(NOW)
    old = replace(run.records[0], asked_at=int((NOW - 3 * DAY).timestamp()))
    mixed = replace(run, records=(old, *run.records[1:]))
    assert [row.verdict for row in mixed.summary] == ["incomplete"]
    unknown = replace(run, records=(replace(old, asked_at=None), *run.records[1:]))
    assert [row.verdict for row in unknown.summary] == ["helps"]


@pytest.mark.parametrize(
    ("baseline", "skill", "words"),
    [
        (NOW, NOW, ""),
        (NOW - 0.9 * HOUR, NOW, ""),
        (NOW - 5 * HOUR, NOW - 5 * HOUR, ""),
        (
            NOW - 5 * HOUR,
            NOW,
            "baseline asked 2026-11-17 07:00 UTC, skill 2026-11-17 12:00 UTC",
        ),
        (NOW - 13 * HOUR, NOW, "baseline asked 2026-11-16, skill 2026-11-17"),
        (NOW - 7 * DAY, NOW - 7 * DAY, "asked 2026-11-10"),
        (NOW + 7 * DAY, NOW + 7 * DAY, ""),  # by a clock that was wrong
    ],
)
def test_the_age_is_told_where_it_is_not_that_of_the_run(
    baseline: datetime, skill: datetime, words: str
) -> None:
    run = run_of(baseline, skill)
    assert run.summaries[0].asked_words(run.started) == words
    assert [note for note in run_notes(run) if "asked" in note] == (
        [f"gate on haiku: {words}."] if words else []
    )


def test_shards_keep_their_days() -> None:
    first, second = run_of(NOW - 7 * DAY, NOW - 7 * DAY), run_of(NOW)
    shards = [
        replace(
            run,
            tests=tuple(test for test in run.tests if (test.case < "case-3") == half),
            records=tuple(one for one in run.records if (one.case < "case-3") == half),
        )
        for run, half in ((first, True), (second, False))
    ]
    whole, _ = merged([Source("a", shards[0]), Source("b", shards[1])])
    (row,) = whole.summary
    assert (row.verdict, row.baseline_asked_first) == ("helps", NOW - 7 * DAY)
    assert row.skill_asked_last == NOW + timedelta(seconds=5)
