"""--skill and --skill-tests: which items there are, and their node ids."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.kit import case, write_script, write_skill
from support.runs import ending

GATE = "skills/gate/skill_meta.json::open-gate"


@pytest.fixture
def model(pytester: pytest.Pytester) -> str:
    return write_script(pytester.path / "answers.json")


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    result = pytester.runpytest_inprocess("--collect-only", "-q", *args)
    return [line for line in result.outlines if "::" in line]


def test_a_case_on_a_model_is_one_item(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    nodes = collected(
        pytester, "--skill", "skills/gate", "--model", "haiku", "--model", "opus"
    )
    assert nodes == [f"{GATE}[haiku]", f"{GATE}[opus]"]


@pytest.mark.parametrize("path", ["skills/gate", "skills/gate/SKILL.md", "./skills/"])
def test_a_skill_is_found_by_its_folder_its_file_or_a_folder_above(
    pytester: pytest.Pytester, path: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    assert collected(pytester, "--skill", path, "--model", "haiku") == [
        f"{GATE}[haiku]"
    ]


def test_several_skills_come_in_the_order_given(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / "more/deep/down/door")
    nodes = collected(
        pytester, "--skill", "skills", "--skill", "more", "--model", "haiku"
    )
    assert nodes == [
        f"{GATE}[haiku]",
        "more/deep/down/door/skill_meta.json::open-gate[haiku]",
    ]


def test_with_skill_alone_no_other_test_is_collected(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makepyfile("def test_other(): pass")
    assert collected(pytester, "--skill", "skills", "--model", "haiku") == [
        f"{GATE}[haiku]"
    ]


def test_with_another_path_both_are_collected(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    file = pytester.makepyfile("def test_other(): pass").name
    nodes = collected(pytester, "--skill", "skills", file, "--model", "haiku")
    assert nodes == [f"{file}::test_other", f"{GATE}[haiku]"]


def test_one_case_can_be_named_on_the_command_line(pytester: pytest.Pytester) -> None:
    write_skill(
        pytester.path / "skills/gate", [case("a", "x", id="a"), case("b", "x", id="b")]
    )
    node = "skills/gate/skill_meta.json::b[haiku]"
    args = ["--skill", "skills", "--model", "haiku", "--model", "opus"]
    assert collected(pytester, node, *args) == [node]


def test_skill_paths_are_collected_with_testpaths(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / ".claude/skills/gate")
    file = pytester.makepyfile("def test_other(): pass").name
    pytester.makeini("[pytest]\nskill_paths = .claude/skills\nskill_models = haiku")
    gate = ".claude/skills/gate/skill_meta.json::open-gate[haiku]"
    assert sorted(collected(pytester)) == sorted([gate, f"{file}::test_other"])
    assert collected(pytester, file) == [f"{file}::test_other"]
    assert collected(pytester, gate) == [gate]


def test_one_test_file_of_a_project_with_skills_needs_no_model(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    file = pytester.makepyfile("def test_other(): pass").name
    pytester.makeini("[pytest]\nskill_paths = skills\nskill_models = haiku")
    result = pytester.runpytest_inprocess(file)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("upskill: *")
    pytester.runpytest_inprocess().assert_outcomes(passed=1, skipped=1)
    pytester.makeini("[pytest]\nskill_paths = nowhere")
    pytester.runpytest_inprocess(file).assert_outcomes(passed=1)


def test_the_skills_of_the_command_line_replace_those_of_the_ini_file(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / "other/door")
    pytester.makeini("[pytest]\nskill_paths = other\nskill_models = haiku")
    assert collected(pytester, "--skill", "skills") == [f"{GATE}[haiku]"]


def test_skills_outside_of_the_rootdir_have_ids_of_their_own(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    write_skill(tmp_path / "one/gate")
    write_skill(tmp_path / "two/gate", body="Another text.")
    pytester.makeini("[pytest]")
    nodes = collected(pytester, "--skill", str(tmp_path), "--model", "haiku")
    assert len(set(nodes)) == 2
    assert all(
        node.endswith("/gate/skill_meta.json::open-gate[haiku]") for node in nodes
    )


def test_no_conftest_on_the_way_to_a_skill_elsewhere_is_run(
    pytester: pytest.Pytester, tmp_path: Path, model: str
) -> None:
    for name in ("one", "two"):
        write_skill(tmp_path / f"elsewhere/skills/{name}")
    (tmp_path / "elsewhere/conftest.py").write_text("raise SystemExit('ran code')")
    result = pytester.runpytest_inprocess("--skill", str(tmp_path), "--model", model)
    result.assert_outcomes(passed=2)


def test_the_hooks_of_the_projects_own_conftest_see_the_cases(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    pytester.makeconftest(
        "def pytest_runtest_setup(item): print('hook saw', item.name)"
    )
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, "-s")
    result.stdout.fnmatch_lines(["*hook saw open-gate*"])


def test_linked_skills_in_a_folder_are_found_once_each(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "real/gate")
    (pytester.path / "skills").mkdir()
    (pytester.path / "skills/gate").symlink_to(pytester.path / "real/gate")
    (pytester.path / "skills/loop").symlink_to(pytester.path / "skills")
    assert collected(pytester, "--skill", "skills", "--model", "haiku") == [
        f"{GATE}[haiku]"
    ]
    assert len(collected(pytester, "--skill", ".", "--model", "haiku")) == 1


def test_a_project_may_lie_in_a_folder_with_brackets(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    write_skill(pytester.path / "proj[1]/skills/gate")
    shutil.copy(pytester.path / "answers.json", pytester.path / "proj[1]")
    monkeypatch.chdir(pytester.path / "proj[1]")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.assert_outcomes(passed=1)


def test_a_conftest_inside_a_skill_is_not_run(
    pytester: pytest.Pytester, model: str
) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "conftest.py").write_text("raise SystemExit('the skill ran code')")
    (folder / "__init__.py").write_text("raise SystemExit('the skill ran code')")
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["-k", "haiku and not lift"], ["open"]),
        (["-m", "skill and not slow"], ["open"]),
        (["--deselect", "skills/gate/skill_meta.json::lift"], ["open"]),
    ],
)
def test_cases_are_selected_like_any_tests(
    pytester: pytest.Pytester, args: list[str], names: list[str]
) -> None:
    cases = [
        case("open?", "x", id="open"),
        case("lift?", "x", id="lift", tags=["slow"]),
    ]
    write_skill(pytester.path / "skills/gate", cases)
    nodes = collected(
        pytester, "--skill", "skills", "--model", "haiku", "--strict-markers", *args
    )
    assert nodes == [f"skills/gate/skill_meta.json::{name}[haiku]" for name in names]


def test_collect_only_shows_how_many_calls_a_run_would_make(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", [case("a", "x"), case("b", "x")])
    args = [
        "--collect-only",
        "--skill",
        "skills",
        "--model",
        "haiku",
        "--skill-runs",
        "3",
    ]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(
        ["*up to 12 calls, *$*: 2 tests × 3 runs, with and without the skill"]
    )
    result = pytester.runpytest_inprocess(*args, "--skill-no-baseline")
    result.stdout.fnmatch_lines(["*up to 6 calls, *: 2 tests × *"])


@pytest.mark.parametrize(
    ("skips", "words"),
    [
        (
            (True, True),
            ["no calls: all of these tests are skipped"],
        ),
        (
            (True, False),
            ["up to 2 calls", "1 of 2 tests would be skipped"],
        ),
    ],
)
def test_collect_only_tells_of_skipped_tests(
    pytester: pytest.Pytester, skips: Sequence[bool], words: Sequence[str]
) -> None:
    cases = [
        case(f"{number}?", "x", id=f"example-{number}", tags=["edit-me"], skip=skip)
        for number, skip in enumerate(skips)
    ]
    write_skill(pytester.path / "skills/gate", cases)
    result = pytester.runpytest_inprocess("--skill", "skills", "--collect-only")
    lines = [line for line in result.outlines if line.startswith("upskill: ")][1:]
    assert [word in line for word, line in zip(words, lines, strict=True)] == [
        True
    ] * len(words)


def test_a_run_of_examples_alone_asks_to_edit_them(
    pytester: pytest.Pytester, model: str
) -> None:
    example = case("?", "x", id="example", tags=["edit-me"], skip=True)
    write_skill(pytester.path / "skills/gate", [example])
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model)
    assert ending(result)[-1] == "next: edit the cases, then the same command asks them"


def test_setup_plan_asks_nothing(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    result = pytester.runpytest_inprocess(
        "--setup-plan", "--skill", "skills", "--model", "haiku"
    )
    assert result.ret == 0


def test_cases_of_another_file_replace_those_of_the_skill(
    pytester: pytest.Pytester, model: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / "skills/door")
    bare = [case("How do I open it?", "gate up", id="from-file")]
    (pytester.path / "more.json").write_text(json.dumps(bare))
    args = ["--skill", "skills", "--skill-tests", "more.json", "--model", model]
    assert collected(pytester, *args) == [
        f"skills/{name}/SKILL.md::from-file[{model}]" for name in ("door", "gate")
    ]
    pytester.runpytest_inprocess(*args).assert_outcomes(passed=2)


@pytest.mark.parametrize("file", ["cases/more.json", "cases/evals/evals.json"])
def test_cases_elsewhere_name_files_beside_them(
    pytester: pytest.Pytester, file: str
) -> None:
    pytester.makepyfile(
        reads="def reply(asked): return 'stuck' if '7 is stuck' in str(asked) else ''"
    )
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "log.txt").write_text("of the skill")
    elsewhere = pytester.path / file
    elsewhere.parent.mkdir(parents=True)
    (pytester.path / "cases/log.txt").write_text("gate 7 is stuck")
    cases = [
        {
            **case("What does it say?", "stuck", id="beside"),
            "context": {"files": ["log.txt"]},
        },
        {
            **case("And this?", "gate up", id="missing"),
            "context": {"files": ["SKILL.md"]},
        },
    ]
    elsewhere.write_text(json.dumps(cases))
    args = [
        "--skill",
        "skills",
        "--skill-tests",
        file,
        "--model",
        "scripted:reads.py:reply",
    ]
    finished = pytester.runpytest_inprocess(*args)
    finished.assert_outcomes(passed=1, failed=1)
    finished.stdout.fnmatch_lines(
        ["*'SKILL.md' not found; name a file, relative to cases*"]
    )


def test_a_tests_file_beside_the_skill_is_no_different(
    pytester: pytest.Pytester,
) -> None:
    folder = write_skill(pytester.path / "skills/gate")
    (folder / "more.json").write_text(
        json.dumps([case("Open?", "gate up", id="from-file")])
    )
    args = [
        "--skill",
        "skills",
        "--skill-tests",
        "skills/gate/more.json",
        "--model",
        "haiku",
    ]
    assert collected(pytester, *args) == ["skills/gate/more.json::from-file[haiku]"]
