"""Simulated studies and versions: what studies and teachers' commands make of runs
that are drawn from known pass rates.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_upskill.features.queries.describing import HELD_OUT_SHARE
from pytest_upskill.features.queries.descriptions import balanced, weighted_differences
from pytest_upskill.results.arm_contrasts import compare_arms, judge_contrasts
from pytest_upskill.results.comparison import CaseResult, Comparison
from pytest_upskill.results.contrasts import MARGIN, Contrast
from pytest_upskill.stats import Lift, holm_lifts, paired_lift, worst_loss
from pytest_upskill.teach.shorter import shortest_within
from support.simulated import ask, differ, passes, rates

# Studies: variants with known pass rates, judged together as a study runner does.

Rates = Mapping[str, list[float]]  # by arm: the chance of each case to pass


@dataclass(frozen=True)
class Simulated:
    """Variants and contrasts, and the effect of each contrast over
    all cases there could be.
    """

    rates: Rates
    contrasts: tuple[Contrast, ...]
    true: Mapping[str, float]


def carry_out(draw: random.Random, study: Simulated, runs: int) -> dict[str, Lift]:
    """The effects of a study, by the names of its contrasts."""
    arms = {}
    for name, chances in study.rates.items():
        arms[name] = {
            str(case): CaseResult(passes(draw, chance, runs) / runs, {}, str(case))
            for case, chance in enumerate(chances)
        }
    comparisons: dict[Contrast, Comparison] = {}
    for contrast in study.contrasts:
        comparison = compare_arms(contrast, arms)
        assert comparison
        comparisons[contrast] = comparison
    return judge_contrasts(comparisons)


LIFT = 0.4  # of the skills, on average over all cases that there could be

Pair = tuple[float, float]  # chances of a case without the skill, and with it
Case = Callable[[random.Random], Pair]


def matrix_study(
    draw: random.Random, case: Case, cases: int, skills: int, harm: float = 0.0
) -> Simulated:
    """Skills beside each other; the first loses ``harm`` of its lift beside the
    second.
    """
    rates, contrasts, true = (
        dict[str, list[float]](),
        list[Contrast](),
        dict[str, float](),
    )
    for one in range(skills):
        own = [case(draw) for _ in range(cases)]
        others = [str(other) for other in range(skills) if other != one]
        others += ["all"] if len(others) > 1 else []
        for other in ("alone", *others):
            hurt = harm if one == 0 and other in ("1", "all") else 0.0
            rates[f"{one} {other} baseline"] = [without for without, _ in own]
            rates[f"{one} {other} skill"] = [s - hurt * (s - b) for b, s in own]
            if other != "alone":
                name = f"{one} {other}"
                plus = (f"{name} skill", f"{one} alone baseline")
                contrasts.append(
                    Contrast(name, plus, (f"{name} baseline", f"{one} alone skill"))
                )
                true[name] = -hurt * LIFT
    return Simulated(rates, tuple(contrasts), true)


def parts_study(
    draw: random.Random,
    case: Case,
    cases: int,
    parts: int,
    loss: float = 0.0,
    *,
    mixed: bool = False,
) -> Simulated:
    """A skill without each of its parts; without the first it
    loses ``loss`` of its lift.

    ``mixed``: leaving out a part helps some cases and hurts others, as often as not.
    """
    own = [case(draw) for _ in range(cases)]
    rates = {"whole": [with_it for _, with_it in own]}
    contrasts, true = list[Contrast](), dict[str, float]()
    for part in range(parts):
        name = str(part)
        lost = loss if part == 0 else 0.0
        rates[name] = [s - lost * (s - b) for b, s in own]
        if mixed:
            rates[name] = [
                s + draw.choice((-1, 1)) * min(0.4, s, 1 - s) for s in rates[name]
            ]
        contrasts.append(Contrast(name, (name,), ("whole",), MARGIN))
        true[name] = -lost * LIFT
    return Simulated(rates, tuple(contrasts), true)


# Choices of teachers' commands: descriptions on queries, shorter skills on cases.

# The chances of a query to be decided right: with the current description,
# and with another.
Query = Callable[[random.Random], tuple[float, float]]

RUNS = 3


def same_query(draw: random.Random) -> tuple[float, float]:
    chance = draw.betavariate(1, 1)
    return chance, chance


def sure_query(draw: random.Random) -> tuple[float, float]:
    """Right always or never, and as often better as worse."""
    return draw.choice([(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)])


def mostly_better_query(draw: random.Random) -> tuple[float, float]:
    """Most get a little better, a few much worse: 0 on average."""
    return (0.8, 0.9) if draw.random() < 8 / 9 else (0.8, 0.0)


def better_query(draw: random.Random) -> tuple[float, float]:
    """By 30 points, as some get right that were not."""
    return (0.9, 0.9) if draw.random() < 0.6 else (0.1, 0.85)


def says_better(
    draw: random.Random,
    query: Query,
    kinds: tuple[int, int],
    versions: int,
    students: int,
) -> bool:
    """Whether describe calls one of several versions better;
    all are as good as each other.

    ``kinds`` are the numbers of queries that should open the skill,
    and that should not.
    """
    should_open = {str(n): n < kinds[0] for n in range(sum(kinds))}
    chances = {name: query(draw) for name in should_open}
    held = {
        name
        for n, name in enumerate(should_open)
        if (n if n < kinds[0] else n - kinds[0])
        < round(HELD_OUT_SHARE * kinds[n >= kinds[0]])
    }

    def scores(which: int, *, is_held: bool) -> dict[str, float]:
        runs = RUNS * students
        return {
            name: passes(draw, chances[name][which], runs) / runs
            for name in chances
            if (name in held) == is_held
        }

    before = balanced(scores(0, is_held=False), should_open)
    learned = [balanced(scores(1, is_held=False), should_open) for _ in range(versions)]
    now = scores(0, is_held=True)
    lifts = [
        paired_lift(weighted_differences(now, scores(1, is_held=True), should_open))
        for right in learned
        if right > before
    ]
    return any(lift.low > 0 for lift in holm_lifts(lifts))


# What leaving out a part, or a shorter text, does to cases: their chances before,
# and without it.
Loss = Callable[[random.Random], tuple[float, float]]


def needed_by_few(draw: random.Random) -> tuple[float, float]:
    """A tenth of the cases can't be done without it."""
    return 1.0, float(draw.random() >= MARGIN)


