"""Statistics: numbers in, numbers out. docs/statistics.md explains each number.

Uses the standard library only, and nothing else of the project.
"""

from .by_chance import ByChance, shown_by_chance
from .descriptive import cohens_kappa, flakiness, normalised_gain, pass_hat_k
from .intervals import (
    LEVEL,
    Change,
    Interval,
    Lift,
    guarded,
    lift_per_use,
    newcombe,
    paired_effect,
    paired_lift,
    paired_ratio,
    wilson,
)
from .looks import (
    Differences,
    Family,
    Judged,
    Look,
    family_level,
    judge_family,
    look,
    look_plan,
    plan_level,
    rest_after,
    steps,
    weights,
)
from .power import (
    RELEVANT_LIFT,
    cases_to_rule_out,
    detectable_lift,
)
from .significance import (
    EVIDENT_RUNS,
    CasePasses,
    Worsening,
    drop,
    fell_together,
    holm,
    lift_fell,
    sign_flip,
    worsened,
)

__all__ = [
    "EVIDENT_RUNS",
    "LEVEL",
    "RELEVANT_LIFT",
    "ByChance",
    "CasePasses",
    "Change",
    "Differences",
    "Family",
    "Interval",
    "Judged",
    "Lift",
    "Look",
    "Worsening",
    "cases_to_rule_out",
    "cohens_kappa",
    "detectable_lift",
    "drop",
    "family_level",
    "fell_together",
    "flakiness",
    "guarded",
    "holm",
    "judge_family",
    "lift_fell",
    "lift_per_use",
    "look",
    "look_plan",
    "newcombe",
    "normalised_gain",
    "paired_effect",
    "paired_lift",
    "paired_ratio",
    "pass_hat_k",
    "plan_level",
    "rest_after",
    "shown_by_chance",
    "sign_flip",
    "steps",
    "weights",
    "wilson",
    "worsened",
]
