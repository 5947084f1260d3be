"""The budget of a run: no call is made that could exceed it."""

from collections.abc import Callable

from .._util.texts import dollars, plain
from ..errors import Text
from ..models.prices import Price, cost
from ..skills.skill import estimated_tokens
from ..trials.answer import Usage
from ..trials.trial import Question

_Amount = tuple[int, float]  # tokens and USD


class Budget:
    """Tokens and USD that a run may spend on new calls; None is no limit.

    A call in flight reserves the most it could spend: its prompt and the whole output limit. Once
    answered, it has spent what the server says. ``hint`` says what to do once it is reached.
    """

    def __init__(
        self,
        most_tokens: int | None = None,
        most_cost: float | None = None,
        price_of: Callable[[str], Price | None] = lambda _: None,
        hint: Text = "raise it, or ask for less",
    ) -> None:
        self._most_tokens = most_tokens
        self._most_cost = most_cost
        self._price_of = price_of
        self._tokens = 0
        self._cost = 0.0
        self._hint = hint
        # What calls in flight reserve, by key. A running sum of floats would drift, and a question
        # could wait for nothing.
        self._held: dict[str, _Amount] = {}
        self.refused = False  # whether any question was refused

    def refusal(self, question: Question) -> Text | None:
        """Why there is no money for a question even with nothing in flight; None if there is."""
        tokens, usd = self._at_most(question)
        if self._most_tokens is not None and self._tokens + tokens > self._most_tokens:
            self.refused = True
            return self._reached(question, f"{self._tokens:,}", f"{self._most_tokens:,} tokens")
        if self._most_cost is not None and self._cost + usd > self._most_cost:
            self.refused = True
            return self._reached(question, dollars(self._cost), f"${plain(self._most_cost)}")
        return None

    def hold(self, question: Question) -> bool:
        """Reserve what a question could spend; False if it doesn't fit beside the others."""
        tokens, usd = amount = self._at_most(question)
        tokens += self._tokens + sum(held for held, _ in self._held.values())
        usd += self._cost + sum(held for _, held in self._held.values())
        if self._most_tokens is not None and tokens > self._most_tokens:
            return False
        if self._most_cost is not None and usd > self._most_cost:
            return False
        self._held[question.key] = amount
        return True

    def settle(self, question: Question, usage: Usage | None) -> None:
        """Replace what was reserved by what was spent: nothing without an answer."""
        tokens, usd = self._held.pop(question.key)
        if usage is None:
            return
        if usage.input is not None and usage.output is not None:
            tokens, usd = usage.input + usage.output, self._usd(question, usage)
        # Else the server doesn't say: assume the most.
        self._tokens += tokens
        self._cost += usd

    def _at_most(self, question: Question) -> _Amount:
        texts = (question.system, *(text for _, text in question.messages))
        usage = Usage(sum(map(estimated_tokens, texts)), question.max_output, 0)
        return (usage.input or 0) + question.max_output, self._usd(question, usage)

    def _usd(self, question: Question, usage: Usage) -> float:
        if self._most_cost is None:  # looking up prices is slow
            return 0.0
        return cost(self._price_of(question.model), usage) or 0.0

    def _reached(self, question: Question, spent: str, limit: str) -> Text:
        hint = (self._hint,) if isinstance(self._hint, str) else self._hint
        problem = f"budget reached ({spent} of {limit})"
        if not self._tokens:
            problem = f"this call could exceed the budget ({spent} of {limit} spent)"
        return (f"{question.model}: {problem}: ", *hint)