def needed_by_some(draw: random.Random) -> tuple[float, float]:
    """Not all cases pass, and a few can't be done without it."""
    chance = draw.betavariate(9, 1)
    return chance, chance if draw.random() >= MARGIN / 0.9 else 0.0


def missed_by_all(draw: random.Random) -> tuple[float, float]:
    """Every case gets a little worse."""
    chance = draw.betavariate(9, 1)
    return chance, chance * (1 - MARGIN / 0.9)


def not_needed(draw: random.Random) -> tuple[float, float]:
    """Nothing is lost; a few cases are not sure."""
    chance = 1.0 if draw.random() < 0.9 else 0.7
    return chance, chance


def margin_study(draw: random.Random, loss: Loss, cases: int, parts: int) -> Simulated:
    """Parts that all lose the same on average, each in cases of its own."""
    seed = draw.random()
    columns = []
    for part in range(parts):
        own = random.Random(f"{seed} {part}")
        columns.append([loss(own) for _ in range(cases)])
    rates = {"whole": [before for before, _ in columns[0]]}
    # The whole skill is the same for all; what is lost is the part's own.
    for part, column in enumerate(columns):
        rates[str(part)] = [
            first * after / before if before else 0.0
            for (first, _), (before, after) in zip(columns[0], column, strict=True)
        ]
    names = [str(part) for part in range(parts)]
    contrasts = tuple(Contrast(name, (name,), ("whole",), MARGIN) for name in names)
    return Simulated(rates, contrasts, dict.fromkeys(names, -MARGIN))


def chosen_place(
    draw: random.Random, losses: Sequence[Loss], cases: int, runs: int = RUNS
) -> int | None:
    """Which of several shorter versions, from long to short,
    refine takes on held-out cases.
    """
    changes = []
    for loss in losses:
        chances = [loss(draw) for _ in range(cases)]
        values = differ(rates(ask(draw, chances, runs), runs))
        changes.append([paired_lift(values)._replace(low=-worst_loss(values))])
    return shortest_within(changes, MARGIN)
