"""What a run will cost, told before it, compared with what it did cost."""

import json
import re
from typing import Any

import pytest

from support.batch_server import BatchServer
from support.kit import case, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.prompt_cache import PromptCache
from support.runs import SkillRun, run_skills

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


def told(run: SkillRun) -> tuple[float, float, float]:
    """The likely cost with the fewest and with all runs, and the highest."""
    (line,) = [line for line in run.result.outlines if re.match(r"upskill: (a run .*)?up to", line)]
    found = ABOUT.search(line)
    assert found, line
    low, high, most = found.groups()
    return float(low), float(high or low), float(most.replace(",", ""))


def spent(run: SkillRun) -> float:
    (line,) = [line for line in run.ending if line.startswith("spent")]
    found = SPENT.search(line)
    assert found, line
    return float(found.group(1))


def assert_close(run: SkillRun) -> None:
    low, high, most = told(run)
    usd = spent(run)
    assert low * (1 - CLOSE) <= usd <= high * (1 + CLOSE)
    assert usd <= most


def test_the_same_again_and_an_edited_skill_cost_what_is_told(pytester: pytest.Pytester) -> None:
    write_cases(pytester, 7)
    with LoopbackServer(counts) as server:
        first = run_skills(pytester, server)
        assert " to $" in first.screen  # nothing is known yet
        assert not ABOUT.search(first.screen)
        again = run_skills(pytester, server, "--skill-fresh")
        assert_close(again)
        before = run_skills(pytester, server, "--skill-fresh", "--collect-only")
        assert told(before) == told(again)
        write_cases(pytester, 7, body=SKILL[: len(SKILL) // 2])
        shorter = run_skills(pytester, server)
    assert_close(shorter)
    assert told(shorter)[0] < 0.6 * told(again)[0]  # half a skill, and a stored baseline
    assert "7 from cache" in shorter.screen


def test_with_a_part_of_the_answers_stored(pytester: pytest.Pytester) -> None:
    write_cases(pytester, 7)
    with LoopbackServer(counts) as server:
        run_skills(pytester, server)
        write_cases(pytester, 14)
        more = run_skills(pytester, server)
        assert_close(more)
        assert "up to 28 calls (14 from cache), about $" in more.screen
        twice = run_skills(pytester, server, "--skill-runs", "2")
        assert_close(twice)
        done = run_skills(pytester, server, "--skill-runs", "2")
    assert "56 from cache)" in done.screen
    assert not ABOUT.search(done.screen)


@pytest.mark.nightly
@pytest.mark.parametrize("calls", ["64", "4"])
def test_with_prompt_caching(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, calls: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    write_cases(pytester, 20)
    args = ["--skill-runs", "2", "--skill-concurrency", calls]
    with LoopbackServer(PromptCache()) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        first = run_skills(pytester, "sonnet", *args)
        low, high = re.findall(r"about \$([\d.]+) to \$([\d.]+)", first.screen)[0]
        assert float(low) < spent(first) < float(high)  # a range holds with a cache, too
        with_cache = run_skills(pytester, "sonnet", *args, "--skill-fresh")
        assert_close(with_cache)
        without = run_skills(pytester, "sonnet", *args, "--skill-fresh", "--skill-no-prompt-cache")
        assert_close(without)
    assert told(with_cache)[0] < 0.6 * told(without)[0]


def test_with_a_batch(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    write_cases(pytester, body="Mind the gate.")
    with BatchServer(counts) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        one_by_one = run_skills(pytester, "sonnet")
        by_batch = run_skills(pytester, "sonnet", "--skill-batch", "--skill-fresh")
    assert_close(by_batch)
    assert spent(by_batch) == pytest.approx(spent(one_by_one) / 2, rel=0.05)


@pytest.mark.nightly
def test_with_a_batch_that_finds_no_warm_cache(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is answered at once, which nobody knows before."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    write_cases(pytester)
    cache = PromptCache()
    with BatchServer(cache) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        run_skills(pytester, "sonnet", "--skill-fresh")
        cache.delay = 600  # until a text is warm; nobody waits for a batch
        cache.warm_at.clear()
        first = run_skills(pytester, "sonnet", "--skill-fresh", "--skill-batch")
        cache.warm_at.clear()
        again = run_skills(pytester, "sonnet", "--skill-fresh", "--skill-batch")
        write_cases(pytester, body=f"{SKILL}Be kind.")
        edited = run_skills(pytester, "sonnet", "--skill-fresh", "--skill-batch")
    low, high, _ = told(first)
    assert 1.5 * low < high
    assert re.search(r"prompt caching cost \$0.0\d+ more than it saved", first.screen)
    for result in (first, again, edited):
        assert_close(result)
    assert told(again)[0] == told(again)[1]
    assert told(edited)[0] == told(edited)[1]


def test_with_runs_that_depend_on_the_verdict(pytester: pytest.Pytester) -> None:
    write_cases(pytester)
    with LoopbackServer(counts) as server:
        run_skills(pytester, server)
        adaptive = run_skills(pytester, server, "--skill-fresh", "--skill-runs", "2..6")
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
        run_skills(pytester, server, "--skill-judge", "judge")
        again = run_skills(pytester, server, "--skill-judge", "judge", "--skill-fresh")
        assert_close(again)
        (pytester.path / ".upskill/answers.sqlite").unlink()
        other = run_skills(pytester, server, "--skill-judge", "judge")  # by earlier runs alone
    assert_close(other)


def test_a_damaged_file_is_no_experience(pytester: pytest.Pytester) -> None:
    write_cases(pytester, 2)
    folder = pytester.path / ".upskill"
    folder.mkdir()
    (folder / "usage.json").write_text('[["gate", "m", "skill", -1]]')
    with LoopbackServer(counts) as server:
        run = run_skills(pytester, server)
    assert not ABOUT.search(run.screen)
    assert " to $" in run.screen
    assert "gate" in (folder / "usage.json").read_text()


def test_free_models_leave_nothing(pytester: pytest.Pytester) -> None:
    write_cases(pytester, 2)
    pytester.makeini("[pytest]\nskill_prices = m 0 0")
    with LoopbackServer(counts) as server:
        run_skills(pytester, server)
    assert not (pytester.path / ".upskill/usage.json").exists()
