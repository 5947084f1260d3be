"""What each part of a skill earns, and a shorter skill without some."""

from typing import Final

from ...registry import Command, Feature, take
from ...settings import TAKEN_BY_STUDIES

FEATURE: Final = Feature(
    commands=(
        Command(
            "ablate",
            "study",
            "measure what each part of a skill contributes",
            "pytest-upskill ablate skills/wick --model haiku --by paragraph",
            status="0 measured, 1 incomplete, or not proven, 2 usage or input error",
            module=f"{__name__}.command",
            takes=(
                *TAKEN_BY_STUDIES,
                take("judge", "--judge"),
                take("agents", "--agent"),
                take("max_turns", "--max-turns"),
                take("models", "-m --model"),
                take("runs", "--runs", default=3, help="ask every question N times"),
                take(
                    "references",
                    "--references",
                    help=(
                        "plain completions get the files that SKILL.md names as well,"
                        " and each is a part"
                    ),
                ),
                take("margin", "--margin"),
            ),
        ),
    ),
)
