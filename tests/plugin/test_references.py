"""--skill-references, and the note about files that no model saw."""

import json
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_skill
from support.pages import page_words
from support.runs import SkillRun, run_skills

KEY = (
    "The key of the gate is under the blue stone, and opens it with two turns to the"
    " left."
)
BODY = "How to open the gate is in references/key.md; see also [more](more.md)."
SYSTEMS = """
    import json

    def system(question):
        with open("asked.jsonl", "a") as file:
            file.write(json.dumps(question.system) + "\\n")
        return "Two turns." if "blue stone" in question.system else "No idea."
"""


def write_gate(pytester: pytest.Pytester) -> Path:
    pytester.makepyfile(model=SYSTEMS)
    skill = write_skill(
        pytester.path / "skills/gate", [case("How?", "two", id="a")], body=BODY
    )
    (skill / "references").mkdir()
    (skill / "references/key.md").write_text(KEY)
    (skill / "more.md").write_text("More.")
    return skill


def run(pytester: pytest.Pytester, *args: str) -> SkillRun:
    return run_skills(pytester, "scripted:model.py:system", *args)


def test_files_that_no_model_saw_are_told(
    pytester: pytest.Pytester, workers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_gate(pytester)
    files = ["--skill-markdown", "r.md", "--skill-html", "r.html"]
    finished = run(pytester, "-n", workers, *files)
    assert finished.outcomes == {"failed": 1}
    [skill] = finished.report["skills"]
    assert skill["seen_files"] == []
    assert skill["unseen_files"] == [
        {"path": "references/key.md", "reason": None},
        {"path": "more.md", "reason": None},
    ]
    capsys.readouterr()
    main(["report", "report.json"])  # of saved results
    shown = [finished.screen, capsys.readouterr().out]
    shown.append((pytester.path / "r.md").read_text())
    shown.append(page_words((pytester.path / "r.html").read_text("utf-8")))
    assert all("2 files of this skill" in " ".join(text.split()) for text in shown)


@pytest.mark.parametrize("how", ["option", "ini"])
def test_references_go_to_the_skill_arm_alone(
    pytester: pytest.Pytester, how: str
) -> None:
    skill = write_gate(pytester)
    (skill / "logo.png").write_bytes(b"\x89PNG\xff")
    skill_md = skill / "SKILL.md"
    skill_md.write_text(skill_md.read_text() + "\nlogo.png\n")
    if how == "ini":
        pytester.makeini("[pytest]\nskill_references = true\n")
    finished = run(pytester, *(["--skill-references"] if how == "option" else []))
    assert finished.outcomes == {"passed": 1}
    [data] = finished.report["skills"]
    assert data["seen_files"] == ["references/key.md", "more.md"]
    assert data["unseen_files"] == [{"path": "logo.png", "reason": "not UTF-8 text"}]
    assert data["tokens"] > 40
    asked = [
        json.loads(line)
        for line in (pytester.path / "asked.jsonl").read_text().splitlines()
    ]
    baseline, with_skill = sorted(asked, key=len)
    assert (KEY in baseline, KEY in with_skill) == (False, True)


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
    assert "references/key.md" in result.stdout.str()
    pytester.runpytest_inprocess(*model, "--skill-references").assert_outcomes(passed=1)


def test_the_prompt_hook_gets_the_references(pytester: pytest.Pytester) -> None:
    write_gate(pytester)
    pytester.makeconftest("""
        def pytest_upskill_prompt(skill, base):
            return base if skill is None else skill[skill.index("The key"):]
    """)
    assert run(pytester, "--skill-references").outcomes == {"passed": 1}


def test_a_prompt_must_not_put_a_reference_into_the_baseline(
    pytester: pytest.Pytester,
) -> None:
    write_gate(pytester)
    pytester.makeconftest(f"def pytest_upskill_prompt(skill, base): return {KEY!r}")
    finished = run(pytester, "--skill-references")
    assert finished.status == pytest.ExitCode.TESTS_FAILED
    assert "put the text of gate into the baseline" in finished.screen
