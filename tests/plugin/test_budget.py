"""--skill-max-cost and --skill-max-tokens: a run stops before it spends more."""

import hashlib
import json
from collections import Counter

import pytest

from support.judges import judge_says
from support.kit import case, write_skill
from support.loopback import Asked, Fault, LoopbackServer, Reply, Stop
from support.runs import run_skills
from support.sandboxes import needs_bwrap

RULING = {"criterion": 1, "quote": "", "reason": "It is.", "verdict": "pass"}


def helpful(asked: Asked) -> Reply:
    """Right with the skill; a judge passes all. An agent lists its files first."""
    if asked.model == "judge":
        text = judge_says(asked.question, [RULING])
        return Reply(text, input_tokens=600, output_tokens=40)
    if asked.tools and not asked.results:
        return Reply(
            calls=(("bash", {"command": "ls"}),), input_tokens=900, output_tokens=60
        )
    text = "yes" if "gate" in asked.system else "no"
    return Reply(text, input_tokens=60, output_tokens=40)


@pytest.mark.parametrize(
    "more",
    [
        ["--skill-runs", "2", "--skill-max-tokens", "3000"],
        ["--skill-judge", "judge", "--skill-max-tokens", "11000"],
    ],
)
def test_runs_and_judges_finish_whole_cases(
    pytester: pytest.Pytester, more: list[str]
) -> None:
    finishes_whole_cases(pytester, more)


@needs_bwrap
def test_agents_finish_whole_cases(pytester: pytest.Pytester) -> None:
    finishes_whole_cases(
        pytester, ["--skill-agent", "loop", "--skill-max-tokens", "19000"]
    )


def finishes_whole_cases(pytester: pytest.Pytester, more: list[str]) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(10)]
    for asked in cases if "--skill-judge" in more else ():
        asked["expected"]["judge"] = "It is."
    write_skill(pytester.path / "skills/gate", cases, body="How to open the gate.")
    with LoopbackServer(helpful) as server:
        first = run_skills(pytester, server, *more)
        row = first.summary
        assert 5 <= row["cases"] < 10
        assert (row["verdict"], row["over_budget"]) == ("helps", 10 - row["cases"])
        assert first.outcomes == {"passed": row["cases"], "errors": row["over_budget"]}
        # What is stored is free, so the same command goes on.
        again = run_skills(pytester, server, *more)
        assert again.outcomes == {"passed": 10}
        assert again.summary["over_budget"] == 0


def test_a_question_waits_for_what_calls_in_flight_do_not_spend(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(20)]
    write_skill(pytester.path / "skills/gate", cases)
    with LoopbackServer(lambda _: Reply("yes", delay=0.01)) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        result = pytester.runpytest_inprocess(*args, "--skill-max-tokens", "5000")
    # Two calls could spend 4,200 tokens, and all spend 600
    result.assert_outcomes(passed=20)


