"""What the calls of a run cost: counted while it goes on, and told when it ends."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from .._util import grouped
from .._util.texts import counted, dollars, harmless, one_line
from ..engine import Engine
from ..errors import shown
from ..models.prices import FREE, PriceOf, cost, saved_by_cache
from ..reports.terminal.closing_lines import Spent
from ..reports.terminal.live import Progress
from ..settings import Settings
from ..trials.answer import Answer, Usage
from ..trials.subject import asks_model

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
            asks_no_model=not any(map(asks_model, settings.agents)),
        )

    def _answered(self) -> Spent:
        """All answers so far."""
        spent = self._spent
        for model, reply in self._engine.progress.settled(self._seen):
            self._seen += 1
            if not isinstance(reply, Answer):
                continue
            if reply.stored:
                spent = replace(spent, stored=spent.stored + 1)
                continue
            paid = [(model, reply.usage)]
            if reply.user:
                paid.append((reply.user.model, reply.user.usage))
            spent = replace(
                self._add(spent, paid),
                calls=spent.calls + 1,
                saved=spent.saved + saved_by_cache(self._price_of(model), reply.usage),
            )
        self._spent = spent
        return spent

    def _add(self, spent: Spent, calls: Iterable[tuple[str, Usage]]) -> Spent:
        for model, usage in calls:
            price = self._price_of(model)
            spent = replace(spent, tokens=spent.tokens + usage.tokens)
            if price is None:
                spent = replace(spent, unpriced=spent.unpriced + usage.tokens)
            elif price != FREE:
                usd = (spent.usd or 0.0) + (cost(price, usage) or 0.0)
                spent = replace(spent, usd=usd)
        return spent

    @property
    def saved(self) -> float:
        """USD that the providers' caches saved."""
        return round(self._answered().saved, 6)

    def total(self) -> Spent | None:
        """All calls, including those without an answer; None if nothing was asked."""
        if not self._engine.progress.questions:
            return None
        unanswered = self._engine.budget.unanswered
        spent = self._add(
            self._answered(), [(call.model, call.usage) for call in unanswered]
        )
        return replace(spent, unanswered=len(unanswered), saved=round(spent.saved, 6))

    def progress(self) -> Progress:
        engine = self._engine.progress
        agents, turns = engine.agents_at_work
        spent = self._add(self.total() or self._spent, turns)
        seconds_left = None
        if spent.calls >= _ENOUGH_TO_GUESS:
            elapsed = time.monotonic() - self._started
            seconds_left = elapsed / spent.calls * (engine.questions - self._seen)
        opening = [self._opening(model) for model in engine.opening]
        if agents:
            from ..agents.sandboxes.container_program import at_work

            opening += at_work()
        return Progress(
            done=self._seen,
            all=engine.questions,
            in_flight=engine.in_flight,
            reused=spent.stored,
            tokens=spent.tokens,
            cost=None if spent.unpriced else spent.usd,
            seconds_left=seconds_left,
            pausing=engine.pausing,
            agents=agents,
            turns=len(turns),
            opening=", ".join(dict.fromkeys(opening)),
            elsewhere=engine.elsewhere,
        )

    def notes(self) -> Iterator[str]:
        """Retries, old answers, and calls without an answer, which no table has."""
        for model, number in self._engine.progress.retries().items():
            if number:
                retries = counted(number, "retry")
                yield f"{harmless(model)}: {retries} after rate limits or errors."
        reasons = self._engine.progress.not_renewed
        if reasons:
            answers = counted(len(reasons), "stored answer")
            reason = harmless(one_line(reasons[0], 300))
            yield f"{answers} too old to compare could not be asked again: {reason}"
        unanswered = self._engine.budget.unanswered
        for model, calls in grouped(unanswered, lambda call: call.model).items():
            tokens = counted(sum(call.usage.tokens for call in calls), "token")
            if not all(call.counted for call in calls):
                tokens = f"about {tokens}"
            usd = self._add(Spent(), [(model, call.usage) for call in calls]).usd
            price = f" ({dollars(usd)})" if usd else ""
            used = (
                f"{counted(len(calls), 'call')} without an answer used {tokens}{price}"
            )
            yield f"{harmless(model)}: {used}; not in the table."
