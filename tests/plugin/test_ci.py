"""What a run reports to the CI system it runs in."""

import pytest

from pytest_upskill.reports.markdown import MARKER
from support.kit import case, write_script, write_skill
from support.runs import run_skills

CASES = [case("Open?", "gate up", id="open"), case("Shut?", "gate up", id="shut")]
MODEL = "scripted:a.json"


@pytest.fixture(autouse=True)
def _skill(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    write_script(pytester.path / "a.json")


def test_the_job_summary_is_appended_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    summary = pytester.path / "summary.md"
    summary.write_text("Before.\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    run_skills(
        pytester, MODEL, "-n", workers, "--skill-min-lift", "1", "--skill-confident"
    )
    lines = summary.read_text().splitlines()
    assert lines[:2] == ["Before.", MARKER]
    assert [line for line in lines if line.startswith("## ❌ ")] == lines[2:3]
    assert any(line.startswith(f"| {MODEL} | 0 → 100 % ") for line in lines)


def test_a_job_summary_that_cannot_be_written_is_reported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path))
    run = run_skills(pytester, MODEL)
    assert run.status == 0
    assert "GITHUB_STEP_SUMMARY" in "\n".join(run.ending)
