"""Calls and cost, before the first call.

Commands often know neither the questions nor the answers: they say about what they
take, by typical sizes. A run of tests knows its questions: it says what they cost at
most, if every answer is as long as it may be, agents take all their turns, and no
provider caches anything. Retries, and what tests in Python ask, come on top.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from .._util.texts import counted, dollars
from ..checks.judging import first_questions
from ..models.prices import FREE, PriceOf, cost
from ..options import age_words
from ..skills.skill import estimated_tokens
from ..trials.answer import Answer, Reply, Usage
from ..trials.subject import CHAT
from ..trials.trial import JUDGE_MAX_OUTPUT, Question, Rubric, Trial
from ..trials.user import system_text

QUESTION: Final = 80  # tokens
ANSWER: Final = 250
SKILL: Final = 600
_USER_ANSWER: Final = 300
_JUDGE_PROMPT: Final = 500
_AGENT_PROMPT: Final = 12_000  # with tools, of a real agent
_LOOP_PROMPT: Final = 600
_NO_LIMIT: Final = 10**9


class Sizes(NamedTuple):
    """Tokens and turns by which calls are estimated, where nothing else limits
    them.
    """

    tokenizer: int  # some count twice as many tokens as we estimate
    template: int  # that a server adds to a question
    answer: int
    turns: int  # of an agent
    turn: int  # every turn repeats all turns before it
    reply: int  # of an agent, in one turn


TYPICAL: Final = Sizes(
    tokenizer=1,
    template=0,
    answer=ANSWER,
    turns=8,
    turn=400,
    reply=ANSWER,
)
WORST: Final = Sizes(
    tokenizer=2,
    template=100,
    answer=_NO_LIMIT,
    turns=_NO_LIMIT,
    turn=2_000,
    reply=1_000,
)


class Calls(NamedTuple):
    """Calls of the same size, in tokens."""

    model: str
    times: int
    prompt: int
    answer: int


class Stored(NamedTuple):
    """What is stored of trials, by the keys of their questions."""

    # Whose answer is, and how many rulings of the judge are not
    trials: Mapping[str, int] = {}
    outdated: Set[str] = frozenset()  # too old to be compared: asked again


NOTHING_STORED: Final = Stored()


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and cost of what is not stored."""

    calls: int
    tokens: int
    usd: float  # of the models whose price is known
    unpriced: tuple[str, ...] = ()  # models
    is_free: bool = False
    trials: int = 0  # of agents, which make the calls
    stored: int = 0  # answers and rulings that need no call
    outdated: int = 0  # stored answers that are too old to be compared, and asked again
    warning: str = ""  # shown before anything is paid

    @property
    def price(self) -> str:
        if self.is_free:
            return "free"
        return "cost not known" if self.unpriced else f"about {dollars(self.usd)}"

    @property
    def spending(self) -> str:
        """What the user agrees to."""
        if self.unpriced:
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

    def bound_words(
        self, *, limit: float | None = None, python: bool = False
    ) -> tuple[str, str]:
        """``180 from cache`` and ``at most $0.42``, where there is something to say.

        ``limit`` is the budget in USD.
        """
        price = ""
        if self.usd:
            price = f"at most {dollars(self.usd)}"
            if self.unpriced:
                names = ", ".join(self.unpriced)
                price += f", and the price of {names} is not known"
            if python:
                price += ", without the tests in Python"
        elif self.unpriced:
            price = "cost not known"
        if limit is not None and self.usd > limit:
            price += f", stopping at {dollars(limit)}"
        return f"{self.stored:,} from cache" if self.stored else "", price


def estimate_calls(
    calls: Iterable[Calls], price_of: PriceOf, *, is_free: bool = True
) -> Estimate:
    """What calls take; not free if it is known that others will not be."""
    times = tokens = 0
    usd = 0.0
    prices = []
    unpriced = set()
    for group in calls:
        if not group.times:
            continue
        price = price_of(group.model)
        prices.append(price)
        times += group.times
        tokens += group.times * (group.prompt + group.answer)
        usage = Usage(group.prompt, group.answer, 0)
        usd += group.times * (cost(price, usage) or 0.0)
        if price is None:
            unpriced.add(group.model)
    is_free = is_free and all(price == FREE for price in prices)
    return Estimate(
        times, tokens, usd, unpriced=tuple(sorted(unpriced)), is_free=is_free
    )


