"""The words of a verdict, for tests that carry them on.

What they are is asserted in ``tests/results/test_verdict.py`` alone.
"""

from typing import get_args

from pytest_upskill.results.row import Word

(
    HELPS,
    HURTS,
    CHEAPER,
    NO_EFFECT,
    NOT_NEEDED,
    UNCLEAR,
    INCOMPLETE,
    NOTHING_MEASURED,
) = get_args(Word)
TOO_FEW = UNCLEAR
