"""Which cases a teacher may learn from, and which are held out to decide at the end."""

from collections.abc import Sequence

from .._util.texts import digest

_FEW = 6  # from so many cases on, two or more are held out


def held_out(cases: Sequence[tuple[str, tuple[str, ...]]], share: float) -> set[str]:
    """The ids of those held out, of ids with their tags: every kind of question, by its share.

    Only ids and tags decide, so that the same cases are always split the same way.
    """
    wanted = round(share * len(cases))
    if 0 < share < 1:
        wanted = max(wanted, 2 if len(cases) >= _FEW else 1)
        wanted = min(wanted, len(cases) - 2)
    kinds: dict[str, list[str]] = {}
    for case, tags in cases:
        kinds.setdefault(tags[0] if tags else "", []).append(case)
    placed = [
        ((number + 0.5) / len(group), digest(case), case)
        for group in kinds.values()
        for number, case in enumerate(sorted(group, key=digest))
    ]
    return {case for _, _, case in sorted(placed)[: max(0, wanted)]}
