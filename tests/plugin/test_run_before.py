"""--skill-html: the page is compared with the run before, if the history has one.

Which run that is: tests/results/test_run_before.py.
"""

from typing import Any

import pytest

from pytest_upskill.results.history import KeptRun, runs
from support.kit import case, write_script, write_skill
from support.pages import data_of
from support.runs import SkillRun, run_skills

PAGE = ("--skill-html", "report.html")


@pytest.fixture(autouse=True)
def gate(pytester: pytest.Pytester) -> None:
    cases = [case("Open?", "gate up", id="a"), case("And up?", "gate up", id="b")]
    write_skill(pytester.path / "skills/gate", cases)


def run(
    pytester: pytest.Pytester, *args: str, knows: str = "Type gate up."
) -> SkillRun:
    model = write_script(pytester.path / "a.json", knows=knows)
    return run_skills(pytester, model, "--skill-fresh", *args)


def kept_run(pytester: pytest.Pytester) -> KeptRun:
    [kept] = runs(pytester.path / ".upskill/runs")
    return kept


def data(pytester: pytest.Pytester) -> dict[str, Any]:
    return data_of((pytester.path / "report.html").read_text("utf-8"))


def test_the_run_before_is_named_and_its_answers_are_kept(
    pytester: pytest.Pytester, workers: str
) -> None:
    assert run(pytester, *PAGE, "-n", workers).outcomes == {"passed": 2}
    assert data(pytester)["changes"] is None
    before = kept_run(pytester)
    run(pytester, *PAGE, "-o", "skill_history=false")
    assert data(pytester)["changes"] is None
    assert run(pytester, *PAGE, "-n", workers, knows="Stop.").outcomes == {"failed": 2}
    found = data(pytester)
    assert found["changes"]["id"] == before.id
    cases = found["changes"]["cases"]
    assert [case["kind"] for case in cases] == ["broke", "broke"]
    answers = {record["arm"]: record["output"] for record in cases[0]["records"]}
    assert answers["skill"] == "Type gate up."


def test_a_damaged_run_is_said_and_not_fatal(pytester: pytest.Pytester) -> None:
    run(pytester)
    kept = kept_run(pytester)
    kept.path.write_bytes(kept.path.read_bytes()[:-40])
    finished = run(pytester, *PAGE)
    assert finished.outcomes == {"passed": 2}
    assert f"{kept.id}.json.gz" in finished.screen
    assert data(pytester)["changes"] is None


def test_nothing_is_read_from_the_history_without_a_page(
    pytester: pytest.Pytester,
) -> None:
    run(pytester)
    kept = kept_run(pytester)
    kept.path.write_bytes(b"")
    assert kept.id not in run(pytester).screen
