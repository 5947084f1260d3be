"""What the calls of a run cost: counted while it goes on, and told when it ends."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from .._util.texts import counted, dollars, harmless, one_line
from ..engine import Engine
from ..errors import shown
from ..models.prices import FREE, PriceOf, cost, saved_by_cache
from ..reports.terminal.closing_lines import Spent
from ..reports.terminal.live import Progress
from ..settings import Settings
from ..trials.answer import Answer, Usage
from ..trials.subject import ORACLE

_ENOUGH_TO_GUESS: Final = 3


class Spending:
    """Counts the replies of an engine, each once."""

    def __init__(
        self,
        engine: Engine,
        price_of: PriceOf,
        settings: Settings,
        opening: Callable[[str], str],  # what a model needs before it can be asked
    ) -> None:
        self._engine = engine
        self._price_of = cache(price_of)
        self._opening = opening
        self._started = time.monotonic()
        self._seen = 0
        self._spent = Spent(
            most_usd=settings.max_cost,
            most_tokens=settings.max_tokens,
            counts="call" if settings.agents == Settings.agents else "answer",
            source=shown(settings.replay_file) if settings.replay_file else "cache",
            logins=settings.logins,
        )

    def _answered(self) -> Spent:
        """All answers so far."""
        for model, reply in self._engine.settled(self._seen):
            self._seen += 1
            if isinstance(reply, Answer) and reply.stored:
                self._spent = replace(self._spent, stored=self._spent.stored + 1)
            elif isinstance(reply, Answer):
                paid = self._with(self._spent, model, reply.usage)
                if model == ORACLE:
                    paid = replace(paid, without_model=paid.without_model + 1)
                if reply.user:
                    paid = self._with(paid, reply.user.model, reply.user.usage)
                saved = saved_by_cache(self._price_of(model), reply.usage)
                self._spent = replace(
                    paid, calls=paid.calls + 1, saved=paid.saved + saved
                )
        return self._spent

    def _with(self, spent: Spent, model: str, usage: Usage) -> Spent:
        price, tokens = self._price_of(model), spent.tokens + usage.tokens
        if price is None:
            return replace(spent, tokens=tokens, unpriced=spent.unpriced + usage.tokens)
        if price == FREE:
            return replace(spent, tokens=tokens)
        return replace(
            spent, tokens=tokens, usd=(spent.usd or 0.0) + (cost(price, usage) or 0.0)
        )

    @property
    def saved(self) -> float:
        """USD that the providers' caches saved."""
        return round(self._answered().saved, 6)

    def total(self) -> Spent | None:
        """All calls, including those without an answer; None if nothing was asked."""
        if not self._engine.questions:
            return None
        spent, unanswered = self._answered(), self._engine.budget.unanswered
        for call in unanswered:
            spent = self._with(spent, call.model, call.usage)
        return replace(spent, unanswered=len(unanswered), saved=round(spent.saved, 6))

    def progress(self) -> Progress:
        engine, spent = self._engine, self.total() or self._spent
        agents, turns = engine.agents_at_work
        for model, usage in turns:
            spent = self._with(spent, model, usage)
        questions, seconds_left = engine.questions, None
        if spent.calls >= _ENOUGH_TO_GUESS:
            elapsed = time.monotonic() - self._started
            seconds_left = elapsed / spent.calls * (questions - self._seen)
        return Progress(
            self._seen,
            questions,
            engine.in_flight,
            spent.stored,
            spent.tokens,
            None if spent.unpriced else spent.usd,
            seconds_left,
            engine.pausing,
            agents,
            len(turns),
            ", ".join(
                dict.fromkeys((*map(self._opening, engine.opening), *_images(agents)))
            ),
            engine.elsewhere,
        )

    def notes(self) -> Iterator[str]:
        """Retries, old answers, and calls without an answer, which no table has."""
        for model, number in self._engine.retries().items():
            if number:
                retries = "retry" if number == 1 else "retries"
                yield (
                    f"{harmless(model)}: {number:,} {retries} after rate limits or"
                    " errors."
                )
        reasons = self._engine.not_renewed
        if reasons:
            answers = counted(len(reasons), "stored answer")
            reason = one_line(reasons[0], 300)
            yield (
                f"{answers} too old to compare could not be asked again:"
                f" {harmless(reason)}"
            )
        unanswered = self._engine.budget.unanswered
        for model in dict.fromkeys(call.model for call in unanswered):
            calls = [call for call in unanswered if call.model == model]
            tokens = counted(sum(call.usage.tokens for call in calls), "token")
            usd = sum(cost(self._price_of(model), call.usage) or 0.0 for call in calls)
            about = "" if all(call.counted for call in calls) else "about "
            price = f" ({dollars(usd)})" if usd else ""
            number_of_calls = f"{counted(len(calls), 'call')} without an answer"
            used = f"{number_of_calls} used {about}{tokens}{price}"
            yield f"{harmless(model)}: {used}; not in the table."


def _images(agents: int) -> list[str]:
    """What is done about images while agents wait for them."""
    if not agents:
        return []
    from ..agents.images import at_work

    return at_work()