@pytest.mark.parametrize(
    "limit",
    [
        ["--skill-max-tokens", "1000"],
        pytest.param(["--skill-max-cost", "0.001"], marks=pytest.mark.nightly),
    ],
)
def test_a_run_stops_asking_before_its_budget_is_passed(
    pytester: pytest.Pytester, limit: list[str], workers: str
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(10)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeini("[pytest]\nskill_prices = m 1 1")
    with LoopbackServer(
        lambda _: Reply("yes", input_tokens=40, output_tokens=60)
    ) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        args += ["--skill-max-output", "60", "--skill-concurrency", "1", *limit]
        args += ["--skill-min-lift", "0"]
        result = pytester.runpytest_inprocess(
            *args, "-n", workers, "--skill-json", "r.json"
        )
        assert 9 <= len(server.asked) <= 10
        # A shorter question may still fit where a longer one does not.
        passed = result.parseoutcomes()["passed"]
        assert passed in (4, 5)
        result.assert_outcomes(passed=passed, errors=10 - passed)
        message = "* tests: m: budget reached (* of *): raise it, or select*"
        result.stdout.fnmatch_lines([message])
        # Stored answers are free: it goes on
        again = pytester.runpytest_inprocess(*args)
        assert again.parseoutcomes()["passed"] > len(server.asked) // 4
    report = json.loads((pytester.path / "r.json").read_text())
    (row,), records = report["summary"], report["records"]
    # The verdict is over the cases that are done, but no gate passes.
    assert (row["cases"], row["over_budget"], row["lift"]) == (passed, 10 - passed, 0)
    assert f"after {passed} of 10 cases" in row["sentence"]
    assert (result.ret, report["gate"]["passed"]) == (1, False)
    result.stdout.fnmatch_lines(
        [
            f"*gate: {passed} cases: no verdict; six or more are needed",
            f"*the budget ended the run: {10 - passed} of 10 tests not finished",
            "the same command asks only what is missing*",
        ]
    )
    spent = sum(
        record["input_tokens"] + record["output_tokens"]
        for record in records
        if record["output"]
    )
    assert spent <= 1000


class Dear:
    """A server that counts two bytes as a token, and charges for
    replies without an answer.
    """

    def __init__(self) -> None:
        self.charged = 0
        self.dearest: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Reply | Fault:
        seed = f"{asked.model} {asked.system} {asked.question} {asked.attempt}"
        chance = hashlib.sha256(seed.encode()).digest()[0]
        if chance < 30:
            return Fault("status", 503, retry_after="0")  # which costs nothing
        texts = [message["content"] for message in asked.body["messages"]]
        schema = json.dumps(asked.body.get("response_format", ""))
        tokens = (len("".join([*texts, schema])) // 2, chance % 60)
        self.charged += sum(tokens)
        self.dearest[asked.model] = max(self.dearest[asked.model], sum(tokens))
        text = "" if chance < 60 else "yes"
        if text and asked.model == "judge":
            verdict = {
                "criterion": 1,
                "quote": "",
                "reason": "It is.",
                "verdict": "pass",
            }
            text = json.dumps({"verdicts": [verdict]})
        stop: Stop = "length" if chance < 45 else "end"
        return Reply(
            text, stop, input_tokens=tokens[0], output_tokens=tokens[1], delay=0.002
        )


@pytest.mark.nightly
def test_workers_retries_and_a_judge_overrun_by_one_call_per_model_at_most(
    pytester: pytest.Pytester,
) -> None:
    cases = [
        case(f"question {n} {'e3' * 100 * (n % 3)}", "yes", id=f"c{n}")
        for n in range(8)
    ]
    for one in cases:
        one["expected"]["judge"] = "It is."
    write_skill(pytester.path / "skills/gate", cases)
    dear, most = Dear(), 12_000
    with LoopbackServer(dear) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--model",
            "n",
            "--skill-judge",
            "judge",
        ]
        args += ["--skill-base-url", f"{server.url}/v1", "--skill-max-output", "60"]
        args += ["--skill-runs", "12", "-n", "4", "--skill-max-tokens", str(most)]
        result = pytester.runpytest_inprocess(*args)
    assert 0.8 * most < dear.charged <= most + sum(dear.dearest.values())
    reached = "*: budget reached (* of *): raise it, or select*"
    result.stdout.fnmatch_lines([reached])


def test_what_was_paid_without_an_answer_counts_and_is_told(
    pytester: pytest.Pytester,
) -> None:
    cases = [case(f"question {n}", "yes", id=f"c{n}") for n in range(20)]
    write_skill(pytester.path / "skills/gate", cases)
    pytester.makeini("[pytest]\nskill_prices = m 1 1")
    unreadable = Reply(input_tokens=400, output_tokens=1600, raw={"choices": [{}]})
    with LoopbackServer(lambda _: unreadable) as server:
        args = [
            "--skill",
            "skills",
            "--model",
            "m",
            "--skill-base-url",
            f"{server.url}/v1",
        ]
        result = pytester.runpytest_inprocess(*args, "--skill-max-tokens", "5000")
    result.assert_outcomes(errors=20)
    assert len(server.asked) == 2  # 4,000 of 5,000 tokens
    result.stdout.fnmatch_lines(
        [
            "19 tests: m: budget reached (4,000 of 5,000 tokens): raise it, *",
            (
                "m: 2 calls without an answer used 4,000 tokens ($0.004); not in the"
                " table."
            ),
        ]
    )
