"""The page for people who come from other tools: their conversions are right."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from pytest_upskill.checks import parse_checks
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.skills.suites.json_suites import load_cases

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "coming-from.md").read_text()
ROWS = re.findall(r"^\| (`[a-z-]+[^|]*) \| (`\{.*?\}`)[^|]*\|$", PAGE, re.M)


def first_block(text: str, language: str) -> str:
    return str(re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)[0])


def block(tool: str, language: str) -> str:
    return first_block(PAGE.partition(f"\n## {tool}\n")[2], language)


def test_an_assert_of_promptfoo_becomes_a_check_that_there_is() -> None:
    assert len(ROWS) >= 17
    for _, check in ROWS:
        expected = json.loads(check.strip("`"))
        assert "python" in expected or parse_checks(expected, KINDS, ())


def test_the_converted_config_asks_and_checks_the_same() -> None:
    config: dict[str, Any] = yaml.safe_load(block("promptfoo", "yaml"))
    converted = json.loads(block("promptfoo", "json"))
    assert json.loads((DOCS / "example-converted.json").read_text()) == converted
    asked = [
        (test["description"], test["vars"]["question"]) for test in config["tests"]
    ]
    assert [(case["id"], case["input"]) for case in converted["cases"]] == asked
    for test, case in zip(config["tests"], converted["cases"], strict=True):
        assert len(test["assert"]) == len(case["expected"])
    (default,) = config["defaultTest"]["assert"]
    assert converted["defaults"]["expected"] == {"not_contains": default["value"]}


def test_the_evals_of_skill_creator_are_read_as_they_are() -> None:
    file = DOCS / "example-evals.json"
    section = (DOCS / "suites.md").read_text().partition("\n## evals.json\n")[2]
    assert json.loads(file.read_text()) == json.loads(first_block(section, "json"))
    (case,) = load_cases(file).require_all()
    assert len(case.expected["judge"]) == 2
