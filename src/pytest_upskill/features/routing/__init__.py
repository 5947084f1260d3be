"""Which skill of a catalogue each query opens."""

from typing import Final

from ...options import whole as whole
from ...registry import Command, Feature, take
from ...settings import MOST_RUNS as MOST_RUNS
from ...settings import TAKEN_BY_STUDIES

FEATURE: Final = Feature(
    commands=(
        Command(
            "route",
            "study",
            "measure which skill of a catalogue each query opens",
            "pytest-upskill route skills --model haiku --min-recall 0.8",
            "0 passed, 1 a gate failed or incomplete, 2 usage or input error",
            module=f"{__name__}.command",
            takes=(
                *TAKEN_BY_STUDIES,
                take("models", "-m --model"),
                take(
                    "agents",
                    "--agent",
                    help=(
                        "who is asked: chat, one completion that chooses a skill; loop,"
                        " an agent with tools in a sandbox; or a real agent: claude,"
                        " codex, opencode and others"
                    ),
                ),
                take(
                    "tests_file", "-t --tests", help="use the queries of another file"
                ),
                take(
                    "runs",
                    "--runs",
                    help="ask every query N times",
                ),
                take("confident", "--confident"),
                take(
                    "min_recall",
                    "--min-recall",
                    help="fail if fewer queries open the skill that they need",
                ),
                take(
                    "max_false_alarms",
                    "--max-false-alarms",
                    help="fail if more queries open a skill that they should not",
                ),
            ),
        ),
    ),
    section="results:Routing",
    view="view",
)
