"""When the arms were asked, in words and in the verdict."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.merging import Source, merged
from pytest_upskill.results.run import RunResults
from pytest_upskill.settings import Gates
from support.made import made_run

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def run_of(
    baseline: datetime, skill: datetime = NOW, max_age: timedelta = DAY
) -> RunResults:
    """Arms asked at these times, one second a case; the run is of ``NOW``."""
    made = made_run(passes=lambda _case, _model, arm, _run: arm == "skill")
    moments = {"baseline": baseline, "skill": skill}
    records = []
    for record in made.records:
        asked_at = int(moments[record.arm].timestamp()) + int(record.case[-1])
        records.append(replace(record, asked_at=asked_at))
    return replace(
        made, records=tuple(records), started=NOW, max_age=max_age.total_seconds()
    )


def test_row_has_the_first_and_last_time_of_each_arm() -> None:
    asked = run_of(NOW - HOUR).rows[0].asked
    assert asked
    assert asked.first == {"baseline": NOW - HOUR, "skill": NOW}
    assert asked.last["baseline"] == NOW - HOUR + timedelta(seconds=5)


def test_no_verdict_on_answers_too_far_apart() -> None:
    run = run_of(NOW - 1.5 * DAY)
    (row,) = run.rows
    assert (row.verdict, row.lift, row.comparisons) == ("incomplete", None, {})
    assert row.skill_rate == 1.0
    for text in (row.sentence, *gate_reasons(run.rows, Gates(min_lift=0.1))):
        assert "asked more than 1d apart" in text
        assert "without the skill 2026-11-16, with the skill 2026-11-17" in text

    allowed = run_of(NOW - 1.5 * DAY, max_age=2 * DAY)
    assert allowed.rows[0].verdict == "helps"


@pytest.mark.parametrize(
    ("asked_at", "verdict"),
    [(int((NOW - 3 * DAY).timestamp()), "incomplete"), (None, "helps")],
)
def test_one_answer_of_another_day_is_enough(
    asked_at: int | None, verdict: str
) -> None:
    run = run_of(NOW)
    first = replace(run.records[0], asked_at=asked_at)
    mixed = replace(run, records=(first, *run.records[1:]))
    assert [row.verdict for row in mixed.summary] == [verdict]


@pytest.mark.parametrize(
    ("baseline", "skill", "words"),
    [
        (NOW - 0.9 * HOUR, NOW, ""),
        (NOW - 5 * HOUR, NOW - 5 * HOUR, ""),
        (
            NOW - 5 * HOUR,
            NOW,
            (
                "asked without the skill 2026-11-17 07:00 UTC, with the skill"
                " 2026-11-17 12:00 UTC"
            ),
        ),
        (
            NOW - 13 * HOUR,
            NOW,
            "asked without the skill 2026-11-16, with the skill 2026-11-17",
        ),
        (NOW - 7 * DAY, NOW - 7 * DAY, "asked 2026-11-10"),
        (NOW + 7 * DAY, NOW + 7 * DAY, ""),  # by a clock that was wrong
    ],
)
def test_age_is_told_where_it_is_not_that_of_the_run(
    baseline: datetime, skill: datetime, words: str
) -> None:
    run = run_of(baseline, skill)
    asked = run.rows[0].asked
    assert asked
    assert asked.words(run.started) == words


def test_shards_keep_their_days() -> None:
    shards = []
    for run, is_first in (
        (run_of(NOW - 7 * DAY, NOW - 7 * DAY), True),
        (run_of(NOW), False),
    ):
        tests = [test for test in run.tests if (test.case < "case-3") == is_first]
        records = [each for each in run.records if (each.case < "case-3") == is_first]
        shard = replace(run, tests=tuple(tests), records=tuple(records))
        shards.append(Source(f"{is_first}", shard))
    whole, _ = merged(shards)
    (row,) = whole.rows
    assert row.asked
    assert (row.verdict, row.asked.first["baseline"]) == ("helps", NOW - 7 * DAY)
    assert row.asked.last["skill"] == NOW + timedelta(seconds=5)
