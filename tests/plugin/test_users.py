"""Cases with a user, in whole runs: of our own agent,
and what is refused before the first call.
"""

import json
from typing import Any

import pytest

from support.kit import write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

FACTS = {
    "id": "parcel",
    "input": "Ship my parcel.",
    "user": {"facts": ["The parcel goes to Norway."]},
    "expected": {"contains": "to Norway"},
}
FIXED = {
    "id": "fixed",
    "input": "Ship the other one.",
    "replies": ["To Norway."],
    "expected": {"contains": "to Norway"},
}
INI = "[pytest]\nskill_user_model = cheap\nskill_prices =\n  m 1 1\n  cheap 100 100"


def office(asked: Asked) -> Reply:
    """Ships to where the user says; without the skill, it does not ask."""
    if "play a person" in asked.system:
        return Reply("To Norway.", input_tokens=1000, output_tokens=10)
    messages = json.dumps(asked.body["messages"])
    if "To Norway." in messages:
        return Reply("It goes to Norway.", input_tokens=200, output_tokens=10)
    if "<name>ship</name>" in asked.system:
        return Reply("Which country?", input_tokens=100, output_tokens=10)
    return Reply("It goes to France.", input_tokens=100, output_tokens=10)


def write(pytester: pytest.Pytester, *cases: dict[str, Any], ini: str = INI) -> None:
    write_skill(pytester.path / "skills/ship", list(cases), body="Ask for the country.")
    pytester.makeini(ini)


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> SkillRun:
    return run_skills(
        pytester, server, "--skill-agent", "loop", "--skill-sandbox", "none", *args
    )


def test_a_user_answers_in_both_arms_and_is_paid_apart(
    pytester: pytest.Pytester, workers: str
) -> None:
    write(pytester, FACTS, FIXED)
    with LoopbackServer(office) as server:
        done = run(pytester, server, "-n", workers)
    assert done.outcomes == {"passed": 2}
    assert (done.summary["skill_rate"], done.summary["baseline_rate"]) == (1.0, 0.0)
    skill = done.record(arm="skill", case="parcel")
    assert (skill["input_tokens"], skill["output_tokens"]) == (300, 20)
    assert skill["cost"] == pytest.approx(320 / 1e6)
    assert (skill["user"]["model"], skill["user"]["calls"]) == ("cheap", 1)
    assert skill["user"]["usage"]["input"] == 1000
    assert skill["user"]["cost"] == pytest.approx(1010 * 100 / 1e6)
    assert done.record(arm="baseline", case="parcel")["user"] is None
    assert done.record(arm="skill", case="fixed")["user"] is None
    assert (
        "users played by cheap: 1 call, 1,010 tokens, $0.10; not in the table"
        in done.screen
    )
    assert "and up to 12 calls by the user" in done.screen.replace("\n  ", " ")
    asked = [one for one in server.asked if "play a person" in one.system]
    assert [one.body["model"] for one in asked] == ["cheap"]
    assert "Which country?" in asked[0].question
    assert "The parcel goes to Norway." in asked[0].system
    assert "to Norway" not in asked[0].question  # nothing of the checks


def test_answers_of_a_user_are_stored_recorded_and_replayed(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, FACTS)
    with LoopbackServer(office) as server:
        first = run(pytester, server, "--skill-record", "answers.jsonl")
        calls = len(server.asked)
        again = run(pytester, server)
        assert len(server.asked) == calls
        fact = {"facts": ["The parcel goes to Norway.", "It is heavy."]}
        write(pytester, {**FACTS, "user": fact})
        run(pytester, server)
        assert len(server.asked) > calls
    write(pytester, FACTS)
    replayed = run(pytester, server, "--skill-replay", "answers.jsonl")
    users = [each.record(arm="skill")["user"] for each in (first, again, replayed)]
    assert users == [users[0]] * 3
    lines = (pytester.path / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    (recorded,) = [one for one in map(json.loads, lines) if one["arm"] == "skill"]
    assert [turn["kind"] for turn in recorded["transcript"]] == [
        *("system", "user", "assistant", "answer", "assistant")
    ]
    assert recorded["user"]["calls"] == 1


def test_a_budget_counts_the_user(pytester: pytest.Pytester) -> None:
    write(pytester, FACTS)
    with LoopbackServer(office) as server:
        done = run(pytester, server, "--skill-max-cost", "0.05")
    assert done.status != 0
    assert "budget" in done.screen


def test_the_judge_plays_users_by_default(pytester: pytest.Pytester) -> None:
    write(pytester, FACTS, ini="[pytest]")
    with LoopbackServer(office) as server:
        done = run(pytester, server, "--skill-judge", "strict")
    assert done.outcomes == {"passed": 1}
    assert done.record(arm="skill")["user"]["model"] == "strict"


def test_a_user_without_a_model_is_refused_before_the_first_call(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, FACTS, FIXED, ini="[pytest]")
    with LoopbackServer(office) as server:
        done = run(pytester, server)
        collected = run(pytester, server, "--collect-only")
        assert not server.asked
        fixed = run_skills(
            pytester,
            server,
            *("--skill-agent", "loop", "--skill-sandbox", "none"),
            "skills/ship/skill_meta.json::fixed",
            skill="",
        )
    assert collected.status == 0
    assert done.status == 4
    assert "skills/ship/skill_meta.json:" in done.screen
    assert "parcel has a user with facts, and no model plays it" in done.screen
    assert "skill_user_model = haiku" in done.screen
    assert "--skill-judge" in done.screen
    assert fixed.outcomes == {"passed": 1}


def test_a_model_that_nobody_knows_is_told_with_its_ini_key(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, FACTS, ini="[pytest]\nskill_user_model = scripted:nothing.py:f")
    with LoopbackServer(office) as server:
        done = run(pytester, server)
    assert done.status == 4
    assert "skill_user_model" in done.screen
    assert not server.asked


@needs_bwrap
def test_agents_that_can_not_be_answered_are_refused_by_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(pytester, FIXED)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with LoopbackServer(office) as server:
        done = run_skills(
            pytester, server, "--skill-agent", "opencode", "--skill-agent", "loop"
        )
        write(pytester, {**FIXED, "models": ["loop/*"]})
        kept = run_skills(pytester, server, "--skill-agent", "loop")
    assert done.status == 4
    assert "fixed has a user, and opencode can't be answered" in done.screen
    assert "Use loop or claude or codex" in done.screen
    assert kept.outcomes == {"passed": 1}


def test_a_plain_completion_has_no_user(pytester: pytest.Pytester) -> None:
    write(pytester, FIXED)
    with LoopbackServer(office) as server:
        done = run_skills(pytester, server)
        assert not server.asked
    assert done.status == 1
    assert "its user answers an agent; add --skill-agent loop" in done.screen


def test_a_user_who_is_not_there_is_an_error_and_no_failure(
    pytester: pytest.Pytester,
) -> None:
    def silent(asked: Asked) -> Reply:
        return Reply("") if "play a person" in asked.system else office(asked)

    write(pytester, FACTS)
    with LoopbackServer(silent) as server:
        done = run(pytester, server)
    assert done.outcomes == {"errors": 1}
    assert "the user (cheap) said nothing" in done.screen
