"""Reports of runs with an arm that no run of tests has: a file may name any."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.reports.markdown import arm_words, markdown_summary
from pytest_upskill.reports.writers import REPORTS, Finished
from pytest_upskill.results.run import RunResults
from support.made import made_run

ODD = 'all <b>others</b> @team "x'


@pytest.fixture
def run() -> RunResults:
    run = made_run(arms=("baseline", ODD, "skill"), passes=lambda *_: False)
    records = [
        (
            replace(record, outcome="errored", error="no answer", output="I gave up.")
            if record.arm == ODD and record.case == "case-0"
            else record
        )
        for record in run.records
    ]
    return replace(run, records=tuple(records))


def test_every_report_can_be_written(tmp_path: Path, run: RunResults) -> None:
    finished = Finished(run, lambda: markdown_summary(run), ())
    # Only runs of agents have them
    for setting in REPORTS.keys() - {"transcripts_folder"}:
        REPORTS[setting](tmp_path / setting, finished)
    page = (tmp_path / "html_file").read_text("utf-8")
    assert "<b>others</b>" not in page
    comment = (tmp_path / "markdown_file").read_text()
    assert "Answer in the arm all " in comment
    assert "<b>" not in comment
    assert "@team" not in comment


def test_comparisons_have_the_arm(run: RunResults) -> None:
    (summary,) = run.summaries
    assert list(summary.arms) == ["baseline", ODD, "skill"]
    (verdict,) = run.verdicts
    assert not verdict.comparisons  # an answer is missing
    (complete,) = made_run(arms=list(summary.arms)).verdicts
    assert complete.over(ODD) is not None


def test_arms_in_words() -> None:
    assert arm_words("previous") == "with the skill at the git ref"
    assert arm_words("pdf alone") == "in the arm pdf alone"
