"""What chance alone would show: in later looks at a skill, and among many skills."""

from math import sqrt

from ..stats import LEVEL


def chance_in_looks(looks: int) -> float:
    """How likely one of several looks at a skill without effect shows one.

    Each look has the answers of the earlier ones and some more. With 12 to 20 cases, 2,
    4 and 8 looks at simulated skills showed one in 5 to 7, 8 to 11 and 13 to 16 %.
    """
    return (1 - LEVEL) * sqrt(looks)


def looks_words(looks: int) -> str:
    """Of the second look and later ones; empty for the first."""
    if looks < 2:
        return ""

    chance = f"{chance_in_looks(looks):.0%}".replace("%", " %")
    return (
        f"{_ordinal(looks)} look at this skill: by chance alone, one of these {looks}"
        f" would show in about {chance}"
    )


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def expected_by_chance(skills: int) -> int:
    """How many of so many skills without effect would be shown to have one."""
    return round((1 - LEVEL) * skills)


def many_skills_words(skills: int) -> str:
    """Of many skills that have a verdict; empty if chance shows none of so few."""
    number = expected_by_chance(skills)
    if not number:
        return ""
    return f"by chance alone, up to {number} of {skills:,} would help or hurt"
