"""Whether agents opened the skill: counted over cases, told in the verdict,
never a gate.
"""

from dataclasses import replace

import pytest

from pytest_upskill.results.activation import Activation, activation_words
from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.run import RunResults
from pytest_upskill.results.run_notes import run_notes
from pytest_upskill.settings import Gates
from pytest_upskill.stats import wilson
from pytest_upskill.trials.answer import STOPPED
from pytest_upskill.trials.records import Record
from pytest_upskill.trials.transcript import NOT_INVOKED, ListedSkill, Sent
from support.agent_runs import Opens, agent_run, with_listing
from support.made import Passes, made_run
from support.words import HELPS, HURTS, NO_EFFECT, NOT_NEEDED, TOO_FEW


def activation(results: RunResults) -> Activation:
    (row,) = results.summaries
    assert row.activation
    return row.activation


def test_the_case_is_the_sample_not_the_run() -> None:
    found = activation(agent_run(cases=10, runs=3, opens=lambda case, _: case < 9))
    assert (found.count, found.trials) == (27, 30)
    assert found.rate == pytest.approx(0.9)
    assert found.interval == pytest.approx(wilson(0.9, 10))


def test_a_summary_has_means_of_turns_and_tool_calls_per_arm() -> None:
    (row,) = agent_run(cases=10, opens=lambda case, _: case < 5).summaries
    assert (row.agent, row.label) == ("loop", "loop/haiku")
    assert (row.arm("baseline").turns, row.arm("skill").turns) == (4, 4.5)
    assert (row.arm("baseline").tool_calls, row.arm("skill").tool_calls) == (3, 3.5)


def test_a_plain_completion_has_no_activation() -> None:
    (row,) = made_run().summaries
    assert (row.agent, row.activation, row.arm("skill").turns) == ("chat", None, None)


def test_a_lift_per_opening_is_the_lift_over_all_trials_by_the_share_opened() -> None:
    def lucky(case: int, _model: str, arm: str, run: int) -> bool:
        """No effect, but each trial that opens the skill passes,
        as do half of the baseline.
        """
        return run == 1 if arm == "skill" else (case + run) % 2 == 0

    (verdict,) = agent_run(
        cases=20, runs=2, passes=lucky, opens=lambda _, run: run == 1
    ).verdicts
    effect = verdict.lift_per_opening
    assert effect is not None
    assert effect.lift == 0
    assert effect.low < 0 < effect.high
    (helped,) = agent_run(
        cases=12, runs=2, passes=SOME, opens=lambda case, _: case < 9
    ).verdicts
    assert helped.lift
    assert helped.lift_per_opening
    assert helped.lift_per_opening.lift == pytest.approx(helped.lift.lift / 0.75) == 1


def test_a_lift_per_opening_is_not_given_where_it_is_the_lift_or_hardly_known() -> None:
    for passes, opens in ((SOME, ALL), (SOME, NONE), (SAME, lambda case, _: case == 0)):
        (verdict,) = agent_run(cases=12, passes=passes, opens=opens).verdicts
        assert verdict.lift_per_opening is None
        assert "per opening" not in verdict.sentence


def test_no_lift_per_opening_while_answers_are_missing() -> None:
    results = agent_run(cases=12, passes=SOME, opens=lambda case, _: case < 9)
    first, *rest = results.records
    assert results.verdicts[0].lift_per_opening
    broken = replace(first, outcome="errored", error="no sandbox", output=None)
    (verdict,) = replace(results, records=(broken, *rest)).verdicts
    assert verdict.lift_per_opening is None


def test_cases_that_ask_the_same_are_one_sample() -> None:
    results = agent_run(cases=6, opens=lambda case, _: case < 5)
    same = replace(
        results, tests=tuple(replace(test, sample="s") for test in results.tests)
    )
    found = activation(same)
    assert len(found.shares) == 1
    assert found.rate == pytest.approx(5 / 6)


def test_a_trial_that_does_not_tell_leaves_it_unknown() -> None:
    results = agent_run()
    first, second, *rest = results.records
    assert second.arm == "skill"
    unknown = replace(second, activity=None)
    (row,) = replace(results, records=(first, unknown, *rest)).summaries
    assert row.activation is None


