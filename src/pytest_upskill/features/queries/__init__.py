"""Queries that should, or should not, make an agent open a skill."""

from typing import Final

from ...options import whole as whole
from ...registry import Command, Feature, take
from ...settings import MOST_RUNS as MOST_RUNS
from ...settings import TAKEN_BY_STUDIES
from ...skills.kinds import CaseKind

TRIGGERS_NAME: Final = "evals/triggers.json"  # where new ones go
ACTIVATED: Final = "skill_activated"  # the check of every query

QUERY: Final = CaseKind(
    "query",
    noun="query",
    mark="trigger",
    prefix="trigger-",
    arms=("skill",),
    runs="trigger_runs",
    threshold="",
    until_opened=True,
    in_lift=False,
    gates=("min_recall", "max_false_alarms"),
    section="results:Queries",
)
ROUTE: Final = Command(
    "route",
    "study",
    "measure which skill of a catalogue each query opens",
    "pytest-upskill route skills --model haiku --min-recall 0.8",
    "0 passed, 1 a gate failed or incomplete, 2 usage or input error",
    module=f"{__name__}.route_command",
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
        take("tests_file", "-t --tests", help="use the queries of another file"),
        take("runs", "--runs", help="ask every query N times"),
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
)
TRIGGERS: Final = Command(
    "triggers",
    "write",
    "write queries that should open a skill, and near misses",
    "pytest-upskill triggers skills/wick --from sessions",
    "0 success, 1 no usable queries, 2 usage or input error",
    module=f"{__name__}.teach_commands",
)
DESCRIBE: Final = Command(
    "describe",
    "write",
    "improve a skill's description, measured by its queries",
    "pytest-upskill describe skills/wick --eval-agent claude --with skills",
    "0 better or good enough, 1 not shown, 2 usage or input error",
    module=f"{__name__}.teach_commands",
)
FEATURE: Final = Feature(
    kinds=(QUERY,),
    reader="suite",
    lint="lint:find_mistakes",
    commands=(TRIGGERS, DESCRIBE, ROUTE),
    sections={"routing": "routing:Routing"},
    views={"queries": "view", "routing": "routing_view"},
)
