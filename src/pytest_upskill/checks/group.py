"""The keys of a group of checks that are no kinds of checks."""

from typing import Annotated, Final

from pydantic import Field

from .._util.json_forms import Strict
from ..settings import MOST_RUNS
from .check import Paths, Text

WITH_SKILL: Final = "with_skill"
COMBINING: Final = ("all_of", "any_of", "not", WITH_SKILL)


class GroupForm(Strict):
    """The settings of a group."""

    case_sensitive: bool | None = Field(
        None,
        description=(
            "Whether upper and lower case differ in this group (default: false)."
        ),
    )
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        None,
        description=(
            "How much each check of this group counts in the score (default: 1)."
        ),
    )
    required: bool | None = Field(
        None,
        description=(
            "False: this group counts in the score, but the case passes without it "
            "(default: true)."
        ),
    )
    judge_votes: Annotated[int, Field(ge=1, le=MOST_RUNS)] | None = Field(
        None,
        description="How often the judge is asked; the majority rules (default: 1).",
    )
    judge_files: Paths | None = Field(
        None,
        description=(
            "Files of an agent that the judge sees whole; patterns may be used."
        ),
    )
    judge_context: Text | None = Field(
        None,
        description=(
            "What the judge is told about the wanted result, beside the criteria."
        ),
    )


RESERVED: Final = (*COMBINING, *GroupForm.model_fields)