def test_errored_pairs_count_neither_way() -> None:
    results = agent_run(cases=6)
    first, *rest = results.records
    assert first.arm == "baseline"
    broken = replace(first, outcome="errored", error="no sandbox", output=None)
    found = activation(replace(results, records=(broken, *rest)))
    assert (found.count, found.trials) == (5, 5)


ALL: Opens = lambda _case, _run: True  # noqa: E731
NONE: Opens = lambda _case, _run: False  # noqa: E731
SAME: Passes = lambda case, _model, _arm, _run: case % 3 == 0  # noqa: E731
WITH_SKILL: Passes = lambda _case, _model, arm, _run: arm == "skill"  # noqa: E731
SOME: Passes = lambda case, _model, arm, _run: arm == "skill" and case < 9  # noqa: E731
WITHOUT: Passes = lambda _case, _model, arm, _run: arm != "skill"  # noqa: E731


@pytest.mark.parametrize(
    ("passes", "opens", "word", "words"),
    [
        (
            SAME,
            NONE,
            TOO_FEW,
            (
                "never opened in 10 trials, so this says nothing of its text: let the"
                " description say when to use it, or write cases that need it"
            ),
        ),
        (
            SAME,
            ALL,
            NO_EFFECT,
            "opened in 20 of 20 trials but did not help: work on its text; ",
        ),
        (SAME, ALL, TOO_FEW, "opened in 10 of 10 trials; "),
        (
            SAME,
            lambda case, _: case < 1,
            TOO_FEW,
            (
                "opened in 1 of 10 trials: work on the description first, then judge"
                " its text; "
            ),
        ),
        # Maybe in half
        (SAME, lambda case, _: case < 3, TOO_FEW, "opened in 3 of 10 trials; "),
        (WITH_SKILL, ALL, HELPS, "opened in 10 of 10 trials"),
        (
            lambda case, _model, arm, _run: arm == "skill" and case < 6,
            lambda case, _: case < 6,
            HELPS,
            (
                "opened in 6 of 10 trials, +100 points per opening (+57 to +100): a "
                "description that says when to use it may help more often"
            ),
        ),
        (
            WITH_SKILL,
            NONE,
            HELPS,
            "never opened in 10 trials, so this says nothing of its text: ",
        ),
        (
            WITHOUT,
            ALL,
            HURTS,
            (
                "opened in 10 of 10 trials: what it says makes answers worse, so work"
                " on its text"
            ),
        ),
        (
            WITHOUT,
            lambda case, _: case < 2,
            HURTS,
            (
                "opened in 2 of 10 trials: answers got worse where it was not opened,"
                " too, so look at those first"
            ),
        ),
        (
            lambda *_: True,
            ALL,
            NOT_NEEDED,
            (
                "opened in 20 of 20 trials: the cases pass without it, so write harder"
                " ones"
            ),
        ),
    ],
)
def test_the_sentence_tells_apart_what_came_of_opening_it(
    passes: Passes, opens: Opens, word: str, words: str
) -> None:
    cases = 20 if word in (NO_EFFECT, NOT_NEEDED) else 10
    (verdict,) = agent_run(cases=cases, passes=passes, opens=opens).verdicts
    assert verdict.word == word
    assert f"; {words}" in verdict.sentence
    if opens is NONE:  # then no number of such cases would tell, so no outlook follows
        assert verdict.sentence.rpartition("; ")[2].startswith("never opened")


def test_a_better_description_is_advised_only_if_shown_to_be_opened_seldom() -> None:
    for cases, advised in ((10, False), (40, True)):  # 8 of 10 may be 90 %

        def in_most(case: int, cases: int = cases) -> bool:
            return case < 0.75 * cases

        (verdict,) = agent_run(
            cases=cases,
            passes=lambda case, _m, arm, _r: arm == "skill" and in_most(case),
            opens=lambda case, _: in_most(case),
        ).verdicts
        assert verdict.word == HELPS
        assert ("description" in verdict.sentence) is advised


def test_a_small_lift_is_not_said_to_be_no_help() -> None:
    (verdict,) = agent_run(
        cases=10, passes=lambda case, _m, arm, _r: arm == "skill" and case < 2
    ).verdicts
    assert verdict.word == TOO_FEW
    assert "did not help" not in verdict.sentence
    assert "opened in 10 of 10 trials;" in verdict.sentence


