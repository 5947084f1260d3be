"""Calls and cost, before the first call."""

from dataclasses import replace

import pytest

from pytest_upskill.measure.estimate import (
    WORST,
    Estimate,
    Stored,
    estimate_trials,
    find_stored_answers,
)
from pytest_upskill.models.prices import FREE, Price
from pytest_upskill.trials.answer import Answer, NoAnswer
from pytest_upskill.trials.trial import Question, Rubric, Task, Trial

PRICE = Price(1, 10, 0.1, written=1.25)
JUDGED = Rubric(("It is so.",), votes=3, judge="judge")


def trial(
    run: int = 1, task: Task | None = None, rubric: Rubric | None = None
) -> Trial:
    question = Question("m", "x" * 400, (("user", "Why?"),), 100, run, task=task)
    return Trial("gate", "a", "m", "skill", run, question, rubric=rubric)


def at_most(*trials: Trial, **stored: int) -> Estimate:
    by_key = {
        trials[int(number.strip("n"))].question.key: one
        for number, one in stored.items()
    }
    return estimate_trials(trials, lambda _: PRICE, Stored(by_key), WORST)


def bound(usd: float, stored: int = 0, unpriced: tuple[str, ...] = ()) -> Estimate:
    return Estimate(0, 0, usd, unpriced, stored=stored)


def test_a_call_costs_at_most_twice_its_prompt_and_the_longest_answer() -> None:
    # 101 tokens by our estimate, 100 that a server may add, 100 of output.
    assert at_most(trial()).usd == pytest.approx((302 * 1 + 100 * 10) / 1e6)
    assert at_most(trial(1), trial(2), trial(2)).usd == 2 * at_most(trial()).usd


def test_an_agent_takes_all_its_turns() -> None:
    few, many = (at_most(trial(task=Task("loop", max_turns=n))).usd for n in (2, 20))
    assert many > 10 * few


def test_stored_answers_and_judgements_are_not_paid_for_again() -> None:
    one, other = trial(1, rubric=JUDGED), trial(2, rubric=JUDGED)
    all_new = at_most(one, other)
    assert all_new.stored == 0
    judged = at_most(one, other, n0=0)
    assert judged.stored == 4
    assert judged.usd == pytest.approx(all_new.usd / 2)
    missing = at_most(one, other, n0=2)
    assert judged.usd < missing.usd < all_new.usd
    stored = at_most(one, n0=0)
    assert (stored.usd, stored.calls, stored.stored) == (0.0, 0, 4)


def test_what_is_stored_is_counted_with_the_judge() -> None:
    asked = trial(rubric=JUDGED)
    judgings = list[Question]()

    def get(question: Question) -> Answer | NoAnswer | None:
        if question.model == "m":
            return Answer("So.")
        judgings.append(question)
        return Answer("{}") if len(judgings) == 1 else None

    assert find_stored_answers([asked], get) == {asked.question.key: 2}
    assert find_stored_answers([asked], lambda _: None) == {}
    assert find_stored_answers([asked], lambda _: NoAnswer("busy")) == {}


def test_models_without_a_price_are_named() -> None:
    other = replace(trial(), question=replace(trial().question, model="other"))
    prices = {"m": PRICE, "other": None}
    found = estimate_trials([trial(), other], prices.__getitem__, sizes=WORST)
    assert (found.usd, found.unpriced) == (at_most(trial()).usd, ("other",))
    assert found.bound_words()[1].endswith(", and the price of other is not known")
    assert bound(0.0, unpriced=("m",)).bound_words() == ("", "cost not known")
    assert estimate_trials([trial()], lambda _: FREE).bound_words() == ("", "")


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (None, "at most $10.00"),
        (7.0, "at most $10.00, stopping at $7.00"),
        (20.0, "at most $10.00"),
    ],
)
def test_run_that_exceeds_its_budget_says_where_it_stops(
    limit: float | None, words: str
) -> None:
    assert bound(10.0, 3).bound_words(limit=limit) == ("3 from cache", words)


def test_tests_in_python_are_not_in_the_bound() -> None:
    assert (
        bound(1.0).bound_words(python=True)[1].endswith(", without the tests in Python")
    )


def test_an_estimate_in_words() -> None:
    guess = Estimate(12, 34_567, 0.5, trials=2, stored=3)
    assert (
        str(guess)
        == "2 trials, up to about 12 calls (3 answers stored), 35,000 tokens, about"
        " $0.50"
    )
    assert guess.spending == "spend about $0.50"
    assert (
        replace(guess, unpriced=("m",)).spending
        == "make up to about 12 calls (cost not known)"
    )
    assert replace(guess, is_free=True).price == "free"
