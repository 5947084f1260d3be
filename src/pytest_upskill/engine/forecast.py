"""What calls and trials are going to take, learned from what servers have counted."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ..models.prices import PriceOf, cost
from ..trials.answer import Answer, Usage
from ..trials.transcript import ToolCall
from ..trials.trial import JUDGE_MAX_OUTPUT, Question, Rubric

# English prose; hex and other scripts take more.
_TOKENS_PER_BYTE: Final = 0.25
_MIN_TOKENS_PER_BYTE: Final = 0.2  # a server that counts less is not believed
# A server's template adds this much to a question at most, and counts as such a text.
_TEMPLATE_TOKENS: Final = 256
_TEMPLATE_BYTES: Final = 1024
# Before a model has answered, or a judge has been asked.
_FIRST_OUTPUT_TOKENS: Final = 500
_FIRST_RULING_TOKENS: Final = 1000  # of its prompt


class Amount(NamedTuple):
    """Tokens and what they cost; 0 USD where costs are not limited."""

    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.usd + other.usd)

    def minus(self, other: "Amount") -> "Amount":
        """What is left, at least nothing."""
        return Amount(
            max(0, self.tokens - other.tokens), max(0.0, self.usd - other.usd)
        )

    def times(self, factor: int) -> "Amount":
        return Amount(factor * self.tokens, factor * self.usd)

    def or_more(self, other: "Amount") -> "Amount":
        return Amount(max(self.tokens, other.tokens), max(self.usd, other.usd))


NOTHING: Final = Amount()


TrialKind = tuple[str, str]  # model and agent: such trials take about the same


class PaidCall(NamedTuple):
    """A call of a trial that was answered, by the agent's model or by that of its
    user.
    """

    model: str
    usage: Usage


@dataclass
class _Counts:
    """What a model's server has counted so far."""

    calls: int = 0
    tokens_per_byte: float = 0.0  # of a question and a template
    output_share: float = 1.0  # how much of the output limit was used
    longest: int = 0  # tokens of an answer
    longest_prompt: int = 0

    def prompt(self, size: int) -> int:
        counted = (size + _TEMPLATE_BYTES) * self.tokens_per_byte
        return round(max(size * _TOKENS_PER_BYTE, counted))

    def output(self, max_output: int) -> int:
        """Tokens of a long answer."""
        long = 2 * self.longest if self.calls else _FIRST_OUTPUT_TOKENS
        return min(self.longest_output(max_output), long)

    def longest_output(self, max_output: int) -> int:
        return round(max_output * self.output_share)

    def learn(self, size: int, max_output: int, prompt: int, output: int) -> None:
        self.calls += 1
        per_byte = prompt / (size + _TEMPLATE_BYTES)
        self.tokens_per_byte = max(self.tokens_per_byte, per_byte)
        self.output_share = max(self.output_share, output / max(max_output, 1))
        self.longest = max(self.longest, output)
        self.longest_prompt = max(self.longest_prompt, prompt)


