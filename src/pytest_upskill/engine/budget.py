"""The budget of a run: no call is made that could pass it."""

from collections.abc import Callable

from .._util.texts import dollars, plain
from ..models.prices import Price, cost
from ..skills.skill import estimated_tokens
from ..trials.answer import Usage
from ..trials.trial import Question

_Amount = tuple[int, float]  # tokens and USD


class Budget:
    """Tokens and USD that a run may spend on new calls; None is no limit.

    A call in flight holds what it could spend at the most, its prompt and all of the output
    that it is allowed; once it is answered, it has spent what the server says.
    """

    def __init__(
        self,
        most_tokens: int | None = None,
        most_cost: float | None = None,
        price_of: Callable[[str], Price | None] = lambda _: None,
    ) -> None:
        self._most_tokens = most_tokens
        self._most_cost = most_cost
        self._price_of = price_of
        self._tokens = 0
        self._cost = 0.0
        # What calls in flight could spend, by their key: of floats that are added and taken away
        # again something would stay, and a question could wait for nobody.
        self._held: dict[str, _Amount] = {}
        self.refused = False  # whether a question was, by now

    def refusal(self, question: Question) -> str | None:
        """Why a question can never be paid for, whatever calls in flight give back; None if not."""
        tokens, usd = self._at_most(question)
        if self._most_tokens is not None and self._tokens + tokens > self._most_tokens:
            self.refused = True
            limit, spent = f"{self._most_tokens:,} tokens", f"{self._tokens:,}"
            return _refused(question, "--skill-max-tokens", limit, spent)
        if self._most_cost is not None and self._cost + usd > self._most_cost:
            self.refused = True
            limit, spent = f"${plain(self._most_cost)}", dollars(self._cost)
            return _refused(question, "--skill-max-cost", limit, spent)
        return None

    def hold(self, question: Question) -> bool:
        """Hold what a question could spend; False if it does not fit beside what others hold."""
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
        """Put what was really spent in the place of what was held: nothing without an answer."""
        tokens, usd = self._held.pop(question.key)
        if usage is None:
            return
        if usage.input is not None and usage.output is not None:
            tokens, usd = usage.input + usage.output, self._usd(question, usage)
        # else the server does not tell, and it is the most that it can be
        self._tokens += tokens
        self._cost += usd

    def _at_most(self, question: Question) -> _Amount:
        texts = (question.system, *(text for _, text in question.messages))
        usage = Usage(sum(map(estimated_tokens, texts)), question.max_output, 0)
        return (usage.input or 0) + question.max_output, self._usd(question, usage)

    def _usd(self, question: Question, usage: Usage) -> float:
        if self._most_cost is None:  # prices are not looked up for nothing
            return 0.0
        return cost(self._price_of(question.model), usage) or 0.0


def _refused(question: Question, flag: str, limit: str, spent: str) -> str:
    return (
        f"{question.model}: not asked: it could pass the budget of {limit}, of which {spent} "
        f"is spent. Raise {flag}, or ask less"
    )
