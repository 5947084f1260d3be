"""The budget of a run: no call is made that could pass it."""

from collections.abc import Callable

from ..models.prices import Price, cost
from ..records import Usage
from ..skills import estimated_tokens
from ..texts import plain
from ..trials import Question


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

    def refusal(self, question: Question) -> str | None:
        """Why a question can't be paid for any more; None if it can, and then it is held for."""
        tokens, usd = self._at_most(question)
        if self._most_tokens is not None and self._tokens + tokens > self._most_tokens:
            return _refused("--skill-max-tokens", f"{self._most_tokens:,} tokens")
        if self._most_cost is not None and self._cost + usd > self._most_cost:
            return _refused("--skill-max-cost", f"${plain(self._most_cost)}")
        self._tokens += tokens
        self._cost += usd
        return None

    def settle(self, question: Question, usage: Usage | None) -> None:
        """Put what was really spent in the place of what was held: nothing without an answer."""
        tokens, usd = self._at_most(question)
        if usage is None:
            self._tokens -= tokens
            self._cost -= usd
        elif usage.input is not None and usage.output is not None:
            self._tokens += usage.input + usage.output - tokens
            self._cost += self._usd(question, usage) - usd
        # else the server does not tell, and the most that it can be stays

    def _at_most(self, question: Question) -> tuple[int, float]:
        texts = (question.system, *(text for _, text in question.messages))
        usage = Usage(sum(map(estimated_tokens, texts)), question.max_output, 0)
        return (usage.input or 0) + question.max_output, self._usd(question, usage)

    def _usd(self, question: Question, usage: Usage) -> float:
        if self._most_cost is None:  # prices are not looked up for nothing
            return 0.0
        return cost(self._price_of(question.model), usage) or 0.0


def _refused(flag: str, limit: str) -> str:
    return f"not asked: it could pass the budget of {limit}. Raise {flag}, or ask less"
