"""Arms of different days: a model that changed must not look
like an effect of the skill.
"""

from collections import Counter

import pytest

from support.known_model import KnownModel
from support.runs import SkillRun
from support.sandboxes import needs_bwrap
from support.stored_answers import age_store
from support.words import HELPS, INCOMPLETE

CASES = 6


def arms_asked(known: KnownModel) -> Counter[str]:
    """How often each arm was asked since the last look."""
    asked = list(known.server.asked)
    known.server.asked.clear()
    return Counter(
        "skill" if "Version <" in one.system else "baseline" for one in asked
    )


def days_apart(run: SkillRun) -> float:
    arms: dict[str, list[int]] = {}
    for record in run.records:
        arms.setdefault(record["arm"], []).append(record["asked_at"])
    return (min(arms["skill"]) - max(arms["baseline"])) / 86_400


def test_a_null_edit_two_days_later_asks_both_arms(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nskill_prices = m 1 5\n")
    with KnownModel(pytester, CASES, baseline=0.0, skill=0.0) as known:
        known.run("--skill-runs", "2")
        known.later(monkeypatch, 2, baseline=1.0, skill=1.0)
        known.write("edited")
        arms_asked(known)
        collected = known.run("--skill-runs", "2", "--collect-only")
        assert not arms_asked(known)
        run = known.run("--skill-runs", "2")
        assert arms_asked(known) == {"baseline": 2 * CASES, "skill": 2 * CASES}
        assert run.summary["verdict"] not in (HELPS, INCOMPLETE)
        assert days_apart(run) < 0.1
        older = f"{2 * CASES} stored answers more than 1d older than the other arms"
        for screen in (collected.screen, run.screen):
            assert f"{older}: asked again" in screen
        # Within a day, an edit asks one arm only.
        known.later(monkeypatch, 1 / 24)
        known.write("edited again")
        run = known.run("--skill-runs", "2")
        assert arms_asked(known) == {"skill": 2 * CASES}
        assert run.summary["verdict"] != INCOMPLETE
        # And an unchanged skill asks nothing, however old its answers are:
        # both are of one day.
        known.later(monkeypatch, 30)
        again = known.run("--skill-runs", "2")
        assert not arms_asked(known)
        assert again.summary["lift"] == run.summary["lift"]
        assert again.summary["asked"] == run.summary["asked"]


def test_forever_is_for_models_that_never_change(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nskill_max_age = forever\n")
    with KnownModel(pytester, CASES, baseline=0.0, skill=0.0) as known:
        known.run("--skill-runs", "2")
        known.later(monkeypatch, 40, baseline=1.0, skill=1.0)
        known.write("edited")
        arms_asked(known)
        run = known.run("--skill-runs", "2")
        assert arms_asked(known) == {"skill": 2 * CASES}
    # As it would be without the limit: the model changed
    assert run.summary["verdict"] == HELPS


def test_what_may_not_be_asked_again_gets_no_verdict(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 6, baseline=0.0, skill=1.0) as known:
        first = known.run().summary
        known.later(monkeypatch, 2)
        known.write("edited")
        mixed = known.run(
            "-o", "skill_max_age=forever", "--skill-record", "a.jsonl"
        ).summary
        arms_asked(known)
        poor = known.run("--skill-max-tokens", "9", "--skill-min-lift", "0.1")
        replayed = known.run("--skill-replay", "a.jsonl", "--skill-min-lift", "0.1")
        assert not arms_asked(known)
    assert mixed["verdict"] == HELPS
    for run in (poor, replayed):
        assert run.summary["verdict"] == INCOMPLETE
        assert run.summary["lift"] is run.summary["p_value"] is None
        assert run.status == 1
        [reason] = run.gate["reasons"]
        for day in (
            first["asked"]["last"]["baseline"],
            mixed["asked"]["last"]["skill"],
        ):
            assert day[:10] in reason
            assert day[:10] in run.summary["sentence"]
        assert days_apart(run) > 1.9
    # The refusal says why it was not asked again.
    assert "could not be asked again" in poor.screen
    assert "could not be asked again" not in replayed.screen


def test_arms_of_different_days_are_not_accepted(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 6, baseline=0.0, skill=1.0) as known:
        known.run()
        known.later(monkeypatch, 2)
        known.write("edited")
        known.run("-o", "skill_max_age=forever", "--skill-record", "a.jsonl")
        replay = ("--skill-replay", "a.jsonl")
        run = known.run(*replay, "--skill-markdown", "a.md")
        accepting = known.run(*replay, "--skill-accept")
    # Every case passes, so this is no failure; but there is nothing to rely on either.
    assert (run.status, run.gate["passed"]) == (0, None)
    text = (pytester.path / "a.md").read_text("utf-8")
    [headline] = [line for line in text.splitlines() if line.startswith("## ")]
    assert headline.startswith("## ⚠️ gate on m: ")
    assert "more than 1d apart" in headline
    next_command = run.ending[-1]
    assert next_command.endswith("--skill-record a.jsonl")
    assert "--skill-replay" not in next_command
    assert "nothing accepted of gate on m: " in accepting.screen
    assert accepting.status == 1
    assert not (known.folder / "skill_results.json").exists()


@pytest.mark.parametrize(
    "args", [(), pytest.param(("-n", "2"), marks=pytest.mark.nightly)]
)
def test_tests_in_python_are_tried_again(
    pytester: pytest.Pytester, args: tuple[str, ...]
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.skill("skills/gate")
        def test_gate(ask):
            assert ask("c1?") == "yes"
        """)
    paths = ["test_tests_in_python_are_tried_again.py", "-p", "no:randomly"]
    with KnownModel(pytester, 1, baseline=0.0, skill=1.0) as known:
        known.run(*paths)
        age_store(pytester.path, days=3)
        known.write("edited")
        arms_asked(known)
        run = known.run(*paths, *args)
        asked = arms_asked(known)
    assert asked == {"baseline": 2, "skill": 2}  # of the case, and of the test
    assert abs(days_apart(run)) < 0.1


@needs_bwrap
def test_trials_of_agents_are_of_one_day(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnownModel(pytester, 1, baseline=0.0, skill=1.0) as known:
        known.run("--skill-agent", "loop")
        known.later(monkeypatch, 2)
        known.write("edited")
        run = known.run("--skill-agent", "loop")
    assert not any(record["stored"] for record in run.records)
    assert days_apart(run) < 0.1


def test_an_age_that_is_none_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nskill_max_age = 1 day\n")
    with KnownModel(pytester, 1, baseline=0.0, skill=1.0) as known:
        run = known.run()
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert "tox.ini: skill_max_age: '1 day' is not an age such as 12h" in run.screen
