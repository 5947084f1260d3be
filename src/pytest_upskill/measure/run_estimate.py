"""What a run of tests will cost, estimated before its first call.

What answers took before, by the stored ones and by earlier runs, tells what the next ones will
take. Where nothing is known there is a wide range.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from .._util.texts import dollars
from ..checks.judging import first_questions
from ..engine.prefixes import Prefixes
from ..models.prices import FREE, Price, cost
from ..skills.skill import estimated_tokens
from ..trials.answer import Answer, Reply, Usage, total_usage
from ..trials.plan import Plan
from ..trials.trial import Question, Rubric, Trial
from .estimate import Calls, Estimate, agent_text, asked_of, estimate_of
from .experience import Experience, Place, Tally, mean_usage, place_of

# Tokenizers and languages differ from the estimate of a text by about this.
_FEWER: Final = 0.5
_MORE: Final = 2.0
_TEMPLATE: Final = 100  # tokens that a server adds to a question, at most
_SHORT: Final = 5  # tokens of a short answer
_FORM: Final = 500  # tokens of what a judge is told besides
# Of an agent's turn: its own words and the result of a tool, both sent again with every later one.
_LONG_TURN: Final = 2_000
_LONG_REPLY: Final = 1_000
_CENT_TENTH: Final = 0.001
_DEAR: Final = 5.0  # USD
_WORTH: Final = 3  # uses of a prefix


class Known(NamedTuple):
    """Of a trial that has a stored answer: calls of the judge about it, and the stored of them."""

    judged: int
    stored: int
    usage: Usage = Usage()
    judge_usage: Usage = Usage()  # of the stored ones together


_NONE: Final = Usage(0, 0, 0)


def known_calls(
    trials: Iterable[Trial], get: Callable[[Question], Reply | None]
) -> dict[str, Known]:
    """The trials that have a stored answer, by the key of their question."""
    found: dict[str, Known] = {}
    for trial in trials:
        answer = get(trial.question)
        if isinstance(answer, Answer):
            asked = first_questions(trial.rubric, trial.question, answer) if trial.rubric else []
            replies = [one for one in map(get, asked) if isinstance(one, Answer)]
            spent = total_usage([one.usage for one in replies]) if replies else _NONE
            key = trial.question.key
            found[key] = Known(len(asked), len(replies), answer.usage, spent)
    return found


@dataclass(frozen=True)
class Past:
    """What is known before a run: what questions took that it asks, and others like them.

    ``caches_from`` has the tokens of the shortest prefix that a model's provider keeps for us,
    and ``prompt_cache`` says whether it is to do so now. Some models are asked by batch.
    """

    seen: dict[str, Known] = field(default_factory=dict)
    experience: Experience = field(default_factory=Experience)
    caches_from: Callable[[str], int | None] = lambda _: None
    prompt_cache: bool = True
    batched: Collection[str] = ()

    def by_batch(self, question: Question) -> bool:
        return question.task is None and question.model in self.batched


@dataclass(frozen=True)
class RunEstimate:
    """What a run pays for; ``guess`` is of the models whose price is known, None if none is.

    ``likely`` is what the fewest and the most runs cost by all that is known; None if it is not
    enough.
    """

    stored: int  # calls, and trials of agents, that need not be made
    guess: Estimate | None
    unpriced: tuple[str, ...] = ()
    likely: tuple[float, float] | None = None

    @property
    def most(self) -> float:
        return (self.guess.cost if self.guess else None) or 0.0

    @property
    def price(self) -> str:
        """``about $0.42 (at most $0.90)``, or a range; empty if nothing is to be paid."""
        words = ""
        if self.guess and not self.guess.free and self.most:
            least = (self.guess.least or self.guess).cost or 0.0
            words = _about(*self.likely, self.most) if self.likely else _between(least, self.most)
        names = ", ".join(self.unpriced)
        if words and names:
            return f"{words}, and the price of {names} is not known"
        return "cost not known" if names else words


def _about(fewest: float, all_runs: float, most: float) -> str:
    """What is likely, and what is possible."""
    if all_runs < _CENT_TENTH:
        return _between(0.0, most)
    low, high = dollars(fewest), dollars(all_runs)
    likely = f"about {low} to {high}" if low != high else f"about {high}"
    if fewest < _CENT_TENTH:
        likely = f"up to about {high}"  # all of the fewest are stored
    return f"{likely} (at most {dollars(1.03 * max(most, all_runs))})"


def _between(least: float, most: float) -> str:
    """A range that is rounded to the outside."""
    low, high = dollars(0.97 * least), dollars(1.03 * most)
    if most < _CENT_TENTH:
        return f"less than {dollars(_CENT_TENTH)}"
    return f"up to {high}" if least < _CENT_TENTH else f"about {low} to {high}"


def estimate_of_run(
    plan: Plan,
    known: dict[str, Known],
    price_of: Callable[[str], Price | None],
    past: Past | None = None,
) -> RunEstimate:
    """Of all that may be asked, without what is stored; tests in Python are not known before."""
    past = past or Past()
    planned = [trial for test in (*plan.tests, *plan.triggers) for trial in test.trials]
    trials = {trial.question.key: trial for trial in planned if not trial.is_open}
    least, most = list[Calls](), list[Calls]()
    for key, trial in trials.items():
        own = list[tuple[Calls, Calls]]()
        if key not in known:
            question = trial.question
            extent = _extent(question, past.caches_from(question.model))
            own.append(_at_price(extent, batch=past.by_batch(question)))
        if trial.rubric:
            votes = trial.rubric.votes
            left = known[key].judged - known[key].stored if key in known else votes
            judged = _judging(trial.rubric, trial.question, left)
            own.append(_at_price(judged, batch=trial.rubric.judge in past.batched))
        least += [] if trial.later else [low for low, _ in own]
        most += [high for _, high in own]
    models = {calls.model for calls in most if calls.times}
    prices = {model: price_of(model) for model in models}
    unpriced = tuple(sorted(model for model in models if prices[model] is None))
    free = all(price == FREE for price in prices.values())
    ends = (
        estimate_of((one for one in calls if one.model not in unpriced), prices.get, free=free)
        for calls in (least, most)
    )
    low, high = ends
    stored = sum(1 + one.stored for key, one in known.items() if key in trials)
    guess = replace(high, least=low) if len(unpriced) < len(models) else None
    queries = {trial.question.key for test in plan.triggers for trial in test.trials}
    places = {key: place_of(trial, query=key in queries) for key, trial in trials.items()}
    likely = _likely(list(trials.values()), known, prices.get, past, places)
    return RunEstimate(stored, guess, unpriced, likely)


def _at_price(extent: tuple[Calls, Calls], *, batch: bool) -> tuple[Calls, Calls]:
    low, high = (one._replace(usage=replace(one.usage, batch=batch)) for one in extent)
    return low, high


def _likely(
    trials: Sequence[Trial],
    known: dict[str, Known],
    price_of: Callable[[str], Price | None],
    past: Past,
    places: Mapping[str, Place],
) -> tuple[float, float] | None:
    """USD of the first runs and of all; None if something about an answer is not known."""
    alike = _by_case(trials, past.seen)
    asked = list[_Asked]()
    for trial in trials:
        key = trial.question.key
        tally = past.experience.of(places[key])
        own = [_usage(trial, past, alike, tally)]
        if key not in known and own[0]:
            batch = past.by_batch(trial.question)
            usage = replace(own[0], batch=batch)
            known_so = batch and own[0].batch
            asked.append(_Asked(trial, trial.question.model, usage, trial.question, known_so))
        if trial.rubric and (left := _judgings(trial, known, past, tally)):
            (times, of_judge), judge = left, trial.rubric.judge
            own.append(of_judge)
            if of_judge:
                usage = replace(of_judge, batch=judge in past.batched)
                asked += [_Asked(trial, judge, usage)] * times
        priced = price_of(trial.question.model) is not None or key in known
        if (key not in known and own[0] is None) or None in own[1:] or not priced:
            return None
    first = [one for one in asked if not one.trial.later]
    fewest = _paid(first, price_of, past)
    most = _paid(asked, price_of, past, warm=False)
    return None if fewest is None or most is None else (fewest, most)


class _Asked(NamedTuple):
    """A call, or all calls of an agent's trial, and the tokens that they are thought to take."""

    trial: Trial
    model: str
    usage: Usage
    question: Question | None = None  # to the model under test
    known_so: bool = False  # with what the caches did, as it came by batch before

    @property
    def is_guessed(self) -> bool:
        """Whether what the caches do is not known before."""
        return self.question is not None and self.question.task is None and not self.known_so


