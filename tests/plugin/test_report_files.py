"""Options that write a report: what a run leaves in each file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_upskill.reports.markdown import MARKER
from pytest_upskill.results.run_file import read_run
from support.kit import case, write_script, write_skill
from support.pages import data_of
from support.runs import ending, run_skills


def test_every_option_writes_its_report(
    pytester: pytest.Pytester, workers: str
) -> None:
    cases = [
        case("Open?", "gate up", "Type", id="open"),
        case("Shut?", "gate down", id="shut"),
        case("Why?", "gate up", id="unselected"),
    ]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json", knows='Type "gate up",\nthen é.')
    files = ["--skill-markdown=out/r.md", "--skill-html=out/r.html"]
    select = ["-k", "open or shut", "-n", workers]
    run = run_skills(pytester, model, *files, *select)
    assert (run.outcomes["passed"], run.outcomes["failed"]) == (1, 1)
    out = pytester.path / "out"
    assert {path.name for path in out.iterdir()} == {"r.md", "r.html"}  # and no drafts

    markdown = (out / "r.md").read_text("utf-8")
    assert markdown.startswith(f"{MARKER}\n")
    assert "\n## ❌ 1 of 2 tests failed; it fails without the skill, too\n" in markdown
    assert "ran only 2 of 3 cases" in markdown
    assert "No idea." not in markdown

    page = data_of((out / "r.html").read_text("utf-8"))
    assert any("ran only 2 of 3 cases" in note for note in page["notes"])
    records = [
        record for record in page["results"]["records"] if record["case"] == "open"
    ]
    answers = {record["arm"]: record["output"] for record in records}
    assert answers == {"baseline": "No idea.", "skill": 'Type "gate up",\nthen é.'}


def test_a_report_that_cannot_be_written_does_not_stop_the_others(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    broken = ["--skill-json", "--skill-markdown"]
    files = ["r.json", "r.md"]
    replace_path: Callable[..., Path] = Path.replace

    def refuse(draft: Path, target: Path) -> Path:
        if target.name in files:
            raise OSError(28, "No space left on device")
        return replace_path(draft, target)

    monkeypatch.setattr(Path, "replace", refuse)
    given = [word for pair in zip(broken, files, strict=True) for word in pair]
    given += ["--skill-html", "page.html", "--skill-record", "answers.jsonl"]
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, *given)
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    told = [line for line in ending(result) if "no space left" in line]
    assert [line.split()[1] for line in told] == broken
    assert (pytester.path / "page.html").is_file()
    assert (pytester.path / "answers.jsonl").is_file()
    assert not list(pytester.path.glob(".r.*"))


def test_a_page_that_cannot_be_written_is_a_usage_error(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    (pytester.path / "nowhere").touch()
    run = run_skills(pytester, model, "--skill-html", "nowhere/page.html")
    assert run.status == pytest.ExitCode.USAGE_ERROR  # before the first call
    assert "--skill-html nowhere/page.html: nowhere is a file" in run.screen


def test_questions_and_tags_of_cases_and_of_tests_in_python_are_in_the_file(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(
        pytester.path / "skills/gate", [case("Open?", "gate up", id="a", tags=["easy"])]
    )
    pytester.makepyfile(
        test_gate="""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_open(ask):
            assert "gate up" in ask("How?") + ask("And then?")
        """
    )
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "test_gate.py", "skills", "--model", model]
    pytester.runpytest_inprocess(
        *args, f"-n{workers}", "--skill-json", "run.json", "-m", ""
    )
    results = read_run(pytester.path / "run.json")
    assert results.questions == {
        ("gate", "a"): "Open?",
        ("gate", "test_gate::test_open"): "How?\n\nAnd then?",
    }
    tags = {test.case: test.tags for test in results.tests}
    assert tags == {"a": ("easy",), "test_gate::test_open": ()}
    assert set(results.versions) == {"pytest-upskill", "pytest", "python", "platform"}


def test_a_case_that_is_for_another_model_is_not_missing_from_this_one(
    pytester: pytest.Pytester,
) -> None:
    for_one = case("Shut?", "gate up", id="b", models=["scripted:a*"])
    write_skill(
        pytester.path / "skills/gate", [case("Open?", "gate up", id="a"), for_one]
    )
    models = [write_script(pytester.path / name) for name in ("a.json", "b.json")]
    named = [word for model in models for word in ("--model", model)]
    shown = pytester.runpytest_inprocess(
        "--skill", "skills", *named, "--skill-json", "run.json"
    )
    of = {
        (test.case, test.label): test.of
        for test in read_run(pytester.path / "run.json").tests
    }
    assert of == {("a", models[0]): 2, ("b", models[0]): 2, ("a", models[1]): 1}
    assert "ran only" not in shown.stdout.str()
