"""skills/measure-a-skill: CI replays it without a key,
and what it teaches is true of this code.
"""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import get_args

import pytest
import yaml

from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.cli.command_table import BY_NAME
from pytest_upskill.lint import lint_skill
from pytest_upskill.plugin.pytest_options import OPTIONS
from pytest_upskill.results.row import Word
from pytest_upskill.skills.skill import load_skill
from pytest_upskill.stats import cases_to_find
from support.runs import SkillRun, run_skills

ROOT = Path(__file__).parents[2]
PLACE = "skills/measure-a-skill"
RULES = f"{PLACE}/evals/scripted.json"
BODY = load_skill(ROOT / PLACE / "SKILL.md").body


def step_of_ci() -> list[str]:
    """The arguments that test.yml gives to pytest."""
    flow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())
    commands = [step.get("run", "") for step in flow["jobs"]["make-test"]["steps"]]
    [command] = [shlex.split(command) for command in commands if PLACE in command]
    assert command[0] == ".venv/bin/pytest"
    return command[1:]


def run(pytester: pytest.Pytester, *args: str) -> SkillRun:
    if not (pytester.path / PLACE).exists():
        shutil.copytree(ROOT / PLACE, pytester.path / PLACE)
    return run_skills(
        pytester, f"scripted:{RULES}", "-m", "not trigger", *args, skill=PLACE
    )


def test_ci_replays_the_recording(pytester: pytest.Pytester) -> None:
    shutil.copytree(ROOT / PLACE, pytester.path / PLACE)
    (pytester.path / RULES).unlink()  # so nothing but the recording can answer
    args = step_of_ci()
    assert "--skill-replay" in args
    result = pytester.runpytest_inprocess(*args)
    assert (int(result.ret), result.parseoutcomes()) == (
        0,
        {"passed": 12, "deselected": 20},
    )


def answers_in(recording: Path) -> dict[str, str]:
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    # It claims no real model
    assert all(line["model"] == f"scripted:{RULES}" for line in lines)
    return {line["key"]: line["text"] for line in lines}


def test_the_recording_is_what_the_rules_say(pytester: pytest.Pytester) -> None:
    assert run(pytester, "--skill-record", "again.jsonl").status == 0
    recorded = answers_in(ROOT / PLACE / "evals/answers.jsonl")
    assert answers_in(pytester.path / "again.jsonl") == recorded


def test_every_case_asks_for_what_only_the_skill_says(
    pytester: pytest.Pytester,
) -> None:
    summary = run(pytester).summary
    assert (summary["baseline_rate"], summary["skill_rate"]) == (0, 1)
    (pytester.path / PLACE / "SKILL.md").write_text(
        "---\nname: measure-a-skill\ndescription: x\n---\nRun it."
    )
    assert run(pytester).summary["skill_rate"] == 0


def test_lint_has_nothing_to_say() -> None:
    assert lint_skill(ROOT / PLACE / "SKILL.md", judge=False, lift=0.5) == []


def test_options_commands_and_checks_that_it_names_exist() -> None:
    options = {flag for option in OPTIONS.values() for flag in option.flags}
    of_pytest = {"--collect-only", "--lift"}
    assert set(re.findall(r"--[a-z][a-z-]+", BODY)) <= options | of_pytest
    assert set(re.findall(r"pytest-upskill ([a-z]+) ?(?=[A-Z`])", BODY)) == {
        "schema",
        "lint",
        "plan",
    }
    free = re.search(r"Free: (.+?), `pytest ", BODY)
    assert free
    assert set(re.findall(r"`([a-z]+)`", free[1])) <= set(BY_NAME)
    pitfalls = BODY.partition("mistakes:\n")[2].partition("Does the skill open")[0]
    names = set(re.findall(r"`\"?([a-z_]+)(?:\": [^`]+)?`", pitfalls))
    assert names - {"leak", "group"} <= set(KINDS)
    assert {"contains_any", "words", "commands_run"} <= names


def test_its_tables_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", BODY, re.M)
    assert [int(lift) for lift, *_ in rows] == [20, 30, 50]
    for lift, *cases in rows:
        needed = [cases_to_find(int(lift) / 100, runs) for runs in (1, 3, 5)]
        assert needed == [int(number) for number in cases]
    verdicts = BODY.partition("| verdict |")[2]
    assert set(re.findall(r"^\| ([a-z ]+) \|", verdicts, re.M)) == set(get_args(Word))
