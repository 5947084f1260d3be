"""The budget: no call is made that could exceed it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.budget import Budget
from pytest_upskill.errors import spelled
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Usage
from pytest_upskill.trials.trial import Question


def question(text: str = "word " * 8, max_output: int = 50) -> Question:
    return Question("m", "sys.", (("user", text),), max_output, 1)


def test_no_limit_refuses_nothing() -> None:
    assert Budget().refusal(question()) is None
    assert Budget().hold(question())


def test_call_in_flight_reserves_the_most_it_could_spend() -> None:
    budget = Budget(most_tokens=100)  # 11 of prompt and 50 of output each
    assert budget.hold(question())
    assert not budget.hold(question("word " * 9))
    assert budget.refusal(question("word " * 9)) is None  # it may wait
    budget.settle(question(), Usage(11, 9, 0))
    assert budget.hold(question())
    budget.settle(question(), None)
    assert budget.hold(question())


def test_question_that_can_never_fit_is_refused() -> None:
    budget = Budget(most_tokens=100)
    budget.hold(question())
    budget.settle(question(), Usage(11, 50, 0))
    assert spelled(budget.refusal(question()) or "") == (
        "m: budget reached (61 of 100 tokens): raise it, or ask for less"
    )


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(most_tokens=20), "0 of 20 tokens"),
        (Budget(most_cost=0.00002, price_of=lambda _: Price(1.0, 1.0, 1.0)), "$0 of $0.00002"),
    ],
)
def test_a_first_call_that_cannot_fit_is_not_a_budget_reached(budget: Budget, limit: str) -> None:
    assert spelled(budget.refusal(question()) or "") == (
        f"m: this call could exceed the budget ({limit} spent): raise it, or ask for less"
    )


def test_unknown_usage_counts_as_the_most_possible() -> None:
    budget = Budget(most_tokens=100)
    budget.hold(question())
    budget.settle(question(), Usage())
    assert budget.refusal(question())


def test_cost_is_reserved_at_the_price_of_the_model() -> None:
    budget = Budget(most_cost=0.00007, price_of=lambda _: Price(1.0, 1.0, 1.0))
    assert budget.hold(question())
    budget.settle(question(), Usage(11, 50, 0))
    assert spelled(budget.refusal(question()) or "") == (
        "m: budget reached (<$0.001 of $0.00007): raise it, or ask for less"
    )


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans())), st.integers(0, 2000))
def test_spending_never_exceeds_the_limit(calls: list[tuple[int, bool]], most: int) -> None:
    budget, spent = Budget(most_tokens=most), 0
    for output, answered in calls:
        if budget.hold(question()):
            budget.settle(question(), Usage(11, output, 0) if answered else None)
            spent += 11 + output if answered else 0
    assert spent <= most


@given(st.lists(st.floats(0.01, 100), min_size=1), st.floats(1e-6, 1e-2))
def test_question_never_waits_with_nothing_in_flight(prices: list[float], most: float) -> None:
    """Else it would wait for ever."""
    wanted = [Question(str(price), "", (("user", "How?"),), 50, 1) for price in prices]
    price_of = {str(price): Price(price, price, price) for price in prices}
    budget = Budget(most_cost=most, price_of=price_of.__getitem__)
    held = {one.key: one for one in wanted if budget.hold(one)}
    for one in held.values():
        budget.settle(one, Usage(2, 7, 0))
    for one in wanted:
        assert (budget.refusal(one) is None) == budget.hold(one)
        if budget.refusal(one) is None:
            budget.settle(one, None)
