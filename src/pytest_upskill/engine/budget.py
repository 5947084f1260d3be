"""The budget of a run: no call is made that could exceed it,
and all that was paid counts.

What a server will count is not known before a call, so a call reserves one of two
amounts. Several calls may be in flight if even the worst case fits: a token for
each byte of the question, what the server's template adds, and the whole output
limit. Otherwise a model gets one call at a time, if the likely amount fits: after a
few answers, with twice the longest of them as output. So a budget can be overrun by
one call per model at most.

Some servers count more than this worst case, for instance thoughts beyond the output
limit. Later calls then reserve what was counted, and twice that beside others. To
catch it early, a model's first call goes alone, and then no more calls are in flight
than have been counted so far, unless ten times the worst case would fit. Only a server
that counts as expected at first and far more later can overrun by more: by the calls
in flight at that moment.

Money goes to whole cases. A question reserves what a judge takes for its answer, and a
trial of an agent is begun only if there is room for twice the largest so far. Once a
case is refused in one arm or run, it is refused in all others. So what is left out is
decided before it is asked, and does not depend on how it would have ended.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from .._util.texts import dollars, plain
from ..errors import Text
from ..models.prices import PriceOf, cost
from ..trials.answer import Answer, Usage
from ..trials.transcript import ToolCall
from ..trials.trial import Question, Rubric, Task

_TOKENS_A_BYTE: Final = 0.25  # of English prose; hex and other scripts take more
_LEAST_A_BYTE: Final = 0.2  # of any text; a server that counts less is not believed
_MOST_ADDED: Final = 256  # tokens that a server's template adds to a question
_AMPLE: Final = 10  # times the worst
_FEW: Final = 3  # answers, after which the longest tells what others take
# Tokens of a judge's prompt besides question, answer and rubric
_JUDGE_PROMPT: Final = 600


class _Amount(NamedTuple):
    model: str
    tokens: int
    usd: float

    def plus(self, other: "_Amount") -> "_Amount":
        return _Amount(self.model, self.tokens + other.tokens, self.usd + other.usd)

    def times(self, factor: int) -> "_Amount":
        return _Amount(self.model, factor * self.tokens, factor * self.usd)


class Allowance(NamedTuple):
    """What a trial may spend that is carried out on another machine; None is no
    limit.
    """

    tokens: int | None = None
    usd: float | None = None
    is_all: bool = True  # of the remaining budget


class PaidCall(NamedTuple):
    """A call of a trial that was answered, by the agent's model or by that of its
    user.
    """

    model: str
    usage: Usage


class UnansweredCall(NamedTuple):
    """A call that was paid without an answer; ``counted``: by the server,
    not estimated.
    """

    model: str
    usage: Usage
    counted: bool


@dataclass
class _Counts:
    """What a model's server has counted, to predict its next calls."""

    tokens_a_byte: float = _TOKENS_A_BYTE
    added: int = 0
    share: float = 1.0  # of the output limit
    longest: int = 0  # tokens of an answer
    longest_prompt: int = 0
    calls: int = 0  # counted so far
    margin: int = 1  # 2 once the server has counted more than the worst case

    def likely(self, question: Question) -> tuple[int, int]:
        """Tokens of a question, and of a long answer to it."""
        return self._prompt(question), self.likely_output(question.max_output)

    def likely_output(self, max_output: int) -> int:
        output = self._most_output(max_output)
        return min(output, 2 * self.longest if self.calls >= _FEW else output)

    def _prompt(self, question: Question) -> int:
        return round(_size(question) * self.tokens_a_byte) + self.added

    def _most_output(self, max_output: int) -> int:
        return round(max_output * self.share)

    def worst(self, question: Question) -> tuple[int, int]:
        prompt, output = self._prompt(question), self._most_output(question.max_output)
        return (
            max(_size(question) + _MOST_ADDED, prompt * self.margin),
            output * self.margin,
        )

    def learn(self, question: Question, prompt: int, output: int) -> None:
        self.calls += 1
        size = _size(question)
        if prompt > size + _MOST_ADDED or output > question.max_output:
            self.margin = 2
        missing = max(0, prompt - self._prompt(question))
        # Adjust what is added first: the rate of a short question would be wrong.
        self.added = min(_MOST_ADDED, self.added + missing)
        if prompt > self._prompt(question):
            self.tokens_a_byte = (prompt - self.added) / max(size, 1)
        self.longest = max(self.longest, output)
        self.longest_prompt = max(self.longest_prompt, prompt)
        self.share = max(self.share, output / max(question.max_output, 1))


