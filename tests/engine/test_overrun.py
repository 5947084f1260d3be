"""The most that a budget can be overrun is one call per model, whatever servers
count.
"""

import asyncio
from collections import defaultdict
from dataclasses import astuple
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.engine.budget import Budget
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.trial import Question

MAX_OUTPUT = 100
PRICE = Price(1.0, 5.0, 0.1, steps=((2000, Price(2.0, 10.0, 0.2)),))


class Bill:
    """What servers charged: in all, and for the dearest call to each model."""

    def __init__(self, price: Price | None) -> None:
        self._price = price
        self.total = 0.0
        self.dearest: dict[str, float] = defaultdict(float)
        self.calls = 0

    def add(self, model: str, usage: Usage) -> Usage:
        asked, answered = usage.input or 0, usage.output or 0
        charged = float(asked + answered)
        if self._price:
            price = self._price.steps[0][1] if asked > 2000 else self._price
            charged = (asked * price.input + answered * price.output) / 1e6
        self.total += charged
        self.dearest[model] = max(self.dearest[model], charged)
        self.calls += 1
        return usage


class Dear(Model):
    """Counts as it likes, answers or not, and charges for it unless it is busy."""

    def __init__(self, name: str, bill: Bill, random: Random, share: float) -> None:
        self._name = name
        self._bill = bill
        self._random = random
        self._share = share  # of the output limit, always

    async def ask(self, question: Question) -> Answer:
        for _ in range(self._random.randrange(5)):
            await asyncio.sleep(0)
        what = self._random.random()
        if what < 0.1:
            raise ModelError("busy", rate_limited=True, retry_after=0.0)
        usage = self._bill.add(self._name, self._usage(question))
        if what < 0.3:
            raise ModelError("never ended", transient=what < 0.2, paid=astuple(usage))
        return Answer("yes", usage, "refusal" if what < 0.4 else "end")

    def _usage(self, question: Question) -> Usage:
        if self._share > 1:
            return Usage(
                len(question.messages[0][1]),
                round(question.max_output * self._share),
                0,
            )
        size = len(question.system) + len(question.messages[0][1])
        asked = round(size * self._random.uniform(0.1, 1.0)) + self._random.randrange(
            200
        )
        return Usage(asked, self._random.randint(0, question.max_output), 0)


def questions(random: Random, model: str, number: int) -> list[Question]:
    texts = [f"{n} " + "e3f0 " * random.choice([2, 20, 700]) for n in range(number)]
    return [
        Question(model, "system", (("user", text),), MAX_OUTPUT, 1) for text in texts
    ]


def overrun(
    budget: Budget, most: float, price: Price | None, seed: int, share: float
) -> tuple[Bill, float, list[Reply]]:
    """Ask three models, one of them a judge of what the others said, on a bounded
    run.
    """
    random = Random(seed)
    bill = Bill(price)

    async def open_model(name: str) -> Model:
        return Dear(name, bill, random, share)

    engine = Engine(ModelFacts(open_model, lambda _: 30), concurrency=20, budget=budget)
    try:
        asked = [*questions(random, "a", 30), *questions(random, "b", 30)]
        random.shuffle(asked)
        replies = engine.ask(asked)
        replies += engine.ask(questions(random, "judge", 20))
    finally:
        engine.close()
    return bill, bill.total - most, replies


@pytest.mark.usefixtures("short_pauses")
@given(
    st.integers(0, 2**32), st.sampled_from([1000, 4000, 20_000, 60_000]), st.booleans()
)
def test_a_budget_is_overrun_by_one_call_per_model_at_most(
    seed: int, most: int, is_in_usd: bool
) -> None:
    price, limit = (PRICE, most / 1e6) if is_in_usd else (None, float(most))
    budget = Budget(None, limit, lambda _: PRICE) if is_in_usd else Budget(most)
    bill, over, replies = overrun(budget, limit, price, seed, share=1)
    assert over <= sum(bill.dearest.values())
    refused = [reply for reply in replies if isinstance(reply, NoAnswer)]
    if over > 0:
        assert any("budget" in reply.reason for reply in refused)


@pytest.mark.usefixtures("short_pauses")
@given(
    st.integers(0, 2**32),
    st.sampled_from([1000, 20_000, 60_000]),
    st.sampled_from([3, 40]),
)
def test_a_server_that_counts_more_than_it_may_overruns_by_one_call(
    seed: int, most: int, share: int
) -> None:
    bill, over, _ = overrun(Budget(most), most, None, seed, share)
    assert over <= sum(bill.dearest.values())
