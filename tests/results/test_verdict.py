"""Does a skill help? One word and one sentence over its models, and for each model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from random import Random
from typing import Any

import pytest

from pytest_upskill.results.run import RunResults
from pytest_upskill.results.verdict import Verdict
from pytest_upskill.stats import cases_to_show, holm, paired_lift, worst_loss
from support.made import by_count, checked_run, made_run

Counts = Sequence[tuple[int, int]]  # passes of each case, without and with the skill


def run_of(counts: Counts, runs: int = 1, **more: Any) -> RunResults:
    return made_run(cases=len(counts), runs=runs, passes=by_count(*counts), **more)


def judge(counts: Counts, runs: int = 1, **more: Any) -> Verdict:
    (verdict,) = run_of(counts, runs, **more).verdicts
    return verdict


def with_amounts(
    run: RunResults, tokens: Sequence[float], cost: Sequence[float | None]
) -> RunResults:
    """The same answers, for other amounts without the skill and with it."""
    records = []
    for record in run.records:
        side = record.arm == "skill"
        changed = replace(
            record,
            input_tokens=int(tokens[side]),
            output_tokens=0,
            cost=cost[side],
        )
        records.append(changed)
    return replace(run, records=tuple(records))


HELPS = [(0, 1)] * 9 + [(1, 1)]
HURTS = [(1, 0)] * 9 + [(1, 1)]
PASSES = [(1, 1)] * 20


# Words.


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        (HELPS, "helps"),
        (HURTS, "hurts"),
        ([(0, 1)] * 6, "helps"),
        ([(0, 1)] * 5, None),
        ([(0, 0)] * 16, "unclear"),
        ([(0, 0)] * 17, "no effect"),
        ([(1, 1)] * 16, "unclear"),
        ([(1, 1)] * 17, "not needed"),
        ([(1, 1)] * 17 + [(0, 0)] * 2, "no effect"),  # 89 % pass without it
        ([(1, 1)] * 60 + [(1, 0)] * 4, "no effect"),  # it breaks some
        ([(1, 1)] * 18 + [(1, 0)] * 2, "unclear"),
        ([(0, 1)] * 3 + [(1, 0)] * 2 + [(0, 0)] * 40, "no effect"),
    ],
)
def test_lift_and_its_interval_make_the_word(counts: Counts, word: str | None) -> None:
    run = run_of(counts)
    (verdict,) = run.verdicts
    assert verdict.verdict == run.rows[0].verdict == word
    assert verdict.lift == pytest.approx(
        sum(with_skill - without for without, with_skill in counts) / len(counts)
    )


def test_below_six_cases_there_is_no_verdict() -> None:
    verdict = judge([(0, 1)] * 5)
    assert verdict.verdict is None
    assert verdict.sentence == "5 cases: no verdict; six or more are needed"
    assert verdict.cases_needed == cases_to_show([1.0] * 5)
    # Cases that ask the same are one
    run = run_of([(0, 1)] * 10)
    tests = [
        replace(test, case_group=str(int(test.case[-1]) // 2)) for test in run.tests
    ]
    (grouped,) = replace(run, tests=tuple(tests)).verdicts
    assert (grouped.verdict, grouped.cases) == (None, 5)


def test_verdict_is_over_all_models_and_single_ones_are_adjusted() -> None:
    """Three of ten cases on each model: together five are more than chance."""

    def passes(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and (case + int(model)) % 3 > 0

    run = made_run(cases=10, models=("0", "1", "2"), passes=passes)
    (verdict,) = run.verdicts
    differences = []
    for case in range(10):
        differences.append(sum((case + model) % 3 > 0 for model in range(3)) / 3)
    lift = paired_lift(differences)
    assert (verdict.lift, verdict.lift_low, verdict.lift_high) == lift[:3]
    assert (verdict.models, verdict.cases) == (3, 10)
    assert verdict.sentence == "helps: +67 points over 3 models (+46 to +77)"
    assert verdict.by_model == {row.label: row.verdict for row in run.rows}

    alone = []
    for model in range(3):
        passed = [float((case + model) % 3 > 0) for case in range(10)]
        alone.append(paired_lift(passed).p_value)
    assert [row.p_value for row in run.rows] == pytest.approx(holm(alone))


def test_each_model_alone_may_be_unclear_where_the_skill_helps() -> None:
    def passes(case: int, model: str, arm: str, _run: int) -> bool:
        return arm == "skill" and case % 4 == int(model)

    run = made_run(cases=12, models=("0", "1", "2"), passes=passes)
    assert run.verdicts[0].verdict == "helps"
    assert {row.verdict for row in run.rows} == {"unclear"}


def test_skills_of_a_run_are_not_adjusted_for_each_other() -> None:
    names = [f"skill-{number}" for number in range(5)]
    verdicts = run_of([(0, 1)] * 6 + [(1, 1)] * 4, skills=names).verdicts
    assert [verdict.skill for verdict in verdicts] == names
    assert {verdict.verdict for verdict in verdicts} == {"helps"}


# No verdict.


def selected(run: RunResults, cases: int) -> RunResults:
    """As with -k: the tests know how many cases the file has."""
    names = [f"case-{number}" for number in range(cases)]
    return replace(
        run,
        tests=tuple(test for test in run.tests if test.case in names),
        records=tuple(record for record in run.records if record.case in names),
    )


def test_part_of_the_cases_gives_no_verdict() -> None:
    run = selected(run_of([(0, 1)] * 9 + [(1, 0)] * 6), cases=9)
    (verdict,) = run.verdicts
    assert verdict.verdict is run.rows[0].verdict is None
    assert "9 of 15 cases" in verdict.sentence
    assert verdict.cases_needed is None


def test_failing_cases_that_are_gone_give_no_verdict() -> None:
    run = replace(run_of([(0, 1)] * 9), gone={"gate": ("case-9", "case-10")})
    (verdict,) = run.verdicts
    assert verdict.verdict is run.rows[0].verdict is None
    assert "2 cases that failed last time are gone" in verdict.sentence


def with_outcome(run: RunResults, number: int, **changes: Any) -> RunResults:
    """The first answers without the skill came to something else."""
    records = list(run.records)
    places = [at for at, record in enumerate(records) if record.arm == "baseline"]
    for place in places[:number]:
        records[place] = replace(records[place], **changes)
    return replace(run, records=tuple(records))


CUT_OFF: dict[str, Any] = {"outcome": "failed", "cut_off": True}
ERRORED: dict[str, Any] = {
    "outcome": "errored",
    "error": "500",
    "output": None,
    "checks": (),
}


@pytest.mark.parametrize(
    ("changes", "number", "word"),
    [
        (CUT_OFF, 5, "nothing measured"),
        (CUT_OFF, 4, "helps"),
        (ERRORED, 5, "nothing measured"),
        (ERRORED, 4, "incomplete"),
    ],
)
def test_half_of_the_answers_of_an_arm_are_nothing_measured(
    changes: dict[str, Any], number: int, word: str
) -> None:
    run = with_outcome(run_of(HELPS), number, **changes)
    (verdict,) = run.verdicts
    assert verdict.verdict == run.rows[0].verdict == word
    if word == "nothing measured":
        assert f"{number} of 10 answers without the skill are" in verdict.sentence


def test_model_without_a_measurement_takes_no_evidence_away() -> None:
    """A model whose answers are cut off in both arms would halve the lift."""
    alone = judge(HELPS)
    run = run_of(HELPS, models=("haiku", "tiny"))
    records = [
        record if record.model == "haiku" else replace(record, **CUT_OFF)
        for record in run.records
    ]
    (verdict,) = replace(run, records=tuple(records)).verdicts
    assert (verdict.lift, verdict.verdict) == (alone.lift, "helps")
    assert verdict.sentence == alone.sentence
    assert verdict.by_model == {"haiku": "helps", "tiny": "nothing measured"}


def test_missing_answers_withhold_every_number() -> None:
    run = with_outcome(run_of(HELPS, models=("haiku", "opus")), 1, **ERRORED)
    haiku, opus = run.rows
    assert (haiku.verdict, haiku.lift, haiku.p_value) == ("incomplete", None, None)
    assert haiku.comparisons == {}
    assert haiku.possible_lift == (0.8, 0.9)
    assert opus.verdict == "helps"
    (verdict,) = run.verdicts
    assert verdict.verdict == "incomplete"
    assert verdict.sentence == "incomplete: haiku: 1 answer missing"


def test_without_a_baseline_there_is_no_verdict() -> None:
    run = run_of(HELPS, arms=("skill",))
    (verdict,) = run.verdicts
    assert (verdict.verdict, verdict.lift) == (None, None)
    assert run.rows[0].sentence == "100% pass with the skill"


# Cheaper.


@pytest.mark.parametrize(
    ("counts", "cost", "word"),
    [
        ([(1, 1)] * 10, (2.0, 1.0), "cheaper"),
        ([(0, 0)] * 10, (2.0, 1.0), "cheaper"),
        ([(1, 1)] * 9, (2.0, 1.0), "unclear"),
        ([(1, 1)] * 10, (1.0, 1.0), "unclear"),
        (PASSES, (2.0, 1.0), "cheaper"),
        (PASSES, (1.0, 2.0), "not needed"),
        (HELPS, (2.0, 1.0), "helps"),
        # Passing may be worse by more than a third
        ([(1, 1)] * 9 + [(1, 0)], (2.0, 1.0), "unclear"),
        # So few points are lost that it could be chance, but too many to be the same
        ([(1, 1)] * 36 + [(1, 0)] * 4, (2.0, 1.0), "unclear"),
    ],
)
def test_cheaper_is_the_same_work_for_less(
    counts: Counts, cost: tuple[float, float], word: str
) -> None:
    run = with_amounts(run_of(counts), tokens=(100, 100), cost=cost)
    (verdict,) = run.verdicts
    assert verdict.verdict == word
    assert (verdict.saving is not None) == (word == "cheaper")
    if verdict.saving:
        differences = [float(s - b) for b, s in counts]
        assert verdict.saving.change == pytest.approx(-0.5)
        assert verdict.saving.margin == worst_loss(differences)
        assert verdict.saving.measure == "cost"


def test_tokens_count_where_no_price_is_known() -> None:
    run = with_amounts(run_of(PASSES), tokens=(200, 120), cost=(None, None))
    (verdict,) = run.verdicts
    assert verdict.saving
    assert (verdict.saving.measure, verdict.verdict) == ("tokens", "cheaper")
    assert verdict.sentence == (
        "cheaper by 40 % (40 to 40); a loss of more than 17 points is ruled out"
    )
    # A known price decides: fewer tokens may cost more
    dear = with_amounts(run_of(PASSES), tokens=(200, 120), cost=(1.0, 1.0))
    assert dear.verdicts[0].verdict == "not needed"


@pytest.mark.parametrize(("dearest", "word"), [(2.0, "cheaper"), (2.5, "unclear")])
def test_what_is_saved_is_saved_even_if_the_dearest_case_counts_twice(
    dearest: float, word: str
) -> None:
    run = run_of([(1, 1)] * 10)
    records = []
    for record in run.records:
        number = int(record.case[-1])
        cost = 1.0
        if record.arm == "skill":
            cost = 0.75 - 0.04 * number if number else dearest
        records.append(replace(record, cost=cost))
    run = replace(run, records=tuple(records))
    over = run.rows[0].over("baseline")
    assert over
    high = over.changes["cost"].high
    assert high is not None
    assert high < 0
    assert run.verdicts[0].verdict == word


# Sentences, and what else a verdict has.


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (HELPS, "helps: +90 points (+62 to +100)"),
        (HURTS, "hurts: -90 points (-100 to -62)"),
        (PASSES, "not needed: 0 points (-17 to +17), 100% pass without it"),
        (
            [(0, 0)] * 20,
            "no effect: 0 points (-17 to +17); a lift of 20 points is ruled out",
        ),
    ],
)
def test_sentence_follows_the_name_of_the_skill(counts: Counts, sentence: str) -> None:
    assert judge(counts).sentence == sentence


def test_new_run_is_advised_by_the_one_formula_of_power() -> None:
    counts = [(0, 1)] * 4 + [(1, 0)] + [(0, 0)] * 5
    differences = [float(with_skill - without) for without, with_skill in counts]
    run = run_of(counts)
    (verdict,) = run.verdicts
    needed = cases_to_show(differences)
    assert needed
    assert verdict.cases_needed == run.rows[0].cases_needed == needed
    assert verdict.sentence.endswith(
        f"; a new run with about {needed} cases would settle it"
    )
    assert judge(HELPS).cases_needed is None


def test_looks_are_those_of_the_run() -> None:
    run = replace(run_of(HELPS), looks={"gate": 4})
    assert run.verdicts[0].looks == 4
    assert judge(HELPS).looks is None


def test_skill_compared_with_itself_gets_no_verdict() -> None:
    run = run_of([(1, 1)] * 20, arms=("again", "skill"))
    assert run.verdicts == ()
    assert run.rows[0].verdict is None
    assert "as it should be" in run.rows[0].sentence


# Of 7: no case passes in either arm
HIDDEN = [(0, 6), (1, 6), (0, 5), (1, 6), (2, 6), (0, 6)]


def test_lift_of_checks_is_shown_where_no_case_passes() -> None:
    (verdict,) = checked_run(HIDDEN).verdicts
    differences = [(with_skill - without) / 7 for without, with_skill in HIDDEN]
    lift = paired_lift(differences)
    assert (verdict.lift, verdict.p_value) == pytest.approx((lift.lift, lift.p_value))
    assert verdict.sentence == "helps: +74 points of checks (+40 to +86)"

    (of_passes,) = checked_run(HIDDEN, score="pass").verdicts
    assert (of_passes.lift, of_passes.verdict) == (0, "unclear")

    needless = checked_run([(7, 7)] * 18 + [(6, 7), (7, 6)])
    assert needless.verdicts[0].sentence.endswith("99% of checks pass without it")


# How often words are wrong.


@pytest.mark.parametrize("cases", [6, 10, 17, 20, 40])
@pytest.mark.parametrize("changed", [(0, 1), (1, 0)])
def test_skill_that_decides_a_fifth_of_the_cases_is_hardly_ever_ruled_out(
    changed: tuple[int, int], cases: int
) -> None:
    """The chance is exact. All other cases pass in both arms."""
    missed = 0.0
    for number in range(cases + 1):
        chance = comb(cases, number) * 0.2**number * 0.8 ** (cases - number)
        if chance > 1e-6:
            counts = [changed] * number + [(1, 1)] * (cases - number)
            word = judge(counts).verdict
            missed += chance * (word in ("not needed", "no effect"))
    assert missed <= 0.035


@pytest.mark.parametrize(("before", "after"), [(0.8, 1.0), (0.4, 0.6)])
def test_lift_of_20_points_is_hardly_ever_denied(before: float, after: float) -> None:
    draw = Random(1)
    words = Counter[str | None]()
    for _ in range(60):
        counts = []
        for _ in range(20):
            passed = [draw.random() < chance for chance in (before, after)]
            counts.append((int(passed[0]), int(passed[1])))
        words[judge(counts).verdict] += 1
    assert words["not needed"] + words["no effect"] + words["hurts"] <= 3