class Budget:
    """Tokens and USD that a run may spend on new calls; None is no limit.

    ``hint`` says what to do once it is reached.
    """

    def __init__(
        self,
        most_tokens: int | None = None,
        most_cost: float | None = None,
        price_of: PriceOf = lambda _: None,
        hint: Text = "raise it, or ask for less",
    ) -> None:
        self._most_tokens = most_tokens
        self._most_cost = most_cost
        self._price_of = price_of
        self._tokens = 0
        self._cost = 0.0
        self._hint = hint
        self._counts: dict[str, _Counts] = defaultdict(_Counts)
        # What calls in flight reserve, by key. A running sum of floats would drift, and
        # a question could wait forever. Two agents may ask the same
        self._held: dict[str, list[_Amount]] = defaultdict(list)
        # By model: the call that may cost more than reserved
        self._at_risk: dict[str, str] = {}
        self._largest: dict[_TrialKind, _Amount] = {}  # trial so far
        self._rubrics: dict[str, Rubric] = {}  # by the key of the question
        self._refused_cases: dict[Hashable, Text] = {}  # and why
        self.unanswered: list[UnansweredCall] = []
        self.refused = False  # whether any question was refused

    def refusal(self, question: Question) -> Text | None:
        """Why a question exceeds the budget even with nothing in flight;
        None if it does not.
        """
        return (
            self._refusal(question, self._likely(question)) if self.is_limited else None
        )

    def _refusal(self, question: Question, amount: _Amount) -> Text | None:
        if (
            self._most_tokens is not None
            and self._tokens + amount.tokens > self._most_tokens
        ):
            return self._tokens_reached(question)
        if self._most_cost is not None and self._cost + amount.usd > self._most_cost:
            return self._cost_reached(question)
        return None

    def refusal_of_case(self, question: Question) -> Text | None:
        """The same for a trial, which is refused in all arms and
        runs of its case or in none.

        What was begun before can't be taken back.
        """
        if not self.is_limited:
            return None
        refusal = self._refused_cases.get(question.of_case) or self.refusal(question)
        if not refusal and (whole_trial := self._likely_trial(question)):
            refusal = self._refusal(question, whole_trial)
        if refusal:
            self._refused_cases[question.of_case] = refusal
        return refusal

    def expect_ruling(self, question: Question, rubric: Rubric) -> None:
        """A judge will be asked about the answer to a question."""
        self._rubrics[question.key] = rubric

    def _likely(self, question: Question) -> _Amount:
        likely = self._at_most(
            question.model, *self._counts[question.model].likely(question)
        )
        return self._with_ruling(question, likely)

    def _with_ruling(self, question: Question, amount: _Amount) -> _Amount:
        """An amount with what the judge of the answer is likely to take,
        if there is one.

        At first that is the whole output limit. It is not added then, or a small
        budget would allow no call at all: it is enough that the judge can be asked
        once after a short answer.
        """
        if not (rubric := self._rubrics.get(question.key)):
            return amount
        if rubric.task:
            largest = self._largest.get(_kind(rubric.judge, rubric.task, judges=True))
            return amount.plus(largest.times(2 * rubric.votes)) if largest else amount
        asked, judge = self._counts[question.model], self._counts[rubric.judge]
        prompt, output = asked.likely(question)[0], asked.longest
        about = _bytes([*rubric.texts, *(text for _, text in question.messages)])
        about_answer = round(about * _TOKENS_A_BYTE) + output + _JUDGE_PROMPT
        judge_prompt = judge.longest_prompt or about_answer
        ruling = self._at_most(
            rubric.judge, judge_prompt, judge.likely_output(rubric.max_output)
        )
        if judge.calls >= _FEW:
            return amount.plus(ruling.times(rubric.votes))
        short = self._at_most(question.model, prompt, output).plus(ruling)
        tokens, usd = max(amount.tokens, short.tokens), max(amount.usd, short.usd)
        return _Amount(amount.model, tokens, usd)

    def hold(self, question: Question) -> bool:
        """Reserve what a question could spend; False if it must wait for others."""
        if not self.is_limited:
            return True
        model = question.model
        counts = self._counts[model]
        worst = self._with_ruling(
            question, self._at_most(model, *counts.worst(question))
        )
        likely = self._likely(question)
        in_flight = sum(held.model == model for held in self._all_held())
        times = 1 if in_flight < counts.calls else _AMPLE
        if counts.calls and self._fits(worst, times):
            self._held[question.key].append(worst)
        elif model not in self._at_risk and self._fits(likely):
            self._held[question.key].append(likely)
            self._at_risk[model] = question.key
        else:
            return False
        return True

    def reached(self, question: Question) -> Text:
        """Why a trial that has spent all that was left is refused."""
        if self._most_cost is None:
            return self._tokens_reached(question)
        return self._cost_reached(question)

    def settle(
        self, question: Question, paid: Usage | None, answer: Answer | None = None
    ) -> None:
        """Replace what was reserved by what was paid; None is nothing.

        What the server doesn't count is estimated. No question has 0 tokens: such
        a server does not count at all. What is sent and received is worth
        something, whatever it counts.
        """
        if self.is_limited:
            self._release(question)
        if paid is None:
            return
        counts = self._counts[question.model]
        counted = _is_counted(paid)
        if not counted:
            likely = counts.likely(question)
            paid = replace(
                paid, input=paid.input or likely[0], output=paid.output or likely[1]
            )
        received = (
            _bytes([answer.text, answer.thinking, *_texts_of(answer.calls)])
            if answer
            else 0
        )
        worth = replace(
            paid,
            input=_credible(paid.input, _size(question)),
            output=_credible(paid.output, received),
            # Or more of it would cost less
            cached=min(paid.cached or 0, paid.input or 0),
        )
        counts.learn(question, worth.input or 0, worth.output or 0)
        spent = self._amount(question.model, worth)
        self._tokens += spent.tokens
        self._cost += spent.usd
        if answer is None:
            self.unanswered.append(UnansweredCall(question.model, paid, counted))

    def lose(self, spent: Sequence[PaidCall]) -> None:
        """Count the calls of a trial that ended without an answer."""
        for call in spent:
            self.unanswered.append(UnansweredCall(*call, _is_counted(call.usage)))

    # Trials of agents, and those of them that are carried out on other machines.

    def fits_trial(
        self, question: Question, running: Sequence[tuple[Question, Sequence[PaidCall]]]
    ) -> bool:
        """Whether there is room for a trial beside those that are running,
        with their usage so far.

        What a trial takes is not known before one of its kind has ended: until then,
        only the trials of one case run.
        """
        if not self.is_limited:
            return True
        if (needed := self._likely_trial(question)) is None:
            kind, case = _kind_of(question), question.of_case
            return all(
                other.of_case == case for other, _ in running if _kind_of(other) == kind
            )
        for other, calls in running:
            likely = self._likely_trial(other) or _Amount(other.model, 0, 0.0)
            spent = self._sum(other, calls)
            tokens, usd = likely.tokens - spent.tokens, likely.usd - spent.usd
            needed = needed.plus(_Amount(other.model, max(0, tokens), max(0.0, usd)))
        return self._has_room(needed)

    def end_trial(self, question: Question, spent: Sequence[PaidCall]) -> None:
        """A trial has its answer: others may take as much."""
        self._note_trial(question, self._sum(question, spent))

    def _likely_trial(self, question: Question) -> _Amount | None:
        """What a large trial takes, with its ruling; None if
        none of its kind has ended.
        """
        largest = self._largest.get(_kind_of(question))
        return largest and self._with_ruling(question, largest.times(2))

    def _note_trial(self, question: Question, amount: _Amount) -> None:
        before = self._largest.get(_kind_of(question), amount)
        tokens, usd = max(before.tokens, amount.tokens), max(before.usd, amount.usd)
        self._largest[_kind_of(question)] = _Amount(question.model, tokens, usd)

    def _sum(self, question: Question, calls: Sequence[PaidCall]) -> _Amount:
        amounts = [self._amount(*call) for call in calls]
        tokens = sum(amount.tokens for amount in amounts)
        return _Amount(question.model, tokens, sum(amount.usd for amount in amounts))

    def allot(self, question: Question) -> Allowance | None:
        """Reserve what a trial may spend; None if it must wait for others.

        What a trial takes is not known before it ends. So the first of an agent on a
        model may spend all that is left, and goes alone; others get twice the
        largest so far, and a call.
        """
        if not self.is_limited:
            return Allowance()
        amount = None
        if likely := self._likely_trial(question):
            amount = likely.plus(self._likely(question))
        is_all = amount is None or not self._fits(amount)
        if is_all:
            if self._all_held():
                return None
            amount = _Amount(
                question.model,
                max(0, (self._most_tokens or 0) - self._tokens),
                max(0.0, (self._most_cost or 0.0) - self._cost),
            )
        assert amount
        self._held[question.key].append(amount)
        return Allowance(
            None if self._most_tokens is None else amount.tokens,
            None if self._most_cost is None else amount.usd,
            is_all,
        )

    def spend(
        self,
        question: Question,
        tokens: int,
        usd: float,
        unanswered: Sequence[UnansweredCall] = (),
        *,
        exceeded: bool = False,
    ) -> None:
        """Replace what was reserved for a trial by what it spent, ``unanswered`` calls
        included.

        One that exceeded its allowance counts as large as that.
        """
        held = self._held.get(question.key, [])
        allotted = held[-1] if held and exceeded else _Amount(question.model, 0, 0.0)
        self._release(question)
        self.unanswered += unanswered
        self._tokens += tokens
        self._cost += usd
        tokens, usd = max(tokens, allotted.tokens), max(usd, allotted.usd)
        self._note_trial(question, _Amount(question.model, tokens, usd))

    @property
    def spent(self) -> tuple[int, float]:
        """Tokens and USD; 0 USD without a limit in USD."""
        return self._tokens, self._cost

    def _release(self, question: Question) -> None:
        if held := self._held.get(question.key):
            held.pop()
            if not held:
                del self._held[question.key]
        if self._at_risk.get(question.model) == question.key:
            del self._at_risk[question.model]

    def _all_held(self) -> list[_Amount]:
        return [amount for held in self._held.values() for amount in held]

    @property
    def is_limited(self) -> bool:
        return self._most_tokens is not None or self._most_cost is not None

    def _fits(self, amount: _Amount, times: int = 1) -> bool:
        """Whether there is budget for a call beside those in flight,
        or for so many of each.
        """
        held = [amount, *self._all_held()]
        tokens, usd = (
            sum(amount.tokens for amount in held),
            sum(amount.usd for amount in held),
        )
        return self._has_room(_Amount(amount.model, tokens, usd).times(times))

    def _has_room(self, amount: _Amount) -> bool:
        """Whether so much is left."""
        return (
            self._most_tokens is None
            or self._tokens + amount.tokens <= self._most_tokens
        ) and (self._most_cost is None or self._cost + amount.usd <= self._most_cost)

    def _at_most(self, model: str, prompt: int, output: int) -> _Amount:
        """What so many tokens could cost: the provider may cache them, or not."""
        kinds = ((0, 0), (prompt, 0), (0, prompt))
        usages = (Usage(prompt, output, *kind) for kind in kinds)
        return max(self._amount(model, usage) for usage in usages)

    def _amount(self, model: str, usage: Usage) -> _Amount:
        usd = 0.0
        if self._most_cost is not None:  # looking up prices is slow
            usd = cost(self._price_of(model), usage) or 0.0
        return _Amount(model, usage.tokens, usd)

    @property
    def _is_mostly_unspent(self) -> bool:
        """Then the next call is too large, perhaps by its longest output."""
        return not self._tokens or (
            (self._most_tokens is None or 2 * self._tokens < self._most_tokens)
            and (self._most_cost is None or 2 * self._cost < self._most_cost)
        )

    def _tokens_reached(self, question: Question) -> Text:
        return self._reached(
            question, f"{self._tokens:,}", f"{self._most_tokens or 0:,} tokens"
        )

    def _cost_reached(self, question: Question) -> Text:
        return self._reached(
            question, dollars(self._cost), f"${plain(self._most_cost or 0.0)}"
        )

    def _reached(self, question: Question, spent: str, limit: str) -> Text:
        self.refused = True
        hint = (self._hint,) if isinstance(self._hint, str) else self._hint
        problem = f"budget reached ({spent} of {limit})"
        if self._is_mostly_unspent:
            what = "trial" if question.task else "call"
            problem = f"this {what} could exceed the budget ({spent} of {limit} spent)"
        return (f"{question.model}: {problem}: ", *hint)