@pytest.mark.parametrize(
    ("opens", "advised"), [(lambda case, _: case % 2 == 0, False), (ALL, True)]
)
def test_nothing_is_said_of_the_text_if_those_who_opened_it_may_be_helped(
    opens: Opens, advised: bool
) -> None:
    """The lift of all is shown to be small, that of an opening is not."""
    (verdict,) = agent_run(
        cases=60,
        passes=lambda case, _m, arm, _r: case % 6 != (arm == "skill"),
        opens=opens,
    ).verdicts
    assert verdict.word == NO_EFFECT
    assert ("did not help" in verdict.sentence) is advised


@pytest.mark.parametrize("end", ["silent", "limit"])
@pytest.mark.parametrize("opens", [ALL, NONE])
@pytest.mark.parametrize(
    ("skill", "baseline", "is_model"),
    [(10, 10, True), (5, 6, True), (10, 4, False), (4, 10, False)],
)
def test_arms_that_both_have_no_end_point_to_the_model(
    end: str, opens: Opens, skill: int, baseline: int, is_model: bool
) -> None:
    results = agent_run(cases=10, passes=lambda *_: False, opens=opens)

    def done(record: Record) -> Record:
        most = skill if record.arm == "skill" else baseline
        if int(record.case.removeprefix("case-")) >= most:
            return record
        if end == "silent":
            return replace(record, output="<think>Again.</think>")
        why = f"{STOPPED} limit of 30 turns"
        return replace(
            record, checks=tuple(replace(grade, reason=why) for grade in record.checks)
        )

    (verdict,) = replace(results, records=tuple(map(done, results.records))).verdicts
    assert ("points to the model" in verdict.sentence) is is_model
    assert ("description" in verdict.sentence) is (opens is NONE and not is_model)
    if is_model:
        shares = f"{skill} of 10 trials with it and {baseline} of 10 trials without it"
        assert shares in verdict.sentence
        assert "its text" not in verdict.sentence


def test_a_model_that_calls_no_tool_is_looked_at_before_the_description() -> None:
    never = Activation(0, 4, (0.0,), tool_calls=0)
    assert "calls tools before" in activation_words(never, None, None, None)
    results = agent_run(cases=4, opens=NONE)
    assert activation(results).tool_calls > 0


def test_skills_that_were_opened_instead_are_named() -> None:
    results = agent_run(cases=4, opens=lambda case, _run: case == 0)
    other = [
        (
            replace(record, activity=replace(record.activity, opened=("docs-writer",)))
            if record.activity
            and record.arm == "skill"
            and not record.activity.activated
            else record
        )
        for record in results.records
    ]
    found = activation(replace(results, records=tuple(other)))
    assert found.instead == (("docs-writer", 3),)
    words = activation_words(found, HELPS, None, None)
    assert words.startswith("opened in 1 of 4 trials (instead: docs-writer in 3)")
    never = replace(found, count=0)
    assert activation_words(never, None, None, None).startswith(
        "never opened in 4 trials (instead: docs-writer in 3), so this says nothing of"
        " its text"
    )


def test_of_a_bundle_each_skill_is_counted() -> None:
    results = agent_run(cases=4, opens=lambda case, _run: case < 3)
    opened = [("gate",), ("gate", "boat"), ("gate",), ()]
    records = [
        replace(record, activity=replace(record.activity, opened=opened[number % 4]))
        for arm in ("baseline", "skill")
        for number, record in enumerate(
            each for each in results.records if each.arm == arm
        )
        if record.activity
    ]
    [info] = results.skills
    info = replace(info, members=("boat", "gate", "pond"))
    bundle = replace(results, records=tuple(records), skills=(info,))
    assert activation(bundle).by_skill == {"boat": 1, "gate": 3, "pond": 0}
    words = "opened in 3 of 4 trials (gate in 3, boat in 1; never: pond)"
    assert activation(bundle).opened == words
    [row] = bundle.summary
    assert row.opened_by_skill == {"boat": 1, "gate": 3, "pond": 0}


