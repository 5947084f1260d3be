"""The words of a verdict, for tests that carry them on.

What they are is asserted in ``tests/results/test_verdict.py`` alone.
"""

from typing import get_args

from pytest_upskill.results.verdict import Word

HELPS, HURTS, NO_EFFECT, TOO_FEW, NOT_NEEDED, INCOMPLETE = get_args(Word)
