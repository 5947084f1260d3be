"""The optional keys of a case, and the defaults of a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import load_checked_cases
from pytest_upskill.errors import CasesError
from pytest_upskill.skills.case import Case, CaseUser
from pytest_upskill.skills.suites.json_suites import load_cases
from support.kit import case, write_skill

TALK = [
    {"role": "user", "content": "There is a gate."},
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "How do I open it?"},
]


def write(folder: Path, data: Any) -> Path:
    file = folder / "skill_meta.json"
    file.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return file


def load(folder: Path, **fields: Any) -> Case:
    (one,) = load_cases(write(folder, [{**case("Open?", "x"), **fields}])).require_all()
    return one


def rejected(folder: Path, data: Any) -> CasesError:
    with pytest.raises(CasesError) as caught:
        load_checked_cases(write(folder, data)).require_all()
    return caught.value


# Messages and the system prompt.


def test_earlier_turns_come_before_the_question(tmp_path: Path) -> None:
    one = load(tmp_path, input=TALK)
    assert one.earlier == (("user", "There is a gate."), ("assistant", "I see."))
    assert one.input == "How do I open it?"
    assert one.id.startswith("how-do-i-open-it-")


def test_one_message_equals_a_string(tmp_path: Path) -> None:
    one = load(tmp_path, input=[{"role": "user", "content": "Open?"}])
    assert (one.input, one.earlier, one.id) == ("Open?", (), load(tmp_path).id)


def test_generated_id_depends_on_all_turns(tmp_path: Path) -> None:
    other = [{"role": "user", "content": "There is a door."}, *TALK[1:]]
    ids = {
        load(tmp_path, input=turns).id for turns in (TALK, other, "How do I open it?")
    }
    assert len(ids) == 3


NOT_IN_TURN = "[0].input: user and assistant must take turns, with user first and last"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([], NOT_IN_TURN),
        (TALK[:2], NOT_IN_TURN),
        (TALK[1:], NOT_IN_TURN),
        ([TALK[0], TALK[2]], NOT_IN_TURN),
        ([TALK[0], TALK[1], TALK[1]], NOT_IN_TURN),
        ([{"role": "user"}], "[0].input[0].content: missing"),
        ([{"role": "user", "content": " "}], "[0].input[0].content: must not be empty"),
        ([{"role": "user", "context": "a"}], "[0].input[0].content: missing"),
        (
            [{"role": "user", "content": "a", "contnt": 1}],
            "[0].input[0].contnt: unknown key (did",
        ),
        (
            [{"role": "robot", "content": "a"}],
            "[0].input[0].role: input should be 'user' or 'a",
        ),
        (
            [{"role": "system", "content": "a"}],
            '[0].input[0].role: write a system prompt as "s',
        ),
        (["a"], "[0].input[0]: must be an object"),
        ({"role": "user"}, "[0].input: must be a string or a list of messages"),
    ],
)
def test_invalid_messages_are_rejected(
    tmp_path: Path, written: Any, problem: str
) -> None:
    assert rejected(
        tmp_path, [{**case("q", "x"), "input": written}]
    ).problem.startswith(problem)


# Files in the skill's folder.


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["data/a.csv"], ["data/a.csv"]),
        ({"a.csv": {"file": "data/a.csv"}}, ["a.csv"]),
        (
            {"b.txt": "x;y\n", "a.csv": {"file": "./data/../data/a.csv"}},
            ["b.txt", "a.csv"],
        ),
        ([], []),
        (None, []),
    ],
)
def test_files_of_the_skill_are_read(
    tmp_path: Path, files: Any, names: list[str]
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_bytes(b"\xef\xbb\xbfx;y\r\n")
    assert load(tmp_path, context={"files": files}).files == tuple(
        (n, "x;y\n") for n in names
    )


def test_files_are_relative_to_the_skill_wherever_the_cases_are(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "gate")
    (skill / "a.txt").write_text("of the skill")
    file = write(tmp_path, [case("q", "x", context={"files": ["a.txt"]})])
    assert load_cases(file, skill).require_all()[0].files == (
        ("a.txt", "of the skill"),
    )
    with pytest.raises(CasesError, match=r"'a\.txt' not found"):
        load_cases(file).require_all()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.txt", "'none.txt' not found"),
        ("../secret.txt", "'../secret.txt' is outside of "),
        ("/etc/hostname", "'/etc/hostname' is outside of "),
        ("link.txt", "'link.txt' is outside of "),
        ("round", "'round' "),
        ("folder", "'folder' is a folder"),
        (".env", "'.env' may hold secrets, so it is not read"),
        ("visible.txt", "'visible.txt' may hold secrets"),
        (".git/config", "'.git/config' may hold secrets"),
        ("a\0b", "invalid file name 'a\\x00b'"),
        ("a" * 5000, "can't read 'aaa"),
    ],
)
def test_unusable_file_is_rejected(tmp_path: Path, name: str, problem: str) -> None:
    skill = tmp_path / "gate"
    (skill / "folder").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (skill / "link.txt").symlink_to(tmp_path / "secret.txt")
    (skill / "round").symlink_to(skill / "round")
    (skill / ".env").write_text("A=1")
    (skill / ".git").mkdir()
    (skill / ".git/config").write_text("")
    (skill / "visible.txt").symlink_to(".env")
    one = case("q", "x", context={"files": [name]})
    error = rejected(skill, [one])
    assert error.problem.startswith(f"[0].context.files[0]: {problem}")
    assert error.where.endswith("skill_meta.json:11")
    one["context"] = {"files": {"a": {"file": name}}}
    assert rejected(skill, [one]).problem.startswith(f"[0].context.files.a: {problem}")


def test_unknown_key_next_to_a_file_gets_a_suggestion(tmp_path: Path) -> None:
    one = case("q", "x", context={"files": {"a": {"fle": "a.txt"}}})
    problem = rejected(tmp_path, [one]).problem
    assert '[0].context.files.a.fle: unknown key (did you mean "file"?)' in problem


# Defaults.


def test_defaults_apply_unless_a_case_overrides_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    common = {
        "system": "Be terse.",
        "context": {"files": ["a.txt"]},
        "tags": ["all", "slow"],
        "skip": "not yet",
        "runs": 3,
        "threshold": 1,
        "models": "claude-*",
        "expected": {"contains": ["a"], "not_contains": ["b"], "case_sensitive": True},
    }
    own = {
        "system": "Be kind.",
        "context": None,
        "tags": ["own", "slow"],
        "skip": False,
        "xfail": "hard",
        "runs": 1,
        "threshold": 0.5,
        "models": ["gpt-*", "o4"],
        "expected": {"contains": ["c"], "case_sensitive": None},
    }
    data = {"defaults": common, "cases": [{"input": "one"}, {"input": "two", **own}]}
    one, two = load_cases(write(tmp_path, data)).require_all()
    assert (one.system, one.files, one.tags) == (
        "Be terse.",
        (("a.txt", "a"),),
        ("all", "slow"),
    )
    assert (one.skip, one.xfail, one.runs, one.threshold) == ("not yet", None, 3, 1)
    assert (one.models, one.expected) == (("claude-*",), common["expected"])
    assert (two.system, two.files, two.tags) == ("Be kind.", (), ("own", "slow", "all"))
    assert (two.skip, two.xfail, two.runs, two.threshold) == (None, "hard", 1, 0.5)
    assert two.models == ("gpt-*", "o4")
    assert two.expected == {
        "contains": ["c"],
        "not_contains": ["b"],
        "case_sensitive": None,
    }


@pytest.mark.parametrize(
    ("defaults", "problem"),
    [
        ({"id": "a"}, "defaults.id: unknown key"),
        ({"input": "a"}, "defaults.input: unknown key"),
        ({"tag": ["a"]}, 'defaults.tag: unknown key (did you mean "tags"?)'),
        ({"tags": ["a b"]}, "defaults.tags[0]: 'a b' can't be a pytest mark"),
        ({"expected": ["a"]}, "defaults.expected: must be an object"),
        (
            {"context": {"files": ["none"]}},
            "defaults.context.files[0]: 'none' not found",
        ),
        ([], "defaults: must be an object"),
    ],
)
def test_problem_in_the_defaults_is_reported_there(
    tmp_path: Path, defaults: Any, problem: str
) -> None:
    data = {"defaults": defaults, "cases": [case("q", "x")]}
    assert rejected(tmp_path, data).problem.startswith(problem)


def test_invalid_check_in_the_defaults_is_reported_once_and_there(
    tmp_path: Path,
) -> None:
    data = {
        "cases": [case("a", "x"), {"input": "b"}],
        "defaults": {"expected": {"contians": "y"}},
    }
    error = rejected(tmp_path, data)
    assert (
        error.problem
        == 'defaults.expected.contians: unknown check (did you mean "contains"?)'
    )
    assert error.where.endswith("skill_meta.json:17")


def test_case_without_checks_needs_defaults(tmp_path: Path) -> None:
    data = {"defaults": {"tags": ["a"]}, "cases": [{"input": "q"}]}
    assert rejected(tmp_path, data).problem == "cases[0].expected: missing"


# Invalid values and their lines.


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"system": ""}, ".system: must not be empty"),
        ({"skip": ""}, ".skip: must be a reason, true or false"),
        ({"skip": 1}, ".skip: must be a reason"),
        ({"xfail": ["x"]}, ".xfail: must be a reason"),
        ({"runs": 0}, ".runs: must be 1 or more"),
        ({"runs": 1_000_000_000}, ".runs: must be 1000 or less"),
        (
            {"expected": {"judge": "x", "judge_votes": 1001}},
            ".expected.judge_votes: must be 1000 or",
        ),
        (
            {"expected": {"contains": "x", "judge_votes": 3}},
            '.expected.judge_votes: there is no "judge" check',
        ),
        ({"runs": "3"}, ".runs: must be a whole number"),
        ({"runs": True}, ".runs: must be a whole number"),
        ({"threshold": 0}, ".threshold: must be above 0"),
        ({"threshold": 1.1}, ".threshold: must be 1 or less"),
        ({"threshold": "half"}, ".threshold: must be a number"),
        ({"models": []}, ".models: must be a string or a list of strings"),
        ({"models": [""]}, ".models[0]: must not be empty"),
        ({"models": 1}, ".models: must be a string or a list of strings"),
        ({"run": 1}, '.run: unknown key (did you mean "runs"?)'),
    ],
)
def test_invalid_value_is_rejected(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    assert rejected(tmp_path, [{**case("q", "x"), **change}]).problem.startswith(
        f"[0]{problem}"
    )


def test_every_problem_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    good = case("q", "x")
    error = rejected(
        tmp_path, {"cases": [good, {**good, "runs": 0}, {**good, "id": "a b"}]}
    )
    first, second = str(error).splitlines()
    assert first.startswith("skill_meta.json:18: cases[1].runs: ")
    assert second.startswith("  skill_meta.json:27: cases[2].id: ")


def test_the_files_of_a_case_have_a_limit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.skills.case_files._MOST_IN_FILES", 100)
    (tmp_path / "a.txt").write_text("x" * 60)
    error = rejected(tmp_path, [case("q", "x", context={"files": ["a.txt"] * 1000})])
    assert (
        error.problem
        == "[0].context.files: the files have more than 100 characters together"
    )


# Users.


def test_a_user_has_facts_or_fixed_replies(tmp_path: Path) -> None:
    facts = ["It is red.", "It is heavy."]
    assert load(tmp_path).user is None
    assert load(tmp_path, user={"facts": facts}).user == CaseUser(tuple(facts), most=6)
    assert load(tmp_path, user={"facts": facts, "max_turns": 2}).user == CaseUser(
        tuple(facts), most=2
    )
    fixed = CaseUser(replies=("Red.", "No."), most=2)
    assert load(tmp_path, replies=["Red.", "No."]).user == fixed
    assert load(tmp_path, user={"replies": ["Red.", "No."]}).user == fixed


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"user": {}}, 'cases[0].user: needs "facts", a list of what the user knows'),
        ({"user": "Anna"}, "cases[0].user: must be an object"),
        ({"user": {"facts": "red"}}, "cases[0].user.facts: must be a list"),
        ({"user": {"facts": []}}, "cases[0].user.facts: must not be empty"),
        ({"user": {"facts": [" "]}}, "cases[0].user.facts[0]: must not be empty"),
        ({"user": {"facts": [1]}}, "cases[0].user.facts[0]: must be a string"),
        (
            {"user": {"facts": ["x" * 2001]}},
            "facts[0]: must have at most 2,000 characters",
        ),
        (
            {"user": {"facts": ["x"] * 51}},
            "cases[0].user.facts: must have at most 50 entries",
        ),
        (
            {"user": {"facts": ["x"], "max_turns": 0}},
            "user.max_turns: must be 1 or more",
        ),
        (
            {"user": {"facts": ["x"], "max_turns": 21}},
            "user.max_turns: must be 20 or less",
        ),
        ({"user": {"fact": ["x"]}}, "cases[0].user.fact: unknown key (did you mean"),
        ({"replies": []}, "cases[0].replies: must not be empty"),
        ({"replies": ["x"] * 21}, "cases[0].replies: must have at most 20 entries"),
        (
            {"replies": ["x"], "user": {"facts": ["x"]}},
            "replies: can't be combined with user",
        ),
        (
            {"user": {"replies": ["x"], "facts": ["x"]}},
            "replies: can't be combined with facts",
        ),
        (
            {"user": {"replies": ["x"], "max_turns": 2}},
            "can't be combined with max_turns",
        ),
    ],
)
def test_a_wrong_user_is_told_with_its_place(
    tmp_path: Path, fields: dict[str, Any], problem: str
) -> None:
    error = rejected(tmp_path, {"cases": [{**case("Open?", "x"), **fields}]})
    assert problem in str(error)
    assert "skill_meta.json:" in str(error)
