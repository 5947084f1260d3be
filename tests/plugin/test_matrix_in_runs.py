"""--skill-matrix: what skills do to each other, after the tests of a run."""

import shutil

import pytest

from support.kit import write_skill
from support.made_studies import MODEL, write_neighbours
from support.runs import run_skills
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap

ARGS = ["--skill-agent", "loop", "--skill-runs", "1", "--skill-matrix"]


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester) -> None:
    write_neighbours(pytester.path, 8)
    shutil.rmtree(pytester.path / "skills/csv")


def test_a_neighbour_that_hurts_is_told_and_fails_nothing(
    pytester: pytest.Pytester, workers: str
) -> None:
    pages = ["--skill-html", "out.html", "--skill-markdown", "out.md"]
    run = run_skills(pytester, MODEL, *ARGS, "-n", workers, "--skill-no-baseline", *pages)
    assert (run.status, run.outcomes) == (0, {"passed": 8})  # it has no gate
    (matrix,) = run.report["matrices"]
    (pair,) = matrix["pairs"]
    assert (pair["skill"], pair["other"], pair["verdict"]) == ("pdf", "docs-writer", "hurts")
    assert pair["openings"]["first"] == {"docs-writer": 6, "pdf": 2}
    assert {record["arm"] for record in run.records} == {"skill"}  # those of the tests alone
    assert len(run.records) == 8
    assert matrix["trials"] == 32
    assert "pdf loses 75 points" in " ".join(run.screen.split())
    for name in ("out.html", "out.md"):
        assert "Neighbours" in (pytester.path / name).read_text(encoding="utf-8")


def test_two_skills_of_one_name_can_not_meet(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/more/pdf")
    run = run_skills(pytester, MODEL, *ARGS, "-k", "form-1")
    assert "has the same name (pdf)" in " ".join(run.screen.split())


def test_a_skill_beside_all_others_is_no_neighbour(pytester: pytest.Pytester) -> None:
    run = run_skills(pytester, MODEL, *ARGS, "--skill-with", "skills/pdf")
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert "this skill is tested" in run.screen
