"""--skill-references, and the note about files that no model saw."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_skill

KEY = "The key of the gate is under the blue stone, and opens it with two turns to the left."
BODY = "How to open the gate is in references/key.md; see also [more](more.md)."
SYSTEMS = """
    import json

    def system(question):
        with open("asked.jsonl", "a") as file:
            file.write(json.dumps(question.system) + "\\n")
        return "Two turns." if "blue stone" in question.system else "No idea."
"""
NOTE = (
    "gate: 2 files of this skill were not available to the model: references/key.md, more.md; "
    "--skill-references puts them in context, --skill-agent loop reads them."
)


def write_gate(pytester: pytest.Pytester) -> Path:
    pytester.makepyfile(model=SYSTEMS)
    skill = write_skill(pytester.path / "skills/gate", [case("How?", "two", id="a")], body=BODY)
    (skill / "references").mkdir()
    (skill / "references/key.md").write_text(KEY)
    (skill / "more.md").write_text("More.")
    return skill


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    options = ["--skill", "skills", "--model", "scripted:model.py:system", "--skill-json", "r.json"]
    return pytester.runpytest_inprocess(*options, *args)


def skill_in_json(pytester: pytest.Pytester) -> Any:
    (skill,) = json.loads((pytester.path / "r.json").read_text())["skills"]
    return skill


def flat(result: pytest.RunResult) -> str:
    return " ".join(result.stdout.str().split())


def test_files_that_no_model_saw_are_told(pytester: pytest.Pytester, workers: str) -> None:
    write_gate(pytester)
    files = ["--skill-markdown", "r.md", "--skill-html", "r.html"]
    result = run(pytester, "-n", workers, *files)
    result.assert_outcomes(failed=1)
    assert NOTE in flat(result)
    assert "references:" not in result.stdout.str()
    data = skill_in_json(pytester)
    assert data["seen_files"] == []
    assert data["unseen_files"] == [
        {"path": "references/key.md", "reason": None},
        {"path": "more.md", "reason": None},
    ]
    assert "2 files of this skill were not available" in (pytester.path / "r.md").read_text()
    assert NOTE in (pytester.path / "r.html").read_text()


def test_references_go_to_the_skill_arm_alone(pytester: pytest.Pytester, workers: str) -> None:
    skill = write_gate(pytester)
    (skill / "logo.png").write_bytes(b"\x89PNG\xff")
    skill_md = skill / "SKILL.md"
    skill_md.write_text(skill_md.read_text() + "\nlogo.png\n")
    result = run(pytester, "-n", workers, "--skill-references")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["upskill: references: 2 files, about * tokens"])
    note = "1 file of this skill was not available to the model: logo.png (not UTF-8 text)."
    assert note in flat(result)
    data = skill_in_json(pytester)
    assert data["seen_files"] == ["references/key.md", "more.md"]
    assert data["tokens"] > 40
    asked = [json.loads(line) for line in (pytester.path / "asked.jsonl").read_text().splitlines()]
    baseline, with_skill = sorted(asked, key=len)
    assert (KEY in baseline, KEY in with_skill) == (False, True)
    added = (
        f"{BODY}\n\nlogo.png\n\nreferences/key.md:\n```\n{KEY}\n```\n\nmore.md:\n```\nMore.\n```"
    )
    assert with_skill.replace(f"\n\n{added}\n\nFollow the skill above when you answer.", "") == (
        baseline
    )


def test_the_ini_file_may_ask_for_references(pytester: pytest.Pytester) -> None:
    write_gate(pytester)
    pytester.makeini("[pytest]\nskill_references = true\n")
    run(pytester).assert_outcomes(passed=1)


def test_a_test_in_python_sees_the_references_too(pytester: pytest.Pytester) -> None:
    write_gate(pytester)
    pytester.makepyfile("""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            assert "Two turns" in ask("How?")
    """)
    model = ["--model", "scripted:model.py:system"]
    result = pytester.runpytest_inprocess(*model)
    result.assert_outcomes(failed=1)
    assert NOTE in flat(result)
    pytester.runpytest_inprocess(*model, "--skill-references").assert_outcomes(passed=1)


def test_the_prompt_hook_gets_the_references(pytester: pytest.Pytester) -> None:
    write_gate(pytester)
    pytester.makeconftest("""
        def pytest_upskill_prompt(skill, base):
            return base if skill is None else skill[skill.index("The key"):]
    """)
    run(pytester, "--skill-references").assert_outcomes(passed=1)


def test_a_prompt_must_not_put_a_reference_into_the_baseline(pytester: pytest.Pytester) -> None:
    write_gate(pytester)
    pytester.makeconftest(f"def pytest_upskill_prompt(skill, base): return {KEY!r}")
    result = run(pytester, "--skill-references")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*put the text of gate into the baseline*"])


def test_many_skills_share_one_note(pytester: pytest.Pytester) -> None:
    for name in "abcd":
        skill = write_gate(pytester)
        skill.rename(pytester.path / "skills" / name)
        write_skill(pytester.path / "skills" / name, [case("How?", "two", id="a")], body=BODY)
    result = run(pytester)
    names = "a/references/key.md, a/more.md, b/references/key.md, b/more.md, c/references/key.md"
    note = f"8 files of 4 skills were not available to the model: {names}, 3 more; --skill-ref"
    assert note in flat(result)


def test_a_report_of_saved_results_tells_it_too(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    write_gate(pytester)
    run(pytester)
    capsys.readouterr()
    main(["report", "r.json"])
    assert f"{NOTE.partition(';')[0]}." in " ".join(capsys.readouterr().out.split())
