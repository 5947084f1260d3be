"""One list of numbers: a new entry appears in every report,
and a cost reads the same in all.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.reports import numbers
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.numbers import (
    LIFT,
    RATE,
    TOKENS,
    Number,
    growth_words,
    metrics,
)
from pytest_upskill.reports.page import run_page, trend_page
from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.summary_text import summary_lines
from pytest_upskill.reports.terminal.trend import history_lines, plot_lines
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.summary_row import row_of
from pytest_upskill.trials.records import Record
from support.agent_runs import agent_run
from support.made import STARTED, kept_rows, made_run
from support.pages import data_of, page_words

WIDE = TerminalLook(200)


def terminal(results: RunResults, _: Path) -> str:
    return "\n".join(summary_lines(results.skills, results.verdicts, WIDE))


def comment(results: RunResults, _: Path) -> str:
    return markdown_summary(results)


def page(results: RunResults, _: Path) -> str:
    """Its columns and their texts."""
    data = data_of(run_page(results))
    return json.dumps([data["columns"], data["rows"]], ensure_ascii=False) + str(
        [*results.model_ids]
    )


def history(results: RunResults, folder: Path) -> str:
    return "\n".join(history_lines(kept_rows(results, folder), WIDE, STARTED))


def trend(results: RunResults, folder: Path) -> str:
    return page_words(trend_page(kept_rows(results, folder), LIFT))


Report = Callable[[RunResults, Path], str]
everywhere = pytest.mark.parametrize(
    "report", [terminal, comment, page, history, trend]
)


@pytest.fixture
def gain(monkeypatch: pytest.MonkeyPatch) -> Number:
    """A new column: one entry."""

    entry = Number(
        "gain",
        "gained",
        ("normalised_gain",),
        RATE,
        title="share of what was left to gain",
    )
    monkeypatch.setattr(numbers, "NUMBERS", [*numbers.NUMBERS, entry])
    return entry


@everywhere
def test_one_entry_adds_a_column_to_every_table(
    report: Report, gain: Number, tmp_path: Path
) -> None:
    results = made_run()
    assert gain.text(results.summary[0]) == "75%"
    text = report(results, tmp_path)
    assert "gained" in text
    assert "75%" in text


@everywhere
def test_without_the_entry_there_is_no_such_column(
    report: Report, tmp_path: Path
) -> None:
    text = report(made_run(), tmp_path)
    assert "gained" not in text
    assert "75%</td>" not in text


def test_one_entry_adds_a_metric(gain: Number, tmp_path: Path) -> None:
    kept = kept_rows(made_run(), tmp_path)
    assert metrics()["gain"] is gain
    title, bar = plot_lines(kept, gain, WIDE, STARTED)
    assert title == "gate on haiku: share of what was left to gain"
    assert bar.split()[-1] == "75%"


def test_a_new_column_is_dropped_first(gain: Number, tmp_path: Path) -> None:
    results = made_run()
    kept = kept_rows(results, tmp_path)
    for width in range(60, 130):
        look = replace(WIDE, width=width)
        shown = summary_lines(results.skills, results.verdicts, look)
        header = next(line for line in shown if line.startswith("model"))
        assert ("seconds" in header) >= (gain.header in header)
        assert max(map(len, shown)) <= width
        listed = history_lines(kept, look, STARTED)
        assert ("cases" in listed[0]) >= (gain.header in listed[0])


@everywhere
def test_a_cost_reads_the_same_everywhere(report: Report, tmp_path: Path) -> None:
    made = made_run(models=("haiku", "opus"))
    records = [
        replace(r, cost=0.1234 if r.label == "haiku" else 2.5) for r in made.records
    ]
    text = report(replace(made, records=tuple(records)), tmp_path)
    assert "$/1000" in text
    assert "$123.40" in text
    assert "$2,500" in text


@everywhere
def test_a_column_of_costs_is_left_out_if_nothing_costs_anything(
    report: Report, tmp_path: Path
) -> None:
    made = made_run()
    records = [replace(record, cost=0.0) for record in made.records]
    text = report(replace(made, records=tuple(records)), tmp_path)
    assert "without" in text
    assert ">$/1000<" not in text
    assert " $/1000 " not in text


@everywhere
def test_what_agents_did_is_in_every_table_that_has_agents(
    report: Report, tmp_path: Path
) -> None:
    agents = agent_run(cases=10, opens=lambda case, _: case < 9, also=("haiku",))
    text = report(agents, tmp_path)
    assert "loop/haiku" in text
    opened = "90%" if report in (history, trend) else "9/10"
    cells = {"opened": opened, "turns": "4.9", "tool calls": "3.9"}
    for header, cell in list(cells.items())[: 1 if report is comment else None]:
        assert header in text
        assert cell in text
    plain = report(made_run(), tmp_path / "plain")
    assert "tool calls" not in plain
    assert "turns" not in plain


@pytest.mark.parametrize("width", [120, 160])
def test_what_agents_did_stays_at_usual_widths(width: int) -> None:
    made = agent_run(cases=10, also=("haiku",))
    many = [
        replace(r, input_tokens=18_000, cost=0.06, seconds=33.3) for r in made.records
    ]
    results = replace(made, records=tuple(many))
    shown = summary_lines(results.skills, results.verdicts, TerminalLook(width))
    header = next(line for line in shown if line.startswith("model"))
    assert max(map(len, shown)) <= width
    for name in ("opened", "tokens", "turns", "tool calls"):
        assert name in header


def test_the_fields_of_all_numbers_exist() -> None:
    row = made_run().summary[0]
    for number in numbers.NUMBERS:
        number.text(row)
        number.bounds_of(row)
        number.lift_text(row)
        assert not number.painted_by or hasattr(row, number.painted_by)


def test_changes_of_tokens_cost_and_seconds_have_paired_intervals() -> None:
    """Cases differ tenfold in what they take; the skill makes each
    of them about half as much.
    """
    made = made_run(cases=8)

    def taking(record: Record) -> Record:
        number = int(record.case.removeprefix("case-"))
        size = (
            10
            * (1 + number)
            * ((1.4 if number % 2 else 1.6) if record.arm == "skill" else 1)
        )
        return replace(
            record, seconds=size, cost=size / 1000, input_tokens=round(100 * size)
        )

    results = replace(made, records=tuple(map(taking, made.records)))
    (row,) = (row_of(verdict) for verdict in results.verdicts)
    for change, low, high in (
        (row.token_change, row.token_change_low, row.token_change_high),
        (row.cost_change, row.cost_change_low, row.cost_change_high),
        (row.seconds_change, row.seconds_change_low, row.seconds_change_high),
    ):
        assert change == pytest.approx(0.5, abs=0.02)
        assert change
        assert low
        assert high
        assert 0.35 < low < change < high < 0.65  # not the tenfold spread of the cases
    words = growth_words(row, details=True)
    changes = [
        f"{name} {number.growth_text(row)}"
        for name, number in metrics().items()
        if number.growth
    ]
    assert words.startswith(f"with the skill: {', '.join(changes)}, seconds +49% (")
    markdown = markdown_summary(results)
    assert data_of(run_page(results))["rows"][0]["texts"]["tokens"][
        2
    ] == TOKENS.growth_text(row)
    assert f"- {growth_words(row, details=False)}\n" in markdown
    default, verbose = (
        "\n".join(
            summary_lines(
                results.skills, results.verdicts, TerminalLook(200, verbosity=v)
            )
        )
        for v in (0, 1)
    )
    assert words not in default
    assert words in verbose
