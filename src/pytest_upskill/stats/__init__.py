"""Statistics: numbers in, numbers out. docs/statistics.md explains each number.

Uses the standard library only, and nothing else of the project.
"""

from .distributions import ROUNDING
from .fell import (
    CasePasses,
    Worsening,
    drop,
    fell_together,
    lift_change,
    worsened,
)
from .intervals import (
    LEVEL,
    Change,
    Interval,
    Lift,
    holm_lifts,
    paired_lift,
    paired_ratio,
    wilson,
    worst_loss,
)
from .judging import Ruled, corrected_rate, kappa_of
from .power import (
    FEWEST_CASES,
    POWER,
    RELEVANT_LIFT,
    cases_to_find,
    cases_to_rule_out,
    cases_to_show,
    detectable_lift,
)
from .significance import holm, sign_flip

__all__ = [
    "FEWEST_CASES",
    "LEVEL",
    "POWER",
    "RELEVANT_LIFT",
    "ROUNDING",
    "CasePasses",
    "Change",
    "Interval",
    "Lift",
    "Ruled",
    "Worsening",
    "cases_to_find",
    "cases_to_rule_out",
    "cases_to_show",
    "corrected_rate",
    "detectable_lift",
    "drop",
    "fell_together",
    "holm",
    "holm_lifts",
    "kappa_of",
    "lift_change",
    "paired_lift",
    "paired_ratio",
    "sign_flip",
    "wilson",
    "worsened",
    "worst_loss",
]
