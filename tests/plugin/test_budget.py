"""--skill-max-cost and --skill-max-tokens: a run stops before it spends more."""

import json

import pytest

from support.kit import case, write_skill
from support.loopback import LoopbackServer, Reply


def test_a_question_waits_for_what_calls_in_flight_do_not_spend(pytester: pytest.Pytester) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(20)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("yes", delay=0.01)) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        result = pytester.runpytest_inprocess(*args, "--skill-max-tokens", "5000")
    result.assert_outcomes(passed=20)  # two calls could spend 4,200 tokens, and all spend 600


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("limit", [["--skill-max-tokens", "1000"], ["--skill-max-cost", "0.001"]])
def test_a_run_stops_asking_before_its_budget_is_passed(
    pytester: pytest.Pytester, limit: list[str], workers: str
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(10)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeini("[pytest]\nskill_prices = m 1 1")
    with LoopbackServer(lambda _: Reply("yes", input_tokens=40, output_tokens=60)) as server:
        args = ["--skill", "skills", "--model", "m", "--skill-base-url", f"{server.url}/v1"]
        args += ["--skill-max-output", "60", "--skill-concurrency", "1", *limit]
        result = pytester.runpytest_inprocess(*args, "-n", workers, "--skill-json", "r.json")
        assert 9 <= len(server.asked) <= 10
        result.assert_outcomes(passed=len(server.asked) // 2, errors=10 - len(server.asked) // 2)
        message = "m: budget reached (* of *): raise it, or select fewer tests with -k"
        result.stdout.fnmatch_lines([message])
        again = pytester.runpytest_inprocess(*args)  # stored answers are free: it goes on
        assert again.parseoutcomes()["passed"] > len(server.asked) // 4
    records = json.loads((pytester.path / "r.json").read_text())["records"]
    spent = sum(
        record["input_tokens"] + record["output_tokens"] for record in records if record["output"]
    )
    assert spent <= 1000


def test_a_model_without_a_price_refuses_a_budget_in_usd(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    args = ["--skill", "skills", "--model", "m", "--skill-base-url", "http://127.0.0.1:9/v1"]
    result = pytester.runpytest_inprocess(*args, "--skill-max-cost", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--skill-max-cost: the price of m is not known" in result.stderr.str()
