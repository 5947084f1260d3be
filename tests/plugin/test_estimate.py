"""What a run will cost, told before it, compared with what it did cost."""

import json
import re
from typing import Any

import pytest

from support.batch_server import BatchServer
from support.kit import case, ending, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.prompt_cache import PromptCache

ABOUT = re.compile(r"about \$([\d.]+)(?: to \$([\d.]+))? \(at most \$([\d.,]+)\)")
SPENT = re.compile(r"spent \$([\d.]+),")
SKILL = "Mind the gate, and say yes to it. " * 590  # 5,000 tokens
CLOSE = 0.15


def counts(asked: Asked) -> Reply:
    """Answers of 150 to 450 tokens, by the question, and prompts by another tokenizer."""
    text = asked.system + asked.question
    if "grade an answer" in text:
        mark = asked.question.rpartition('"mark": "')[2].partition('"')[0]
        verdict = {"criterion": 1, "quote": "", "reason": "It is.", "verdict": "pass"}
        reply = {"mark": mark, "verdicts": [verdict]}
        return Reply(json.dumps(reply), input_tokens=len(text) // 3, output_tokens=60)
    number = int(re.findall(r"\d+", asked.question)[-1])
    yes = "yes" if "Mind the gate" in text or number % 2 else "no"
    return Reply(yes, input_tokens=len(text) // 3, output_tokens=150 + 300 * (number % 7) // 6)


def write_cases(pytester: pytest.Pytester, cases: int = 14, body: str = SKILL) -> None:
    written = [case(f"May I go through gate {n}", "yes", id=f"c{n}") for n in range(cases)]
    write_skill(pytester.path / "skills/gate", written, body=body)
    pytester.makeini("[pytest]\nskill_prices =\n  m 2 10\n  judge 2 10\n  sonnet 2 10 0.1 2.5")


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> pytest.RunResult:
    model = ["--model", "m", "--skill-base-url", f"{server.url}/v1"]
    words = ["--skill", "skills", *([] if "--model" in args else model)]
    return pytester.runpytest_inprocess(*words, *args)


def told(result: pytest.RunResult) -> tuple[float, float, float]:
    """The likely cost with the fewest and with all runs, and the highest."""
    (line,) = [line for line in result.outlines if re.match(r"upskill: (a run .*)?up to", line)]
    found = ABOUT.search(line)
    assert found, line
    low, high, most = found.groups()
    return float(low), float(high or low), float(most.replace(",", ""))


def spent(result: pytest.RunResult) -> float:
    (line,) = [line for line in ending(result) if line.startswith("spent")]
    found = SPENT.search(line)
    assert found, line
    return float(found.group(1))


def assert_close(result: pytest.RunResult) -> None:
    low, high, most = told(result)
    usd = spent(result)
    assert low * (1 - CLOSE) <= usd <= high * (1 + CLOSE)
    assert low == high or usd <= most
    assert usd <= most


def test_the_same_again_and_an_edited_skill_cost_what_is_told(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_cases(pytester)
    with LoopbackServer(counts) as server:
        first = run(pytester, server, "-n", workers)
        assert " to $" in first.stdout.str()  # nothing is known yet
        assert not ABOUT.search(first.stdout.str())
        again = run(pytester, server, "--skill-fresh", "-n", workers)
        assert_close(again)
        before = run(pytester, server, "--skill-fresh", "--collect-only", "-n", workers)
        assert told(before) == told(again)
        write_cases(pytester, body=SKILL[: len(SKILL) // 2])
        shorter = run(pytester, server, "-n", workers)
    assert_close(shorter)
    assert told(shorter)[0] < 0.6 * told(again)[0]  # half a skill, and a stored baseline
    assert "14 from cache" in shorter.stdout.str()


def test_with_a_part_of_the_answers_stored(pytester: pytest.Pytester) -> None:
    write_cases(pytester, 7)
    with LoopbackServer(counts) as server:
        run(pytester, server)
        write_cases(pytester, 21)
        more = run(pytester, server)
        assert_close(more)
        assert "up to 42 calls (14 from cache), about $" in more.stdout.str()
        twice = run(pytester, server, "--skill-runs", "2")
        assert_close(twice)
        done = run(pytester, server, "--skill-runs", "2")
    assert "84 from cache)" in done.stdout.str()
    assert not ABOUT.search(done.stdout.str())


@pytest.mark.parametrize("calls", ["64", "4"])
def test_with_prompt_caching(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, calls: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    write_cases(pytester, 20)
    args = ["--model", "sonnet", "--skill-runs", "2", "--skill-concurrency", calls]
    with LoopbackServer(PromptCache()) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        first = run(pytester, server, *args)
        low, high = re.findall(r"about \$([\d.]+) to \$([\d.]+)", first.stdout.str())[0]
        assert float(low) < spent(first) < float(high)  # a range holds with a cache, too
        with_cache = run(pytester, server, *args, "--skill-fresh")
        assert_close(with_cache)
        without = run(pytester, server, *args, "--skill-fresh", "--skill-no-prompt-cache")
        assert_close(without)
    assert told(with_cache)[0] < 0.6 * told(without)[0]


def test_with_a_batch(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    write_cases(pytester, body="Mind the gate.")
    args = ["--model", "sonnet", "--skill-batch", "--skill-fresh"]
    with BatchServer(counts) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        one_by_one = run(pytester, server, "--model", "sonnet")
        by_batch = run(pytester, server, *args)
    assert_close(by_batch)
    assert spent(by_batch) == pytest.approx(spent(one_by_one) / 2, rel=0.05)


def test_with_a_batch_that_finds_no_warm_cache(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is answered at once, which nobody knows before."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    write_cases(pytester)
    args = ["--model", "sonnet", "--skill-fresh"]
    cache = PromptCache()
    with BatchServer(cache) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        run(pytester, server, *args)
        cache.delay = 600  # until a text is warm; nobody waits for a batch
        cache.warm_at.clear()
        first = run(pytester, server, *args, "--skill-batch")
        cache.warm_at.clear()
        again = run(pytester, server, *args, "--skill-batch")
        write_cases(pytester, body=f"{SKILL}Be kind.")
        edited = run(pytester, server, *args, "--skill-batch")
    low, high, _ = told(first)
    assert 1.5 * low < high
    assert re.search(r"prompt caching cost \$0.0\d+ more than it saved", first.stdout.str())
    for result in (first, again, edited):
        assert_close(result)
    assert told(again)[0] == told(again)[1]
    assert told(edited)[0] == told(edited)[1]


def test_with_runs_that_depend_on_the_verdict(pytester: pytest.Pytester) -> None:
    write_cases(pytester)
    with LoopbackServer(counts) as server:
        run(pytester, server)
        adaptive = run(pytester, server, "--skill-fresh", "--skill-runs", "2..6")
    low, high, most = told(adaptive)
    assert high == pytest.approx(3 * low, rel=0.02)
    assert low * (1 - CLOSE) <= spent(adaptive) <= high * (1 + CLOSE) < most


def test_with_a_judge(pytester: pytest.Pytester) -> None:
    written: list[dict[str, Any]] = [
        {"id": f"c{n}", "input": f"May I, {n}?", "expected": {"judge": "It says yes."}}
        for n in range(6)
    ]
    write_skill(pytester.path / "skills/gate", written, body=SKILL)
    pytester.makeini("[pytest]\nskill_prices =\n  m 2 10\n  judge 4 20")
    with LoopbackServer(counts) as server:
        run(pytester, server, "--skill-judge", "judge")
        again = run(pytester, server, "--skill-judge", "judge", "--skill-fresh")
        assert_close(again)
        (pytester.path / ".upskill/answers.sqlite").unlink()
        other = run(pytester, server, "--skill-judge", "judge")  # by earlier runs alone
    assert_close(other)


@pytest.mark.parametrize("text", ["", "[[", '[["gate", "m", "skill", -1]]', '{"a": 1}', "[1]"])
def test_a_damaged_file_is_no_experience(pytester: pytest.Pytester, text: str) -> None:
    write_cases(pytester, 2)
    folder = pytester.path / ".upskill"
    folder.mkdir()
    (folder / "usage.json").write_text(text)
    with LoopbackServer(counts) as server:
        result = run(pytester, server)
    assert not ABOUT.search(result.stdout.str())
    assert " to $" in result.stdout.str()
    assert "gate" in (folder / "usage.json").read_text()


def test_free_models_leave_nothing(pytester: pytest.Pytester) -> None:
    write_cases(pytester, 2)
    pytester.makeini("[pytest]\nskill_prices = m 0 0")
    with LoopbackServer(counts) as server:
        run(pytester, server)
    assert not (pytester.path / ".upskill/usage.json").exists()
