"""What questions to one model share at their start, so that its provider's cache can be used.

A cache is warm once the first answer came, and only then are other questions with the same start
cheap. So the first goes ahead, and the rest wait for it while questions with another start use
the time. Nobody waits for long: a server has read the question when it begins to answer, and one
that fails twice warms nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ..skills.skill import estimated_tokens
from ..trials.trial import Question, Shared

_WORTH: Final = 3  # uses
_LIFETIME: Final = 300.0  # seconds since the last use, as Anthropic has it; others keep longer
_LONGEST_WAIT: Final = 10.0
_MOST_FAILURES: Final = 2


@dataclass(eq=False)
class Prefix:
    """One start of questions."""

    part: Shared  # where it ends
    left: int = 0  # questions that have no answer yet
    first: "Use | None" = None  # goes ahead
    since: float = 0.0
    warm_until: float = 0.0
    failures: int = 0

    def is_worth(self, now: float) -> bool:
        return self.left >= _WORTH or now < self.warm_until

    def waits_until(self, now: float) -> float:
        """Until when to wait for the one that went ahead; the past if nobody has to."""
        waits = self.first and self.failures < _MOST_FAILURES and now >= self.warm_until
        return self.since + _LONGEST_WAIT if waits else 0.0


@dataclass(eq=False)
class Use:
    """What one question shares with others."""

    prefixes: tuple[Prefix, ...]
    kept: tuple[Prefix, ...] = ()  # by the call in flight
    ahead: bool = False  # whether others wait for that call

    def waits_until(self, now: float) -> float:
        return max(one.waits_until(now) for one in self.prefixes)


@dataclass
class Prefixes:
    """All starts; ``least`` are the tokens from which on the provider keeps one, None: never."""

    least: int | None = None
    _known: dict[tuple[object, ...], Prefix] = field(default_factory=dict)

    def use_of(self, question: Question) -> Use | None:
        """What one more question shares; None if its texts are too short."""
        if self.least is None:
            return None
        found = list[Prefix]()
        start = (question.system, question.tools, question.schema)
        tools = (text for tool in question.tools for text in (tool.description, tool.schema))
        if self._is_long([question.system, *tools]):
            found.append(self._known.setdefault(start, Prefix("system")))
        if self._is_long([text for _, text in question.messages]):
            whole = (*start, question.messages)
            found.append(self._known.setdefault(whole, Prefix("messages")))
        for one in found:
            one.left += 1
        return Use(tuple(found)) if found else None

    def _is_long(self, texts: list[str]) -> bool:
        tokens = sum(estimated_tokens(text) for text in texts if text)
        return self.least is not None and tokens >= self.least

    def start(self, use: Use, now: float) -> tuple[Shared, ...]:
        """A call starts; returns what its provider should keep."""
        use.kept = tuple(one for one in use.prefixes if one.is_worth(now))
        for one in use.kept:
            if now < one.warm_until:
                one.warm_until = now + _LIFETIME
            elif one.first is None:
                one.first, one.since, use.ahead = use, now, True
        return tuple(one.part for one in use.kept)

    def answered(self, use: Use, asked: float) -> None:
        for one in use.prefixes:
            one.left -= 1
        for one in use.kept:
            one.warm_until = max(one.warm_until, asked + _LIFETIME)
        self.refused(use)

    def refused(self, use: Use) -> None:
        """The server took no call, which is no fault of this one."""
        for one in use.kept:
            one.first = None if one.first is use else one.first

    def end(self, use: Use) -> bool:
        """The call ended, somehow; whether others waited for it."""
        ahead, use.ahead = use.ahead, False
        for one in use.kept:
            one.failures += one.first is use
        self.refused(use)
        return ahead


def with_shared(questions: Sequence[Question], least: int | None) -> list[Question]:
    """Questions of a batch with what the provider should keep of them: many start alike."""
    prefixes = Prefixes(least)
    uses = [prefixes.use_of(one) for one in questions]
    shared = [tuple(p.part for p in use.prefixes if p.is_worth(0.0)) if use else () for use in uses]
    both = zip(questions, shared, strict=True)
    return [replace(one.without_keys(), shared=own) for one, own in both]
