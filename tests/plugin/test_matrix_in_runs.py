"""--skill-matrix: what skills do to each other, after the tests of a run."""

import json
import shutil

import pytest

from support.kit import write_skill
from support.made_studies import MODEL, write_neighbours
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap

ARGS = ["--skill", "skills", "--skill-agent", "loop", "--model", MODEL, "--skill-runs", "1"]


@pytest.fixture(autouse=True)
def project(pytester: pytest.Pytester) -> None:
    write_neighbours(pytester.path, 8)
    shutil.rmtree(pytester.path / "skills/csv")


def test_a_neighbour_that_hurts_is_told_and_fails_nothing(
    pytester: pytest.Pytester, workers: str
) -> None:
    reports = ["--skill-json", "out.json", "--skill-html", "out.html", "--skill-markdown", "out.md"]
    done = pytester.runpytest_inprocess(*ARGS, "--skill-matrix", "-n", workers, *reports)
    done.assert_outcomes(passed=8)
    assert done.ret == 0  # it has no gate
    shown = " ".join(done.stdout.str().split())
    assert "after the tests, 32 trials" in shown
    assert "pdf loses 75 points" in shown
    assert "when docs-writer is installed: it is opened first in 6 of 8." in shown
    assert "docs-writer is only a neighbour: no cases." in shown
    report = json.loads((pytester.path / "out.json").read_text(encoding="utf-8"))
    (matrix,) = report["matrix"]
    (pair,) = matrix["pairs"]
    assert (pair["skill"], pair["other"], pair["verdict"]) == ("pdf", "docs-writer", "hurts")
    assert pair["opened_first"] == {"docs-writer": 6, "pdf": 2}
    assert len(report["records"]) == 16  # those of the tests alone
    assert matrix["trials"] == 32
    for name in ("out.html", "out.md"):
        assert "Neighbours" in (pytester.path / name).read_text(encoding="utf-8")


def test_without_the_option_nothing_of_it_is_asked(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_inprocess(*ARGS)
    done.assert_outcomes(passed=8)
    assert "Neighbours" not in done.stdout.str()


def test_two_skills_of_one_name_can_not_meet(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/more/pdf")
    done = pytester.runpytest_inprocess(*ARGS, "--skill-matrix", "-k", "form-1")
    shown = " ".join((done.stdout.str() + done.stderr.str()).split())
    assert "has the same name (pdf)" in shown
    assert "Traceback" not in shown


def test_a_skill_beside_all_others_is_no_neighbour(pytester: pytest.Pytester) -> None:
    done = pytester.runpytest_inprocess(*ARGS, "--skill-matrix", "--skill-with", "skills/pdf")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert "this skill is tested" in done.stderr.str()