class Forecast:
    """Amounts by model, and for trials also by agent. ``price_of`` is None where costs
    don't matter: looking up prices is slow.
    """

    def __init__(self, price_of: PriceOf | None) -> None:
        self._price_of = price_of
        self._counts: dict[str, _Counts] = defaultdict(_Counts)
        self._largest_trials: dict[TrialKind, Amount] = {}
        self._rubrics: dict[str, Rubric] = {}  # by the key of the question

    def expect_ruling(self, question: Question, rubric: Rubric) -> None:
        self._rubrics[question.key] = rubric

    def is_known(self, model: str) -> bool:
        """Whether a call was counted."""
        return self._counts[model].calls > 0

    def likely(self, question: Question) -> Amount:
        """What a question takes with a long answer, and its ruling."""
        counts = self._counts[question.model]
        prompt = counts.prompt(_size(question))
        output = counts.output(question.max_output)
        call = self._at_most(question.model, prompt, output)
        return self._with_ruling(question, call)

    def worst(self, question: Question) -> Amount:
        """The same if every byte is a token, with the whole output limit."""
        counts = self._counts[question.model]
        size = _size(question)
        prompt = max(size + _TEMPLATE_TOKENS, counts.prompt(size))
        output = counts.longest_output(question.max_output)
        call = self._at_most(question.model, prompt, output)
        return self._with_ruling(question, call)

    def trial(self, question: Question) -> Amount | None:
        """What a large trial takes, with its ruling; None if
        none of its kind has ended.
        """
        largest = self._largest_trials.get(trial_kind(question))
        return largest and self._with_ruling(question, largest.times(2))

    def note_trial(self, question: Question, amount: Amount) -> None:
        kind = trial_kind(question)
        before = self._largest_trials.get(kind, amount)
        self._largest_trials[kind] = before.or_more(amount)

    def estimated(self, question: Question, usage: Usage) -> Usage:
        """What was paid, with estimates for what the server did not count.

        No question has 0 tokens: such a server does not count at all.
        """
        if is_counted(usage):
            return usage
        counts = self._counts[question.model]
        prompt = usage.input or counts.prompt(_size(question))
        output = usage.output or counts.output(question.max_output)
        return replace(usage, input=prompt, output=output)

    def learn(self, question: Question, paid: Usage, answer: Answer | None) -> Amount:
        """Learn from a call; returns what it is worth, whatever the server counts."""
        received = 0
        if answer:
            calls = _texts_of(answer.calls)
            received = _bytes([answer.text, answer.thinking, *calls])
        size = _size(question)
        prompt = _credible(paid.input, size)
        output = _credible(paid.output, received)
        counts = self._counts[question.model]
        counts.learn(size, question.max_output, prompt, output)
        # If more of it were cached, it would cost less.
        cached = min(paid.cached or 0, paid.input or 0)
        worth = replace(paid, input=prompt, output=output, cached=cached)
        return self._amount(question.model, worth)

    def total(self, calls: Iterable[PaidCall]) -> Amount:
        total = NOTHING
        for call in calls:
            total = total.plus(self._amount(call.model, call.usage))
        return total

    def _with_ruling(self, question: Question, amount: Amount) -> Amount:
        """An amount with what the judge of the answer is likely to take."""
        rubric = self._rubrics.get(question.key)
        if rubric is None:
            return amount

        if rubric.task:
            kind = (rubric.judge, rubric.task.agent)
            ruling = self._largest_trials.get(kind, NOTHING).times(2)
        else:
            judge = self._counts[rubric.judge]
            prompt = judge.longest_prompt or _FIRST_RULING_TOKENS
            output = judge.output(JUDGE_MAX_OUTPUT)
            ruling = self._at_most(rubric.judge, prompt, output)
        return amount.plus(ruling.times(rubric.votes))

    def _at_most(self, model: str, prompt: int, output: int) -> Amount:
        """What so many tokens could cost: the provider may cache them, or not."""
        most = NOTHING
        for cached, written in ((0, 0), (prompt, 0), (0, prompt)):
            usage = Usage(prompt, output, cached, written)
            most = most.or_more(self._amount(model, usage))
        return most

    def _amount(self, model: str, usage: Usage) -> Amount:
        usd = None
        if self._price_of:
            usd = cost(self._price_of(model), usage)
        return Amount(usage.tokens, usd or 0.0)


def trial_kind(question: Question) -> TrialKind:
    return question.model, question.task.agent if question.task else ""


def is_counted(usage: Usage) -> bool:
    """Whether a server has counted all of a call."""
    return bool(usage.input) and usage.output is not None


def _credible(tokens: int | None, size: int) -> int:
    """The tokens of a text of so many bytes: what a server counted,
    unless that is too few.
    """
    counted = tokens or 0
    if counted >= size * _MIN_TOKENS_PER_BYTE:
        return counted
    return round(size * _TOKENS_PER_BYTE)


def _size(question: Question) -> int:
    """The bytes that a server counts as tokens."""
    texts = [question.system, question.schema or ""]
    texts += [text for _, text in question.messages]
    for tool in question.tools:
        texts += (tool.name, tool.description, tool.schema)
    for step in question.steps:
        texts.append(step.raw or step.text)
        if not step.raw:
            texts += _texts_of(step.calls)
        texts += (*(result.text for result in step.results), step.answer)
    return _bytes(texts)


def _texts_of(calls: Sequence[ToolCall]) -> list[str]:
    return [text for call in calls for text in (call.name, call.arguments)]


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in texts)
