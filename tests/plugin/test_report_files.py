"""Options that write a report: what a run leaves in each file."""

import csv
import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.reports.markdown import MARKER
from pytest_upskill.results.from_json import read_run
from support.kit import case, ending, write_script, write_skill
from support.pages import data_of


def read(file: Path) -> Any:
    return json.loads(file.read_bytes().decode("ascii"))


def test_benchmark_folder_of_a_run(pytester: pytest.Pytester, workers: str) -> None:
    cases = [
        case("Open?", "gate up", "Type", id="open"),
        {"id": "short", "input": "In short?", "expected": {"max_words": 2, "not": {"json": True}}},
    ]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "--skill-benchmark", "bench", f"-n{workers}"]
    pytester.runpytest_inprocess(*args)
    pytester.runpytest_inprocess(*args)
    assert sorted(path.name for path in (pytester.path / "bench").iterdir()) == [
        "iteration-1",
        "iteration-2",
    ]
    iteration = pytester.path / "bench/iteration-2"
    asks = [
        read(iteration / f"eval-{name}/eval_metadata.json")["assertions"]
        for name in ("open", "short")
    ]
    assert asks == [
        ["contains: gate up", "contains: Type"],
        ["max_words: 2", "not: json: true"],
    ]


def test_a_report_that_cannot_be_written_does_not_stop_the_others(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    broken = ["--skill-json", "--skill-markdown", "--skill-csv"]
    files = ["r.json", "r.md", "r.csv"]
    replace_path: Callable[..., Path] = Path.replace

    def refuse(draft: Path, target: Path) -> Path:
        if target.name in files:
            raise OSError(28, "No space left on device")
        return replace_path(draft, target)

    monkeypatch.setattr(Path, "replace", refuse)
    given = [word for pair in zip(broken, files, strict=True) for word in pair]
    given += ["--skill-benchmark", "bench", "--skill-record", "answers.jsonl"]
    result = pytester.runpytest_inprocess("--skill", "skills", "--model", model, *given)
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    for flag, line in zip(broken, ending(result), strict=False):
        assert line.startswith(f"✘ {flag} ")
        assert "can't be written: no space left" in line
    assert (pytester.path / "bench/iteration-1/benchmark.json").is_file()
    assert (pytester.path / "answers.jsonl").is_file()
    assert not list(pytester.path.glob(".r.*"))


def test_a_folder_that_cannot_be_made_is_a_usage_error(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    (pytester.path / "taken").write_text("a file")
    result = pytester.runpytest_inprocess(
        "--skill", "skills", "--model", "scripted:none.json", "--skill-benchmark", "taken"
    )
    assert result.ret == 4


def test_markdown_file_of_a_run(pytester: pytest.Pytester, workers: str) -> None:
    cases = [case("Open?", "gate up", id="open"), case("Shut?", "gate down", id="shut")]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, "--skill-markdown", "comment.md", f"-n{workers}"]
    assert pytester.runpytest_inprocess(*args).ret == 1
    text = (pytester.path / "comment.md").read_text()
    assert text.startswith(f"{MARKER}\n## ❌ Skills\n\n**Failed:**\n\n- 1 test failed")
    folded = re.findall("<summary>(.*?)</summary>", html.unescape(text))
    assert folded == [f"shut on {model}: passed 0 of 1"]
    pytester.runpytest_inprocess(*args, "--skill-accept")
    text = (pytester.path / "comment.md").read_text()
    assert "**Passed.**" in text
    assert "accepted 2 cases in" in text


def test_csv_file_of_a_run(pytester: pytest.Pytester, workers: str) -> None:
    cases = [case("Open?", "gate up", id="open"), case("Shut?", "gate up", id="shut")]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json", knows='Say "gate up",\nthen é.')
    args = ["--skill", "skills", "--model", model, "--skill-csv", "out/r.csv", f"-n{workers}"]
    assert pytester.runpytest_inprocess(*args).ret == 0
    content = (pytester.path / "out/r.csv").read_bytes()
    assert content.startswith(b"skill,")  # and no mark of a byte order
    read = list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))
    assert [(row["case"], row["arm"], row["outcome"]) for row in read] == [
        ("open", "baseline", "failed"),
        ("open", "skill", "passed"),
        ("shut", "baseline", "failed"),
        ("shut", "skill", "passed"),
    ]
    assert read[1]["answer"] == 'Say "gate up",\nthen é.'
    assert list(Path(pytester.path / "out").iterdir()) == [pytester.path / "out/r.csv"]


def test_the_option_writes_the_page(pytester: pytest.Pytester, workers: str) -> None:
    cases = [case("Open?", "gate up", id="first"), case("And shut?", "gate down", id="second")]
    write_skill(pytester.path / "skills/gate", cases)
    model = write_script(pytester.path / "a.json")
    args = ["--skill", "skills", "--model", model, f"-n{workers}", "-k", "first"]
    result = pytester.runpytest_inprocess(*args, "--skill-html", "page.html")
    assert result.ret == 0
    page = (pytester.path / "page.html").read_text("utf-8")
    assert "<h2>Passed</h2>" in page
    assert "ran only 1 of 2 cases" in page  # a note, as in the terminal
    (test,) = data_of(page)["tests"]
    answers = {trial["arm"]: trial["answer"][0] for trial in test["trials"]}
    assert answers == {"baseline": "No idea.", "skill": "Type gate up."}


def test_a_page_that_cannot_be_written_is_a_usage_error(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "a.json")
    (pytester.path / "nowhere").touch()
    args = ["--skill", "skills", "--model", model, "--skill-html", "nowhere/page.html"]
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == 4  # before the first call
    result.stderr.fnmatch_lines(
        ["ERROR: --skill-html *nowhere/page.html: nowhere is a file, not a folder"]
    )


def test_questions_and_tags_of_cases_and_of_tests_in_python_are_in_the_file(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate", [case("Open?", "gate up", id="a", tags=["easy"])])
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
    pytester.runpytest_inprocess(*args, f"-n{workers}", "--skill-json", "run.json", "-m", "")
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
    write_skill(pytester.path / "skills/gate", [case("Open?", "gate up", id="a"), for_one])
    models = [write_script(pytester.path / name) for name in ("a.json", "b.json")]
    named = [word for model in models for word in ("--model", model)]
    shown = pytester.runpytest_inprocess("--skill", "skills", *named, "--skill-json", "run.json")
    of = {(test.case, test.model): test.of for test in read_run(pytester.path / "run.json").tests}
    assert of == {("a", models[0]): 2, ("b", models[0]): 2, ("a", models[1]): 1}
    assert "ran only" not in shown.stdout.str()
