"""Made-up matrices of neighbours."""

from collections.abc import Sequence
from typing import Any

from pytest_upskill.results.effects import Effect, State
from pytest_upskill.results.neighbours import Alone, Matrix, Neighbour, Openings, pair_name
from pytest_upskill.stats import Lift

LONG = "a-skill-with-a-name-that-is-as-long-as-a-name-may-ever-be-really"
# Change in points, low, high, state, cases needed.
Change = tuple[int, int, int, State, int | None]
HURTS: Change = (-20, -35, -5, "shown", None)
HELPS: Change = (15, 3, 27, "shown", None)
UNKNOWN: Change = (3, -12, 18, "dropped", 120)
TINY: Change = (0, -26, 26, "none shown", None)
MISSING: Change = (-10, -40, 20, "incomplete", None)


def lift(points: int, low: int, high: int) -> Lift:
    return Lift(points / 100, low / 100, high / 100, 0.01)


def neighbour(
    skill: str, other: str | None, change: Change, openings: Openings | None = None
) -> Neighbour:
    points, low, high, state, needed = change
    effect = Effect(pair_name(skill, other), lift(points, low, high), 10, 4, state, needed)
    first = {other or "csv": 6, skill: 4} if points < 0 else {skill: 10}
    opened = Openings(10, {other or "csv": 6, skill: 9} if points < 0 else {skill: 10}, first)
    tell = 4 if high - low <= 10 else 68
    return Neighbour(skill, other, effect, lift(60 + points, 10, 90), openings or opened, tell)


def made_matrix(
    skills: Sequence[str] = ("pdf", "docs-writer", "csv"),
    changes: Sequence[Change] = (HURTS, UNKNOWN, HELPS, TINY, MISSING),
    bare: Sequence[str] = ("csv",),
    **more: Any,
) -> Matrix:
    """The changes are used in turn, pair by pair; ``bare`` skills have no cases."""
    tested = [one for one in skills if one not in bare]
    columns = [*skills, None] if len(skills) > 2 else [*skills]
    places = [(one, other) for one in tested for other in columns if other != one]
    values: dict[str, Any] = {
        "agent": "loop",
        "model": "loop/haiku",
        "skills": tuple(skills),
        "alone": tuple(
            Alone(one, lift(60, 30, 90), 10, 4, Openings(10, {one: 9}, {one: 9})) for one in tested
        ),
        "pairs": tuple(
            neighbour(one, other, changes[number % len(changes)])
            for number, (one, other) in enumerate(places)
        ),
        "listing": {one: 40 + len(one) for one in skills},
        "listing_seen": {one: 50 + len(one) for one in skills},
        "not_measured": dict.fromkeys(bare, "no cases"),
        "trials": 480,
        "errored": 3,
        "error": "haiku: 529 overloaded",
        "most_runs": 8,
        "cost": 1.234,
    }
    return Matrix(**{**values, **more})
