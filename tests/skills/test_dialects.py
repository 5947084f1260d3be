"""Dialects of evals.json: what they expect of an agent with the skill, and of its
work.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import checked_suite
from pytest_upskill.skills.suites.reading import Suites, read_suites
from support.kit import write_skill

PROMPT = {"id": "a", "prompt": "Open the gate."}
SAYS = {"expected_output": "Says gate up."}
AS_EXPECTED = {"judge": ["The answer is as expected: Says gate up."]}


def read(folder: Path, data: Any, name: str = "evals/evals.json") -> Suites:
    """What the skill ``gate`` is tested with."""
    skill = write_skill(folder / "gate", [])
    (skill / "skill_meta.json").unlink()
    file = skill / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1))
    return read_suites(skill)


def expected(folder: Path, *entries: Any, key: str = "evals") -> list[Any]:
    """The checks of each case; all of them can be parsed."""
    suite = read(folder, {key: list(entries)}).cases
    assert suite
    (loaded,) = checked_suite(suite)
    assert not loaded.broken
    return [case.expected for case, _ in loaded.cases]


def wishes(suites: Suites) -> dict[str, bool]:
    return {case.input: case.should_open for case in suites.all_triggers}


@pytest.mark.parametrize(
    ("keys", "opened"),
    [
        ({"expected_skill": "gate"}, True),
        ({"expected_skill": "Gate/SKILL.md"}, True),
        ({"expected_skill": "harbour:gate"}, True),
        ({"expected_skill": ["door", "gate"]}, True),
        ({"expected_skill": "door"}, False),
        ({"expected_skill": "none"}, False),
        ({"expected_skill": None}, False),
        ({"expected_skill": "gate", "should_trigger": False}, False),
        ({"should_trigger": True}, True),
        ({"skill_should_trigger": True}, True),
    ],
)
def test_a_wish_beside_an_answer_is_a_check_of_the_skill_arm(
    tmp_path: Path, keys: dict[str, Any], opened: bool
) -> None:
    own = {**PROMPT, "id": "own", **SAYS, "expected_skill": "gate"}
    checks, _ = expected(tmp_path, {**PROMPT, **SAYS, **keys}, own)
    assert checks == {**AS_EXPECTED, "with_skill": {"skill_activated": opened}}


@pytest.mark.parametrize("key", ["should_trigger", "skill_should_trigger"])
def test_a_wish_alone_is_a_trigger(tmp_path: Path, key: str) -> None:
    suites = read(
        tmp_path,
        {
            "evaluations": [
                {**PROMPT, key: True},
                {"id": "b", "prompt": "Bake a cake.", key: False},
            ]
        },
    )
    assert wishes(suites) == {"Open the gate.": True, "Bake a cake.": False}
    assert not suites.has_cases


def test_a_query_with_the_skill_that_should_answer_it_is_a_trigger(
    tmp_path: Path,
) -> None:
    queries = [
        {"query": "Open up", "expected_skill": "gate"},
        {"query": "Ring the bell", "expected_skill": "bell"},
        {"query": "Bake a cake", "expected_skill": None},
    ]
    wanted = {"Open up": True, "Ring the bell": False, "Bake a cake": False}
    assert wishes(read(tmp_path, {"evals": queries})) == wanted
    assert wishes(read(tmp_path, queries, "evals/eval_queries.json")) == wanted


def test_cases_that_all_name_the_end_of_the_skills_name_mean_it(tmp_path: Path) -> None:
    suites = read(tmp_path, [{**PROMPT, **SAYS, "expected_skill": "ate"}])
    assert suites.cases
    assert suites.cases.cases[0].expected["with_skill"] == {"skill_activated": True}
    warning = (1, "no case names this skill, so ate is taken for it")
    assert suites.cases.files[0].warnings == (warning,)


def test_cases_of_a_bundle_name_the_skill_that_has_to_be_opened(tmp_path: Path) -> None:
    for name in ("gate", "bell"):
        write_skill(tmp_path / "skills" / name)
    wanted = ["gate", ["gate", "Bell"], "oven", None]
    entries = [
        {**PROMPT, "id": n, **SAYS, "expected_skill": w} for n, w in enumerate(wanted)
    ]
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/evals.json").write_text(json.dumps(entries))
    suite = read_suites(tmp_path).cases
    assert suite
    ((*loaded,),) = [of_file.cases for of_file in checked_suite(suite)]
    assert [case.expected["with_skill"] for case, _ in loaded] == [
        {"skill_opened": "gate"},
        {"any_of": [{"skill_opened": "gate"}, {"skill_opened": "bell"}]},
        {"skill_activated": False},
        {"skill_activated": False},
    ]


def test_scripts_and_references_of_the_skill_have_to_be_used(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    for name in ("scripts/open.py", "references/hinges.md"):
        (skill / name).parent.mkdir(exist_ok=True)
        (skill / name).write_text("")
    keys = {"expected_skill": "gate", "expected_references": ["references/hinges.md"]}
    for script in (
        "scripts/open.py",
        "./scripts/open.py",
        "open.py",
        "x/gate/scripts/open.py",
    ):
        (checks,) = expected(
            tmp_path, {**PROMPT, **SAYS, **keys, "expected_script": script}
        )
        assert checks["with_skill"] == {
            "skill_activated": True,
            "scripts_run": ["scripts/open.py"],
            "references_read": ["references/hinges.md"],
        }


def test_a_script_that_the_skill_does_not_have_is_left_out_and_told(
    tmp_path: Path,
) -> None:
    entries = [{**PROMPT, **SAYS, "expected_script": "evals/targets/one.py"}]
    suite = read(tmp_path, entries).cases
    assert suite
    assert suite.cases[0].expected == AS_EXPECTED
    left_out = (
        "left out: expected_script (no such file in the skill: evals/targets/one.py)"
    )
    assert suite.files[0].warnings == ((6, left_out),)


def test_what_may_be_anywhere_and_what_the_log_has(tmp_path: Path) -> None:
    entry = {
        **PROMPT,
        "skill_should_trigger": True,
        "expected_behavior": ["Asks who is there"],
        "unexpected_behavior": ["Breaks the lock"],
        "files_exist": ["out/report.md"],
        "logs_contain": ["--two-keys"],
        "note": "for people",
    }
    assert expected(tmp_path, entry, key="evaluations") == [
        {
            "judge": ["Asks who is there"],
            "all_of": [
                {"files": {"**/out/report.md": "exists"}},
                {"transcript": {"contains": "--two-keys"}},
                {"not": {"judge": ["Breaks the lock"]}},
            ],
            "with_skill": {"skill_activated": True},
        }
    ]


def test_what_is_said_and_the_state_of_the_repository_are_judged(
    tmp_path: Path,
) -> None:
    entry = {
        **PROMPT,
        "expected_chat_output": "Tells what changed.",
        "expected_repo_state": ["pubspec.yaml names the package", "All tests pass"],
    }
    said = "The answer to the user is as expected: Tells what changed."
    criteria = ["pubspec.yaml names the package", "All tests pass"]
    assert expected(tmp_path, entry) == [{"judge": [*criteria, said]}]
    listed = {**entry, "expected_chat_output": ["Names the package"]}
    assert expected(tmp_path, listed) == [{"judge": [*criteria, "Names the package"]}]
    suite = read_suites(tmp_path / "gate").cases
    assert suite
    assert "files that an agent leaves" in suite.cases[0].needs_agent


def test_a_workspace_is_a_folder_of_the_skill(tmp_path: Path) -> None:
    for key in ("workspace", "test_data"):
        folder = tmp_path / "gate/evals/files/yard"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.md").write_text("a plan")
        suite = read(tmp_path, [{**PROMPT, **SAYS, key: "evals/files/yard"}]).cases
        assert suite
        assert suite.cases[0].files == (("plan.md", "a plan"),)


@pytest.mark.parametrize(
    "name",
    [
        "evals/eval_queries.json",
        "evals/train_queries.json",
        "evals/trigger/eval_queries.json",
    ],
)
def test_queries_of_the_guide_are_found_by_their_names(
    tmp_path: Path, name: str
) -> None:
    data = {"queries": [{"query": "Open up", "should_trigger": True, "split": "train"}]}
    assert wishes(read(tmp_path, data, name)) == {"Open up": True}


def test_queries_of_a_search_are_left_out(tmp_path: Path) -> None:
    data = [{"query": "gate", "relevant": ["doc-1"]}]
    suites = read(tmp_path, data, "evals/eval_queries.json")
    assert not suites.has_triggers
    assert suites.triggers[0].warnings == (
        (1, "no list of queries, so it is left out"),
    )


def test_cases_in_our_own_form_may_say_so_too(tmp_path: Path) -> None:
    cases = [
        {
            "id": "a",
            "input": "Open?",
            "expected": {"contains": "up"},
            "should_trigger": True,
        }
    ]
    suite = read(tmp_path, {"cases": cases}, "skill_meta.json").cases
    assert suite
    assert suite.cases[0].expected == {
        "contains": "up",
        "with_skill": {"skill_activated": True},
    }
    assert suite.files[0].written[0]["id"] == "a"
