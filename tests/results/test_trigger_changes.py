"""Triggers of two runs, paired by query, those that should open
the skill and others apart.
"""

from dataclasses import replace

from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.run_lines import comparison_lines
from pytest_upskill.results.run_comparison import RunComparison, compare_runs
from support.made import made_triggers


def words(found: RunComparison) -> list[tuple[str, str]]:
    return [(pair.tag, pair.change.word) for pair in found.pairs if pair.change]


def test_a_lost_recall_is_worse_and_more_false_alarms_too() -> None:
    before = made_triggers(["ooo"] * 10, ["---"] * 10)
    after = made_triggers(["---"] * 8 + ["ooo"] * 2, ["ooo"] * 8 + ["---"] * 2)
    found = compare_runs(before, after)
    assert words(found) == [("opens", "worse"), ("stays-closed", "worse")]
    assert [(pair.before, pair.after, pair.cases) for pair in found.pairs] == [
        (1, 0.2, 10)
    ] * 2
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "gate on claude/haiku opens",
        "gate on claude/haiku stays-closed",
    ]
    back = compare_runs(after, before)
    assert words(back) == [("opens", "better"), ("stays-closed", "better")]
    assert back.reasons == []
    lines = comparison_lines([("a", before), ("b", after)], found, TerminalLook(80))
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines]
    assert any(
        row[:5] == ["claude/haiku", "stays-closed", "10", "100%", "20%"] for row in rows
    )
    assert "Nothing to compare" not in "\n".join(lines)


def test_a_little_less_is_no_change_shown() -> None:
    found = compare_runs(
        made_triggers(["ooo"] * 6), made_triggers(["ooo"] * 5 + ["oo-"])
    )
    assert [word for _, word in words(found)] == ["no change shown"] * 2
    assert found.reasons == []


def test_cases_and_triggers_are_compared_apart() -> None:
    run = made_triggers(only=False)
    found = compare_runs(run, run)
    assert [(pair.tag, pair.cases) for pair in found.pairs] == [
        ("", 6),
        ("opens", 4),
        ("stays-closed", 3),
    ]


def test_a_run_of_cases_and_one_of_triggers_share_no_tests() -> None:
    both = made_triggers(only=False)
    cases = replace(both, tests=both.cases, records=both.case_records)
    found = compare_runs(cases, made_triggers())
    assert (found.only_before, found.only_after) == ((), ())
    assert found.reasons == ["the runs share no tests of a skill on the same model"]


def test_what_has_no_pair_is_left_out_and_told() -> None:
    before, after = (
        made_triggers(["ooo"] * 6, []),
        made_triggers(["ooo"] * 4 + ["EEE", "ooo"], []),
    )
    *others, last = after.tests
    after = replace(after, tests=(*others, replace(last, digest="another")))
    (pair,) = compare_runs(before, after).pairs
    assert (pair.cases, pair.left_out.edited, pair.left_out.unanswered) == (4, 1, 1)
    assert "1 query not answered in both" in compare_runs(before, after).reasons[0]
