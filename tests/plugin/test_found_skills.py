"""What the header says about the skills that were found, and how they are called."""

import random
from pathlib import Path

import pytest

from pytest_upskill.skills.search import labels_of
from support.kit import BODY, case, write_script, write_skill
from support.runs import run_skills


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


def test_skills_of_one_name_have_results_of_their_own(
    pytester: pytest.Pytester,
) -> None:
    for folder, answer in (("a", "gate up"), ("b", "never")):
        cases = [case("How?", answer, id="open")]
        write_skill(pytester.path / folder / "gate", cases, body=f"{BODY} In {folder}.")
    model = write_script(pytester.path / "answers.json")
    for args in (["--skill-accept"], []):
        run = run_skills(pytester, model, *args, skill=".")
        assert run.outcomes == {"passed": 1, "xfailed": 1}
        lifts = {row["skill"]: row["lift"] for row in run.report["summary"]}
        assert lifts == {"a/gate": 1, "b/gate": 0}


def test_a_test_in_python_has_the_label_of_its_skill(pytester: pytest.Pytester) -> None:
    for folder in ("a/gate", "b/gate"):
        write_skill(pytester.path / folder)
    pytester.makepyfile(
        test_python="""
        import pytest

        @pytest.mark.skill("b/gate")
        def test_gate(ask):
            assert "gate up" in ask("How?")
        """
    )
    model = write_script(pytester.path / "answers.json")
    run = run_skills(pytester, model, "test_python.py", skill="a")
    assert "b/gate" in {row["skill"] for row in run.report["summary"]}


def test_the_header_of_many_skills_is_short_and_with_v_complete(
    pytester: pytest.Pytester,
) -> None:
    names = [f"gate-of-{letter}" for letter in "abcdefghijklmnop"]
    for name in names:
        write_skill(pytester.path / "skills" / name, body=f"About the gate {name}.")
    for name in names[::2]:
        (pytester.path / "skills" / name / "skill_meta.json").unlink()
    write_skill(
        pytester.path / ".claude/skills" / names[1], body=f"About the gate {names[1]}."
    )
    lines = run_skills(pytester, "haiku", "--collect-only", skill=".").result.outlines
    header = [line for line in lines if line.startswith("upskill: ")]
    assert header[0].startswith("upskill: 8 skills (gate-of-b, gate-of-d, ")
    assert " more) on haiku" in header[0]
    assert header[1].startswith(
        "upskill: 16 found, 8 without cases: gate-of-a, gate-of-c, "
    )
    # A copy
    assert any(line.endswith(f": .claude/skills/{names[1]}") for line in header)
    assert all(len(line) <= 110 for line in header)
    shown = run_skills(pytester, "haiku", "--collect-only", "-v", skill=".").screen
    assert all(name in shown.partition("rootdir")[0] for name in names)


@pytest.mark.parametrize(
    ("args", "tested"),
    [
        (["--ignore", "skills/gate"], ["skills/door"]),
        (["--ignore-glob", "skills/d*"], ["skills/gate"]),
        # It is what was asked for
        (["--ignore", "skills"], ["skills/door", "skills/gate"]),
    ],
)
@pytest.mark.parametrize(
    "by_option", [True, pytest.param(False, marks=pytest.mark.nightly)]
)
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


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "1"), marks=pytest.mark.nightly)]
)
def test_a_skill_can_be_named(
    pytester: pytest.Pytester, options: tuple[str, ...]
) -> None:
    """As by its path: its code stays out, too."""
    skill = write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / "skills/door")
    (skill / "conftest.py").write_text("raise SystemExit(9)")
    model = write_script(pytester.path / "answers.json")
    run = run_skills(pytester, model, *options, skill="gate")
    assert run.outcomes == {"passed": 1}
