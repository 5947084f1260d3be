"""What a run reports to the CI system it runs in."""

import pytest

from pytest_upskill.reports.markdown import MARKER
from support.kit import case, ending, gates, write_script, write_skill

CASES = [case("Open?", "gate up", id="open"), case("Shut?", "gate up", id="shut")]


@pytest.fixture
def args(pytester: pytest.Pytester) -> list[str]:
    folder = write_skill(pytester.path / "skills/gate", CASES)
    text = (folder / "skill_meta.json").read_text()
    (folder / "skill_meta.json").write_text(text.replace('{"input": "Shut', '\n\n{"input": "Shut'))
    return ["--skill", "skills", "--model", write_script(pytester.path / "a.json")]


def test_the_job_summary_is_appended_once(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    summary = pytester.path / "summary.md"
    summary.write_text("Before.\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    pytester.runpytest_inprocess(
        *args, f"-n{workers}", "--skill-min-lift", "1", "--skill-confident"
    )
    lines = summary.read_text().splitlines()
    assert lines[:5] == ["Before.", MARKER, "## ❌ Skills", "", "**Failed:**"]
    assert lines[6].startswith("- gate on scripted:a.json: lowest likely lift is ")
    rows = [line for line in lines if line.startswith("|")]
    assert rows[0] == "| model | without | with | lift | tokens | verdict |"
    assert rows[2].startswith("| scripted:a.json | 0% | 100% | +100 (")
    assert rows[2].endswith("| no effect shown |")
    assert lines.count("## ❌ Skills") == 1


def test_a_job_summary_that_cannot_be_written_is_reported(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path))
    result = pytester.runpytest_inprocess(*args)
    assert result.ret == 0
    told = "! could not write the job summary (GITHUB_STEP_SUMMARY): "
    assert ending(result)[0].startswith(told)


def test_a_regression_is_an_annotation_at_its_case(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    pytester.runpytest_inprocess(*args, "--skill-accept")
    write_script(pytester.path / "a.json", knows="Push it.")
    plain = pytester.runpytest_inprocess(*args, f"-n{workers}")
    plain.stdout.no_fnmatch_line("::error*")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path.parent))
    result = pytester.runpytest_inprocess(*args, f"-n{workers}", "--skill-min-lift", "1")
    assert result.ret == 1
    file = f"{pytester.path.name}/skills/gate/skill_meta.json"
    result.stdout.fnmatch_lines(
        [
            f"::error file={file},line=1,title=skill regression::*: open: regression: 0 of *",
            f"::error file={file},line=3,title=skill regression::*: shut: regression: 0 of *",
            "::error title=skill gate::gate on scripted:a.json: lift is 0 points*",
        ]
    )
    assert len(gates(result)) == 3


def test_annotations_are_escaped(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write_skill(pytester.path / "a,b/gate", [case("Open?", "gate up", id="open")])
    args = ["--skill", "a,b", "--model", write_script(pytester.path / "a.json")]
    pytester.runpytest_inprocess(*args, "--skill-accept")
    write_script(pytester.path / "a.json", knows="Push it.")
    result = pytester.runpytest_inprocess(*args, "--skill-min-pass-rate", "0.8")
    regression, gate = [line for line in result.outlines if line.startswith("::error")]
    assert regression.startswith("::error file=a%2Cb/gate/skill_meta.json,line=1,title=")
    assert "pass rate is 0%25 (minimum 80%25)" in gate


def test_failed_and_broken_cases_are_annotations_at_their_lines(
    pytester: pytest.Pytester, args: list[str], monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    file = pytester.path / "skills/gate/skill_meta.json"
    broken = '{"id": "odd", "input": "?", "expected": {"contians": ["x"]}}'
    file.write_text(f"{file.read_text().removesuffix(']}')},\n\n\n{broken}]}}")
    write_script(pytester.path / "a.json", knows="Push it.")
    result = pytester.runpytest_inprocess(*args, f"-n{workers}")
    own = [line for line in result.outlines if line.startswith("::")]
    where = "::error file=skills/gate/skill_meta.json,line="
    assert [line.partition(" passed; ")[0] for line in own[1:]] == [
        f"{where}1,title=skill failed::gate on scripted:a.json: open: 0 of 1",
        f"{where}3,title=skill failed::gate on scripted:a.json: shut: 0 of 1",
    ]
    assert own[0].startswith(f"{where}6,title=skill broken::skills/gate/skill_meta.json:6: ")
    assert "contians: unknown check" in own[0]
