"""What skills do to each other: each alone, beside each other one, beside all."""

from typing import Final

from ...registry import Command, Feature, take
from ...settings import TAKEN_BY_STUDIES

FEATURE: Final = Feature(
    commands=(
        Command(
            "matrix",
            "study",
            "measure what skills do to each other",
            "pytest-upskill matrix skills --agent loop --model haiku",
            status="0 none hurts, 1 one does or is incomplete, 2 usage or input error",
            module=f"{__name__}.command",
            takes=(
                *TAKEN_BY_STUDIES,
                take("judge", "--judge"),
                take("agents", "--agent", default=("loop",)),
                take("max_turns", "--max-turns"),
                take("models", "-m --model"),
                take("runs", "--runs", default=3, help="ask every question N times"),
            ),
        ),
    ),
)
