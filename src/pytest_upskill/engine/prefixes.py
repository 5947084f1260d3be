"""Prefixes that questions to one model share, for the prompt cache of its provider.

A prefix is cached once the first question with it was answered; only then are others
cheaper. So the first goes ahead and the others wait, while questions with another
prefix are asked. They wait ten seconds at most, and not at all after two failures.
"""

from dataclasses import dataclass, field
from typing import Final

from ..skills.skill import estimated_tokens
from ..trials.trial import Question, Shared

_WORTH: Final = 3  # uses
# Seconds since the last use, as Anthropic has it; others keep longer
_LIFETIME: Final = 300.0
_LONGEST_WAIT: Final = 10.0
_MOST_FAILURES: Final = 2


@dataclass(eq=False)
class Prefix:
    """A text that questions start with."""

    part: Shared  # where it ends
    unanswered: int = 0  # questions
    first: "PrefixUse | None" = None  # the question that goes ahead
    first_started: float = 0.0
    warm_until: float = 0.0
    failures: int = 0

    def is_worth_caching(self, now: float) -> bool:
        return self.unanswered >= _WORTH or now < self.warm_until

    def waits_until(self, now: float) -> float:
        """Until when to wait for the question that went ahead; in the past: don't
        wait.
        """
        waits = self.first and self.failures < _MOST_FAILURES and now >= self.warm_until
        return self.first_started + _LONGEST_WAIT if waits else 0.0


@dataclass(eq=False)
class PrefixUse:
    """The prefixes of one question."""

    prefixes: tuple[Prefix, ...]
    cached: tuple[Prefix, ...] = ()  # by the call in flight
    goes_ahead: bool = False  # whether others wait for that call

    def waits_until(self, now: float) -> float:
        return max(prefix.waits_until(now) for prefix in self.prefixes)


@dataclass
class Prefixes:
    """All prefixes; the provider caches those of ``min_tokens`` or more, or none."""

    min_tokens: int | None = None
    _by_text: dict[tuple[object, ...], Prefix] = field(default_factory=dict)

    def use_of(self, question: Question) -> PrefixUse | None:
        """The prefixes of a further question; None if they are too short."""
        if self.min_tokens is None:
            return None
        prefixes = list[Prefix]()
        start = (question.system, question.tools, question.schema)
        tools = (
            text for tool in question.tools for text in (tool.description, tool.schema)
        )
        if self._is_long([question.system, *tools]):
            prefixes.append(self._by_text.setdefault(start, Prefix("system")))
        if self._is_long([text for _, text in question.messages]):
            with_messages = (*start, question.messages)
            prefixes.append(self._by_text.setdefault(with_messages, Prefix("messages")))
        for prefix in prefixes:
            prefix.unanswered += 1
        return PrefixUse(tuple(prefixes)) if prefixes else None

    def _is_long(self, texts: list[str]) -> bool:
        tokens = sum(estimated_tokens(text) for text in texts if text)
        return self.min_tokens is not None and tokens >= self.min_tokens

    def start(self, use: PrefixUse, now: float) -> tuple[Shared, ...]:
        """A call starts; returns what its provider should cache."""
        use.cached = tuple(
            prefix for prefix in use.prefixes if prefix.is_worth_caching(now)
        )
        for prefix in use.cached:
            if now < prefix.warm_until:
                prefix.warm_until = now + _LIFETIME
            elif prefix.first is None:
                prefix.first, prefix.first_started, use.goes_ahead = use, now, True
        return tuple(prefix.part for prefix in use.cached)

    def answered(self, use: PrefixUse, started_at: float) -> None:
        for prefix in use.prefixes:
            prefix.unanswered -= 1
        for prefix in use.cached:
            prefix.warm_until = max(prefix.warm_until, started_at + _LIFETIME)
        self.refused(use)

    def refused(self, use: PrefixUse) -> None:
        """The server took no call: the prefix is not to blame."""
        for prefix in use.cached:
            prefix.first = None if prefix.first is use else prefix.first

    def end(self, use: PrefixUse) -> bool:
        """The call ended, with an answer or without; returns
        whether others waited for it.
        """
        went_ahead, use.goes_ahead = use.goes_ahead, False
        for prefix in use.cached:
            prefix.failures += prefix.first is use
        self.refused(use)
        return went_ahead