def test_one_trial_reads_as_one() -> None:
    assert Activation(1, 1, (1.0,)).opened == "opened in 1 of 1 trial"
    assert activation_words(Activation(0, 1, (0.0,)), None, None, None).startswith(
        "never opened in its only trial,"
    )


@pytest.mark.parametrize(
    ("untold", "words"), [(10, "never listed in 10"), (9, "in 9 of 9 trials")]
)
def test_an_agent_that_knows_no_skills_is_told_from_a_description_that_says_little(
    untold: int, words: str
) -> None:
    results = agent_run(cases=10, opens=lambda _case, _run: False)

    def done(record: Record) -> Record:
        if record.arm != "skill" or int(record.case.removeprefix("case-")) >= untold:
            return record
        assert record.activity
        return replace(
            record,
            activity=replace(
                record.activity,
                listed=(ListedSkill("wick", "not listed", tested=True),),
            ),
        )

    found = activation(replace(results, records=tuple(map(done, results.records))))
    assert found.untold == untold
    assert words in activation_words(found, NO_EFFECT, None, None)


@pytest.mark.parametrize(
    ("sent", "words", "field"),
    [
        (("whole",), "let the description say", "listed_whole"),
        (("cut",), "its description was cut in 10 of 10 trials", "listed_cut"),
        (("name",), "listed by name only in 10 of 10 trials", "listed_by_name"),
        (("not listed",), "never listed in 10 trials", "not_listed"),
        (("whole", "name"), "its description was cut in 10 of 10 trials", "listed_cut"),
    ],
)
def test_a_skill_that_was_never_opened_is_told_by_how_it_was_listed(
    sent: tuple[Sent, ...], words: str, field: str
) -> None:
    results = with_listing(agent_run(cases=10, opens=NONE), *sent)
    (verdict,), (row,) = results.verdicts, results.summary
    assert words in verdict.sentence
    names = ("listed_whole", "listed_cut", "listed_by_name", "not_listed")
    assert {name: getattr(row, name) for name in names} == {
        **dict.fromkeys(names, 0),
        field: 10,
    }


def test_an_agent_that_did_not_take_the_command_is_told() -> None:
    results = agent_run(cases=10, opens=NONE)
    records = (
        replace(
            record,
            activity=record.activity
            and replace(record.activity, findings=(NOT_INVOKED,)),
        )
        for record in results.records
    )
    (verdict,) = replace(results, records=tuple(records)).verdicts
    assert "did not take the command to use it in 10" in verdict.sentence


def test_a_skill_that_was_opened_without_its_description_is_told_so() -> None:
    (verdict,) = with_listing(agent_run(cases=10, opens=ALL), "name").verdicts
    assert (
        "opened in 10 of 10 trials (listed by name only in 10 of 10 trials)"
        in verdict.sentence
    )


def test_a_note_names_all_skills_that_were_not_listed_whole() -> None:
    results = agent_run(cases=10, opens=NONE)
    assert not any("all descriptions" in note for note in run_notes(results))
    notes = [
        note
        for note in run_notes(with_listing(results, "cut"))
        if "all descriptions" in note
    ]
    assert notes == [
        (
            "loop/haiku did not send all descriptions of 2 installed skills: cut 1"
            " (wick-0), name only 1 (docs-writer)."
        )
    ]


def test_no_gate_goes_by_what_was_opened() -> None:
    gates = Gates(min_lift=0.1, min_pass_rate=0.5)
    opened, not_opened = (
        agent_run(cases=10, passes=WITH_SKILL, opens=opens).verdicts
        for opens in (ALL, NONE)
    )
    assert gate_reasons(opened, gates) == gate_reasons(not_opened, gates) == []


def test_the_score_may_be_the_share_of_checks() -> None:
    results = agent_run(cases=12, opens=lambda case, _: case < 9)
    records = tuple(
        replace(r, score=0.25 + 0.5 * bool(r.activity and r.activity.activated))
        for r in results.records
    )
    skills = tuple(replace(skill, score="checks") for skill in results.skills)
    (verdict,) = replace(results, records=records, skills=skills).verdicts
    assert verdict.lift_per_opening
    assert verdict.lift_per_opening.lift == pytest.approx(0.5)