def _is_counted(usage: Usage) -> bool:
    return bool(usage.input) and usage.output is not None


def _credible(tokens: int | None, size: int) -> int:
    """The tokens of a text of so many bytes: what a server counted,
    unless that is too few.
    """
    counted = tokens or 0
    return counted if counted >= size * _LEAST_A_BYTE else round(size * _TOKENS_A_BYTE)


_TrialKind = tuple[str, str, bool, bool]


def _kind_of(question: Question) -> _TrialKind:
    return _kind(question.model, question.task, judges=question.verdicts is not None)


def _kind(model: str, task: Task | None, *, judges: bool) -> _TrialKind:
    """An agent, its model, whether it ends once it has opened a skill,
    and whether it judges.
    """
    return task.agent if task else "", model, bool(task and task.until_opened), judges


def _size(question: Question) -> int:
    """The bytes that a server counts as tokens."""
    texts = [
        question.system,
        *(text for _, text in question.messages),
        question.schema or "",
    ]
    for tool in question.tools:
        texts += (tool.name, tool.description, tool.schema)
    for step in question.steps:
        texts.append(step.raw or step.text)
        if not step.raw:
            texts += _texts_of(step.calls)
        texts += (*(result.text for result in step.results), step.answer)
    return _bytes(texts)


def _texts_of(calls: Iterable[ToolCall]) -> list[str]:
    return [text for call in calls for text in (call.name, call.arguments)]


def _bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in texts)
