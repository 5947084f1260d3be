"""The budget: no call is made that could exceed it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine.budget import Budget
from pytest_upskill.errors import spelled
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Answer, Usage
from pytest_upskill.trials.transcript import Step, Tool, ToolCall, ToolResult
from pytest_upskill.trials.trial import Question

# A turn of an agent, each of whose texts has 4,000 bytes:
# 1,000 tokens at the usual rate.
LONG = "word" * 1_000
CALLS = (ToolCall("1", "", LONG),)
RESULTS = (ToolResult("1", LONG),)
PRICES = {"m": Price(10, 10, 1)}


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
    budget.settle(question(), None)  # nothing was paid
    assert budget.hold(question())


def test_question_that_can_never_fit_is_refused() -> None:
    budget = Budget(most_tokens=100)
    budget.hold(question())
    budget.settle(question(), Usage(11, 50, 0))
    assert (
        spelled(budget.refusal(question()) or "")
        == "m: budget reached (61 of 100 tokens): raise it, or ask for less"
    )


def test_a_call_that_is_too_large_for_what_is_mostly_left_is_not_a_budget_reached() -> (
    None
):
    budget = Budget(most_tokens=100)
    budget.hold(question())
    budget.settle(question(), Usage(11, 9, 0))
    assert (
        spelled(budget.refusal(question("word " * 90)) or "")
        == "m: this call could exceed the budget (20 of 100 tokens spent): raise it, or"
        " ask for less"
    )


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(most_tokens=20), "0 of 20 tokens"),
        (
            Budget(most_cost=0.00002, price_of=lambda _: Price(1.0, 1.0, 1.0)),
            "$0 of $0.00002",
        ),
    ],
)
def test_a_first_call_that_cannot_fit_is_not_a_budget_reached(
    budget: Budget, limit: str
) -> None:
    assert (
        spelled(budget.refusal(question()) or "")
        == f"m: this call could exceed the budget ({limit} spent): raise it, or ask for"
        " less"
    )


@pytest.mark.parametrize(
    ("paid", "tokens"),
    [
        (Usage(), 61),
        (Usage(30, None), 80),
        (Usage(None, 7), 18),
        (Usage(-5, -7), 61),
        (Usage(0, 0), 61),  # a server that does not count
        (Usage(30, 0), 30),
        (None, 0),  # refused
    ],
)
@pytest.mark.parametrize("answered", [True, False])
def test_what_the_server_does_not_say_is_estimated(
    paid: Usage | None, tokens: int, answered: bool
) -> None:
    budget = Budget(most_tokens=10)
    budget.settle(question(), paid, Answer("") if answered else None)
    assert f"({tokens} of 10 tokens" in spelled(budget.refusal(question()) or "")


@pytest.mark.parametrize(
    ("paid", "tokens"),
    [
        (Usage(1, 1), 1000 + 2000),
        (Usage(1, 0), 1000 + 2000),
        (Usage(), 1000 + 2000),  # the output limit is not what was received
        (Usage(0, 0), 1000 + 2000),
        (Usage(799, 1599), 1000 + 2000),
        (Usage(801, 1601), 801 + 1601),  # as some count prose
        (Usage(5000, 6000), 5000 + 6000),
        (Usage(1, 6000), 1000 + 6000),
    ],
)
def test_texts_are_worth_their_length_whatever_a_server_counts(
    paid: Usage, tokens: int
) -> None:
    budget = Budget(most_tokens=10)
    answer = Answer(LONG, calls=CALLS)
    budget.settle(question("word" * 999), paid, answer)  # and a system text
    assert budget.spent[0] == tokens


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(0, 0), Usage(1, 1), Usage(250, None, 250)]
)
def test_a_server_that_counts_too_little_gets_no_more_calls(usage: Usage) -> None:
    def calls(usage: Usage) -> int:
        budget, number = (
            Budget(most_tokens=10_000, most_cost=1.0, price_of=PRICES.get),
            0,
        )
        while not budget.refusal(asked := question("word" * 250, max_output=10)):
            assert budget.hold(asked)
            # More than the output limit
            budget.settle(asked, usage, Answer("word" * 250))
            number += 1
        return number

    assert 0 < calls(usage) <= calls(Usage(251, 250))


def test_a_call_without_an_answer_is_kept_with_what_was_paid() -> None:
    budget = Budget()
    budget.settle(question(), Usage(20, 50, 0))
    budget.settle(question(), Usage())
    budget.settle(question(), Usage(20, 50, 0), Answer("word"))
    budget.settle(question(), None)
    [counted, estimated] = budget.unanswered
    assert (counted.usage, counted.counted) == (Usage(20, 50, 0), True)
    assert estimated.usage.output == 50
    assert not estimated.counted


def reserved(budget: Budget, wanted: Question) -> int:
    """The smallest number of tokens beyond those spent that lets a question through."""
    return next(most for most in range(100_000) if _may(budget, wanted, most))


def _may(budget: Budget, wanted: Question, most: int) -> bool:
    budget._most_tokens = budget.spent.tokens + most
    return budget.refusal(wanted) is None


def test_the_estimate_of_a_question_learns_from_what_the_server_counts() -> None:
    """Hex takes twice the tokens of prose, and a template some more."""
    budget = Budget()
    text = question("3f" * 2000)
    assert reserved(budget, text) == 1051
    budget.settle(text, Usage(2100, 7, 0))
    assert reserved(budget, text) == 2100 + 2 * 7
    longer = reserved(budget, question("3f" * 4000))
    assert 3700 < longer < 4300
    # A short question doesn't teach that all questions take so many tokens for a byte.
    short = Budget()
    short.settle(question("hi"), Usage(60, 7, 0))
    assert reserved(short, question("3f" * 2000)) < 1200


def test_models_are_learned_from_one_by_one() -> None:
    budget = Budget()
    budget.settle(question(), Usage(4000, 4000, 0))
    assert reserved(budget, question()) == 8000
    other = Question("other", "sys.", (("user", "word " * 8),), 50, 1)
    assert reserved(budget, other) == 61


def test_a_server_that_counts_more_output_than_allowed_is_believed() -> None:
    budget = Budget()
    budget.settle(question(), Usage(11, 500, 0))
    assert reserved(budget, question()) == 511
    assert reserved(budget, question(max_output=100)) == 1011


def test_twice_the_longest_answer_is_reserved() -> None:
    budget, wanted = Budget(), question(max_output=2000)
    assert reserved(budget, wanted) == 11 + 500
    for output in (30, 32, 31):
        budget.settle(wanted, Usage(11, output, 0))
    assert reserved(budget, wanted) == 11 + 2 * 32
    budget.settle(wanted, Usage(11, 1500, 0))
    assert reserved(budget, wanted) == 2011  # never more than the limit


def test_the_first_call_of_a_model_goes_alone() -> None:
    budget = Budget(most_tokens=1_000_000)
    assert budget.hold(question("a"))
    assert not budget.hold(question("b"))
    assert budget.hold(Question("other", "", (("user", "a"),), 50, 1))
    budget.settle(question("a"), None)  # refused: nothing was learned
    assert budget.hold(question("b"))
    assert not budget.hold(question("c"))
    budget.settle(question("b"), Usage(10, 10, 0))
    assert budget.hold(question("c"))
    assert budget.hold(question("d"))


@pytest.mark.parametrize(
    ("counted", "likely", "worst"),
    [
        # As expected: 44 bytes, 256 of a template, 50 of output
        (Usage(11, 50, 0), 11 + 50, 44 + 256 + 50),
        (Usage(11, 500, 0), 11 + 500, 300 + 500),  # more output than allowed
        (Usage(900, 50, 0), 900 + 50, 900 + 50),  # more input than possible
    ],
)
def test_a_call_beside_others_reserves_the_worst_case(
    counted: Usage, likely: int, worst: int
) -> None:
    budget = Budget(most_tokens=counted.tokens + likely + 2 * worst)
    budget.settle(question(), counted)
    runs = [replace(question(), run=number) for number in range(4)]
    assert [budget.hold(run) for run in runs] == [True, True, True, False]


def test_cost_is_reserved_at_the_price_of_the_model() -> None:
    budget = Budget(most_cost=0.00007, price_of=lambda _: Price(1.0, 1.0, 1.0))
    assert budget.hold(question())
    budget.settle(question(), Usage(11, 50, 0))
    assert (
        spelled(budget.refusal(question()) or "")
        == "m: budget reached (<$0.001 of $0.00007): raise it, or ask for less"
    )


@pytest.mark.parametrize(
    "price", [Price(1.0, 1.0, 3.0), Price(1.0, 1.0, 0.1, written=3.0)]
)
def test_the_dearest_kind_of_input_is_reserved(price: Price) -> None:
    budget = Budget(most_cost=0.00008, price_of=lambda _: price)  # 11 × 3 + 50 = 83
    assert budget.refusal(question())


def test_what_was_written_to_a_cache_counts_at_its_price() -> None:
    price = Price(1.0, 1.0, 1.0, written=100.0)
    budget = Budget(most_cost=0.01, price_of=lambda _: price)
    budget.settle(question(), Usage(100, 0, 0, 100))
    assert budget.refusal(question())


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans())), st.integers(0, 2000))
def test_spending_exceeds_the_limit_by_one_answer_at_most(
    calls: list[tuple[int, bool]], most: int
) -> None:
    budget, spent = Budget(most_tokens=most), 0
    for output, answered in calls:
        if budget.hold(question()):
            budget.settle(question(), Usage(11, output, 0) if answered else None)
            spent += 11 + output if answered else 0
    assert spent <= most + 50


@given(st.lists(st.floats(0.01, 100), min_size=1), st.floats(1e-6, 1e-2))
def test_question_never_waits_with_nothing_in_flight(
    prices: list[float], most: float
) -> None:
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


@pytest.mark.parametrize(
    ("turn", "thousands"),
    [
        ({"tools": (Tool("t", LONG, LONG),)}, 2),
        ({"steps": (Step("", CALLS, RESULTS),)}, 2),
        ({"steps": (Step(LONG, CALLS, RESULTS),) * 2}, 6),
        ({"steps": (Step(LONG, CALLS, RESULTS, raw=LONG * 3),)}, 4),  # as it is sent
    ],
)
def test_all_that_the_turn_of_an_agent_sends_is_reserved(
    turn: dict[str, Any], thousands: int
) -> None:
    asked = replace(question(), **turn)
    # The output, but not the question
    budget = Budget(most_tokens=thousands * 1_000 + 50)
    assert "could exceed the budget" in spelled(budget.refusal(asked) or "")
    assert Budget(most_tokens=thousands * 1_000 + 100).refusal(asked) is None
