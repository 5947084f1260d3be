"""What the header says about the skills that were found, and how they are called."""

import itertools
import random
from pathlib import Path

import pytest

from pytest_upskill.skills.labels import labels_of
from support.kit import BODY, case, write_script, write_skill


def labels(folder: Path, *skills: str) -> list[str]:
    """The labels of skills, each given as its folder and perhaps another name."""
    files = []
    for skill in skills:
        path, _, name = skill.partition("=")
        file = write_skill(folder / path) / "SKILL.md"
        if name:
            file.write_text(f"---\nname: {name}\ndescription: d\n---\nx\n")
        files.append(file)
    found = labels_of(files)
    return [found[file] for file in files]


@pytest.mark.parametrize(
    ("skills", "expected"),
    [
        (["a/pdf", "b/docx"], ["pdf", "docx"]),
        (["a/pdf", "b/pdf", "b/docx"], ["a/pdf", "b/pdf", "docx"]),
        (["x/skills/pdf", "y/skills/pdf"], ["x/pdf", "y/pdf"]),
        (["one=pdf", "two=pdf"], ["one/pdf", "two/pdf"]),
        (["a/pdf", "copy=pdf"], ["a/pdf", "copy/pdf"]),
        (["a/x/pdf", "a/y/pdf", "b/x/pdf"], ["a/x/pdf", "a/y/pdf", "b/x/pdf"]),
        (["any=pdf"], ["pdf"]),
        (["a/pdf", "b/pdf", "c=a/pdf"], ["a/pdf", "b/pdf", "a/pdf-2"]),
    ],
)
def test_skills_of_one_name_are_told_apart_by_the_nearest_folder(
    tmp_path: Path, skills: list[str], expected: list[str]
) -> None:
    assert labels(tmp_path, *skills) == expected
    order = list(range(len(skills)))
    random.Random(1).shuffle(order)
    again = labels(tmp_path, *(skills[n] for n in order))
    assert again == [expected[n] for n in order]


def test_labels_don_t_depend_on_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a/pdf"):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        assert labels(tmp_path, "a/pdf", "b/pdf") == ["a/pdf", "b/pdf"]


def test_skills_of_one_name_have_results_of_their_own(pytester: pytest.Pytester) -> None:
    for folder, answer in (("a", "gate up"), ("b", "never")):
        cases = [case("How?", answer, id="open")]
        write_skill(pytester.path / folder / "gate", cases, body=f"{BODY} In {folder}.")
    model = write_script(pytester.path / "answers.json")
    args = ["--skill", ".", "--model", model]
    accepted = pytester.runpytest_inprocess(*args, "--skill-accept")
    accepted.assert_outcomes(passed=1, xfailed=1)
    again = pytester.runpytest_inprocess(*args)
    again.assert_outcomes(passed=1, xfailed=1)
    again.stdout.fnmatch_lines(
        [f"upskill: 2 skills (a/gate, b/gate) on {model}", "a/gate · *", "b/gate · *"]
    )


def test_a_test_in_python_has_the_label_of_its_skill(pytester: pytest.Pytester) -> None:
    for folder in ("a/gate", "b/gate"):
        write_skill(pytester.path / folder)
    model = write_script(pytester.path / "answers.json")
    file = pytester.makepyfile("""
        import pytest

        @pytest.mark.skill("b/gate")
        def test_gate(ask):
            assert "gate up" in ask("How?")
    """).name
    for skill, label in ((".", "b/gate"), ("a", "b/gate")):
        result = pytester.runpytest_inprocess(file, "--skill", skill, "--model", model)
        result.stdout.fnmatch_lines([f"{label} · *"])


def test_the_header_of_many_skills_is_short_and_with_v_complete(
    pytester: pytest.Pytester,
) -> None:
    names = [f"{a}{b}-gate" for a, b in itertools.product("abcdefghijklmno", repeat=2)]
    for name in names:
        write_skill(pytester.path / "skills" / name, body=f"About the gate {name}.")
    for name in names[::3]:
        (pytester.path / "skills" / name / "skill_meta.json").unlink()
    args = ["--collect-only", "--skill", "skills", "--model", "haiku"]
    lines = [line for line in pytester.runpytest_inprocess(*args).outlines if "upskill: " in line]
    assert lines[0].startswith("upskill: 150 skills (ab-gate, ac-gate, ae-gate, ")
    assert "…) on haiku" in lines[0]
    assert lines[1].startswith("upskill: 225 found, 75 without cases: aa-gate, ad-gate, ")
    assert all(len(line) <= 100 for line in lines)
    shown = pytester.runpytest_inprocess(*args, "-v").stdout.str().partition("rootdir")[0]
    assert all(name in shown for name in names)


def test_the_header_tells_what_was_left_out_and_why(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / ".claude/skills/gate")
    write_skill(pytester.path / "skills/gate-workspace/iteration-1/gate")
    write_skill(pytester.path / "node_modules/x/skills/other")
    args = ["--collect-only", "--skill", ".", "--model", "haiku"]
    result = pytester.runpytest_inprocess(*args)
    result.stdout.fnmatch_lines(
        [
            "upskill: gate on haiku*",
            "upskill: left out (a copy of another skill here): .claude/skills/gate",
            "upskill: left out (a workspace of skill-creator): skills/gate-workspace",
            "upskill: left out (installed packages): node_modules",
        ]
    )
    assert sum("::" in line or "<CaseItem" in line for line in result.outlines) == 1


@pytest.mark.parametrize(
    ("args", "tested"),
    [
        (["--ignore", "skills/gate"], ["skills/door"]),
        (["--ignore-glob", "skills/d*"], ["skills/gate"]),
        (["--ignore", "skills"], ["skills/door", "skills/gate"]),  # it is what was asked for
    ],
)
@pytest.mark.parametrize("by_option", [True, False])
def test_skills_can_be_ignored_like_tests(
    pytester: pytest.Pytester, args: list[str], tested: list[str], by_option: bool
) -> None:
    for name in ("gate", "door"):
        write_skill(pytester.path / "skills" / name, body=f"{BODY} In {name}.")
    if not by_option:
        pytester.makeini("[pytest]\nskill_paths = skills\nskill_models = haiku")
    given = ["--skill", "skills", "--model", "haiku"] if by_option else []
    result = pytester.runpytest_inprocess(*given, *args, "--collect-only", "-q")
    ids = [line for line in result.outlines if "::" in line]
    assert [line.partition("/skill_meta")[0] for line in ids] == tested
