"""Statistics: numbers in, numbers out. docs/statistics.md explains each number.

Uses the standard library only, and nothing else of the project.
"""

from .by_chance import ByChance, shown_by_chance
from .descriptive import flakiness, kappa_of, normalised_gain, pass_hat_k
from .families import Differences, judge_family
from .intervals import (
    LEVEL,
    ROUNDING,
    Change,
    Interval,
    Lift,
    Ruled,
    corrected_rate,
    guarded,
    guarded_twice,
    lift_per_use,
    newcombe,
    paired_effect,
    paired_lift,
    paired_ratio,
    shared_level,
    wilson,
)
from .power import (
    POWER,
    RELEVANT_LIFT,
    cases_to_rule_out,
    detectable_lift,
)
from .significance import (
    CasePasses,
    Worsening,
    drop,
    fell_together,
    holm,
    lift_change,
    sign_flip,
    worsened,
)

__all__ = [
    "LEVEL",
    "POWER",
    "RELEVANT_LIFT",
    "ROUNDING",
    "ByChance",
    "CasePasses",
    "Change",
    "Differences",
    "Interval",
    "Lift",
    "Ruled",
    "Worsening",
    "cases_to_rule_out",
    "corrected_rate",
    "detectable_lift",
    "drop",
    "fell_together",
    "flakiness",
    "guarded",
    "guarded_twice",
    "holm",
    "judge_family",
    "kappa_of",
    "lift_change",
    "lift_per_use",
    "newcombe",
    "normalised_gain",
    "paired_effect",
    "paired_lift",
    "paired_ratio",
    "pass_hat_k",
    "shared_level",
    "shown_by_chance",
    "sign_flip",
    "wilson",
    "worsened",
]
