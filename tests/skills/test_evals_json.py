"""evals/evals.json: read as cases, and found without an option."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import load_checked_cases
from pytest_upskill.errors import CasesError
from pytest_upskill.skills.case import Case, WorkspaceFile
from pytest_upskill.skills.suites.json_suites import load_cases


def write_evals(skill: Path, evals: Any, **more: Any) -> Path:
    file = skill / "evals/evals.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    data = (
        {"skill_name": skill.name, "evals": evals, **more}
        if more != {"bare": True}
        else evals
    )
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return file


def load(skill: Path, *evals: Any, **more: Any) -> list[Case]:
    return load_cases(write_evals(skill, evals, **more), skill).require_all()


def rejected(skill: Path, *evals: Any, **more: Any) -> CasesError:
    with pytest.raises(CasesError) as caught:
        load(skill, *evals, **more)
    return caught.value


EVAL = {
    "id": 1,
    "prompt": "Open the gate.",
    "expected_output": "Says gate up.",
    "files": [],
}

AS_EXPECTED = "The answer is as expected: Says gate up."


def test_eval_is_a_case_for_the_judge(tmp_path: Path) -> None:
    assert load(tmp_path, EVAL) == [
        Case(
            id="1",
            input="Open the gate.",
            expected={"judge": [AS_EXPECTED]},
            place=("evals", 0),
            line=4,
            is_eval=True,
        )
    ]


@pytest.mark.parametrize("key", ["assertions", "expectations"])
@pytest.mark.parametrize(
    "written",
    [
        ["Names the command", "Is short"],
        [
            {"text": "Names the command"},
            {"id": "short", "text": "Is short", "type": "llm"},
        ],
        [{"name": "named", "description": "Names the command"}, "Is short"],
    ],
)
def test_assertions_become_criteria_for_the_judge(
    tmp_path: Path, key: str, written: Any
) -> None:
    criteria = {"judge": ["Names the command", "Is short"]}
    (one,) = load(tmp_path, {"prompt": "Open the gate.", key: written})
    assert one.expected == criteria
    more = {"expected_output": "Says gate up."}  # which is not judged as well
    (one,) = load(tmp_path, {"prompt": "Open the gate.", key: written, **more})
    assert one.expected == {**criteria, "judge_context": "Says gate up."}
    (empty,) = load(tmp_path, {**EVAL, key: []})
    assert empty.expected == {"judge": [AS_EXPECTED]}


@pytest.mark.parametrize(
    ("keys", "made"),
    [
        ({"id": 0}, "0"),
        ({"id": "open-gate"}, "open-gate"),
        ({"id": 2, "name": "open-gate"}, "2"),
        ({"name": "Open the gate!"}, "open-the-gate"),
        ({"eval_name": "open"}, "open"),
    ],
)
def test_id_is_a_number_a_string_or_made_from_the_name(
    tmp_path: Path, keys: dict[str, Any], made: str
) -> None:
    one = {key: value for key, value in EVAL.items() if key != "id"}
    assert load(tmp_path, {**one, **keys})[0].id == made


def test_eval_without_id_and_name_gets_an_id_from_its_question(tmp_path: Path) -> None:
    one = {"prompt": "Open the gate.", "expected_output": "x"}
    assert load(tmp_path, one)[0].id.startswith("open-the-gate-")


def test_keys_for_other_programs_are_ignored(tmp_path: Path) -> None:
    one = {**EVAL, "name": "n", "notes": ["a"], "category": "x", "description": "d"}
    assert load(tmp_path, one, _comment=["a"], version=1, metadata={}, description="d")


def test_files_are_searched_in_the_skill_then_in_evals(tmp_path: Path) -> None:
    for name in ("evals/files/a.txt", "data/b.txt", "evals/data/b.txt", "evals/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"from {name}")
    names = ["evals/files/a.txt", "files/a.txt", "data/b.txt", "c.txt"]
    (one,) = load(tmp_path, {**EVAL, "files": names})
    read = ["evals/files/a.txt", "evals/files/a.txt", "data/b.txt", "evals/c.txt"]
    assert one.files == tuple(
        (name, f"from {path}") for name, path in zip(names, read, strict=True)
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"files": ["none.txt"]}, ".files[0]: 'none.txt' not found"),
        ({"files": ["/tmp"]}, ".files[0]: '/tmp' is outside of "),
        ({"files": ["a" * 5000]}, ".files[0]: can't read 'aaa"),
        ({"files": ["../../x.txt"]}, ".files[0]: '../../x.txt' is outside of "),
        ({"files": "a.txt"}, ".files: must be a list"),
        ({"files": ["a\0b"]}, ".files[0]: invalid file name 'a\\x00b'"),
        ({"expected_output": ""}, ": nothing expected"),
        ({"expected_output": None}, ": nothing expected"),
        ({"expected_output": 1}, ": nothing expected"),
        ({"assertions": [1]}, ".assertions[0]: must be a string or an object with"),
        ({"assertions": [{"cmd": "x"}]}, ".assertions[0]: needs a"),
        ({"assertions": {"a": 1}}, ".assertions: must be a list"),
        (
            {"expect": {"contains": "x"}},
            '.expect: must be a list (did you mean "expected"?)',
        ),
        ({"prompt": ""}, ".prompt: must not be empty"),
    ],
)
def test_problem_in_an_eval_is_reported_with_its_path(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    error = rejected(tmp_path, {**EVAL, "id": "first"}, {**EVAL, **change})
    assert error.problem.startswith(f"evals[1]{problem}")
    assert "evals.json:" in error.where


def test_ids_that_occur_twice_are_numbered(tmp_path: Path) -> None:
    evals = [{**EVAL, "id": name} for name in ("1", 1, "1-2", 1)]
    loaded = load_cases(write_evals(tmp_path, evals), tmp_path)
    assert [case.id for case in loaded.cases] == ["1", "1-3", "1-2", "1-4"]
    assert loaded.warnings == ((10, "ids that occur twice are numbered"),)


def test_file_without_evals_is_rejected(tmp_path: Path) -> None:
    assert rejected(tmp_path).problem == "no cases"


def test_trigger_set_is_rejected_by_name(tmp_path: Path) -> None:
    queries = [{"query": "open the gate", "should_trigger": True}]
    for bare in (True, False):
        write_evals(tmp_path, queries, **({"bare": True} if bare else {}))
        with pytest.raises(CasesError, match="only queries of triggers"):
            load_cases(tmp_path / "evals/evals.json", tmp_path).require_all()


# What else others write.


def only(skill: Path, data: Any) -> Case:
    """The only case of a file."""
    (case,) = load_cases(write_evals(skill, data, bare=True), skill).require_all()
    return case


MANY = {"assertions": ["Says gate up", "Is short"]}
JUDGED = {"judge": MANY["assertions"]}


@pytest.mark.parametrize(
    "data",
    [
        [{"prompt": "Open?", "assertions": ["Says gate up", "Is short"]}],
        [{"query": "Open?", "expected_behavior": ["Says gate up", "Is short"]}],
        {
            "cases": [
                {"question": "Open?", "expectations": ["Says gate up", "Is short"]}
            ]
        },
        {"tests": [{"user_prompt": "Open?", "criteria": ["Says gate up", "Is short"]}]},
        {"test_cases": [{"input": "Open?", "rubric": ["Says gate up", "Is short"]}]},
        {"evals": [{"messages": [{"role": "user", "content": "Open?"}], **MANY}]},
        {"scenarios": [{"task": "Open?", "expect": ["Says gate up", "Is short"]}]},
        {"evals": [{"input": "Open?", "expected": ["Says gate up", "Is short"]}]},
        [{"input": "Open?", "expected_behavior": ["Says gate up", "Is short"]}],
        {
            "skills": ["gate"],
            "query": "Open?",
            "expected_behavior": ["Says gate up", "Is short"],
        },
    ],
)
def test_forms_of_others_give_the_same_case(tmp_path: Path, data: Any) -> None:
    case = only(tmp_path, data)
    assert (case.input, case.expected) == ("Open?", JUDGED)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"expected_behavior": "Is short"}, {"judge": ["Is short"]}),
        (
            {"ground_truth": "gate up"},
            {"judge": ["The answer is as expected: gate up"]},
        ),
        ({"expected": "gate up"}, {"judge": ["The answer is as expected: gate up"]}),
        ({"expected": {"contains": "gate up"}}, {"contains": "gate up"}),
        (
            {"must_have": ["up"], "must_not_have": "down"},
            {"contains": ["up"], "not_contains": ["down"]},
        ),
        ({"expected": {"must_have": ["up"]}}, {"contains": ["up"]}),
        (
            {"expectations": ["Is short"], "anti_expectations": ["Shouts", "Lies"]},
            {
                "judge": ["Is short"],
                "all_of": [
                    {"not": {"judge": ["Shouts"]}},
                    {"not": {"judge": ["Lies"]}},
                ],
            },
        ),
        ({"assertions": [{"id": 1, "check": "Is short"}]}, {"judge": ["Is short"]}),
        (
            {"rubric": [{"dimension": 1, "pass_if": "Is short"}]},
            {"judge": ["Is short"]},
        ),
        ({"assertions": [{"type": "contains", "value": "up"}]}, {"contains": ["up"]}),
        (
            {"assertions": [{"type": "not-contains", "values": ["a", "b"]}]},
            {"not_contains": ["a", "b"]},
        ),
        (
            {"assertions": [{"type": "regex", "pattern": "u.", "text": "Up"}]},
            {"regex": ["u."]},
        ),
        ({"assertions": [{"type": "semantic", "text": "Up"}]}, {"judge": ["Up"]}),
        (
            {
                "assertions": [
                    {"type": "contains_any", "values": [a, b]} for a, b in ("ab", "cd")
                ]
            },
            {"all_of": [{"contains_any": ["a", "b"]}, {"contains_any": ["c", "d"]}]},
        ),
        (
            {
                "verifiers": [
                    {"type": "contains", "values": ["up"]},
                    {"type": "command", "run": "x"},
                ]
            },
            {"contains": ["up"]},
        ),
    ],
)
def test_what_has_a_plain_meaning_is_expected(
    tmp_path: Path, keys: dict[str, Any], expected: Any
) -> None:
    one = {"prompt": "Open?", **keys}
    assert load(tmp_path, one)[0].expected == expected
    loaded = load_checked_cases(tmp_path / "evals/evals.json", folder=tmp_path)
    assert len(loaded.cases) == 1
    if "verifiers" in keys:
        assert loaded.warnings == (
            (6, "unknown keys are ignored: verifiers (command)"),
        )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"expected_files": ["out/a.md", {"path": "b.csv"}]},
            [("out/a.md", "exists"), ("b.csv", "exists")],
        ),
        ({"expected_files": "a.md"}, [("a.md", "exists")]),
        (
            {"assertions": [{"type": "file_exists", "path": "a.md", "text": "There"}]},
            [("a.md", "exists")],
        ),
        (
            {"assertions": [{"type": "file-not-exists", "file": "a.md"}]},
            [("a.md", "absent")],
        ),
        (
            {
                "assertions": [
                    {"type": "file_contains", "path": "a.md", "values": ["x", "y"]}
                ]
            },
            [("a.md", {"contains": ["x", "y"]})],
        ),
        (
            {
                "expectations": [
                    {"type": "file_matches", "path": "a.md", "pattern": "x+"}
                ]
            },
            [("a.md", {"regex": ["x+"]})],
        ),
        (
            {"verifiers": [{"type": "file_exists", "path": "a.md", "cmd": None}]},
            [("a.md", "exists")],
        ),
    ],
)
def test_files_that_an_agent_must_leave_are_checks(
    tmp_path: Path, keys: dict[str, Any], expected: list[Any]
) -> None:
    (loaded,) = load(tmp_path, {"prompt": "Open?", **keys})
    assert loaded.expected == {
        "all_of": [{"files": {path: form}} for path, form in expected]
    }
    checked = load_checked_cases(tmp_path / "evals/evals.json", folder=tmp_path)
    assert len(checked.cases) == 1
    assert not checked.warnings


def test_commands_and_what_must_not_be_left_are_checks_too(tmp_path: Path) -> None:
    keys = {
        "verifiers": [{"type": "command", "cmd": "make test", "path": None}],
        "must_not": [{"type": "file_exists", "path": "tmp.txt"}],
        "assertions": [
            "It is good.",
            {"type": "file_exists", "path": "/etc/x", "text": "It is."},
        ],
    }
    (loaded,) = load(tmp_path, {"prompt": "Open?", **keys})
    assert loaded.expected == {
        "judge": ["It is good.", "It is."],
        "all_of": [{"command": "make test"}, {"not": {"files": {"tmp.txt": "exists"}}}],
    }


def test_a_file_outside_the_workspace_can_not_be_expected(tmp_path: Path) -> None:
    problem = rejected(tmp_path, {**EVAL, "expected_files": ["../a.md"]}).problem
    assert problem.startswith(
        "evals[0].expected_files[0]: must be a path in the workspace"
    )


@pytest.mark.parametrize(
    ("verifiers", "expected", "told"),
    [
        (
            {"type": "contains", "values": ["b"]},
            {"judge": ["a"], "contains": ["b"]},
            [],
        ),
        (5, {"judge": ["a"]}, ["verifiers"]),
        (
            ["x", {}, {"type": ["y"]}],
            {"judge": ["a"]},
            ["verifiers", "verifiers (['y'])"],
        ),
        ([], {"judge": ["a"]}, []),
    ],
)
def test_verifiers_may_be_anything(
    tmp_path: Path, verifiers: Any, expected: Any, told: list[str]
) -> None:
    case = {"prompt": "Open?", "assertions": ["a"], "verifiers": verifiers}
    assert load(tmp_path, case)[0].expected == expected
    warnings = load_checked_cases(
        tmp_path / "evals/evals.json", folder=tmp_path
    ).warnings
    said = [
        message.removeprefix("unknown keys are ignored: ") for _, message in warnings
    ]
    assert said == ([", ".join(told)] if told else [])


@pytest.mark.parametrize(
    "prompt", [["One", "Two"], [{"role": "user", "content": "One"}, 2]]
)
def test_turns_are_messages(tmp_path: Path, prompt: Any) -> None:
    what = 'must be a string, or a list of messages with "role" and "content"'
    assert (
        rejected(tmp_path, {**EVAL, "prompt": prompt}).problem
        == f"evals[0].prompt: {what}"
    )


def test_a_list_that_is_none_is_an_error(tmp_path: Path) -> None:
    assert rejected(tmp_path, bare=True).problem == "no cases"
    write_evals(tmp_path, {"evals": {"a": EVAL}}, bare=True)
    with pytest.raises(CasesError, match="evals: must be a list"):
        load_cases(tmp_path / "evals/evals.json", tmp_path)


def test_many_unknown_keys_are_counted(tmp_path: Path) -> None:
    one = {**EVAL, **{f"x{number:02}": 1 for number in range(12)}}
    ((_, message),) = load_cases(write_evals(tmp_path, [one]), tmp_path).warnings
    assert message.endswith("x08, x09 and 2 more")


def test_unknown_keys_of_others_are_one_warning(tmp_path: Path) -> None:
    evals = [
        {**EVAL, "id": n, "asertions": ["x"], "context": "y", "empty": None}
        for n in (1, 2)
    ]
    loaded = load_cases(
        write_evals(tmp_path, evals, version=1, scoring={"a": 1}), tmp_path
    )
    assert len(loaded.cases) == 2
    message = "unknown keys are ignored: asertions, context, scoring"
    assert loaded.warnings == ((9, message),)


@pytest.mark.parametrize(
    ("keys", "made"),
    [
        ({"id": "Open: the gate?"}, "open-the-gate"),
        ({"id": 1.5, "name": "x"}, "x"),
        ({"id": "門"}, "門"),
    ],
)
def test_an_id_of_others_is_made_part_of_a_test_id(
    tmp_path: Path, keys: dict[str, Any], made: str
) -> None:
    assert load(tmp_path, {**EVAL, **keys})[0].id == made


def test_tags_of_others_become_marks_where_they_can(tmp_path: Path) -> None:
    one = {**EVAL, "tags": ["build", "needs gpu", "skip", 1, "!"]}
    assert load(tmp_path, one)[0].tags == ("build", "needs-gpu")


def test_a_group_is_kept_and_anything_else_by_that_name_is_not(tmp_path: Path) -> None:
    entries = [
        {**EVAL, "id": n, "group": group} for n, group in enumerate(["cards", 3, " "])
    ]
    assert [each.group for each in load(tmp_path, *entries)] == ["cards", "", ""]


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "evals/files/app/src").mkdir(parents=True)
    (tmp_path / "evals/files/app/src/a.py").write_text("a")
    (tmp_path / "evals/files/app/b.png").write_bytes(b"\0")
    for name in ("evals/files/app", "files/app/"):
        (one,) = load(tmp_path, {**EVAL, "files": [name]})
        assert one.files == ((f"{name.rstrip('/')}/src/a.py", "a"),)
        assert [file.path for file in one.exact] == [f"{name.rstrip('/')}/b.png"]
    assert "is the skill itself" in rejected(tmp_path, {**EVAL, "files": ["."]}).problem


def test_files_may_be_objects(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("from a")
    files = [{"path": "a.txt", "purpose": "x"}, {"name": "b.txt", "content": "written"}]
    assert load(tmp_path, {**EVAL, "files": files})[0].files == (
        ("a.txt", "from a"),
        ("b.txt", "written"),
    )
    texts = {"b.txt": "written"}
    assert load(tmp_path, {**EVAL, "files": texts})[0].files == (("b.txt", "written"),)
    assert load(tmp_path, {**EVAL, "context": {"files": texts}})[0].files[0] == (
        "b.txt",
        "written",
    )


def test_paths_from_the_root_of_a_repository_are_found(tmp_path: Path) -> None:
    skill = tmp_path / "skills/gate"
    (skill / "evals/files").mkdir(parents=True)
    (skill / "evals/files/a.txt").write_text("a")
    for name in ("skills/gate/evals/files/a.txt", "door/evals/files/a.txt"):
        assert load(skill, {**EVAL, "files": [name]})[0].files == ((name, "a"),)


def test_a_case_with_a_binary_file_is_for_agents(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/a.png").write_bytes(b"\x89PNG\r\n")
    plain, one = load(tmp_path, EVAL, {**EVAL, "id": 2, "files": ["a.png"]})
    assert not plain.needs_agent
    assert one.needs_agent.startswith(
        "'evals/a.png' is not UTF-8 text (byte 0): a plain question"
    )
    assert one.exact == (WorkspaceFile("a.png", b"\x89PNG\r\n"),)


def test_trigger_queries_among_cases_are_left_out(tmp_path: Path) -> None:
    query = {"query": "Open the gate", "should_trigger": True}
    loaded = load_cases(
        write_evals(tmp_path, [EVAL, query, {**EVAL, "id": 3}]), tmp_path
    )
    assert [case.id for case in loaded.cases] == ["1", "3"]
    assert (loaded.warnings, loaded.broken) == ((), ())  # triggers.py reads them
    # With something expected of the answer, it is a case.
    assert load(tmp_path, {**EVAL, "should_trigger": False})


def test_a_broken_eval_leaves_the_others(tmp_path: Path) -> None:
    evals = [EVAL, "text", {"id": "q", "prompt": "Q"}, {**EVAL, "id": 4}]
    loaded = load_cases(write_evals(tmp_path, evals), tmp_path)
    assert [case.id for case in loaded.cases] == ["1", "4"]
    assert [(one.name, one.error.problem) for one in loaded.broken] == [
        ("case-2", "evals[1]: must be an object"),
        ("q", 'evals[2]: nothing expected; add "expected_output" or "assertions"'),
    ]


def test_a_problem_in_a_check_of_others_is_one_of_the_case(tmp_path: Path) -> None:
    file = write_evals(
        tmp_path,
        [EVAL, {"prompt": "Q", "assertions": [{"type": "regex", "value": "("}]}],
    )
    (broken,) = load_checked_cases(file, folder=tmp_path).broken
    assert broken.error.problem.startswith("evals[1]: invalid pattern")
