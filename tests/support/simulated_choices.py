"""Simulated choices of teachers' commands: descriptions on queries, shorter skills on cases."""

import random
from collections.abc import Callable, Sequence

from pytest_upskill.measure.study import Contrast
from pytest_upskill.results.losses import MARGIN
from pytest_upskill.results.parts import Parts, Version
from pytest_upskill.results.triggers import QueryRate
from pytest_upskill.stats import guarded, paired_lift
from pytest_upskill.teach.distilling import Short, choose
from pytest_upskill.teach.query_scores import HELD_OUT, Scores, changes

from .simulated import ask, passes, rates
from .simulated_studies import Simulated

# The chances of a query to be decided right: with the current description, and with another.
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
    draw: random.Random, query: Query, kinds: tuple[int, int], versions: int, students: int
) -> bool:
    """Whether describe calls one of several versions better; all are as good as each other.

    ``kinds`` are the numbers of queries that should open the skill, and that should not.
    """
    made = [
        (should, query(draw))
        for should, n in ((True, kinds[0]), (False, kinds[1]))
        for _ in range(n)
    ]
    held = [number < round(HELD_OUT * n) for n in kinds for number in range(n)]

    def scores(which: int, part: bool) -> Scores:
        own = [one for one, is_held in zip(enumerate(made), held, strict=True) if is_held == part]
        return Scores(
            {
                str(student): tuple(
                    _decided(draw, number, should, chances[which])
                    for number, (should, chances) in own
                )
                for student in range(students)
            }
        )

    before = scores(0, False)
    better = [
        one for one in (scores(1, False) for _ in range(versions)) if one.right > before.right
    ]
    lifts = changes(scores(0, True), [scores(1, True) for _ in better], RUNS * students)
    return any(lift.low > 0 for lift in lifts)


def _decided(draw: random.Random, number: int, should: bool, chance: float) -> QueryRate:
    right = passes(draw, chance, RUNS)
    return QueryRate(str(number), "", should, right if should else RUNS - right, RUNS, 0, {})


# What leaving out a part, or a shorter text, does to cases: their chances before, and without it.
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
    """Which of several shorter versions, from long to short, distill takes on held-out cases."""
    found = []
    for loss in losses:
        chances = [loss(draw) for _ in range(cases)]
        pairs = rates(ask(draw, chances, runs), runs)
        change = guarded(paired_lift(pairs, runs), [two - one for one, two in pairs])
        found.append(Version(1, None, change))
    shorts = [Short(number, 1) for number in range(len(losses))]
    parts = Parts("skill", "m", 1, None, (), versions=tuple(found))
    taken = choose([parts], shorts, frozenset(range(len(losses))))
    return taken.number if taken else None
