"""How well a judge agrees with people."""

from typing import Final

from ...registry import Command, Feature, take

FEATURE: Final = Feature(
    commands=(
        Command(
            "judge",
            "study",
            "measure how well a judge agrees with people",
            "pytest-upskill judge labelled.jsonl --model sonnet --votes 3",
            status="0 success, 1 the judge gave no ruling, 2 usage or input error",
            module=f"{__name__}.command",
            takes=(
                take("judge", "--model", required=True),
                take("base_url", "--base-url"),
                take("login", "--login"),
            ),
        ),
    ),
)
