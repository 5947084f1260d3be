"""Prefixes that questions to one model share, for the prompt cache of its provider.

A prefix is cached once the first question with it was answered; only then are others
cheaper. So the first goes ahead and the others wait, while questions with another
prefix are asked. They wait ten seconds at most.
"""

from dataclasses import dataclass, field
from typing import Final

from ..skills.skill import estimated_tokens
from ..trials.trial import Question, Shared

_WORTH: Final = 3  # uses
# Seconds since the last use, as Anthropic has it; others keep longer
_LIFETIME: Final = 300.0
_LONGEST_WAIT: Final = 10.0


@dataclass(eq=False)
class Prefix:
    """A text that questions start with."""

    part: Shared  # where it ends
    unanswered: int = 0  # questions
    first: "PrefixUse | None" = None  # the question that goes ahead
    first_started: float = 0.0
    warm_until: float = 0.0

    def is_worth_caching(self, now: float) -> bool:
        return self.unanswered >= _WORTH or now < self.warm_until

    def waits_until(self, now: float) -> float:
        """Until when to wait for the question that went ahead; in the past: don't
        wait.
        """
        waits = self.first and now >= self.warm_until
        return self.first_started + _LONGEST_WAIT if waits else 0.0


@dataclass(eq=False)
class PrefixUse:
    """The prefixes of one question; none if they are too short."""

    prefixes: tuple[Prefix, ...] = ()
    cached: tuple[Prefix, ...] = ()  # by the call in flight

    def waits_until(self, now: float) -> float:
        return max((prefix.waits_until(now) for prefix in self.prefixes), default=0.0)

    def start(self, now: float) -> tuple[Shared, ...]:
        """A call starts; returns what its provider should cache."""
        self.cached = tuple(
            prefix for prefix in self.prefixes if prefix.is_worth_caching(now)
        )
        for prefix in self.cached:
            if now < prefix.warm_until:
                prefix.warm_until = now + _LIFETIME
            elif prefix.first is None:
                prefix.first = self
                prefix.first_started = now
        return tuple(prefix.part for prefix in self.cached)

    def answered(self, started_at: float) -> None:
        for prefix in self.prefixes:
            prefix.unanswered -= 1
        for prefix in self.cached:
            prefix.warm_until = max(prefix.warm_until, started_at + _LIFETIME)

    def end(self) -> bool:
        """The call ended, with an answer or without; returns
        whether others waited for it.
        """
        went_ahead = False
        for prefix in self.cached:
            if prefix.first is self:
                prefix.first = None
                went_ahead = True
        return went_ahead


@dataclass
class Prefixes:
    """All prefixes; the provider caches those of ``min_tokens`` or more, or none."""

    min_tokens: int | None = None
    _by_text: dict[tuple[object, ...], Prefix] = field(default_factory=dict)

    def add(self, question: Question) -> PrefixUse:
        """The prefixes of a further question."""
        prefixes = list[Prefix]()
        start = (question.system, question.tools, question.schema)
        texts = [question.system]
        for tool in question.tools:
            texts += (tool.description, tool.schema)
        if self._is_long(texts):
            prefixes.append(self._by_text.setdefault(start, Prefix("system")))
        if self._is_long([text for _, text in question.messages]):
            with_messages = (*start, question.messages)
            prefixes.append(self._by_text.setdefault(with_messages, Prefix("messages")))
        for prefix in prefixes:
            prefix.unanswered += 1
        return PrefixUse(tuple(prefixes))

    def _is_long(self, texts: list[str]) -> bool:
        if self.min_tokens is None:
            return False
        return sum(map(estimated_tokens, texts)) >= self.min_tokens
