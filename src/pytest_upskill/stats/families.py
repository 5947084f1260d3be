"""Several effects that are judged together: all of them err in 5 %, by Holm's
method.

Effects that could not be significant whatever the signs of their differences take no
share (Tarone 1990): how many differences there are says nothing about their direction.

With a margin, an effect may also be shown not to be below it. For that every effect
takes its share, since one without any difference is evidence, too: its interval is
wider than the one that decides whether it differs from 0, and it allows for losses
that are rare and large.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .intervals import LEVEL, ROUNDING, Lift, guarded, paired_effect, shared_level


class Differences(NamedTuple):
    """How variants differ, case by case."""

    values: tuple[float, ...]
    reach: float = 1.0  # the largest difference that there can be
    margin: float | None = None  # a loss of less does not count


def judge_family(family: Mapping[str, Differences]) -> dict[str, Lift]:
    """Effects by name, with intervals and p values that hold for all of them."""
    shown, pending = dict[str, Lift](), dict(family)
    while pending:
        level = _level(list(pending.values()))
        judged = {name: _judged(effect, level) for name, effect in pending.items()}
        newly_shown = {name: lift for name, lift in judged.items() if lift.shown}
        shown |= newly_shown
        pending = {
            name: effect for name, effect in pending.items() if name not in newly_shown
        }
        if not newly_shown:
            break
    # Also of parts that are shown to be missed: of several that are all missed, those
    # with the fewest losses seen are left, and would often seem free to go.
    wide = shared_level(sum(effect.margin is not None for effect in family.values()))
    unshown = {
        name: _unshown(effect, judged[name], wide) for name, effect in pending.items()
    }
    return {name: {**shown, **unshown}[name] for name in family}


def _level(family: Sequence[Differences]) -> float:
    """With the fewest shares that are enough for all effects that could be
    significant.
    """
    low, high = 1, len(family)
    while low < high:
        middle = (low + high) // 2
        error = 1 - shared_level(middle)
        if sum(_lowest(effect) < error for effect in family) <= middle:
            high = middle
        else:
            low = middle + 1
    return shared_level(low)


def _lowest(effect: Differences) -> float:
    """The lowest p value that these differences allow, if all had the same sign."""
    return float(0.5 ** sum(abs(value) > ROUNDING for value in effect.values))


def _judged(effect: Differences, level: float) -> Lift:
    lift = paired_effect(effect.values, level, effect.reach)
    # As the p value of a single test at the usual level.
    p_value = min(1.0, lift.p_value * (1 - LEVEL) / (1 - level))
    return lift._replace(p_value=p_value)


def _unshown(effect: Differences, lift: Lift, wide: float) -> Lift:
    """``wide`` is the level at which all effects of the family
    may be within their margins.
    """
    if effect.margin is None:
        return lift
    return guarded(_judged(effect, wide), effect.values, wide)
