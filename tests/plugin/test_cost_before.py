"""Before the first call: how many there will be, how many are stored,
what the rest may cost.
"""

import json
import re

import pytest

from support.kit import BODY, case, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills

CASES = [case(f"question {n}", "yes", id=f"c{n}") for n in range(4)]
AT_MOST = re.compile(r"at most \$([\d,]+(?:\.\d+)?)")


def counts(asked: Asked) -> Reply:
    """Answers of 1 to 400 tokens, counted as a server would."""
    text = json.dumps(asked.body)
    words = 1 + len(text) * 7 % 400
    if "grade an answer" in text:
        verdict = {"criterion": 1, "quote": "", "reason": "It is.", "verdict": "pass"}
        mark = re.search(r"<question (\w+)>", text)
        reply = {"mark": mark.group(1) if mark else "", "verdicts": [verdict]}
        return Reply(json.dumps(reply), input_tokens=len(text) // 4, output_tokens=60)
    return Reply(
        "yes", input_tokens=len(asked.system + asked.question) // 4, output_tokens=words
    )


def line_of(run: SkillRun) -> str:
    screen = run.result.stdout.str().replace("\n  ", " ")  # unwrapped
    (line,) = [
        line
        for line in screen.split("\n")
        if re.match(r"upskill: (a run .*)?up to", line)
    ]
    return line


def bound(line: str) -> float:
    found = AT_MOST.search(line)
    assert found, line
    return float(found.group(1).replace(",", ""))


def test_the_bound_holds(pytester: pytest.Pytester) -> None:
    rubric = {"contains": ["yes"], "judge": "It is."}
    judged = [{**written, "expected": rubric} for written in CASES[:2]]
    write_skill(pytester.path / "skills/gate", [*judged, *CASES[2:]], body=BODY * 60)
    pytester.makeini("[pytest]\nskill_prices =\n  m 100 500\n  judge 100 500")
    with LoopbackServer(counts) as server:
        run = run_skills(
            pytester, server, "--skill-judge", "judge", "--skill-runs", "3"
        )
    usd = 0.0
    for record in run.records:
        usd += record["cost"]
        if record["judge"]:
            usage = record["judge"]["usage"]
            usd += (100 * usage["input"] + 500 * usage["output"]) / 1e6
    assert 0 < usd < bound(line_of(run))
    assert (
        "4 tests × 3 runs, with and without the skill, and 12 by the judge"
        in line_of(run)
    )
    assert run.screen.index(line_of(run)) < run.screen.index("[100%]")


def test_stored_answers_are_taken_off(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makeini("[pytest]\nskill_prices = m 100 500")
    with LoopbackServer(counts) as server:
        first = run_skills(pytester, server, "-k", "c0 or c1")
        second = run_skills(pytester, server, "--collect-only")
        fresh = run_skills(pytester, server, "--skill-fresh", "--collect-only")
    assert "up to 4 calls, at most $" in line_of(first)
    assert "a run would make up to 8 calls (4 from cache), at most $" in line_of(second)
    assert bound(line_of(second)) == bound(line_of(first))
    assert "from cache" not in line_of(fresh)
    assert not list((pytester.path / "skills").rglob(".upskill"))


def test_only_models_with_a_known_price_have_one(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    args = ["--skill-base-url", "http://127.0.0.1:9/v1", "--collect-only"]
    free = line_of(run_skills(pytester, "ollama:x", *args))
    size = "4 tests × 1 run, with and without the skill"
    assert free == f"upskill: a run would make up to 8 calls: {size}"
    line = line_of(run_skills(pytester, "haiku", "--model", "m", *args))
    assert bound(line) > 0
    assert ", and the price of m is not known: 8 tests" in line


def test_triggers_and_agents_count(pytester: pytest.Pytester) -> None:
    skill = write_skill(pytester.path / "skills/gate", CASES[:1])
    (skill / "evals").mkdir()
    queries = [{"query": "open the gate", "should_trigger": True}]
    (skill / "evals/triggers.json").write_text(json.dumps(queries))
    run = run_skills(pytester, "haiku", "--collect-only")
    lines = [line for line in run.result.outlines if line.startswith("upskill: ")]
    assert sum("up to" in line and "calls" in line for line in lines) == 2
    assert any(line.startswith("upskill: in all at most $") for line in lines)
    agent = ["--skill-agent", "loop", "-m", "not trigger"]
    line = line_of(run_skills(pytester, "haiku", "--collect-only", *agent))
    assert "30 turns, at most $" in line


def test_a_replay_costs_nothing(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES[:1])
    with LoopbackServer(counts) as server:
        run_skills(pytester, server, "--skill-record", "r.jsonl")
        run = run_skills(pytester, server, "--skill-replay", "r.jsonl")
    assert (
        line_of(run)
        == "upskill: up to 2 calls: 1 test × 1 run, with and without the skill"
    )
