"""Recall and false alarms of two runs, paired by query."""

from dataclasses import replace

from pytest_upskill.reports.terminal.layout import TerminalLook
from pytest_upskill.reports.terminal.run_lines import comparison_lines
from pytest_upskill.results.contrasts import points_words
from pytest_upskill.results.run_comparison import compare_runs
from support.made import made_triggers


def test_a_lost_recall_is_worse_and_more_false_alarms_too() -> None:
    before = made_triggers(["ooo"] * 10, ["---"] * 10)
    after = made_triggers(["---"] * 8 + ["ooo"] * 2, ["ooo"] * 8 + ["---"] * 2)
    found = compare_runs(before, after)
    assert [(one.measure, one.word, one.queries) for one in found.triggers] == [
        ("recall", "worse", 10),
        ("false alarms", "worse", 10),
    ]
    assert len(found.reasons) == 2
    back = compare_runs(after, before)
    assert [one.word for one in back.triggers] == ["better", "better"]
    assert back.reasons == []
    lines = comparison_lines([("a", before), ("b", after)], found, TerminalLook(80))
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    change = found.triggers[0].change
    assert f"gate on claude/haiku: recall 100%, then 20%: worse, {points_words(change)}" in text
    assert "Nothing to compare" not in text


def test_a_little_less_is_no_change_shown() -> None:
    found = compare_runs(made_triggers(["ooo"] * 6), made_triggers(["ooo"] * 5 + ["oo-"]))
    assert [one.word for one in found.triggers] == ["no change shown"] * 2
    assert found.reasons == []


def test_what_has_no_pair_is_left_out_and_told() -> None:
    before, after = made_triggers(["ooo"] * 6, []), made_triggers(["ooo"] * 4 + ["oEo", "ooo"], [])
    *others, last = after.tests
    after = replace(after, tests=(*others, replace(last, digest="another")))
    (change,) = compare_runs(before, after).triggers
    assert (change.queries, change.left_out) == (4, 2)
    assert "2 queries left out" in compare_runs(before, after).reasons[0]