_Case = tuple[str, str, str, str]


def _by_case(trials: Iterable[Trial], seen: dict[str, Known]) -> dict[_Case, list[Usage]]:
    """What the seen runs of each case took in each arm."""
    found: dict[_Case, list[Usage]] = {}
    for trial in trials:
        if one := seen.get(trial.question.key):
            found.setdefault(_case_of(trial), []).append(one.usage)
    return found


def _case_of(trial: Trial) -> _Case:
    return trial.skill, trial.case, trial.model, trial.arm


def _usage(
    trial: Trial, past: Past, alike: dict[_Case, list[Usage]], tally: Tally | None
) -> Usage | None:
    """What a trial took before, else other runs of it, else others of its skill on its model."""
    one = past.seen.get(trial.question.key)
    runs = [one.usage] if one else alike.get(_case_of(trial), [])
    spent = one.usage if one else total_usage(runs)
    if runs and spent.input and spent.output:
        counts = (spent.input, spent.output, spent.cached or 0, spent.written or 0)
        return mean_usage(counts, len(runs), batch=spent.batch)
    whole = trial.question.task is not None
    return tally.usage(asked_of(trial.question), whole=whole) if tally else None


def _judgings(
    trial: Trial, known: dict[str, Known], past: Past, tally: Tally | None
) -> tuple[int, Usage | None] | None:
    """How often the judge is asked about an answer, and what a call takes."""
    assert trial.rubric
    key = trial.question.key
    left = known[key].judged - known[key].stored if key in known else trial.rubric.votes
    if not left:
        return None
    one = past.seen.get(key)
    if one and one.stored and one.judge_usage.input and one.judge_usage.output is not None:
        spent = one.judge_usage
        counts = (spent.input or 0, spent.output or 0, spent.cached or 0, spent.written or 0)
        return left, mean_usage(counts, one.stored)
    if one and not one.judged:
        return None  # an empty answer, which nobody judges
    if tally and tally.judge_calls:
        return left, tally.judge_usage()
    return left, None


