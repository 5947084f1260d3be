"""``pytest-upskill plan``: what it promises before a run is what the run can do."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from support.kit import case, write_skill
from support.known_model import KnownModel
from support.words import HELPS


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["plan", *arguments, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A skill with twelve cases in eight groups, one of which is skipped;
    nothing has run.
    """
    monkeypatch.chdir(tmp_path)
    cases = [
        case(f"{n}?", "yes", id=f"c{n}", group=f"g{n // 2}" if n < 8 else None)
        for n in range(12)
    ]
    cases[11]["skip"] = "later"
    write_skill(tmp_path / "gate", cases)
    return "gate"


@pytest.mark.parametrize(
    ("folder", "problem"), [("docs", "no SKILL.md"), ("all", "2 skills are")]
)
def test_a_folder_that_is_not_one_skill_has_no_plan(
    folder: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("gate", "door"):
        write_skill(tmp_path / "all" / name, [case("?", "yes")])
    assert main(["plan", folder]) == 2
    assert problem in capsys.readouterr().err


def test_without_a_run_it_says_what_is_assumed(
    gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", gate]) == 0
    shown = capsys.readouterr().out
    assert "a lift of 20 points, found in 80% of runs" in shown
    assert "Assumed, for want of a run with a baseline: 50% pass" in shown
    assert "chance with 7 cases" in shown
    data = planned(capsys, gate, "--lift", "0.5")
    (plan,) = data["plans"]
    assert (data["lift"], data["cases"], plan["model"]) == (0.5, 7, None)
    assert [row["runs"] for row in plan["rows"]] == [1, 3, 5]
    needed = [row["cases"] for row in plan["rows"]]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > 7
    several = planned(
        capsys, gate, "--lift", "50", "--model", "a", "--model", "b", "--runs", "1"
    )
    ((row,),) = (of_models["rows"] for of_models in several["plans"])
    assert row["cases"] > needed[0]  # two models share the error
    assert row["chance"] < plan["rows"][0]["chance"]


def test_a_skill_without_cases_has_a_plan_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "gate")
    (tmp_path / "gate/skill_meta.json").unlink()
    assert main(["plan", "gate", "--lift", "100"]) == 0
    assert "chance" not in capsys.readouterr().out
    (plan,) = planned(capsys, "gate", "--lift", "100")["plans"]
    assert [row["cases"] for row in plan["rows"]] == [5, 5, 5]
    with pytest.raises(SystemExit):
        main(["plan", "gate", "--lift", "200"])


def test_a_run_of_the_planned_size_finds_the_lift(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pilot tells the baseline; then as many cases as planned are asked."""
    with KnownModel(
        pytester, 8, baseline=[0.1, 0.6] * 4, skill=[0.1, 0.6] * 4
    ) as known:
        known.run("--skill-runs", "3")
        # Says less of the cases than all of them did
        known.run("--skill-runs", "1", "-k", "c1")
        (plan,) = planned(capsys, "skills/gate", "--lift", "50", "--runs", "3")["plans"]
        assert plan["model"] == "m"
        assert 0.2 < plan["baseline_rate"] < 0.5
        (row,) = plan["rows"]
        assert 8 <= row["cases"] <= 16
        assert row["smallest_lift"] > 0.4
        good = planned(capsys, "skills/gate", "--lift", "90", "--runs", "3")["plans"][0]
        assert good["basis"].endswith("which leaves no room for this lift")
        assert good["rows"][0]["cases"] is None
        known.cases = row["cases"]
        known.chances = {"baseline": [0.1, 0.6] * 9, "skill": [0.6, 1.0] * 9}
        known.write("planned")
        assert known.run("--skill-runs", "3").summary["verdict"] == HELPS
