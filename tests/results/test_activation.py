"""Whether agents opened the skill: told beside the verdict, and never a gate."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_upskill.results.activation import Activation, activation_words
from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.row import Row
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.settings import Gates
from pytest_upskill.stats import wilson
from pytest_upskill.trials.transcript import NOT_INVOKED, Activity, ListedSkill, Sent
from support.agent_runs import Opens, agent_run, with_listing
from support.made import Passes, made_run
from support.words import HELPS, HURTS, NO_EFFECT, NOT_NEEDED, UNCLEAR


def row_of(results: RunResults) -> Row:
    (row,) = results.rows
    return row


def activation(results: RunResults) -> Activation:
    found = row_of(results).activation
    assert found
    return found


def with_activities(
    results: RunResults, activities: Sequence[Activity | None]
) -> RunResults:
    """The trials with the skill, by case, did something else."""
    records = []
    for record in results.records:
        if record.arm != "skill":
            records.append(record)
            continue
        number = int(record.case.removeprefix("case-"))
        activity = activities[number % len(activities)]
        records.append(replace(record, activity=activity))
    return replace(results, records=tuple(records))


def opened(*names: str, activated: bool = True) -> Activity:
    return Activity(turns=4, tool_calls=3, activated=activated, opened=names)


def all_open(_case: int, _run: int) -> bool:
    return True


def none_open(_case: int, _run: int) -> bool:
    return False


def same(case: int, _model: str, _arm: str, _run: int) -> bool:
    return case % 3 == 0


def with_skill(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm == "skill"


def without(_case: int, _model: str, arm: str, _run: int) -> bool:
    return arm != "skill"


# Numbers.


def test_case_is_the_sample_not_the_run() -> None:
    found = activation(agent_run(cases=10, runs=3, opens=lambda case, _: case < 9))
    assert (found.count, found.trials) == (27, 30)
    assert found.rate == pytest.approx(0.9)
    assert found.interval == pytest.approx(wilson(0.9, 10))

    run = agent_run(cases=6, opens=lambda case, _: case < 5)
    tests = [replace(test, sample="s") for test in run.tests]
    grouped = activation(replace(run, tests=tuple(tests)))
    assert grouped.shares == pytest.approx((5 / 6,))


def test_row_has_turns_and_tool_calls_of_each_arm() -> None:
    row = row_of(agent_run(cases=10, opens=lambda case, _: case < 5))
    assert (row.agent, row.label) == ("loop", "loop/haiku")
    assert row.arm("baseline").turns == 4
    assert row.arm("skill").turns == pytest.approx(20**0.5)  # of 4 and 5
    assert (row.arm("baseline").tool_calls, row.arm("skill").tool_calls) == (3, 3.5)
    over = row.over("baseline")
    assert over
    assert over.changes["turns"].change == pytest.approx(20**0.5 / 4 - 1)


def test_trial_that_does_not_tell_leaves_it_unknown() -> None:
    assert row_of(made_run()).activation is None
    run = agent_run(cases=6)
    unknown = with_activities(run, [*[opened("gate")] * 5, None])
    assert row_of(unknown).activation is None


def test_errored_pairs_count_neither_way() -> None:
    run = agent_run(cases=6)
    first, *others = run.records
    broken = replace(first, outcome="errored", error="no sandbox", output=None)
    found = activation(replace(run, records=(broken, *others)))
    assert (found.count, found.trials) == (5, 5)


def test_other_skills_that_were_opened_are_counted() -> None:
    activities = [opened("gate"), *[opened("docs-writer", activated=False)] * 3]
    found = activation(with_activities(agent_run(cases=4), activities))
    assert found.instead == (("docs-writer", 3),)
    words = activation_words(found, HELPS, None)
    assert words.startswith("opened in 1 of 4 trials (instead: docs-writer in 3)")


def test_of_a_bundle_each_skill_is_counted() -> None:
    run = agent_run(cases=4)
    skills = tuple(
        replace(skill, members=("boat", "gate", "pond")) for skill in run.skills
    )
    activities = [
        opened("gate"),
        opened("gate", "boat"),
        opened("gate"),
        opened(activated=False),
    ]
    bundle = with_activities(replace(run, skills=skills), activities)
    found = activation(bundle)
    assert found.by_skill == {"boat": 1, "gate": 3, "pond": 0}
    assert found.opened == (
        "opened in 3 of 4 trials (gate in 3, boat in 1; never: pond)"
    )


# Words.

ONLY_TEXT = "so this says nothing of its text: "


@pytest.mark.parametrize(
    ("passes", "opens", "word", "words"),
    [
        (same, none_open, UNCLEAR, f"never opened in 10 trials, {ONLY_TEXT}"),
        (with_skill, none_open, HELPS, f"never opened in 10 trials, {ONLY_TEXT}"),
        (same, all_open, NO_EFFECT, "in 20 of 20 trials but did not help: work on its"),
        (same, all_open, UNCLEAR, "opened in 10 of 10 trials"),
        (
            same,
            lambda case, _: case < 1,
            UNCLEAR,
            "opened in 1 of 10 trials: work on the description first",
        ),
        # Maybe in half
        (same, lambda case, _: case < 3, UNCLEAR, "opened in 3 of 10 trials"),
        (with_skill, all_open, HELPS, "opened in 10 of 10 trials"),
        (
            with_skill,
            lambda case, _: case < 5,
            HELPS,
            "opened in 5 of 10 trials: a description that says when to use it",
        ),
        (without, all_open, HURTS, ": what it says makes answers worse, so work on"),
        (
            without,
            lambda case, _: case < 2,
            HURTS,
            ": answers got worse where it was not opened, too",
        ),
        (lambda *_: True, all_open, NOT_NEEDED, ": the cases pass without it, so"),
    ],
)
def test_sentence_tells_apart_what_came_of_opening_it(
    passes: Passes, opens: Opens, word: str, words: str
) -> None:
    cases = 20 if word in (NO_EFFECT, NOT_NEEDED) else 10
    row = row_of(agent_run(cases=cases, passes=passes, opens=opens))
    assert row.verdict == word
    assert words in row.sentence


@pytest.mark.parametrize(("cases", "advised"), [(10, False), (40, True)])
def test_better_description_is_advised_only_if_shown_to_be_opened_seldom(
    cases: int, advised: bool
) -> None:
    """8 of 10 may be 90 %."""

    def in_most(case: int, *_: object) -> bool:
        return case < 0.75 * cases

    run = agent_run(
        cases=cases,
        passes=lambda case, _model, arm, _run: arm == "skill" and in_most(case),
        opens=in_most,
    )
    assert row_of(run).verdict == HELPS
    assert ("description" in row_of(run).sentence) is advised


def test_model_that_calls_no_tool_is_looked_at_before_the_description() -> None:
    never = Activation(0, 4, (0.0,), tool_calls=0)
    assert "calls tools before" in activation_words(never, None, None)
    assert activation(agent_run(cases=4, opens=none_open)).tool_calls > 0


@pytest.mark.parametrize(
    ("untold", "words"), [(10, "never listed in 10"), (9, "never opened in 10")]
)
def test_agent_that_knows_no_skills_is_told_from_a_poor_description(
    untold: int, words: str
) -> None:
    not_listed = (ListedSkill("wick", "not listed", tested=True),)
    activities = [
        replace(opened(activated=False), listed=not_listed if number < untold else ())
        for number in range(10)
    ]
    found = activation(with_activities(agent_run(cases=10), activities))
    assert found.untold == untold
    assert words in activation_words(found, NO_EFFECT, None)


@pytest.mark.parametrize(
    ("sent", "words", "kind"),
    [
        (("whole",), "let the description say", "whole"),
        (("cut",), "its description was cut in 10 of 10 trials", "cut"),
        (("name",), "listed by name only in 10 of 10 trials", "name"),
        (("not listed",), "never listed in 10 trials", "not listed"),
        (("whole", "name"), "its description was cut in 10 of 10 trials", "cut"),
    ],
)
def test_skill_that_was_never_opened_is_told_by_how_it_was_listed(
    sent: tuple[Sent, ...], words: str, kind: Sent
) -> None:
    results = with_listing(agent_run(cases=10, opens=none_open), *sent)
    assert words in row_of(results).sentence
    assert activation(results).sent[kind] == 10


def test_agent_that_did_not_take_the_command_is_told() -> None:
    refused = replace(opened(activated=False), findings=(NOT_INVOKED,))
    row = row_of(with_activities(agent_run(cases=10), [refused]))
    assert "did not take the command to use it in 10" in row.sentence


def test_note_names_all_skills_that_were_not_listed_whole() -> None:
    results = agent_run(cases=10, opens=none_open)
    assert not any("all descriptions" in note for note in run_notes(results))
    notes = run_notes(with_listing(results, "cut"))
    assert (
        "loop/haiku did not send all descriptions of 2 installed skills: cut 1"
        " (wick-0), name only 1 (docs-writer)."
    ) in notes


def test_no_gate_goes_by_what_was_opened() -> None:
    gates = Gates(min_lift=0.1, min_pass_rate=0.5)
    for opens in (all_open, none_open):
        rows = agent_run(cases=10, passes=with_skill, opens=opens).rows
        assert gate_reasons(rows, gates) == []
