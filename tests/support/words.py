"""The words of a verdict, for tests that carry them on.

What they are is asserted in ``tests/results/test_verdict.py`` alone.
"""

from pytest_upskill.results.row import WORDS

(
    HELPS,
    HURTS,
    CHEAPER,
    NO_EFFECT,
    NOT_NEEDED,
    UNCLEAR,
    INCOMPLETE,
    NOTHING_MEASURED,
) = WORDS
TOO_FEW = UNCLEAR
