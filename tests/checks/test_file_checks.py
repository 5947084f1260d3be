"""Checks of the files that an agent leaves behind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.checks import (
    CheckContext,
    checks_of,
    function_kind,
    grade,
    load_checked_cases,
    parse_checks,
)
from pytest_upskill.checks.file_checks import files_kind
from pytest_upskill.checks.final_workspace import Workspace, matches
from pytest_upskill.checks.kinds import KINDS
from pytest_upskill.errors import CasesError
from pytest_upskill.skills.case import Case, WorkspaceFile
from pytest_upskill.trials.answer import Answer, AnswerFile
from pytest_upskill.trials.records import Grade
from support.checking import agent_answer, graded, passes, reason, refused

REPORT = AnswerFile.of("report.md", b"# Report\n\nTotal: 3\n")
DATA = AnswerFile.of("out/data.json", b'{"total": 3}')
BINARY = AnswerFile.of("page.png", b"\x89PNG\0\1")
ANSWER = agent_answer(REPORT, DATA, BINARY)


def deleted(path: str) -> AnswerFile:
    return AnswerFile(path, None, 0, "", "deleted")


def changed(path: str, data: bytes = b"new") -> AnswerFile:
    return replace(AnswerFile.of(path, data), change="changed")


@pytest.mark.parametrize(
    ("files", "good"),
    [
        ("report.md", True),
        (["report.md", "out/data.json"], True),
        (["report.md", "data.json"], False),
        ({"report.md": True, "x.md": False}, True),
        ({"report.md": "exists", "x.md": "absent"}, True),
        ({"./report.md": {"exists": True}}, True),
        ({"report.md": {"exists": False}}, False),
        ({"report.md": {"absent": True}}, False),
        ({"x.md": {"absent": True}}, True),
        (
            {
                "report.md": {
                    "contains": "total",
                    "not_contains": ["Sum"],
                    "max_words": 4,
                }
            },
            True,
        ),
        ({"report.md": {"regex": r"Total: \d+", "starts_with": "# report"}}, True),
        ({"report.md": {"contains": "4"}}, False),
        ({"out/data.json": {"json_schema": {"required": ["total"]}}}, True),
        ({"out/data.json": {"json_schema": {"required": ["sum"]}}}, False),
        (
            {
                "out/data.json": {
                    "json_path": {"path": "$.total", "equals": 3},
                    "number": 3,
                }
            },
            True,
        ),
        ({"report.md": {"max_bytes": 20}}, True),
        ({"report.md": {"max_bytes": 19}}, True),
        ({"report.md": {"max_bytes": 18}}, False),
        ({"out/*.json": {"json": True}}, True),
        ({"*.json": True}, False),
        ({"**/*.json": True}, True),
        ({"*.bin": "absent", "**/*.exe": "absent"}, True),
        ({"**": "absent"}, False),
    ],
)
def test_files_are_looked_at(files: Any, good: bool) -> None:
    assert passes(ANSWER, files=files) is good


def test_reasons_say_what_is_there_instead() -> None:
    assert (
        reason(ANSWER, files="report.txt")
        == "report.txt: not there (made: report.md, out/data.json, page.png)"
    )
    many = agent_answer(*(AnswerFile.of(f"{n}.txt", b"x") for n in range(9)))
    assert (
        reason(many, files="a") == "a: not there (made: 0.txt, 1.txt, 2.txt and 6 more)"
    )
    assert reason(agent_answer(), files="a.md") == "a.md: not there (made: nothing)"
    assert reason(agent_answer(deleted("a.md")), files="a.md") == "a.md: deleted"
    assert (
        reason(ANSWER, files={"report.md": {"contains": "4"}})
        == 'report.md: "4" is not in the file'
    )
    assert (
        reason(ANSWER, files={"*.md": "absent"})
        == "report.md: there, and should not be"
    )


def test_a_name_of_the_agent_does_no_harm() -> None:
    hostile = agent_answer(AnswerFile.of("\x1b[31m\n" + "x" * 9000, b"x"))
    assert "\x1b" not in reason(hostile, files="a")
    assert len(reason(hostile, files="a")) < 300
    assert "\x1b" not in reason(hostile, files={"*": "absent"})


@pytest.mark.parametrize(
    "files", [{"page.png": {"contains": "PNG"}}, {"page.png": {"json": True}}]
)
def test_a_binary_file_can_not_be_searched(files: Any) -> None:
    assert "not a text" in reason(ANSWER, files=files)
    assert not passes(ANSWER, **{"not": {"files": files}})


def test_each_thing_asked_counts_once_whether_the_file_is_there_or_not() -> None:
    asked = {
        "report.md": {
            "contains": ["total", "3", "x"],
            "regex": ["a", "b"],
            "max_bytes": 9,
        },
        "gone.md": {"json_path": ["$.a", "$.b"], "equals": "a"},
        "x": "absent",
    }
    assert len(graded({"files": asked}, ANSWER)) == 10
    assert len(graded({"files": asked}, agent_answer())) == 10
    assert len(graded({"files": asked}, agent_answer(text="", stop="length"))) == 10


def test_one_match_of_a_pattern_is_enough_but_what_is_forbidden_holds_for_all() -> None:
    answer = agent_answer(
        AnswerFile.of("a.py", b"print()"), AnswerFile.of("b.py", b"eval()")
    )
    assert passes(answer, files={"*.py": {"contains": "print"}})
    assert not passes(answer, files={"*.py": {"not_contains": "eval"}})
    assert reason(answer, files={"*.py": {"not_contains": "eval"}}).startswith("b.py: ")
    assert not passes(answer, files={"*.py": {"max_bytes": 6}})
    assert not passes(answer, files={"*.py": {"contains": "sum"}})
    one_binary = agent_answer(
        AnswerFile.of("a.py", b"\0"), AnswerFile.of("b.py", b"print()")
    )
    assert passes(one_binary, files={"*.py": {"contains": "print"}})
    assert not passes(one_binary, files={"*.py": {"not_contains": "eval"}})


@pytest.mark.parametrize(
    ("path", "pattern", "good"),
    [
        ("a.md", "a.md", True),
        ("a/b.md", "*.md", False),
        ("a/b.md", "*/*.md", True),
        ("b.md", "**/*.md", True),
        ("a/b/c.md", "**/*.md", True),
        ("a/b/c.md", "a/**", True),
        ("a", "a/**", True),
        ("a/b/c.md", "a/**/c.md", True),
        ("a/b/c.md", "b/**", False),
        ("a[1].md", "a[1].md", True),
        ("a1.md", "a[1].md", True),
        ("A.md", "a.md", False),
        ("a" * 99, "*a" * 40 + "b", False),
        ("/".join("a" * 200), "**/" * 100 + "b", False),
    ],
)
def test_patterns(path: str, pattern: str, good: bool) -> None:
    assert matches(path, pattern) is good


def test_case_sensitive_and_weights_apply_inside_of_files() -> None:
    asked = {"files": {"report.md": {"contains": "total"}}}
    assert not passes(ANSWER, case_sensitive=True, **asked)
    (only,) = graded({**asked, "weight": 3}, ANSWER)
    assert (only.weight, only.check) == (3, "files")
    assert passes(ANSWER, any_of=[{"files": "gone"}, asked])


def of_start(expected: Any, answer: Answer, *start: WorkspaceFile) -> tuple[Grade, ...]:
    checks = parse_checks(expected, KINDS, ())
    return grade(checks, answer, workspace=Workspace(answer, start))


START = (
    WorkspaceFile("data.csv", b"id\n1\n"),
    WorkspaceFile("src/a.py", b"a"),
    WorkspaceFile("src/b.py", b"b"),
)


def test_files_of_the_start_count_too() -> None:
    (there,) = of_start(
        {"files": {"data.csv": {"contains": "id"}}}, agent_answer(), *START
    )
    assert there.passed
    (gone,) = of_start({"files": "data.csv"}, agent_answer(deleted("data.csv")), *START)
    assert (gone.passed, gone.reason) == (False, "data.csv: deleted")
    (absent,) = of_start({"files": {"data.csv": "absent"}}, agent_answer(), *START)
    assert not absent.passed
    answer = agent_answer(changed("data.csv", b"none"))
    (new,) = of_start({"files": {"data.csv": {"contains": "id"}}}, answer, *START)
    assert not new.passed


@pytest.mark.parametrize(
    ("written", "touched", "good", "why"),
    [
        ("data.csv", (), True, "data.csv: unchanged"),
        ("data.csv", (changed("data.csv"),), False, "data.csv: changed"),
        ("data.csv", (deleted("data.csv"),), False, "data.csv: deleted"),
        ("src/*.py", (changed("src/b.py"),), False, "src/b.py: changed"),
        ("src/*.py", (AnswerFile.of("src/c.py", b"c"),), True, "src/*.py: unchanged"),
        ("data.cvs", (), False, "data.cvs: no such file at the start"),
        (
            "new.csv",
            (AnswerFile.of("new.csv", b"1"),),
            False,
            "new.csv: no such file at the start",
        ),
    ],
)
def test_unchanged(written: str, touched: Any, good: bool, why: str) -> None:
    (only,) = of_start({"unchanged": written}, agent_answer(*touched), *START)
    assert (only.passed, only.reason) == (good, why)


def test_what_was_cut_is_not_taken_for_what_is_not_there() -> None:
    new = [AnswerFile.of(f"{number}.txt", b"") for number in range(200)]
    old = [changed(file.path) for file in new]
    for expected, files in (
        ({"files": {"z.exe": "absent"}}, new),
        ({"unchanged": "data.csv"}, old),
    ):
        for written in (expected, {"not": expected}):
            (only,) = of_start(written, agent_answer(*files), *START)
            assert not only.passed
            assert "more files than are kept" in only.reason
    (only,) = of_start({"unchanged": "data.csv"}, agent_answer(*new), *START)
    assert only.passed


def test_a_file_that_was_not_there_decides_nothing_inside_of_not() -> None:
    (only,) = of_start({"not": {"unchanged": "gone"}}, agent_answer(), *START)
    assert not only.passed


def test_a_plain_completion_passes_none_of_it() -> None:
    for expected in ({"files": {"x": "absent"}}, {"not": {"files": "x"}}):
        (only,) = graded(expected, "Done.")
        assert not only.passed
        assert "plain completion" in only.reason


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a": {"contians": "x"}},
            'files.a.contians: unknown key (did you mean "contains"?)',
        ),
        ({"a": "text"}, 'must be "exists", "absent" or an object'),
        ({"/workspace/a": True}, "must be a path in the workspace"),
        ({"a/../../b": True}, "without .."),
        ({"": True}, "must not be empty"),
        ({"a": {}}, "must not be empty"),
        ({}, "must not be empty"),
        ([], "must not be empty"),
        (3, "must be an object of paths"),
        ([3], "must be an object of paths"),
        ({"a": 3}, 'must be "exists", "absent" or an object'),
        ({"a": ["Total"]}, 'must be "exists", "absent" or an object'),
        ({"a": {"absent": True, "contains": "x"}}, "no answer would pass"),
        ({"a": {"exists": False, "max_bytes": 3}}, "no answer would pass"),
        ({"a": {"regex": "("}}, "files.a.regex: invalid pattern"),
        ({"a": {"max_bytes": 0}}, "files.a.max_bytes: must be 1 or more"),
        ({"a": {"max_seconds": 3}}, "unknown key"),
    ],
)
def test_mistakes_are_told_with_their_place(files: Any, message: str) -> None:
    assert message in refused({"files": files})


def equal(folder: Path, name: str, data: bytes) -> Grade:
    answer = agent_answer(AnswerFile.of("a.txt", data))
    kinds = {**KINDS, "files": files_kind(folder)}
    checks = parse_checks({"files": {"a.txt": {"equals_file": name}}}, kinds, ())
    (only,) = grade(checks, answer)
    return only


def test_a_file_is_compared_with_one_of_the_skill(tmp_path: Path) -> None:
    (tmp_path / "want.txt").write_bytes(b"one\ntwo\n")
    (tmp_path / "want.bin").write_bytes(b"\0\xff")
    assert equal(tmp_path, "want.txt", b"one\ntwo\n").passed
    assert equal(tmp_path, "want.txt", b"one\r\ntwo").passed
    wrong = equal(tmp_path, "want.txt", b"one\nthree\n")
    assert (
        wrong.reason == 'a.txt: not the same as want.txt (line 2 is "three", not "two")'
    )
    assert "1 lines, not 2" in equal(tmp_path, "want.txt", b"one\n").reason
    assert equal(tmp_path, "want.bin", b"\0\xff").passed
    assert "3 bytes, not 2" in equal(tmp_path, "want.bin", b"\0\xff\0").reason


@pytest.mark.parametrize("name", ["gone.txt", "../outside.txt", ".env"])
def test_a_file_to_compare_with_that_can_not_be_read_breaks_the_case(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "outside.txt").write_text("x")
    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / ".env").write_text("x")
    file = folder / "skill_meta.json"
    expected = {"files": {"a.txt": {"equals_file": name}}}
    file.write_text(json.dumps([{"input": "q", "expected": expected}]))
    with pytest.raises(CasesError, match=r"expected\.files"):
        load_checked_cases(file, folder=folder).require_all()


def is_long(context: CheckContext) -> tuple[bool, str]:
    text = context.answer.text
    return len(text) >= context.value["least"], text


@pytest.mark.parametrize(
    ("answer", "passed", "why"),
    [
        (ANSWER, True, "# Report Total: 3"),
        (agent_answer(), False, "report.md: not there (made: nothing)"),
        (agent_answer(changed("report.md", b"\0")), False, "report.md: not a text"),
        (agent_answer(REPORT, stop="max_turns"), False, "the agent stopped"),
        (Answer("a long completion"), True, "a long completion"),
    ],
)
@pytest.mark.parametrize("path", ["report.md", "./report.md", "/workspace/report.md"])
def test_a_validator_gets_the_output_file(
    answer: Answer, passed: bool, why: str, path: str
) -> None:
    own = {"long": function_kind("long", is_long)}
    case = Case("c", "q", validator=("long", {"output_file": path, "least": 6}))
    (only,) = grade(checks_of(case, {**KINDS, **own}, own), answer)
    assert only.passed is passed
    assert only.reason.startswith(why)
