"""The budget of a run: no call is made that could exceed it,
and all that was paid counts.

What a server will count is not known before a call. A call that goes alone to its
model reserves what is likely: twice the longest answer so far as output. Calls beside
it reserve the worst case: a token for each byte of the question, what the server's
template adds, and the whole output limit, or what the server has counted beyond that.
A model's first call goes alone, as it shows what its server counts. So a budget can be
overrun by one call per model at most, unless a server counts as expected at first and
far more later.

Money goes to whole cases. A question reserves what a judge takes for its answer, and a
trial of an agent is begun only if there is room for twice the largest so far. Once a
case is refused in one arm or run, it is refused in all others. So what is left out is
decided before it is asked, and does not depend on how it would have ended.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from .._util.texts import dollars, plain
from ..errors import Text
from ..models.prices import PriceOf
from ..trials.answer import Answer, Usage
from ..trials.trial import Question, Rubric
from .forecast import NOTHING, Amount, Forecast, PaidCall, is_counted, trial_kind


class _Held(NamedTuple):
    """What a call in flight reserves. Two agents may ask the same."""

    key: str
    model: str
    amount: Amount


class Allowance(NamedTuple):
    """What a trial may spend that is carried out on another machine; None is no
    limit.
    """

    tokens: int | None = None
    usd: float | None = None
    is_all: bool = True  # of the remaining budget


class UnansweredCall(NamedTuple):
    """A call that was paid without an answer; ``counted``: by the server,
    not estimated.
    """

    model: str
    usage: Usage
    counted: bool


class Budget:
    """Tokens and USD that a run may spend on new calls; None is no limit.

    ``hint`` says what to do once it is reached.
    """

    def __init__(
        self,
        most_tokens: int | None = None,
        most_cost: float | None = None,
        price_of: PriceOf = lambda _: None,
        hint: Text = "raise it, or ask for less",
    ) -> None:
        self.spent = NOTHING
        self.unanswered: list[UnansweredCall] = []
        self.refused = False  # whether any question was refused
        self._most_tokens = most_tokens
        self._most_cost = most_cost
        self._hint = hint
        self._forecast = Forecast(None if most_cost is None else price_of)
        # A running sum of floats would drift, and a question could wait forever.
        self._held: list[_Held] = []
        self._refused_cases: dict[Hashable, Text] = {}  # and why

    @property
    def is_limited(self) -> bool:
        return self._most_tokens is not None or self._most_cost is not None

    def expect_ruling(self, question: Question, rubric: Rubric) -> None:
        """A judge will be asked about the answer to a question."""
        self._forecast.expect_ruling(question, rubric)

    def refusal(self, question: Question) -> Text | None:
        """Why a question exceeds the budget even with nothing in flight;
        None if it does not.
        """
        if not self.is_limited:
            return None
        return self._refusal_of(question, self._forecast.likely(question))

    def refusal_of_case(self, question: Question) -> Text | None:
        """The same for a trial, which is refused in all arms and
        runs of its case or in none.

        What was begun before can't be taken back.
        """
        refusal = self._refused_cases.get(question.of_case) or self.refusal(question)
        if not refusal:
            trial = self._forecast.trial(question) or NOTHING
            refusal = self._refusal_of(question, trial)
        if refusal:
            self._refused_cases[question.of_case] = refusal
        return refusal

    def reached(self, question: Question, amount: Amount = NOTHING) -> Text:
        """Why a question is refused that takes an amount."""
        self.refused = True
        tokens = self.spent.tokens + amount.tokens
        are_tokens = self._most_tokens is not None and tokens > self._most_tokens
        if self._most_cost is None or are_tokens:
            spent = f"{self.spent.tokens:,} of {self._most_tokens or 0:,} tokens"
        else:
            spent = f"{dollars(self.spent.usd)} of ${plain(self._most_cost)}"
        problem = f"budget reached ({spent})"
        if self._is_mostly_unspent:
            # The next call is too large, perhaps by its longest output.
            what = "trial" if question.task else "call"
            problem = f"this {what} could exceed the budget ({spent} spent)"
        hint = (self._hint,) if isinstance(self._hint, str) else self._hint
        return (f"{question.model}: {problem}: ", *hint)

    def hold(self, question: Question) -> bool:
        """Reserve what a question could spend; False if it must wait for others."""
        if not self.is_limited:
            return True
        model = question.model
        if not any(held.model == model for held in self._held):
            amount = self._forecast.likely(question)
        elif self._forecast.is_known(model):
            amount = self._forecast.worst(question)
        else:
            return False
        if not self._fits(amount):
            return False
        self._reserve(question, amount)
        return True

    def settle(
        self, question: Question, paid: Usage | None, answer: Answer | None = None
    ) -> None:
        """Replace what was reserved by what was paid; None is nothing."""
        self._release(question)
        if paid is None:
            return
        estimated = self._forecast.estimated(question, paid)
        amount = self._forecast.learn(question, estimated, answer)
        self.spent = self.spent.plus(amount)
        if answer is None:
            call = UnansweredCall(question.model, estimated, is_counted(paid))
            self.unanswered.append(call)

    # Trials of agents

    def fits_trial(
        self, question: Question, running: Sequence[tuple[Question, Sequence[PaidCall]]]
    ) -> bool:
        """Whether there is room for a trial beside those that are running,
        with their usage so far.

        What a trial takes is not known before one of its kind has ended: until then,
        only the trials of one case run.
        """
        if not self.is_limited:
            return True
        needed = self._forecast.trial(question)
        if needed is None:
            kind = trial_kind(question)
            alike = [other for other, _ in running if trial_kind(other) == kind]
            return all(other.of_case == question.of_case for other in alike)

        for other, calls in running:
            likely = self._forecast.trial(other) or NOTHING
            needed = needed.plus(likely.minus(self._forecast.total(calls)))
        return self._has_room(needed)

    def end_trial(self, question: Question, spent: Sequence[PaidCall]) -> None:
        """A trial has its answer: others may take as much."""
        self._forecast.note_trial(question, self._forecast.total(spent))

    def lose(self, spent: Sequence[PaidCall]) -> None:
        """Count the calls of a trial that ended without an answer."""
        for call in spent:
            self.unanswered.append(UnansweredCall(*call, is_counted(call.usage)))

    # Trials that are carried out on other machines

    def allot(self, question: Question) -> Allowance | None:
        """Reserve what a trial may spend; None if it must wait for others.

        What a trial takes is not known before it ends. So the first of an agent on a
        model may spend all that is left, and goes alone; others get twice the
        largest so far, and a call.
        """
        if not self.is_limited:
            return Allowance()
        trial = self._forecast.trial(question)
        amount = trial and trial.plus(self._forecast.likely(question))
        is_all = amount is None or not self._fits(amount)
        if is_all:
            if self._held:
                return None
            limit = Amount(self._most_tokens or 0, self._most_cost or 0.0)
            amount = limit.minus(self.spent)
        assert amount
        self._reserve(question, amount)
        return Allowance(
            None if self._most_tokens is None else amount.tokens,
            None if self._most_cost is None else amount.usd,
            is_all,
        )

    def spend(
        self,
        question: Question,
        spent: Amount,
        unanswered: Sequence[UnansweredCall] = (),
        *,
        exceeded: bool = False,
    ) -> None:
        """Replace what was reserved for a trial by what it spent, ``unanswered`` calls
        included.

        One that exceeded its allowance counts as large as that.
        """
        allotted = self._release(question)
        self.unanswered += unanswered
        self.spent = self.spent.plus(spent)
        needed = spent.or_more(allotted) if exceeded else spent
        self._forecast.note_trial(question, needed)

    def _reserve(self, question: Question, amount: Amount) -> None:
        self._held.append(_Held(question.key, question.model, amount))

    def _release(self, question: Question) -> Amount:
        """End what was reserved for a question; returns it."""
        for held in self._held:
            if held.key == question.key:
                self._held.remove(held)
                return held.amount
        return NOTHING

    def _refusal_of(self, question: Question, amount: Amount) -> Text | None:
        return None if self._has_room(amount) else self.reached(question, amount)

    def _fits(self, amount: Amount) -> bool:
        """Whether there is budget for an amount beside calls in flight."""
        for held in self._held:
            amount = amount.plus(held.amount)
        return self._has_room(amount)

    def _has_room(self, amount: Amount) -> bool:
        """Whether so much is left."""
        total = self.spent.plus(amount)
        if self._most_tokens is not None and total.tokens > self._most_tokens:
            return False
        return self._most_cost is None or total.usd <= self._most_cost

    @property
    def _is_mostly_unspent(self) -> bool:
        return not self.spent.tokens or self._has_room(self.spent)
