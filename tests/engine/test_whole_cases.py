"""With a budget, money goes to whole cases: all arms, runs and rulings of a case,
or none.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pytest_upskill.engine import AgentPlaces, Engine, ModelFacts
from pytest_upskill.engine.budget import Budget
from pytest_upskill.engine.forecast import PaidCall
from pytest_upskill.models import Model
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.plan import Plan, PlannedCase
from pytest_upskill.trials.trial import Question, Rubric, Task, Trial
from support.judges import mark_in
from support.trials import FakeTrials, trial_question
from support.waiting import wait_until

RUBRIC = Rubric(("It names the gate.",), judge="judge")


def asked_in(case: str, arm: str = "", run: int = 1, model: str = "m") -> Question:
    return Question(model, f"{arm:8}", (("user", case),), 100, run)


class Counting(Model):
    """Answers in 10 tokens, a judge too; each question has 20."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        # One for each arm
        text = f"{question.messages[0][1].upper()} {question.system}"
        if question.verdicts:
            ruling = {
                "criterion": 1,
                "quote": "",
                "reason": "So it is.",
                "verdict": "pass",
            }
            text = json.dumps(
                {"mark": mark_in(question.messages[0][1]), "verdicts": [ruling]}
            )
        return Answer(text, Usage(20, 10, 0))

    @property
    def texts(self) -> list[str]:
        return [
            f"{question.messages[0][1]} {question.system}".strip()
            for question in self.asked
        ]


@contextmanager
def engine_of(
    model: Model, budget: Budget, trials: FakeTrials | None = None
) -> Iterator[Engine]:
    async def open_model(_name: str) -> Model:
        return model

    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: 60),
        concurrency=4,
        budget=budget,
        agents=AgentPlaces(lambda: trials or FakeTrials(), at_once=4),
    )
    try:
        yield engine
    finally:
        engine.close()


def over_budget(replies: Sequence[Reply]) -> list[bool]:
    return [isinstance(reply, NoAnswer) and reply.over_budget for reply in replies]


def test_a_case_that_is_refused_in_one_arm_is_not_asked_in_another() -> None:
    """The first arm of b is long; alone, the second would fit."""
    model, budget = Counting(), Budget(most_tokens=300)
    wanted = [
        asked_in("a"),
        asked_in("b", "skill " * 400),
        asked_in("b"),
        asked_in("c"),
    ]
    with engine_of(model, budget) as engine:
        replies = engine.ask(wanted)
        again = engine.ask([asked_in("b", run=2)])
    assert over_budget([*replies, *again]) == [False, True, True, False, True]
    assert model.texts == ["a", "c"]


def test_other_models_and_agents_of_a_case_are_asked() -> None:
    budget = Budget(most_tokens=300)
    assert budget.refusal_of_case(asked_in("b", "skill " * 400))
    assert budget.refusal_of_case(asked_in("b", model="other")) is None
    assert budget.refusal_of_case(trial_question("b")) is None
    assert budget.refusal(asked_in("b")) is None  # as a call of an agent


def judged_plan(*cases: str, arms: Sequence[str] = ("baseline", "skill")) -> Plan:
    tests = [
        PlannedCase(
            case,
            "s",
            case,
            "m",
            tuple(
                Trial("s", case, "m", arm, 1, asked_in(case, arm), RUBRIC)
                for arm in arms
            ),
        )
        for case in cases
    ]
    return Plan((), tuple(tests))


def test_an_answer_is_judged_before_the_next_is_bought() -> None:
    model = Counting()
    plan = judged_plan(*"abcdefghij")
    with engine_of(model, Budget(most_tokens=100_000)) as engine:
        engine.start(plan)
        wait_until(lambda: len(model.asked) == 40)
    judged = [bool(question.verdicts) for question in model.asked]
    assert sum(judged) == 20
    # At no time are there many answers without a ruling.
    waiting = [
        2 * number - 2 * sum(judged[:number]) - number for number in range(1, 41)
    ]
    assert max(waiting) <= 10


@pytest.mark.parametrize(
    "limits",
    [
        {"most_tokens": 8_000},
        {"most_cost": 8_000 / 1e6, "price_of": lambda _: Price(1, 1, 1)},
    ],
)
def test_no_answer_is_bought_that_no_judge_can_be_asked_about(
    limits: dict[str, object],
) -> None:
    model, budget = Counting(), Budget(**limits)  # type: ignore[arg-type]
    plan = judged_plan(*"abcdefghijklmnopqrst")
    with engine_of(model, budget) as engine:
        engine.start(plan)
        replies = engine.ask(list(plan.questions()))
        answered = sum(isinstance(reply, Answer) for reply in replies)
        wait_until(lambda: sum(bool(one.verdicts) for one in model.asked) == answered)
    assert 2 <= answered < 40
    refused = [reply.over_budget for reply in replies if isinstance(reply, NoAnswer)]
    assert refused == [True] * (40 - answered)


def arms_of(case: str) -> list[Question]:
    base = trial_question(case)
    return [
        replace(base, task=Task("fake", setup=arm)) for arm in ("baseline", "skill")
    ]


def test_no_trial_is_begun_that_may_be_too_large() -> None:
    """A trial takes 60 tokens, so one is begun only if 120 are left."""
    trials = FakeTrials(turns=2)
    wanted = [question for case in "abcdefgh" for question in arms_of(case)]
    budget = Budget(most_tokens=600)
    with engine_of(Counting(), budget, trials) as engine:
        replies = engine.ask(wanted)
    assert over_budget(replies) == [False] * 9 + [True] * 7
    assert all(isinstance(reply, Answer) for reply in replies[:9])
    assert budget.spent[0] == 540


def test_a_trial_that_a_budget_cuts_off_was_begun() -> None:
    with engine_of(Counting(), Budget(most_tokens=200), FakeTrials(turns=20)) as engine:
        (reply,) = engine.ask([trial_question("a")])
    assert isinstance(reply, NoAnswer)
    assert "budget reached" in reply.reason
    assert not reply.over_budget


def test_until_it_is_known_what_a_trial_takes_only_one_case_runs() -> None:
    first, second = arms_of("a")
    other = trial_question("b")
    budget = Budget(most_tokens=1000)
    assert budget.fits_trial(second, [(first, ())])
    assert not budget.fits_trial(other, [(first, ())])
    assert budget.fits_trial(trial_question("b", model="n"), [(first, ())])
    assert Budget().fits_trial(other, [(first, ())])
    # 600 may be taken by another
    budget.end_trial(first, [PaidCall("m", Usage(100, 50))] * 2)
    assert budget.fits_trial(other, [])
    assert not budget.fits_trial(other, [(second, ())])
    assert budget.fits_trial(other, [(second, [PaidCall("m", Usage(150, 50))])])


@pytest.mark.parametrize(
    ("cached", "cost"), [(0, 10.0), (100, 9.1), (1000, 9.1), (None, 10.0)]
)
def test_more_cached_tokens_than_a_question_has_make_it_no_cheaper(
    cached: int | None, cost: float
) -> None:
    """The server counts 100 tokens of input for a text that has 1,000."""
    price: Callable[[str], Price] = lambda _: Price(10_000, 0, 1_000)  # noqa: E731
    budget = Budget(most_cost=100.0, price_of=price)
    question = Question("m", "", (("user", "word" * 1000),), 100, 1)
    budget.settle(question, Usage(100, 0, cached), Answer("yes"))
    assert budget.spent[1] == pytest.approx(cost)
