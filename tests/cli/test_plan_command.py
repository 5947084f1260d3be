"""``pytest-upskill plan``: how many cases it takes, before a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.cli import main
from pytest_upskill.stats import FEWEST_CASES
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


def test_more_runs_and_larger_lifts_need_fewer_cases(
    gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", gate]) == 0
    shown = capsys.readouterr().out
    assert "gate: a lift of 20 points, shown in 80% of runs (it has 7 cases)" in shown
    assert "would settle it" not in shown  # nothing has run
    small = planned(capsys, gate)
    large = planned(capsys, gate, "--lift", "0.5")
    assert (large["lift"], large["cases"], large["last_runs"]) == (0.5, 7, [])
    for row, other in zip(small["needed"], large["needed"], strict=True):
        assert row["runs"] == other["runs"]
        assert row["cases"] > other["cases"] > 7
    with pytest.raises(SystemExit):
        main(["plan", gate, "--lift", "200"])


def test_a_skill_without_cases_has_a_plan_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_skill(tmp_path / "gate")
    (tmp_path / "gate/skill_meta.json").unlink()
    data = planned(capsys, "gate", "--lift", "100")
    assert data["cases"] == 0
    assert {row["cases"] for row in data["needed"]} == {FEWEST_CASES}


def test_a_new_run_of_the_advised_size_settles_an_unclear_one(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    with KnownModel(
        pytester, 8, baseline=[0.1, 0.6] * 4, skill=[0.5, 0.7] * 4
    ) as known:
        known.run("--skill-runs", "3")
        (last,) = planned(capsys, "skills/gate")["last_runs"]
        assert (last["model"], last["cases"], last["runs"]) == ("m", 8, 3)
        assert 8 < last["cases_needed"] < 100
        assert main(["plan", "skills/gate"]) == 0
        advice = f"about {last['cases_needed']} cases would settle it"
        assert advice in " ".join(capsys.readouterr().out.split())
        known.cases = last["cases_needed"]
        known.chances = {"baseline": [0.1, 0.6] * 50, "skill": [0.6, 1.0] * 50}
        known.write("planned")
        assert known.run("--skill-runs", "3").summary["verdict"] == HELPS