def estimate_trials(
    trials: Iterable[Trial],
    price_of: PriceOf,
    stored: Stored = NOTHING_STORED,
    sizes: Sizes = TYPICAL,
) -> Estimate:
    """What trials take that is not stored; of those in Python nothing is known."""
    by_key = {trial.question.key: trial for trial in trials if not trial.is_open}
    calls: list[Calls] = []
    by_agents = in_store = 0
    for key, trial in by_key.items():
        rubric = trial.rubric
        votes = rubric.votes if rubric else 0
        missing = stored.trials.get(key)
        if missing is None:
            missing = votes
            calls += calls_of_question(trial.question, sizes)
            by_agents += trial.question.task is not None
        else:
            in_store += 1 + votes - missing
        if rubric:
            calls.append(_calls_of_judge(rubric, trial.question, missing, sizes))

    return replace(
        estimate_calls(calls, price_of),
        trials=by_agents,
        stored=in_store,
        outdated=len(stored.outdated),
    )


def find_stored_answers(
    trials: Iterable[Trial], get: Callable[[Question], Reply | None]
) -> dict[str, int]:
    """The trials whose answers are stored, and how many rulings on them are not."""
    missing: dict[str, int] = {}
    for trial in trials:
        answer = get(trial.question)
        if isinstance(answer, Answer):
            judgings: Sequence[Question] = ()
            if trial.rubric:
                judgings = first_questions(trial.rubric, trial.question, answer)
            replies = sum(isinstance(get(judging), Answer) for judging in judgings)
            missing[trial.question.key] = len(judgings) - replies
    return missing


def outdated_line(outdated: Collection[str], max_age: float) -> str:
    """How many stored answers are too old to be compared."""
    age = f"more than {age_words(max_age)} older than the other arms"
    return f"{counted(len(outdated), 'stored answer')} {age}: asked again"


def calls_of_trials(
    agent: str,
    model: str,
    *,
    trials: int,
    prompt: int,
    answer: int,
    max_turns: int,
    sizes: Sizes = TYPICAL,
) -> Calls:
    """The calls of trials with prompts and answers of so many tokens."""
    if agent == CHAT:
        prompt = sizes.tokenizer * prompt + sizes.template
        return Calls(model, trials, prompt, min(answer, sizes.answer))

    turns = min(sizes.turns, max_turns)
    prompt = sizes.tokenizer * (prompt + _agent_prompt(agent)) + sizes.turn * turns // 2
    return Calls(model, turns * trials, prompt, min(answer, sizes.reply))


def calls_of_question(question: Question, sizes: Sizes) -> list[Calls]:
    """The calls of one trial, and of its user if a model plays it."""
    task = question.task
    calls = calls_of_trials(
        task.agent if task else CHAT,
        question.model,
        trials=1,
        prompt=_prompt(question),
        answer=question.max_output,
        max_turns=task.max_turns if task else 1,
        sizes=sizes,
    )
    user = task.user if task else None
    if not user or not user.model:
        return [calls]

    texts = [system_text(user), *(text for _, text in question.messages)]
    prompt = sizes.tokenizer * (sum(map(estimated_tokens, texts)) + TYPICAL.turn)
    prompt += sizes.reply
    return [calls, Calls(user.model, user.most, prompt, _USER_ANSWER)]


def _calls_of_judge(
    rubric: Rubric, question: Question, votes: int, sizes: Sizes
) -> Calls:
    prompt = _JUDGE_PROMPT + _prompt(question)
    prompt += estimated_tokens("".join((*rubric.texts, rubric.context)))
    if rubric.task:
        prompt += _agent_prompt(rubric.task.agent)
    prompt = sizes.tokenizer * prompt + min(sizes.answer, question.max_output)
    return Calls(rubric.judge, votes, prompt, min(sizes.answer, JUDGE_MAX_OUTPUT))


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
