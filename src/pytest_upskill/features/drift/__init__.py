"""Skills on an old model and on a new one."""

from typing import Final

from ...options import whole as whole
from ...registry import Command, Feature, take
from ...settings import ACCEPTED_RUNS, TAKEN_BY_STUDIES
from ...settings import MOST_RUNS as MOST_RUNS

FEATURE: Final = Feature(
    commands=(
        Command(
            "drift",
            "study",
            "compare an old model with a new one: which skills still help",
            "pytest-upskill drift skills --from openai:gpt-5.2 --to openai:gpt-5.4",
            "0 measured, 1 incomplete or a gate failed, 2 usage or input error",
            module=f"{__name__}.command",
            takes=(
                *TAKEN_BY_STUDIES,
                take("judge", "--judge"),
                take("agents", "--agent"),
                take("max_turns", "--max-turns"),
                take("with_skills", "--with"),
                take("max_output", "--max-output"),
                take("references", "--references"),
                take(
                    "runs",
                    "--runs",
                    default=ACCEPTED_RUNS,
                    help="ask every question N times",
                ),
                take(
                    "no_worse",
                    "--no-worse",
                    help="fail if a skill hurts or got worse on the new model",
                ),
            ),
        ),
    ),
    sections={"drift": "results:ModelChange"},
    views={"drift": "view"},
)
