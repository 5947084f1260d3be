"""Lint rules for triggers."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.features.queries.lint import names_skill
from pytest_upskill.lint import Finding, lint_skill
from support.kit import write_skill

TOPICS = [
    "gate",
    "cart",
    "boat",
    "bell",
    "lamp",
    "rope",
    "well",
    "mill",
    "dock",
    "barn",
]


def queries(number: int, *, should: bool) -> list[dict[str, Any]]:
    start = "Please open the" if should else "What is the price of a"
    return [
        {"query": f"{start} {topic}, {topic} or {topic}", "should_trigger": should}
        for topic in TOPICS[:number]
    ]


def lint(folder: Path, written: Any) -> list[Finding]:
    skill = write_skill(folder / "gate-keeper")
    (skill / "evals").mkdir(exist_ok=True)
    (skill / "evals/triggers.json").write_text(json.dumps(written, indent=1))
    found = lint_skill(skill / "SKILL.md", judge=False, lift=0.2)
    return [one for one in found if one.code != "few-cases"]


def brief(found: list[Finding]) -> list[tuple[str, str, int]]:
    return [(one.level, one.code, one.line) for one in found]


def test_a_good_set_has_no_findings(tmp_path: Path) -> None:
    assert lint(tmp_path, [*queries(10, should=True), *queries(10, should=False)]) == []


def test_a_skill_for_users_only_needs_no_queries(tmp_path: Path) -> None:
    lint(tmp_path, [])
    file = tmp_path / "gate-keeper" / "SKILL.md"
    file.write_text(
        file.read_text().replace("---\n", "---\ndisable-model-invocation: true\n", 1)
    )
    triggers = tmp_path / "gate-keeper" / "evals" / "triggers.json"
    triggers.write_text(
        json.dumps([*queries(1, should=True), *queries(1, should=False)], indent=1)
    )
    found = [
        one for one in lint_skill(file, judge=False, lift=0.2) if "triggers" in one.file
    ]
    assert brief(found) == [("error", "cases-invalid", 2)]


def test_a_set_without_queries_is_an_error(tmp_path: Path) -> None:
    assert brief(lint(tmp_path, [])) == [("error", "cases-invalid", 1)]


@pytest.mark.parametrize(
    ("should", "should_not", "code", "message"),
    [
        (
            3,
            0,
            "trigger-one-kind",
            "3 queries that should trigger, and none that should not",
        ),
        (
            0,
            1,
            "trigger-one-kind",
            "1 query that should not trigger, and none that should trigger",
        ),
        (
            10,
            7,
            "trigger-few",
            "7 queries that should not trigger: too few to show much",
        ),
        (10, 0, "trigger-one-kind", "10 queries that should trigger"),
    ],
)
def test_one_finding_about_how_many_there_are(
    tmp_path: Path, should: int, should_not: int, code: str, message: str
) -> None:
    written = [*queries(should, should=True), *queries(should_not, should=False)]
    (found,) = lint(tmp_path, written)
    assert (found.level, found.code) == ("warning", code)
    assert found.message.startswith(message)
    assert "pytest-upskill triggers " in str(found.hint)


def test_a_lopsided_set_is_told(tmp_path: Path) -> None:
    many = [
        {"query": f"Kindly {verb} the {topic} now", "should_trigger": True}
        for verb in ("lift", "paint", "move")
        for topic in TOPICS
    ]
    (found,) = lint(tmp_path, [*many, *queries(10, should=False)])
    assert found.code == "trigger-unbalanced"
    message = "30 queries that should trigger, but 10 queries that should not trigger"
    assert found.message == message


def test_each_problem_has_its_line(tmp_path: Path) -> None:
    good = [*queries(10, should=True), *queries(10, should=False)]
    bad = [
        {"query": "Use gate_keeper on the farm", "should_trigger": True},
        # A near miss, perhaps
        {"query": "Tell me of the gate keeper", "should_trigger": False},
        good[0],
        {**good[0], "should_trigger": False},
        {"query": "x"},
        {"query": "Something else", "should_trigger": False, "should_triger": True},
    ]
    assert brief(lint(tmp_path, [*bad, *good])) == [
        ("error", "cases-invalid", 18),
        ("error", "cases-invalid", 14),
        ("warning", "cases-warning", 24),
        ("warning", "cases-warning", 26),
        ("warning", "trigger-names-skill", 2),
    ]


def test_near_repeats_are_told_unless_they_end_differently(tmp_path: Path) -> None:
    start = "Please write to my landlord that the gate is broken and needs a new hinge"
    alike = [
        {"query": f"{start} today", "should_trigger": True},
        {"query": f"{start} soon", "should_trigger": True},
        {"query": f"{start} now", "should_trigger": False},
    ]
    found = lint(
        tmp_path, [*alike, *queries(10, should=True), *queries(10, should=False)]
    )
    assert brief(found) == [("warning", "near-duplicate", 6)]


@pytest.mark.parametrize(
    ("query", "name", "gives_away"),
    [
        ("Use gate-keeper here", "gate-keeper", True),
        ("the Gate Keeper knows", "gate-keeper", True),
        ("GATEKEEPER please", "gate-keeper", True),
        ("the gate, and its keeper", "gate-keeper", False),
        ("Merge these pdf files", "pdf", False),
        ("/pdf merge these", "pdf", True),
        ("use $pdf", "pdf", True),
        ("with the PDF skill", "pdf", True),
        ("with the skill `pdf`", "pdf", True),
        ("my pdfs need skill", "pdf", False),
        ("anything", "", False),
        ("帮我填表", "gate", False),
    ],
)
def test_a_name_of_one_word_may_stand_in_a_query(
    query: str, name: str, gives_away: bool
) -> None:
    assert names_skill(query, name) is gives_away
