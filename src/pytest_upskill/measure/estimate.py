"""What calls will take, estimated before the first one: how many, their tokens, their cost."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from .._util.texts import counted, dollars
from ..models.prices import Price, cost
from ..skills.skill import estimated_tokens
from ..trials.answer import Usage
from ..trials.subject import CHAT
from ..trials.trial import Question

# Tokens, where nothing better is known.
QUESTION: Final = 80
ANSWER: Final = 250
SKILL: Final = 600
# Of an agent, which sends all that was said before with every turn.
_TURNS: Final = 8
_TURN: Final = 400
_OWN_TEXT: Final = 12_000  # and tools, of a real one
_TEXT_OF_LOOP: Final = 600


class Calls(NamedTuple):
    """Calls of the same kind: of a model, so many times, each with so many tokens."""

    model: str
    times: int
    usage: Usage


def calls_of_trials(
    agent: str, model: str, trials: int, asked: int, answer: int, most: int
) -> Calls:
    """Calls of trials with questions of ``asked`` tokens; ``most`` are the turns of an agent."""
    if agent == CHAT:
        return Calls(model, trials, Usage(asked, answer, 0))
    turns = min(_TURNS, most)
    asked += agent_text(agent)
    return Calls(model, turns * trials, Usage(asked + _TURN * turns // 2, answer, 0))


def agent_text(agent: str) -> int:
    """Tokens of what an agent tells its model by itself, with its tools."""
    return _TEXT_OF_LOOP if agent == "loop" else _OWN_TEXT


def asked_of(question: Question) -> int:
    """Tokens of a question. An agent gets the text of its skills in some turn."""
    texts = [question.system, *(text for _, text in question.messages)]
    texts += [text for one in question.tools for text in (one.description, one.schema)]
    skill = SKILL if question.task and question.task.tested else 0
    return sum(map(estimated_tokens, filter(None, texts))) + skill


def calls_of_trial(question: Question) -> Calls:
    """The calls of one trial."""
    asked = asked_of(question)
    if question.task is None:
        return calls_of_trials(CHAT, question.model, 1, asked, _answer(question), 1)
    agent, most = question.task.agent, question.task.max_turns
    return calls_of_trials(agent, question.model, 1, asked, _answer(question), most)


def _answer(question: Question) -> int:
    return min(ANSWER, question.max_output)


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and USD; the cost is None if a price is not known.

    With ``least``, it may take less: that is the other end of a range.
    """

    calls: int
    tokens: int
    cost: float | None
    free: bool
    warning: str = ""  # what to know before paying
    least: "Estimate | None" = None
    trials: int = 0  # of agents, which make the calls
    stored: int = 0  # answers that are known already, and not counted here

    @property
    def price(self) -> str:
        if self.free:
            return "free"
        if self.cost is None:
            return "cost not known"
        least = self.least.cost if self.least else None
        return f"about {_range(dollars(least or 0.0), dollars(self.cost), known=least is not None)}"

    @property
    def spending(self) -> str:
        """What the user agrees to."""
        if self.cost is None:
            return f"make about {self._counted('calls', 'call')} ({self.price})"
        return f"spend {self.price}"

    def __str__(self) -> str:
        tokens = _rounded(self.tokens)
        if self.least:
            tokens = _range(_rounded(self.least.tokens), tokens)
        trials = f"{self._counted('trials', 'trial')}, " if self.trials else ""
        stored = f" ({counted(self.stored, 'answer')} stored)" if self.stored else ""
        calls = (
            f"about {self._counted('calls', 'call')}{stored}" if self.calls else f"no call{stored}"
        )
        return f"{trials}{calls}, {tokens} tokens, {self.price}"

    def _counted(self, field: str, word: str) -> str:
        number: int = getattr(self, field)
        if self.least is None:
            return counted(number, word)
        return _range(f"{getattr(self.least, field):,}", counted(number, word), whole=f"{number:,}")


def estimate_of(
    calls: Iterable[Calls], price_of: Callable[[str], Price | None], *, free: bool, trials: int = 0
) -> Estimate:
    made = [one for one in calls if one.times]
    known = [(one.times, cost(price_of(one.model), one.usage)) for one in made]
    return Estimate(
        calls=sum(one.times for one in made),
        tokens=sum(n * ((usage.input or 0) + (usage.output or 0)) for _, n, usage in made),
        cost=None
        if any(usd is None for _, usd in known)
        else sum(times * (usd or 0.0) for times, usd in known),
        free=free,
        trials=trials,
    )


def _rounded(tokens: int) -> str:
    return f"{round(tokens, -3) if tokens > 10_000 else tokens:,}"


def _range(least: str, most: str, *, whole: str = "", known: bool = True) -> str:
    """Both ends, unless they are the same."""
    return f"{least} to {most}" if known and least != (whole or most) else most
