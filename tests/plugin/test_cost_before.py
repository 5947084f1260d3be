"""Before the first call: how many there will be, how many are stored, what the rest may cost."""

import json
import os
import re
import sys

import pytest

from support.kit import BODY, case, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.terminal import run_on_terminal

CASES = [case(f"question {n}", "yes", id=f"c{n}") for n in range(4)]
RANGE = re.compile(r"(?:about \$([\d.,]+)(?: to| \(at most)|up to) \$([\d.,]+)[):,; ]")


def counts(asked: Asked) -> Reply:
    """Answers of 1 to 400 tokens, counted as a server would."""
    text = json.dumps(asked.body)
    words = 1 + len(text) * 7 % 400
    if "grade an answer" in text:
        verdict = {"criterion": 1, "quote": "", "reason": "It is.", "verdict": "pass"}
        mark = re.search(r"<question (\w+)>", text)
        reply = {"mark": mark.group(1) if mark else "", "verdicts": [verdict]}
        return Reply(json.dumps(reply), input_tokens=len(text) // 4, output_tokens=60)
    return Reply("yes", input_tokens=len(asked.system + asked.question) // 4, output_tokens=words)


def line_of(result: pytest.RunResult) -> str:
    (line,) = [line for line in result.outlines if re.match(r"upskill: (a run .*)?up to", line)]
    return line


def bounds(line: str) -> tuple[float, float]:
    found = RANGE.search(line)
    assert found, line
    low, high = (float((text or "0").replace(",", "")) for text in found.groups())
    return low, high


def test_the_range_holds_what_was_paid(pytester: pytest.Pytester, workers: str) -> None:
    judged = [{**one, "expected": {"contains": ["yes"], "judge": "It is."}} for one in CASES[:2]]
    write_skill(pytester.path / "skills/gate", [*judged, *CASES[2:]], body=BODY * 60)
    pytester.makeini("[pytest]\nskill_prices =\n  m 100 500\n  judge 100 500")
    with LoopbackServer(counts) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        args += ["--skill-judge", "judge", "-n", workers, "--skill-json", "r.json"]
        first = pytester.runpytest_inprocess(*args, "--skill-runs", "2..3")
    usd = 0.0
    for one in json.loads((pytester.path / "r.json").read_text())["records"]:
        usd += one["cost"]
        usd += (
            100 * (one["judge_input_tokens"] or 0) + 500 * (one["judge_output_tokens"] or 0)
        ) / 1e6
    low, high = bounds(line_of(first))
    assert 0 < low < usd < high
    assert "4 tests × 2 arms × 2 to 3 runs, and 12 by the judge" in line_of(first)
    lines = first.outlines
    assert lines.index(line_of(first)) < next(
        number for number, line in enumerate(lines) if line.endswith("[100%]")
    )


def test_stored_answers_are_taken_off(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    pytester.makeini("[pytest]\nskill_prices = m 100 500")
    with LoopbackServer(counts) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        first = pytester.runpytest_inprocess(*args, "-k", "c0 or c1")
        assert "up to 4 calls, about $" in line_of(first)
        second = pytester.runpytest_inprocess(*args, "--collect-only")
        assert "a run would make up to 8 calls (4 from cache), about $" in line_of(second)
        assert bounds(line_of(second))[1] == bounds(line_of(first))[1]
        pytester.runpytest_inprocess(*args)
        third = pytester.runpytest_inprocess(*args, "-n", "2")
        assert line_of(third) == "upskill: up to 8 calls (8 from cache): 4 tests × 2 arms × 1 run"
        fresh = pytester.runpytest_inprocess(*args, "--skill-fresh", "--collect-only")
        assert "from cache" not in line_of(fresh)
        assert not list((pytester.path / "skills").rglob(".upskill"))


def test_models_that_cost_nothing_have_no_price_and_unknown_ones_say_so(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    url = ["--skill-base-url", "http://127.0.0.1:9/v1"]

    def shown(*models: str) -> str:
        named = [word for model in models for word in ("--model", model)]
        return line_of(
            pytester.runpytest_inprocess("--skill", "skills", *named, *url, "--collect-only")
        )

    sizes = ": 4 tests × 2 arms × 1 run"
    assert shown("ollama:x") == f"upskill: a run would make up to 8 calls{sizes}"
    assert shown("m") == f"upskill: a run would make up to 8 calls, cost not known{sizes}"
    assert "$" in shown("haiku")
    assert ", and the price of m is not known: 8 tests" in shown("haiku", "m")


def test_agents_triggers_and_old_versions_count(pytester: pytest.Pytester) -> None:
    skill = write_skill(pytester.path / "skills/gate", CASES[:1])
    (skill / "evals").mkdir()
    queries = [{"query": "open the gate", "should_trigger": True}]
    (skill / "evals/triggers.json").write_text(json.dumps(queries))
    args = ["--skill", "skills", "--model", "haiku", "--collect-only"]
    plain = bounds(line_of(pytester.runpytest_inprocess(*args)))
    result = pytester.runpytest_inprocess(*args, "--skill-triggers", "also")
    (total,) = [line for line in result.outlines if line.startswith("upskill: in all")]
    assert bounds(f"{total}:")[1] > plain[1]
    result = pytester.runpytest_inprocess(*args, "--skill-agent", "loop", "--skill-triggers", "off")
    assert "30 turns, up to $" in line_of(result)
    assert "(by how many turns they take): 1 test" in line_of(result)
    assert bounds(line_of(result))[1] > 10 * bounds(line_of(result))[0]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], r"about \$\S+ to \$1\d\.\d\d; --skill-max-cost limits it: 40 tests"),
        (["--skill-max-cost", "7"], r"about \$\S+ to \$1\d\.\d\d, stopping at \$7\.00: 40 tests"),
        (["--skill-max-output", "100"], r"about \$\S+ to \$\d\.\d\d: 40 tests"),
    ],
)
def test_on_a_terminal_a_dear_run_is_told_how_to_limit_it(
    pytester: pytest.Pytester, more: list[str], told: str
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(40)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeini("[pytest]\nskill_prices = m 10 75")
    args = ["--skill", "skills", "--model", "m", "--skill-base-url", "http://127.0.0.1:9/v1"]
    command = [sys.executable, "-m", "pytest", *args, "--collect-only", "-q", *more]
    environ = {**os.environ, "TERM": "xterm"}
    assert re.search(told, run_on_terminal(command, pytester.path, environ, 50, 200))
    if not more:
        assert "--skill-max-cost" not in line_of(pytester.runpytest_inprocess(*args, "--co"))


def test_a_replay_costs_nothing(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate", CASES)
    with LoopbackServer(counts) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        pytester.runpytest_inprocess(*args, "--skill-record", "r.json")
    result = pytester.runpytest_inprocess(*args, "--skill-replay", "r.json")
    assert line_of(result) == "upskill: up to 8 calls: 4 tests × 2 arms × 1 run"
