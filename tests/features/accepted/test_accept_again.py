"""--skill-accept where something was accepted before: kept, refused, or lowered on
demand.

The model has known chances, and nothing about it or the skill
changes unless a test says so.
"""

import json

import pytest

from pytest_upskill.features.accepted.results import Accepted, Models, read_results
from support.kit import case, write_skill
from support.known_model import KnownModel
from support.runs import SkillRun

LOWER = "--skill-accept=lower"


def accepted(known: KnownModel) -> Models:
    return read_results(known.folder)


def cases(known: KnownModel) -> dict[str, Accepted]:
    return {result.case: result for result in accepted(known)["m"].values()}


def offers_to_accept(run: SkillRun) -> bool:
    return any("--skill-accept" in line for line in run.ending)


def test_unchanged_skill_keeps_what_was_accepted_of_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To accept again until no case falls would choose the lucky runs."""
    with KnownModel(pytester, 3, baseline=0.0, skill=[0.0, 1.0, 1.0]) as known:
        assert known.run("--skill-accept").status == 0
        first = cases(known)
        assert [result.was for result in first.values()] == [(0, 3), (3, 3), (3, 3)]
        known.later(monkeypatch, days=2, skill=1.0)
        assert known.run("--skill-accept", "--skill-fresh").status == 0
        assert cases(known) == first
        # More runs are more evidence.
        known.run("--skill-accept", "--skill-runs", "5")
        assert {result.was for result in cases(known).values()} == {(5, 5)}


def test_runs_under_other_settings_replace_what_was_accepted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 2, baseline=0.0, skill=[0.0, 1.0]) as known:
        known.run("--skill-accept")
        known.later(monkeypatch, days=2, skill=1.0)
        known.run("--skill-accept", "--skill-max-output", "77")
        assert {result.was for result in cases(known).values()} == {(3, 3)}


def test_what_fell_is_refused_and_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 3, baseline=0.0, skill=1.0) as known:
        known.run("--skill-accept")
        file = accepted(known)
        known.later(monkeypatch, days=2, skill=[0.0, 1.0, 1.0])
        refused = known.run("--skill-accept", "--skill-fresh")
        assert (refused.status, accepted(known)) == (1, file)
        assert known.run(LOWER).status == 0
        assert cases(known)["c0"].was == (0, 3)
    screen = " ".join(refused.screen.split())
    assert "would be lowered: c0 (3 of 3 to 0 of 3)" in screen


def test_what_is_better_is_offered_only_after_a_change(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that passes in half of its runs failed when it was accepted, by bad
    luck.
    """
    with KnownModel(pytester, 3, baseline=0.0, skill=[0.0, 1.0, 1.0]) as known:
        known.run("--skill-accept")
        known.later(monkeypatch, days=2, skill=1.0)
        lucky = known.run("--skill-runs", "3", "--skill-fresh")
        known.write("edited")
        edited = known.run("--skill-runs", "3", "--skill-fresh")
    for run in (lucky, edited):
        assert "better than accepted: c0" in " ".join(run.screen.split())
        assert (run.status, offers_to_accept(run)) == (0, run is edited)
        # What is accepted is not the draw that was chosen for being good.
        assert ("--skill-accept --skill-fresh" in " ".join(run.ending)) == (
            run is edited
        )


def test_a_skill_that_changed_is_accepted_as_it_is_now(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 4, baseline=0.0, skill=[0.0, 1.0, 1.0, 1.0]) as known:
        known.run("--skill-accept")
        known.later(monkeypatch, days=2, skill=1.0)
        known.write("edited")
        better = known.run("--skill-runs", "3")
        assert offers_to_accept(better)
        known.run("--skill-accept")
        assert {result.was for result in cases(known).values()} == {(3, 3)}
        # The same version got worse: to pool runs would hide it.
        known.later(monkeypatch, days=2, edited=[0.0, 0.0, 0.0, 1.0])
        fallen = known.run("--skill-runs", "3", "--skill-fresh")
        assert (fallen.status, offers_to_accept(fallen)) == (1, False)
        known.run(LOWER)
        assert [result.was for result in cases(known).values()] == [(0, 3)] * 3 + [
            (3, 3)
        ]


def test_no_case_is_dropped_unless_asked_for(pytester: pytest.Pytester) -> None:
    with KnownModel(pytester, 3, baseline=0.0, skill=1.0) as known:
        known.run("--skill-accept", "--skill-runs", "1")
        file = accepted(known)
        write_skill(pytester.path / "skills/other", [case("c0?", "no", id="c0")])
        (known.folder / "skill_meta.json").write_text(json.dumps({"cases": []}))
        gone = known.run()
        assert (gone.status, offers_to_accept(gone)) == (1, False)
        assert (known.run("--skill-accept").status, accepted(known)) == (1, file)
        known.cases = 4
        known.write()
        new = known.run("--skill-runs", "1")
        assert offers_to_accept(new)
        assert "--skill-fresh" not in " ".join(new.ending)
        known.chances["skill"] = 0.0
        known.cases = 2
        known.write("worse")  # two accepted cases fell, one is gone
        known.run("--skill-accept")
        assert accepted(known) == file
        known.run(LOWER)
    assert {name: result.was for name, result in cases(known).items()} == dict.fromkeys(
        ["c0", "c1"], (0, 3)
    )


def test_a_chance_fall_that_passes_is_not_offered(pytester: pytest.Pytester) -> None:
    with KnownModel(pytester, 2, baseline=0.0, skill=1.0) as known:
        known.run("--skill-accept")
        known.cases = 3
        known.write("edited")
        known.chances["edited"] = [0.3, 1.0, 1.0]
        run = known.run("--skill-runs", "1")
        before = accepted(known)["m"]
        refused = known.run("--skill-accept")
        after = accepted(known)["m"]
    assert (run.status, offers_to_accept(run)) == (0, False)
    assert (refused.status, after) == (1, before)
