"""Calls and cost, before the first call: about what a command takes,
at most what a run costs.

Commands know neither their answers nor, often, their questions: `Estimate` goes by
typical sizes. A run of tests knows its questions: `CostBound` is what they cost if
every answer is as long as it may be.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from .._util.texts import counted, dollars
from ..checks.judging import first_questions
from ..models.prices import PriceOf, cost
from ..options import age_words
from ..skills.skill import estimated_tokens
from ..trials.answer import Answer, Reply, Usage
from ..trials.subject import CHAT
from ..trials.trial import Question, Rubric, Trial
from ..trials.user import User, system_text

# Typical sizes in tokens.
QUESTION: Final = 80
ANSWER: Final = 250
SKILL: Final = 600
_AGENT_PROMPT: Final = 12_000  # with tools, of a real agent
_LOOP_PROMPT: Final = 600
_TURNS: Final = 8
_ANSWERS: Final = 2  # of a user
_TURN: Final = 400  # every turn repeats all turns before it

# Limits in tokens.
_LONGEST_TURN: Final = 2_000
_LONGEST_REPLY: Final = 1_000  # of an agent, in one turn
_LONGEST_ANSWER: Final = 300  # of a user
_TEMPLATE: Final = 100  # that a server adds to a question
_JUDGE_PROMPT: Final = 500
_TOKENIZERS: Final = 2  # some count twice as many tokens as we estimate
_HIGH_COST: Final = 5.0  # USD


class Calls(NamedTuple):
    """Calls of the same size."""

    model: str
    times: int
    usage: Usage


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and USD; the cost is None if a price is not known."""

    calls: int
    tokens: int
    cost: float | None
    free: bool
    warning: str = ""  # shown before anything is paid
    trials: int = 0  # of agents, which make the calls
    stored: int = 0  # answers that need no call
    outdated: int = 0  # stored answers that are too old to be compared, and asked again

    def __add__(self, later: "Estimate") -> "Estimate":
        """Both, without what is stored."""
        known = self.cost is not None and later.cost is not None
        return Estimate(
            calls=self.calls + later.calls,
            tokens=self.tokens + later.tokens,
            cost=(self.cost or 0.0) + (later.cost or 0.0) if known else None,
            free=self.free and later.free,
            warning=self.warning or later.warning,
        )

    @property
    def price(self) -> str:
        if self.free:
            return "free"
        return "cost not known" if self.cost is None else f"about {dollars(self.cost)}"

    @property
    def spending(self) -> str:
        """What the user agrees to."""
        if self.cost is None:
            return f"make up to about {counted(self.calls, 'call')} ({self.price})"
        return f"spend {self.price}"

    def __str__(self) -> str:
        calls = "no call"
        if self.calls:
            calls = f"up to about {counted(self.calls, 'call')}"
        stored = []
        if self.stored:
            stored.append(f"{counted(self.stored, 'answer')} stored")
        if self.outdated:
            stored.append(f"{self.outdated:,} too old, asked again")
        if stored:
            calls += f" ({', '.join(stored)})"
        if self.trials:
            calls = f"{counted(self.trials, 'trial')}, {calls}"
        tokens = round(self.tokens, -3) if self.tokens > 10_000 else self.tokens
        return f"{calls}, {tokens:,} tokens, {self.price}"


def estimate_of(
    calls: Iterable[Calls],
    price_of: PriceOf,
    *,
    free: bool,
    trials: int = 0,
    stored: int = 0,
    outdated: int = 0,
) -> Estimate:
    groups = [group for group in calls if group.times]
    return Estimate(
        calls=sum(group.times for group in groups),
        tokens=sum(
            times * ((use.input or 0) + (use.output or 0)) for _, times, use in groups
        ),
        cost=_total_cost(groups, price_of),
        free=free,
        trials=trials,
        stored=stored,
        outdated=outdated,
    )


def calls_of_trials(
    agent: str, model: str, *, trials: int, prompt: int, answer: int, max_turns: int
) -> Calls:
    """The calls of trials with prompts and answers of so many tokens."""
    if agent == CHAT:
        return Calls(model, trials, Usage(prompt, answer, 0))
    turns = min(_TURNS, max_turns)
    prompt += _agent_prompt(agent) + _TURN * turns // 2
    return Calls(model, turns * trials, Usage(prompt, answer, 0))


