"""Power: which lift a number of cases and runs can show, and how many a lift needs.

How a case does is a chance to pass without the skill and one with it. A planned lift is
reached by solving a share of the cases, which is how skills mostly help: more runs then
say more about each case, but don't make it more cases. The chance to show a lift is
simulated, with `paired_lift` itself. A formula finds where to look: equation 9 of
Miller (2024), Adding Error Bars to Evals, with Student's t instead of the normal
distribution and the spread that the lift itself makes, and the chance that enough cases
differ for the sign-flip test. It is within a few points of the simulation.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import comb, fsum, log, log1p, sqrt
from random import Random
from statistics import fmean
from typing import Final, NamedTuple

from .descriptive import mean_and_spread
from .distributions import t_quantile
from .intervals import LEVEL, ROUNDING, Pairs, paired_lift

POWER: Final = 0.8
# An interval that holds both 0 and this lift, or loss, does not tell
RELEVANT_LIFT: Final = 0.2
# The share of answers that pass without a skill, if nothing is known
ASSUMED_BASELINE: Final = 0.5
# The share of the variance of single answers that is between cases
ASSUMED_BETWEEN: Final = 0.5
_MOST_CASES: Final = 10_000
_SIMULATED: Final = 80  # with more cases, the formula is as good
_DRAWS: Final = 400


def fewest_cases(level: float = LEVEL) -> int:
    """How many cases must all differ in the same direction to show anything: 5 at 95
    %.
    """
    return int(-log(1 - level) / log(2)) + 1


def cases_to_rule_out(loss: float, level: float = LEVEL) -> int:
    """How many cases, none of which loses anything, rule out a mean loss of this
    size.
    """
    return max(2, int(log((1 - level) / 2) / log1p(-loss)) + 1) if loss < 1 else 2


class Kind(NamedTuple):
    """A kind of case: its chances to pass, and the share of cases that are of it."""

    baseline: float
    skill: float
    share: float


@lru_cache(maxsize=256)
def assumed_kinds(lift: float) -> tuple[Kind, ...]:
    """If nothing is known: cases that mostly pass, and as many that mostly fail.

    A lift of more than the assumed baseline leaves needs a worse one.
    """
    passing = int(100 * min(ASSUMED_BASELINE, 1 - lift) + ROUNDING)
    return (
        kinds_of([(1.0, 1.0)] * passing + [(0.0, 0.0)] * (100 - passing), 1, lift) or ()
    )


def kinds_of(pairs: Pairs, runs: int, lift: float) -> tuple[Kind, ...] | None:
    """Cases like these, with this lift instead of theirs;
    None if the baseline is too good for it.

    A smaller lift is theirs on a share of the cases;
    a larger one solves a share of them as well.
    """
    baseline, skill = (_chances(rates, runs) for rates in zip(*pairs, strict=True))
    present = fmean(skill) - fmean(baseline)
    if fmean(baseline) + lift > 1 + ROUNDING:
        return None
    solves = present < lift - ROUNDING
    share = (lift - present) / (1 - fmean(skill)) if solves else lift / present
    kinds = dict[tuple[float, float], float]()
    for before, after in zip(baseline, skill, strict=True):
        for chances, weight in (
            ((before, after), 1 - share if solves else share),
            ((before, 1.0 if solves else before), share if solves else 1 - share),
        ):
            kinds[chances] = kinds.get(chances, 0.0) + weight / len(pairs)
    return tuple(
        Kind(*chances, weight) for chances, weight in kinds.items() if weight > 0
    )


def _chances(rates: Sequence[float], runs: int) -> list[float]:
    """The cases' own chances: observed rates spread more, by the chance of single
    runs.
    """
    mean, spread = mean_and_spread(rates)
    kept = ASSUMED_BETWEEN
    if runs > 1 and spread:
        by_chance = fmean(rate * (1 - rate) for rate in rates) / (runs - 1)
        kept = max(0.0, 1 - by_chance / spread**2)
    return [mean + sqrt(kept) * (rate - mean) for rate in rates]


# Rates of a case in both arms, with their chances
Outcomes = Mapping[tuple[float, float], float]


def _outcomes(kinds: Sequence[Kind], runs: int) -> Outcomes:
    chances = dict[tuple[float, float], float]()
    for kind in kinds:
        without, with_it = (_binomial(chance, runs) for chance in kind[:2])
        for passes, chance in enumerate(without):
            for skill_passes, skill_chance in enumerate(with_it):
                pair = (passes / runs, skill_passes / runs)
                weight = kind.share * chance * skill_chance
                chances[pair] = chances.get(pair, 0.0) + weight
    return chances


def _binomial(chance: float, runs: int) -> list[float]:
    return [
        comb(runs, passes) * chance**passes * (1 - chance) ** (runs - passes)
        for passes in range(runs + 1)
    ]


def chance_to_find(
    kinds: Sequence[Kind], cases: int, runs: int, level: float = LEVEL
) -> float:
    """The simulated chance that so many cases show the lift; the same in every call."""
    return fmean(_studies(kinds, cases, runs, level))


def _is_likely(kinds: Sequence[Kind], cases: int, runs: int, level: float) -> bool:
    """Whether the chance is 80 %; ends as soon as that is clear."""
    surplus = 0.0
    for number, shown in enumerate(_studies(kinds, cases, runs, level), 1):
        surplus += shown - POWER
        # More than three deviations
        if abs(surplus) > 1.5 * sqrt(number) and number >= 20:
            break
    return surplus >= 0


def _studies(
    kinds: Sequence[Kind], cases: int, runs: int, level: float
) -> Iterator[bool]:
    """Whether each of many drawn sets of cases shows the lift."""
    outcomes, draw = _outcomes(kinds, runs), Random(cases)
    pairs, weights = list(outcomes), list(accumulate(outcomes.values()))
    for _ in range(_DRAWS):
        drawn = draw.choices(pairs, cum_weights=weights, k=cases)
        yield paired_lift(drawn, runs, level).low > 0


@lru_cache(maxsize=256)
def cases_to_find(
    kinds: tuple[Kind, ...], runs: int, level: float = LEVEL
) -> int | None:
    """How many cases, each with so many runs, show the lift with a chance of 80 %.

    None if it would take too many.
    """
    moments = _moments(_outcomes(kinds, runs))
    by_formula = _first(
        lambda cases: moments.show(cases, runs, level), fewest_cases(level), _MOST_CASES
    )
    if by_formula is None or by_formula > _SIMULATED:
        return by_formula
    low, high = max(fewest_cases(level), by_formula * 4 // 5), by_formula * 5 // 4 + 1
    return (
        _first(lambda cases: _is_likely(kinds, cases, runs, level), low, high) or high
    )


def lift_to_find(
    pairs: Pairs, pilot_runs: int, cases: int, runs: int, level: float = LEVEL
) -> float | None:
    """The smallest lift that so many cases like these show with a chance of 80 %,
    in whole points.

    ``pairs`` were observed in ``pilot_runs``, and may be empty:
    then cases are as assumed.
    """

    def kinds(points: int) -> tuple[Kind, ...]:
        lift = points / 100
        return (
            kinds_of(pairs, pilot_runs, lift) if pairs else assumed_kinds(lift)
        ) or ()

    def is_enough(points: int) -> bool:
        if cases <= _SIMULATED:
            return _is_likely(kinds(points), cases, runs, level)
        return _moments(_outcomes(kinds(points), runs)).show(cases, runs, level)

    most = next((points for points in range(100, 0, -1) if kinds(points)), 0)
    points = _first(is_enough, 1, most) if most else None
    return None if points is None else points / 100


def detectable_lift(pairs: Pairs, level: float = LEVEL) -> float | None:
    """The smallest lift that as many cases and runs like these
    show with a chance of 80 %.

    In whole points; None if there is none, also because the baseline is too good
    for it. It is reached as in `kinds_of`, but from what was observed, so it holds
    for shares of checks, too.
    """
    runs = 1 if all(rate in (0, 1) for pair in pairs for rate in pair) else 2
    present = _moments(_shares(pairs))
    solved = _moments(_shares([(baseline, 1.0) for baseline, _ in pairs]))
    for points in range(1, int(100 * solved.lift + ROUNDING) + 1):
        lift = points / 100
        if lift > present.lift + ROUNDING:
            mixed = present.mixed(
                solved, (lift - present.lift) / (solved.lift - present.lift)
            )
        else:
            mixed = present.mixed(_Moments(0.0, 0.0, 0.0), 1 - lift / present.lift)
            # A smaller lift is no less by chance
            chance = present.square - present.lift**2
            mixed = mixed._replace(square=max(mixed.square, chance + lift**2))
        if mixed.show(len(pairs), runs, level):
            return lift
    return None


def _shares(pairs: Pairs) -> Outcomes:
    return {pair: count / len(pairs) for pair, count in Counter(pairs).items()}


class _Moments(NamedTuple):
    """Of the difference of a case: what the formula needs."""

    lift: float
    square: float  # the mean of squares
    gains: float  # the share of cases that do better

    def mixed(self, other: "_Moments", share: float) -> "_Moments":
        """With a share of cases as in another."""
        return _Moments(
            *((1 - share) * a + share * b for a, b in zip(self, other, strict=True))
        )

    def show(self, cases: int, runs: int, level: float) -> bool:
        """Whether so many cases show the lift with a chance of 80 %, by the formula."""
        fewest = fewest_cases(level)
        if cases < fewest:
            return False
        errors = t_quantile((1 + level) / 2, cases - 1) + t_quantile(POWER, cases - 1)
        # As simulated: of few cases, t of the observed spread varies;
        # Newcombe's interval is wide.
        slack = 1 + 1.2 / cases + (0.03 if runs == 1 else 0)
        gains = min(1.0, self.gains)
        too_few = sum(
            comb(cases, n) * gains**n * (1 - gains) ** (cases - n)
            for n in range(fewest)
        )
        error = sqrt(max(0.0, self.square - self.lift**2) / cases)
        return slack * errors * error <= self.lift and 1 - too_few >= POWER


def _moments(outcomes: Outcomes) -> _Moments:
    by_difference = [
        (skill - baseline, share) for (baseline, skill), share in outcomes.items()
    ]
    return _Moments(
        fsum(difference * share for difference, share in by_difference),
        fsum(difference**2 * share for difference, share in by_difference),
        fsum(share for difference, share in by_difference if difference > ROUNDING),
    )


def _first(is_enough: Callable[[int], bool], low: int, high: int) -> int | None:
    """The first number from ``low`` to ``high`` that is enough;
    None if not even the last is.
    """
    if not is_enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