def _paid(
    asked: Sequence[_Asked],
    price_of: Callable[[str], Price | None],
    past: Past,
    *,
    warm: bool = True,
) -> float | None:
    calls = _through_caches(asked, past, warm=warm)
    costs = [cost(price_of(model), usage) for model, usage in calls]
    return None if None in costs else sum(filter(None, costs))


def _through_caches(asked: Sequence[_Asked], past: Past, *, warm: bool) -> list[tuple[str, Usage]]:
    """Models and tokens, with what is written to and read from the providers' caches.

    A batch may be answered all at once, so if none was before, its caches may be ``warm`` or not.
    """
    shortest = {one.model: past.caches_from(one.model) for one in asked}
    keeps = shortest if past.prompt_cache else dict[str, int | None]()
    prefixes = {model: Prefixes(keeps.get(model)) for model in shortest}
    plain = [one.question if one.is_guessed else None for one in asked]
    uses = [
        prefixes[one.model].use_of(question) if question else None
        for one, question in zip(asked, plain, strict=True)
    ]
    written = set[object]()
    found = list[tuple[str, Usage]]()
    for one, question, use in zip(asked, plain, uses, strict=True):
        usage = one.usage
        if question and shortest[one.model] is not None:
            usage = replace(usage, cached=0, written=0)  # which depends on the run
        kept = [part for part in use.prefixes if part.left >= _WORTH] if use else []
        for part in kept if question else ():
            assert question
            start = question if part.part == "messages" else replace(question, messages=())
            tokens = round((usage.input or 0) * asked_of(start) / max(1, asked_of(question)))
            if part in written and (warm or not usage.batch):
                usage = replace(usage, cached=tokens)
            else:
                usage = replace(usage, written=tokens - (usage.cached or 0))
                written.add(part)
        found.append((one.model, usage))
    return found


def _extent(question: Question, caches_from: int | None) -> tuple[Calls, Calls]:
    """The calls of a trial, at least and at most."""
    asked, model = asked_of(question), question.model
    short, long = min(_SHORT, question.max_output), question.max_output
    if question.task is None:
        fewest = int(_FEWER * asked)
        kept = fewest if caches_from is not None and asked >= caches_from else 0
        low = Calls(model, 1, Usage(fewest, short, kept))
        return low, Calls(model, 1, Usage(int(_MORE * asked) + _TEMPLATE, long, 0))
    turns, long = question.task.max_turns, min(_LONG_REPLY, long)
    text = asked + agent_text(question.task.agent)
    fewest = int(_FEWER * text)  # which may be in the provider's cache
    most = int(_MORE * text) + _LONG_TURN * turns // 2
    return (
        Calls(model, 1, Usage(fewest, short, fewest)),
        Calls(model, turns, Usage(most, long, 0)),
    )


def _judging(rubric: Rubric, question: Question, times: int) -> tuple[Calls, Calls]:
    """Calls of the judge about an answer; none if that is empty."""
    texts = estimated_tokens("".join((*rubric.texts, rubric.context))) + asked_of(question) + _FORM
    most = int(_MORE * texts) + question.max_output
    low = Calls(rubric.judge, times, Usage(int(_FEWER * texts), _SHORT, 0))
    return low, Calls(rubric.judge, times, Usage(most, rubric.max_output, 0))


def cost_words(
    estimate: RunEstimate,
    *,
    limit: float | None,
    suggest: str = "",
    turns: bool = False,
    python: bool = False,
) -> list[str]:
    """What follows the number of calls: ``180 from cache`` and what the rest costs.

    ``limit`` is the budget in USD, ``suggest`` the option that sets one, if it is to be named.
    """
    price = estimate.price
    if estimate.most and turns and not estimate.likely:
        price += " (by how many turns they take)"
    if estimate.most and python:
        price += ", without the tests in Python"
    if limit is not None and price and estimate.most > limit:
        price += f", stopping at {dollars(limit)}"
    elif suggest and limit is None and estimate.most > _DEAR:
        price += f"; {suggest} limits it"
    return [f"{estimate.stored:,} from cache" if estimate.stored else "", price]
