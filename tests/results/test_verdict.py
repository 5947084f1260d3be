"""From a summary to one word, one sentence, and the gates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from pytest_upskill.results.gates import gate_reasons
from pytest_upskill.results.summary import Summary, summarize
from pytest_upskill.results.summary_row import row_of
from pytest_upskill.results.verdict import (
    Verdict,
    signal_lines,
    verdicts_of,
)
from pytest_upskill.settings import Gates
from pytest_upskill.stats import Interval
from support.made import (
    Pair,
    checked_run,
    made_records,
    made_run,
    made_summary,
    pair_of,
)

Cases = Sequence[Pair]


def summary(*cases: Pair, model: str = "haiku", **more: Any) -> Summary:
    """A summary of cases, each with its rates without and with the skill."""
    return made_summary(model, rates=cases, **{"tokens": (100.0, 150.0), **more})


def verdict(*cases: Pair, **more: Any) -> Verdict:
    (only,) = verdicts_of([summary(*cases, **more)])
    return only


HELPS: Cases = [(0, 1)] * 9 + [(1, 1)]
HURTS: Cases = [(1, 0)] * 9 + [(1, 1)]


@pytest.mark.parametrize(
    ("cases", "word"),
    [
        (HELPS, "helps"),
        (HURTS, "hurts"),
        ([(0, 1), (1, 0), (0, 0), (1, 1)], "too few cases to tell"),
        ([(0, 1)] * 3, "too few cases to tell"),  # so few cases can show nothing
        ([(0, 0)] * 16, "too few cases to tell"),  # 0 points (-21 to +21)
        ([(0, 0)] * 17, "no effect shown"),  # 0 points (-20 to +20): just below
        ([(1, 1)] * 16, "too few cases to tell"),
        ([(1, 1)] * 17, "not needed"),
        ([(1, 1)] * 17 + [(0, 0)] * 2, "no effect shown"),  # 89 % pass without it
        ([(1, 1)] * 60 + [(1, 0)] * 4, "no effect shown"),  # it breaks some
        # -10 points (-30 to +8)
        ([(1, 1)] * 18 + [(1, 0)] * 2, "too few cases to tell"),
        ([(0, 1)] * 3 + [(1, 0)] * 2 + [(0, 0)] * 30, "no effect shown"),
        ([(None, 1), (None, 0)], None),
        ([], "incomplete"),
    ],
)
def test_one_word(cases: Cases, word: str | None) -> None:
    assert verdict(*cases).word == word


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"errored": 2}, "2 answers missing"),
        ({"not_run": 1}, "1 case not run"),
        ({"errored": 1, "not_run": 3}, "1 answer missing and 3 cases not run"),
    ],
)
def test_missing_answers_and_cases_make_it_incomplete(
    more: dict[str, int], told: str
) -> None:
    possible = Interval(0.65, 0.9)
    counts = {"skill_asked": 10, "skill_passed": 8, "possible_lift": possible}
    found = verdict(*HELPS, **more, **counts)
    assert (found.word, found.lift, found.gain, found.comparisons) == (
        "incomplete",
        None,
        None,
        {},
    )
    answered = 10 - more.get("errored", 0)
    assert found.sentence.startswith(f"{told}; baseline 0 of 0 answered, ")
    assert found.sentence.endswith(
        f"; skill {answered} of 10 answered, 8 passed; "
        "with what is missing, the lift is between +65 and +90 points"
    )
    assert gate_reasons([found], Gates(min_lift=0.1)) == [
        f"gate on haiku: can't pass: {told}"
    ]
    row = row_of(found)
    assert (row.lift, row.lift_low, row.p_value, row.normalised_gain) == (None,) * 4
    assert (row.possible_lift_low, row.possible_lift_high) == possible


@pytest.mark.parametrize(
    ("cases", "tokens", "sentence"),
    [
        (HELPS, (100, 150), r"+90 points (+49 to +98), 50% more tokens"),
        (HELPS, (200, 100), r"+90 points (+49 to +98), 50% fewer tokens"),
        (HELPS, (1, 5282), r"+90 points (+49 to +98), 5,282 times the tokens"),
        (HELPS, (100, 101), r"+90 points (+49 to +98), the same number of tokens"),
        (HELPS, (None, None), r"+90 points (+49 to +98)"),
        ([(1, 1)] * 20, (None, None), "0 points (-17 to +17), 100% pass without it"),
        ([(None, 1), (None, 0)], (100, 100), "50% pass with the skill"),
    ],
)
def test_one_sentence(cases: Cases, tokens: Any, sentence: str) -> None:
    assert verdict(*cases, tokens=tokens).sentence == sentence


def test_no_effect_shown_says_which_lift_so_many_cases_could_show() -> None:
    few = verdict((0, 0), (0, 0), tokens=(None, None))
    assert (
        few.sentence == "0 points (-84 to +84); 2 cases can show no lift with 80% power"
    )
    even = verdict(*[(0, 0)] * 10, tokens=(None, None))
    assert even.sentence.endswith(
        "; 10 cases can show a lift of 59+ points with 80% power"
    )
    row = summary(*[(0, 0)] * 20)
    pairs = tuple(
        replace(case, sample=f"{n // 2}") for n, case in enumerate(row.by_case)
    )
    (grouped,) = verdicts_of([replace(row, by_case=pairs)])
    assert "; 10 groups can show a lift of " in grouped.sentence


def test_a_loss_that_is_still_possible_is_named() -> None:
    """No lift is: the baseline leaves no room for it."""
    loss = verdict(*[(1, 1)] * 18, *[(1, 0)] * 2, tokens=(None, None))
    assert (
        loss.sentence == "-10 points (-30 to +9); a loss of 20 points is not ruled out"
    )


def test_several_models_have_a_stricter_level() -> None:
    borderline: Cases = [(0, 1)] * 6 + [(1, 1)] * 4
    assert verdict(*borderline).word == "helps"
    several = verdicts_of([summary(*borderline, model=f"m{n}") for n in range(5)])
    assert {found.word for found in several} == {"too few cases to tell"}
    assert all(
        (over := found.over("baseline")) and over.lift.p_value > 0.05
        for found in several
    )
    # The interval decides, so it holds 0 too, and a confident gate goes by it.
    assert all(found.lift and found.lift.low == 0 for found in several)
    assert len(gate_reasons(several, Gates(min_lift=0.01, confident=True))) == 5


def test_models_of_other_skills_do_not_count() -> None:
    borderline: Cases = [(0, 1)] * 6 + [(1, 1)] * 4
    rows = [summary(*borderline, skill=f"s{n}") for n in range(5)]
    assert {found.word for found in verdicts_of(rows)} == {"helps"}


def test_cases_that_got_worse_come_first() -> None:
    found = verdict((1, 0), (1, 1), (0, 0), (0, 1), (0.5, 0.4))
    assert signal_lines(found) == [
        "worse with the skill: case-0, case-4",
        "pass even without the skill: case-1",
        "fail even with the skill: case-2",
    ]
    many = verdict(*[(1, 1)] * 7)
    assert signal_lines(many) == [
        "pass even without the skill: case-0, case-1, case-2, case-3, case-4 and 2 more"
    ]


@pytest.mark.parametrize(
    ("gates", "reasons"),
    [
        (Gates(), []),
        (Gates(min_lift=0.9), []),
        (
            Gates(min_lift=0.91),
            ["lift is +90 points (minimum +91; could be chance: +49 to +98)"],
        ),
        (Gates(min_lift=0.48, confident=True), []),
        (
            Gates(min_lift=0.6, confident=True),
            [
                (
                    "lowest likely lift is +49 points (minimum +60;"
                    " could be chance: +49 to +98)"
                )
            ],
        ),
        (Gates(min_pass_rate=1.0), []),
        (
            Gates(min_pass_rate=0.8, confident=True),
            [
                (
                    "lowest likely pass rate is 72% (minimum 80%;"
                    " could be chance: 72% to 100%)"
                )
            ],
        ),
        (
            Gates(min_lift=0.904),
            ["lift is +90.0 points (minimum +90.4; could be chance: +49 to +98)"],
        ),
        (Gates(min_lift=0.99), ["lift is +90 points (minimum +99; shown: +49 to +98)"]),
        (Gates(max_token_growth=0.5), []),
        (
            Gates(max_token_growth=0.4),
            ["token growth is +50% (maximum +40%; shown: +50% to +50%)"],
        ),
    ],
)
def test_a_gate_checks_the_estimate_or_its_bound(
    gates: Gates, reasons: list[str]
) -> None:
    found = gate_reasons([verdict(*HELPS)], gates)
    assert found == [f"gate on haiku: {reason}" for reason in reasons]


@pytest.mark.parametrize(("cases", "runs"), [(10, 1), (20, 1), (20, 3)])
@pytest.mark.parametrize(("before", "after"), [(0.8, 1.0), (0.7, 0.9), (0.4, 0.6)])
def test_a_lift_of_20_points_is_hardly_ever_missed_by_the_word(
    cases: int, runs: int, before: float, after: float
) -> None:
    draw, words = Random(1), Counter[str | None]()
    for _ in range(60):
        rates = [
            [
                sum(draw.random() < chance for _ in range(runs)) / runs
                for chance in (before, after)
            ]
            for _ in range(cases)
        ]
        words[
            verdict(*[(without, with_it) for without, with_it in rates], runs=runs).word
        ] += 1
    assert words["not needed"] + words["no effect shown"] + words["hurts"] <= 3


def test_rounding_fails_no_gate() -> None:
    thirds = [(0, 1), (3, 2), (0, 2), (0, 2), (2, 1)]
    found = verdict(
        *[(before / 3, after / 3) for before, after in thirds], runs=3, tokens=(10, 13)
    )
    change = found.over("baseline")
    assert found.lift
    assert found.lift.lift < 0.2 == pytest.approx(found.lift.lift)
    assert change
    assert change.tokens
    assert change.tokens.change > 0.3 == pytest.approx(change.tokens.change)
    assert gate_reasons([found], Gates(min_lift=0.2, max_token_growth=0.3)) == []
    assert (
        len(gate_reasons([found], Gates(min_lift=0.2001, max_token_growth=0.2999))) == 2
    )


def test_a_gate_that_can_not_be_evaluated_fails() -> None:
    gates = Gates(min_lift=-1, min_pass_rate=0.01, max_token_growth=99)
    incomplete = gate_reasons([verdict(*HELPS, errored=1)], gates)
    assert incomplete == ["gate on haiku: can't pass: 1 answer missing"]
    unknown = gate_reasons([verdict((None, 1.0), tokens=(None, None))], gates)
    assert unknown == [
        "gate on haiku: lift unknown: there is no baseline",
        "gate on haiku: token growth unknown",
    ]


def test_several_models_can_show_less_and_the_sentence_says_so() -> None:
    def all_gain(_case: int, _model: str, arm: str, _run: int) -> bool:
        return arm == "skill"

    (alone,) = made_run(cases=5, passes=all_gain).verdicts
    assert (alone.word, alone.detectable_lift is None) == ("helps", False)
    for verdict in made_run(cases=5, models=("a", "b"), passes=all_gain).verdicts:
        assert verdict.word == "too few cases to tell"
        assert (
            "5 cases for 2 models can show no lift with 80% power" in verdict.sentence
        )
        assert verdict.detectable_lift is None
    for verdict in made_run(cases=12, models=("a", "b"), passes=all_gain).verdicts:
        assert verdict.word == "helps"


def changed(**arms: str) -> Verdict:
    """The verdict on cases with one run, a letter each, against the ref main."""
    records = [
        record
        for arm, letters in arms.items()
        for number, letter in enumerate(letters)
        for record in made_records(
            {arm: letter},
            str(number),
            input_tokens=90 if arm == "skill" else 100,
            output_tokens=0,
        )
    ]
    row = summarize(
        records, pair_of("gate", "haiku"), model_id="m", not_run=0, against="main"
    )
    (found,) = verdicts_of([row])
    return found


@pytest.mark.parametrize(
    ("previous", "skill", "sentence", "fails"),
    [
        ("FFFFFFFF", "PPPPPPPP", "since main: better, +100 points (", False),
        ("PPPPPPPP", "FFFFFFFF", "since main: worse, -100 points (", True),
        ("PPPPPPPP", "PPPPPPPF", "since main: no change shown, -12 points (", False),
    ],
)
def test_a_change_since_a_ref_is_one_word_with_its_interval(
    previous: str, skill: str, sentence: str, fails: bool
) -> None:
    found = changed(previous=previous, skill=skill)
    assert found.since
    assert found.since.startswith(sentence)
    assert ", 10% fewer tokens" in found.since
    assert found.lift is None
    assert bool(gate_reasons([found], Gates(no_worse=True))) is fails


def test_only_runs_with_all_three_arms_count() -> None:
    found = changed(baseline="FFE", previous="PPF", skill="PEP")
    assert [case.case for case in found.summary.by_case] == ["0"]
    assert (found.summary.arm("previous").rate, found.summary.lift) == (1, 1)
    assert found.summary.errored == 2
    assert gate_reasons([found], Gates(no_worse=True))


def test_each_arm_is_compared_with_the_skill_by_itself() -> None:
    found = changed(baseline="F" * 9, trace="P" * 9, skill="P" * 9)
    assert {arm: over.word for arm, over in found.comparisons.items()} == {
        "baseline": "better",
        "trace": "no change shown",
    }
    assert found.since is None  # a trace is no git ref


# Of shares of checks.

# Of 7: no case passes in either arm
HIDDEN = [(0, 6), (1, 6), (0, 5), (1, 6), (2, 6), (0, 6)]


def of_checks(counts: Sequence[tuple[int, int]] = HIDDEN, **more: Any) -> Verdict:
    (found,) = checked_run(counts, **more).verdicts
    return found


def test_the_sentence_says_what_points_and_percentages_are_of() -> None:
    assert (
        of_checks().sentence
        == "+74 points of checks (+40 to +86), 0 of pass rate (-46 to +46), 200% more"
        " tokens"
    )
    assert of_checks(score="pass").sentence.startswith(
        "0 points of pass rate (-46 to +46), +74 of checks (+40 to +86), 200% more"
        " tokens; "
    )
    needless = of_checks([(7, 7)] * 18 + [(6, 7), (7, 6)])
    assert "99% of checks pass without it" in needless.sentence
    unclear = of_checks([(1, 6), (6, 1), (3, 4), (2, 6), (5, 4), (0, 4)])
    assert unclear.sentence.endswith("+ points of checks with 80% power")
    alone = of_checks(arms=("skill",))
    assert alone.sentence == "83% of checks pass with the skill (0% of cases)"
    other = of_checks(arms=("skill",), score="pass")
    assert other.sentence == "0% pass with the skill (83% of checks)"


def test_the_share_is_not_told_twice() -> None:
    """With one check each, passing and passing all checks are the same."""
    found = of_checks([(0, 1)] * 6, of=1, score="pass")
    assert found.sentence.startswith("+100 points (+")
    assert "checks" not in found.sentence
    assert "pass rate" not in of_checks([(0, 1)] * 6, of=1).sentence


def test_signals_and_gates_say_that_they_are_of_checks() -> None:
    assert signal_lines(
        of_checks([(5, 3), (7, 7), (0, 0), (1, 6), (6, 7), (0, 3)])
    ) == [
        "fewer checks pass with the skill: case-0",
        "all checks pass even without the skill: case-1",
        "no check passes even with the skill: case-2",
    ]
    assert gate_reasons([of_checks()], Gates(min_lift=0.8, min_pass_rate=0.5)) == [
        (
            "gate on haiku: lift of checks is +74 points (minimum +80; could be chance:"
            " +40 to +86)"
        ),
        "gate on haiku: pass rate is 0% (minimum 50%; shown: 0% to 39%)",
    ]
    assert gate_reasons([of_checks()], Gates(min_lift=0.5, confident=True)) == [
        (
            "gate on haiku: lowest likely lift of checks is +40 points "
            "(minimum +50; could be chance: +40 to +86)"
        )
    ]
