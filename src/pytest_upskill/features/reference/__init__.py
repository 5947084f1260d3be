"""References of cases, carried out in place of a model.

They show that a case can be passed, and doing nothing shows that its checks test
something.
"""

from typing import Final

from ...registry import Feature
from ...skills.kinds import CaseKind

ORACLE: Final = "oracle"

REFERENCE: Final = CaseKind(
    "reference",
    arms=("baseline", "skill"),
    in_lift=False,
    section="results:References",
    agent=ORACLE,
    rules=f"{__name__}.rules",
    arm_titles=(
        ("skill", "with the reference"),
        ("baseline", "with an empty answer"),
    ),
)
FEATURE: Final = Feature(
    kinds=(REFERENCE,),
    agents={ORACLE: (f"{__name__}.agent", "Oracle")},
    views={"reference": "view"},
)
