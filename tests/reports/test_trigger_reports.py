"""Triggers in every report: the same numbers, also where nothing else was tested."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.reports.junit_properties import case_properties, suite_properties
from pytest_upskill.reports.markdown import markdown_summary
from pytest_upskill.reports.page import run_page
from pytest_upskill.reports.terminal.layout import ASCII_MARKS, TerminalLook, text_width
from pytest_upskill.reports.terminal.summary_text import results_lines
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_notes import run_notes, subset_notes
from pytest_upskill.results.trigger_summary import MODELS_CHOICE, size_words
from support.made import made_triggers
from support.pages import data_of, page_words

NEEDS = ["ooo"] * 14 + ["xx-"] * 6
SPARES = ["ooo"] + ["---"] * 19
RUN = made_triggers(NEEDS, SPARES)
MIXED = made_triggers(
    ["ooo", "oEo"],
    ["---"],
    models=["haiku", "claude/haiku"],
    skills=["gate", "door"],
    only=False,
)


def shown(results: RunResults, width: int = 80, verbosity: int = 0) -> str:
    return "\n".join(
        results_lines(
            results, TerminalLook(width, verbosity=verbosity), run_notes(results)
        )
    )


def test_the_terminal_shows_a_table_and_the_verdict_last() -> None:
    table, _, verdict = shown(RUN).rpartition("\n\n")
    assert (
        table == "triggers · 20 queries that need gate, 20 that don't × 3 runs\n"
        "\n"
        "model         recall             interval    false alarms       interval\n"
        "─────────────────────────────────────────────────────────────────────────\n"
        "claude/haiku  ████████░░░░  70%  48% to 85%  █░░░░░░░░░░░   5%  1% to 24%"
    )
    (row,) = RUN.trigger_summaries
    assert " ".join(verdict.replace("\\\n", "").split()) == " ".join(
        [f"claude/haiku: {row.sentence}.", *row.advice]
    )


def test_the_queries_of_all_skills_are_counted() -> None:
    first, second = (
        made_triggers(["ooo"] * 3, ["---"]),
        made_triggers(["ooo"] * 2, ["---"] * 4),
    )
    other = [replace(row, skill="door") for row in second.trigger_summaries]
    said = size_words([*first.trigger_summaries, *first.trigger_summaries, *other])
    assert said == "5 queries that need their skill, 5 that don't × 3 runs"


def test_a_subset_is_told() -> None:
    some = replace(RUN, tests=RUN.tests[:3])
    assert subset_notes(some)[0] in shown(some)


def test_many_skills_have_their_verdicts_with_v() -> None:
    many = made_triggers(["o"], ["-"], skills=[f"skill-{n}" for n in range(13)])
    assert (
        shown(many).splitlines()[-1]
        == "-v shows the verdict on the triggers of each skill."
    )
    assert "skill-12 on claude/haiku: " in shown(many, verbosity=1)


def test_errors_are_told_with_their_causes() -> None:
    results = made_triggers(["ooE", "EEE"], ["---"])
    (row,) = results.trigger_summaries
    assert f"claude/haiku: {row.word}: {row.sentence}" in " ".join(
        shown(results).split()
    )
    assert "  without a result: timed out (4)" in shown(results)


@pytest.mark.parametrize("models", [["haiku"], ["haiku", "claude/haiku"]])
def test_the_choice_of_a_model_is_called_that_wherever_its_numbers_stand(
    models: list[str],
) -> None:
    results = made_triggers(NEEDS, SPARES, models=models)
    texts = [shown(results, verbosity=verbosity) for verbosity in (-1, 0, 1)]
    texts += [markdown_summary(results), page_words(run_page(results))]
    for text in texts:
        assert MODELS_CHOICE in " ".join(text.split()).replace(
            "The choice", "the choice"
        )
    for text in (shown(RUN), markdown_summary(RUN), page_words(run_page(RUN))):
        assert MODELS_CHOICE not in text


def test_markdown_has_the_verdict_and_the_queries_that_failed() -> None:
    text = markdown_summary(RUN, failed=7)
    assert "trigger-needs-14 on claude/haiku: passed 0 of 3" in text
    assert f"- gate on claude/haiku: {RUN.trigger_summaries[0].sentence}" in text
    assert "### Failed cases" in text
    assert "**Passed:** 2 passed." in markdown_summary(made_triggers(["o"], ["-"]))


def test_the_page_has_all_queries() -> None:
    page = data_of(run_page(RUN))
    assert (
        page["results"]["trigger_summaries"][0]["sentence"]
        == RUN.trigger_summaries[0].sentence
    )
    assert "opened instead: docs-writer in 12 trials" in page_words(run_page(RUN))
    assert len(page["tests"]) == 40
    assert page["tests"][14]["outcome"] == "failed"
    assert page["tests"][14]["passes"] == {"skill": [0, 3]}


def test_junit_has_the_numbers() -> None:
    known = dict(suite_properties(RUN))
    prefix = "upskill:gate:claude/haiku:"
    assert known[f"{prefix}recall"] == "0.7"
    assert known[f"{prefix}false_alarms"] == "0.05"
    assert known[f"{prefix}cost"] == "0.12"
    own = dict(case_properties(RUN.records[42:45], tags=("opens",)))
    assert (own["upskill_tags"], own["upskill_skill_rate"]) == ("opens", "0")
    assert own["upskill_activated_trials"] == "3"


HOSTILE = [
    "<script>alert(1)</script>",
    "a | b\n# c `d` @someone https://example.com",
    "\x1b[31mred\x07",
    "‮gnol" * 400,
    '"><img src=x onerror=alert(1)>',
]


@pytest.mark.parametrize("bad", HOSTILE)
def test_hostile_queries_stay_text(bad: str) -> None:
    results = made_triggers(["xx-", "EoE"], ["ooo"])
    results = replace(
        results,
        questions=dict.fromkeys(results.questions, bad),
        records=tuple(
            replace(
                record,
                error=record.error and bad,
                activity=record.activity and replace(record.activity, opened=(bad,)),
            )
            for record in results.records
        ),
    )
    page, markdown = run_page(results), markdown_summary(results, failed=3)
    # Which is text
    markdown = re.sub(r"```text\n.*?\n```", "", markdown, flags=re.DOTALL)
    for text in (page, markdown):
        assert not re.search(r"<script>alert|<img src=x", text)
        assert "\x1b" not in text
    for verbosity in (-1, 0, 1):
        lines = results_lines(
            results, TerminalLook(80, ASCII_MARKS, verbosity=verbosity)
        )
        assert not any(re.search("[\x00-\x1f\x7f]", line) for line in lines)


@given(
    st.lists(st.text("o-xE", max_size=4), max_size=6),
    st.lists(st.text("o-xE", max_size=4), max_size=6),
    st.integers(60, 130),
    st.sampled_from(
        [["haiku"], ["claude/haiku"], ["haiku", "loop/an-odd-and-rather-long-model"]]
    ),
    st.sampled_from([["gate"], ["gate", "a-skill-with-a-name-of-some-length"]]),
)
def test_lines_fit_any_terminal(
    needs: list[str],
    spares: list[str],
    width: int,
    models: list[str],
    skills: list[str],
) -> None:
    results = made_triggers(needs, spares, models=models, skills=skills)
    for verbosity in (-1, 0, 1):
        lines = results_lines(
            results, TerminalLook(width, verbosity=verbosity), run_notes(results)
        )
        assert max(map(text_width, lines), default=0) <= width
    assert markdown_summary(results)
    assert run_page(results)
