"""Statistics: numbers in, numbers out. docs/statistics.md explains each number.

Uses the standard library only, and nothing else of the project.
"""

from .descriptive import cohens_kappa, flakiness, normalised_gain, pass_hat_k
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
from .power import cases_needed, cases_within, detectable_lift, runs_needed
from .sequential import Look, look, look_plan, plan_level
from .significance import Regression, drop, holm, regressed, sign_flip

__all__ = [
    "LEVEL",
    "Change",
    "Interval",
    "Lift",
    "Look",
    "Regression",
    "cases_needed",
    "cases_within",
    "cohens_kappa",
    "detectable_lift",
    "drop",
    "flakiness",
    "holm",
    "look",
    "look_plan",
    "newcombe",
    "normalised_gain",
    "paired_lift",
    "paired_ratio",
    "pass_hat_k",
    "plan_level",
    "regressed",
    "runs_needed",
    "sign_flip",
    "wilson",
]
