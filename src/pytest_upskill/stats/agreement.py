"""How far two raters agree."""

from collections.abc import Sequence


def cohens_kappa(ours: Sequence[bool], theirs: Sequence[bool]) -> float | None:
    """How far two raters agree beyond chance: 1 always, 0 as by chance.

    None where chance alone would always agree, since both only ever say the same one thing.
    """
    n = len(ours)
    if n == 0:
        return None
    agreed = sum(one == other for one, other in zip(ours, theirs, strict=True)) / n
    yes, their_yes = sum(ours) / n, sum(theirs) / n
    by_chance = yes * their_yes + (1 - yes) * (1 - their_yes)
    return None if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)
