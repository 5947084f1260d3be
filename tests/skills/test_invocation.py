"""Cases that invoke a skill by name: how they are written, and what is wrong with
them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.features.queries import QUERY
from pytest_upskill.skills.invocation import Invocation
from pytest_upskill.skills.suites.reading import Suites, read_suites
from support.agents import write_files
from support.kit import write_skill

USERS_ONLY = "disable-model-invocation: true\n"


@pytest.mark.parametrize(
    ("written", "invocation"),
    [
        ("/wick", Invocation("wick")),
        ("/wick lamp 4\nand lamp 5", Invocation("wick", "lamp 4\nand lamp 5")),
        ("  /lamps:wick  lamp 4 ", Invocation("wick", "lamp 4")),
        ("/wick /tmp/a:b", Invocation("wick", "/tmp/a:b")),
    ],
)
def test_an_invocation_is_a_name_and_arguments(
    written: str, invocation: Invocation
) -> None:
    assert Invocation.of(written) == invocation


@pytest.mark.parametrize(
    "written", ["wick lamp", "/", "/ wick", "//wick", "$wick", "/a:"]
)
def test_anything_else_is_none(written: str) -> None:
    with pytest.raises(ValueError, match="/name arguments"):
        Invocation.of(written)


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Trim it.", "", "Trim it."),
        ("Trim it.", "lamp 4", "Trim it.\n\nARGUMENTS: lamp 4"),
        ("Trim $ARGUMENTS now.", "lamp 4", "Trim lamp 4 now."),
        ("Trim $ARGUMENTS now.", "", "Trim  now."),
        ("$1, $0, $ARGUMENTS[1], $2, $10x", "'a b' c", "c, a b, c, $2, $10x"),
        ("Trim $0.", "it's", "Trim it's."),
    ],
)
def test_arguments_stand_where_the_skill_wants_them(
    body: str, arguments: str, text: str
) -> None:
    assert Invocation("wick", arguments).text(body) == text


def test_arguments_that_are_asked_anyway_are_not_said_twice() -> None:
    assert Invocation("wick", "lamp 4").text("Trim it.", "lamp 4") == "Trim it."


def suites(folder: Path, *cases: dict[str, Any], more: str = "") -> Suites:
    """The cases, one in each line, of a skill."""
    skill = write_skill(folder / "wick", body="# Wick\n\nTrim it.\n")
    if more:
        text = (skill / "SKILL.md").read_text()
        (skill / "SKILL.md").write_text(text.replace("---\n", f"---\n{more}", 1))
    lines = ",\n".join(
        json.dumps({"expected": {"contains": "x"}, **case}) for case in cases
    )
    (skill / "skill_meta.json").write_text(f'{{"cases": [\n{lines}\n]}}')
    return read_suites(skill)


def read(found: Suites) -> list[tuple[str, Invocation | None]]:
    assert found.cases
    return [(case.input, case.invoke) for case in found.cases.require().cases]


def messages(found: Suites) -> list[str]:
    assert found.cases
    files = (*found.cases.files, *found.triggers)
    return [case.message for of_file in files for case in of_file.broken]


def test_the_input_of_a_case_is_the_arguments_unless_it_has_one(tmp_path: Path) -> None:
    found = suites(
        tmp_path,
        {"invoke": "/wick lamp 4"},
        {"invoke": "/wick lamp 5", "input": "Trim the wick of lamp 5."},
        {"invoke": "/wick", "input": "Trim all wicks."},
        {"input": "Trim it."},
    )
    assert read(found) == [
        ("lamp 4", Invocation("wick", "lamp 4")),
        ("Trim the wick of lamp 5.", Invocation("wick", "lamp 5")),
        ("Trim all wicks.", Invocation("wick")),
        ("Trim it.", None),
    ]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            {"invoke": "/wcik lamp 4"},
            "invoke: 'wcik' is no skill under test (did you mean \"wick\"?)",
        ),
        (
            {"invoke": "/saw lamp 4"},
            "invoke: 'saw' is no skill under test: write /wick",
        ),
        ({"invoke": "/wick"}, "input: missing"),
        ({"invoke": "wick lamp"}, 'invoke: must be "/name arguments"'),
        ({"invoke": 4, "input": "x"}, "invoke: must be a string"),
    ],
)
def test_a_wrong_invocation_is_told_with_its_line(
    tmp_path: Path, case: dict[str, Any], words: str
) -> None:
    found = suites(tmp_path, {"input": "Trim it."}, case)
    (message,) = messages(found)
    assert "skill_meta.json:3: cases[1]." in message
    assert words in message
    assert read(found) == [("Trim it.", None)]


def test_a_skill_of_a_bundle_is_invoked_by_its_name(tmp_path: Path) -> None:
    for name in ("wick", "saw"):
        write_skill(tmp_path / "skills" / name)
    write_files(tmp_path, {"commands/oil.md": "Oil it."})
    names = ("saw", "x", "oil")
    cases = [
        {"invoke": f"/lamps:{name} 4", "expected": {"contains": "x"}} for name in names
    ]
    (tmp_path / "skill_meta.json").write_text(json.dumps({"cases": cases}))
    found = read_suites(tmp_path)
    assert read(found) == [("4", Invocation("saw", "4"))]
    unknown, command = messages(found)
    assert "'x' is no skill under test: write /saw, wick" in unknown
    assert (
        "cases[2].invoke: 'oil' is a command of the plugin, and no skill of it"
        in command
    )


def test_a_skill_for_users_only_is_invoked_with_the_input(tmp_path: Path) -> None:
    found = suites(
        tmp_path,
        {"input": "Trim lamp 4."},
        {"invoke": "/wick 5", "input": "x"},
        more=USERS_ONLY,
    )
    assert read(found) == [
        ("Trim lamp 4.", Invocation("wick", "Trim lamp 4.")),
        ("x", Invocation("wick", "5")),
    ]


def test_no_query_opens_a_skill_for_users_only(tmp_path: Path) -> None:
    found = suites(tmp_path, {"input": "Trim lamp 4."}, more=USERS_ONLY)
    triggers = [{"query": "Trim it", "should_trigger": True}]
    triggers += [{"query": "Saw it", "should_trigger": False}]
    file = found.folder / "evals" / "triggers.json"
    file.parent.mkdir()
    file.write_text(json.dumps(triggers, indent=1))
    (message,) = messages(found := read_suites(found.folder))
    assert (
        "triggers.json:2: [0]: should trigger, but no agent opens the skill by itself"
        in message
    )
    (query,) = found.all_triggers
    assert (query.input, bool(query.skip)) == ("Saw it", True)
    assert [broken.kind for broken in found.triggers[0].broken] == [QUERY]
