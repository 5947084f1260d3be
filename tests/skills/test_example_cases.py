"""Example cases: honest questions about a skill's own text, made without a model."""

import json
from pathlib import Path

import pytest

from pytest_upskill.lint import lint_skill
from pytest_upskill.skills.case import EDIT_ME
from pytest_upskill.skills.example_cases import example_cases, example_file
from pytest_upskill.skills.skill import load_skill


def skill_of(
    tmp_path: Path, body: str, description: str = "What is known of gates."
) -> Path:
    folder = tmp_path / "gate"
    folder.mkdir(exist_ok=True)
    file = folder / "SKILL.md"
    text = f"---\nname: gate\ndescription: {json.dumps(description)}\n---\n\n{body}\n"
    file.write_text(text, encoding="utf-8", newline="")
    return file


def test_a_named_thing_of_a_sentence_is_asked_for(tmp_path: Path) -> None:
    body = (
        "# Gates\n\nUse `gate`.\n\n- The command to open a gate\n  is `gate up"
        " NAME`.\n- The command to shut a gate is `gate down`.\n\n```\nthe fenced one"
        " is `no sentence`\n```\n| a | table has `cells` and more |\n\nSince 2.0. The"
        " log is kept in `/var/log/gate`, daily.\n"
    )
    first, second = example_cases(load_skill(skill_of(tmp_path, body)))
    assert first == {
        "id": "example-1",
        "input": (
            "Complete this sentence about gate: The command to open a gate is ____."
        ),
        "expected": {"contains": "gate up NAME"},
        "tags": [EDIT_ME],
    }
    assert second["expected"] == {"contains": "/var/log/gate"}
    assert second["input"].endswith("gate: The log is kept in ____, daily.")


@pytest.mark.parametrize(
    "body",
    [
        "There is nothing in code here.",
        "Two of them, `one here` and `two here`, are ambiguous.",
        "The command is `up` in short, which is too little.",
        "This sentence tells gate up already: `gate up`.",
        "A sentence about the skill, which is called `gate`.",
        "The character \x1b[31m is in the sentence with `red text`.",
        "The word " + "again " * 60 + "is `far away`.",
        "```\nThe command to open a gate is `gate up`.\n",
    ],
)
def test_without_such_a_sentence_cases_wait_until_they_are_written(
    tmp_path: Path, body: str
) -> None:
    file = skill_of(tmp_path, body, "Gates.\n\x1b[2J" + "x" * 900)
    cases = example_cases(load_skill(file))
    assert [case["skip"].partition(":")[0] for case in cases] == [
        "an example",
        "an example",
    ]
    assert "\x1b" not in example_file(load_skill(file), "x")
    assert "Gates." in cases[0]["input"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "body",
    [
        "No code.",
        "The command to open a gate is `gate up`.",
        (
            "The command to open a gate is `gate up`.\n\nThe command to shut a gate is"
            " `gate down`."
        ),
        'The sign on the gate says `"<script>\\n\'"`, with quotes.',
    ],
)
def test_the_file_has_no_lint_errors(tmp_path: Path, body: str, line_end: str) -> None:
    file = skill_of(tmp_path, body.replace("\n", line_end))
    cases = example_file(load_skill(file), "../schema.json")
    (file.parent / "skill_meta.json").write_text(cases, encoding="utf-8")
    found = lint_skill(file, judge=False, lift=0.2)
    assert {one.code for one in found} <= {"few-cases", "example"}
    assert json.loads(cases)["$schema"] == "../schema.json"


def test_a_huge_text_is_no_trouble(tmp_path: Path) -> None:
    body = "`" * 300_000 + "\n" + "- a\n" * 100_000
    assert len(example_cases(load_skill(skill_of(tmp_path, body)))) == 2
