"""Numbers in, numbers out: docs/statistics.md tells what each number means.

This package imports nothing of the project and nothing that has to be installed.
"""

from .agreement import cohens_kappa
from .hypotheses import holm, sign_flip
from .intervals import (
    LEVEL,
    Change,
    Interval,
    Lift,
    newcombe,
    paired_lift,
    paired_ratio,
    wilson,
)
from .reliability import flakiness, normalised_gain, pass_hat_k

__all__ = [
    "LEVEL",
    "Change",
    "Interval",
    "Lift",
    "cohens_kappa",
    "flakiness",
    "holm",
    "newcombe",
    "normalised_gain",
    "paired_lift",
    "paired_ratio",
    "pass_hat_k",
    "sign_flip",
    "wilson",
]