def calls_of_trial(trial: Trial) -> list[Calls]:
    """The calls of one trial, and those of its judge."""
    question = trial.question
    rubric = trial.rubric
    calls = [
        calls_of_trials(
            question.task.agent if question.task else CHAT,
            question.model,
            trials=1,
            prompt=_prompt(question),
            answer=min(ANSWER, question.max_output),
            max_turns=question.task.max_turns if question.task else 1,
        )
    ]
    if user := _user(question):
        usage = Usage(_user_prompt(user, question), ANSWER // 5, 0)
        calls.append(Calls(user.model, _ANSWERS, usage))
    if rubric:
        prompt = estimated_tokens("".join(rubric.texts)) + ANSWER + QUESTION
        prompt += _agent_prompt(rubric.task.agent) if rubric.task else 0
        calls.append(Calls(rubric.judge, rubric.votes, Usage(prompt, ANSWER, 0)))
    return calls


class StoredTrial(NamedTuple):
    """A trial whose answer is stored: what the judge has said about it, and has yet to
    say.
    """

    judge_stored: int
    judge_missing: int


def stored_trials(
    trials: Iterable[Trial], get: Callable[[Question], Reply | None]
) -> dict[str, StoredTrial]:
    """The trials whose answers are stored, by the key of their question."""
    stored: dict[str, StoredTrial] = {}
    for trial in trials:
        answer = get(trial.question)
        if isinstance(answer, Answer):
            judgings: Sequence[Question] = ()
            if trial.rubric:
                judgings = first_questions(trial.rubric, trial.question, answer)
            replies = sum(isinstance(get(judging), Answer) for judging in judgings)
            missing = len(judgings) - replies
            stored[trial.question.key] = StoredTrial(replies, missing)
    return stored


@dataclass(frozen=True)
class CostBound:
    """What a run costs at most.

    Every answer is as long as it may be, agents take all their turns, all
    runs are made, and no provider caches anything. Retries, and what tests
    in Python ask, come on top.
    """

    cost: float  # USD, of the models whose price is known
    stored: int = 0  # calls that need not be made
    unpriced: tuple[str, ...] = ()  # models

    def words(
        self, *, limit: float | None, suggest: str = "", python: bool = False
    ) -> list[str]:
        """``180 from cache`` and ``at most $0.42``, where there is something to say.

        ``limit`` is the budget in USD, ``suggest`` the option that sets one,
        if it is to be named.
        """
        price = ""
        if self.cost:
            price = f"at most {dollars(self.cost)}"
            if self.unpriced:
                names = ", ".join(self.unpriced)
                price += f", and the price of {names} is not known"
            if python:
                price += ", without the tests in Python"
        elif self.unpriced:
            price = "cost not known"
        if limit is not None and self.cost > limit:
            price += f", stopping at {dollars(limit)}"
        elif suggest and limit is None and self.cost > _HIGH_COST:
            price += f"; {suggest} limits it"
        return [f"{self.stored:,} from cache" if self.stored else "", price]


def cost_bound(
    trials: Iterable[Trial],
    stored: Mapping[str, StoredTrial],
    price_of: PriceOf,
) -> CostBound:
    """Of trials without those that are stored."""
    calls: list[Calls] = []
    by_key = {trial.question.key: trial for trial in trials if not trial.is_open}
    for key, trial in by_key.items():
        if key not in stored:
            calls.append(_longest_calls(trial.question))
            calls += _longest_answers(trial.question)
        if trial.rubric:
            votes = stored[key].judge_missing if key in stored else trial.rubric.votes
            calls.append(_longest_judging(trial.rubric, trial.question, votes))

    unpriced = set()
    priced = []
    for group in calls:
        if price_of(group.model) is not None:
            priced.append(group)
        elif group.times:
            unpriced.add(group.model)
    replies = sum(
        1 + answer.judge_stored for key, answer in stored.items() if key in by_key
    )
    usd = _total_cost(priced, price_of) or 0.0
    return CostBound(usd, replies, tuple(sorted(unpriced)))


def outdated_line(
    trials: Iterable[Trial],
    outdated: Collection[str],
    max_age: float,
    price_of: PriceOf,
) -> str:
    """How many stored answers are too old to be compared, and what asking again
    costs.
    """
    again = [trial for trial in trials if trial.question.key in outdated]
    bound = cost_bound(again, {}, price_of)
    price = "".join(f", {words}" for words in bound.words(limit=None) if words)
    age = f"more than {age_words(max_age)} older than the other arms"
    return f"{counted(len(outdated), 'stored answer')} {age}: asked again{price}"


def _longest_calls(question: Question) -> Calls:
    prompt = _prompt(question)
    if question.task is None:
        usage = Usage(_TOKENIZERS * prompt + _TEMPLATE, question.max_output, 0)
        return Calls(question.model, 1, usage)

    turns = question.task.max_turns
    prompt = _TOKENIZERS * (prompt + _agent_prompt(question.task.agent))
    reply = min(_LONGEST_REPLY, question.max_output)
    usage = Usage(prompt + _LONGEST_TURN * turns // 2, reply, 0)
    return Calls(question.model, turns, usage)


def _longest_answers(question: Question) -> list[Calls]:
    """What the user of a case takes at most, if a model plays it."""
    if not (user := _user(question)):
        return []
    prompt = _TOKENIZERS * _user_prompt(user, question) + _LONGEST_REPLY
    usage = Usage(prompt, min(_LONGEST_ANSWER, user.max_output), 0)
    return [Calls(user.model, user.most, usage)]


def _user(question: Question) -> User | None:
    """The user of a trial, if it is a model."""
    user = question.task.user if question.task else None
    return user if user and user.model else None


def _user_prompt(user: User, question: Question) -> int:
    texts = (system_text(user), *(text for _, text in question.messages))
    return sum(map(estimated_tokens, texts)) + _TURN


def _longest_judging(rubric: Rubric, question: Question, votes: int) -> Calls:
    texts = estimated_tokens("".join((*rubric.texts, rubric.context)))
    prompt = (
        _TOKENIZERS * (texts + _prompt(question) + _JUDGE_PROMPT) + question.max_output
    )
    prompt += _TOKENIZERS * _agent_prompt(rubric.task.agent) if rubric.task else 0
    return Calls(rubric.judge, votes, Usage(prompt, rubric.max_output, 0))


def _total_cost(calls: Iterable[Calls], price_of: PriceOf) -> float | None:
    costs = [(times, cost(price_of(model), usage)) for model, times, usage in calls]
    if any(usd is None for _, usd in costs):
        return None
    return sum(times * (usd or 0.0) for times, usd in costs)


def _prompt(question: Question) -> int:
    """Tokens of a question. An agent gets the text of its skills in some turn."""
    texts = [question.system, *(text for _, text in question.messages)]
    for tool in question.tools:
        texts += [tool.description, tool.schema]
    skill = SKILL if question.task and question.task.tested else 0
    return sum(map(estimated_tokens, filter(None, texts))) + skill


def _agent_prompt(agent: str) -> int:
    """Tokens of an agent's system prompt and tools."""
    return _LOOP_PROMPT if agent == "loop" else _AGENT_PROMPT
