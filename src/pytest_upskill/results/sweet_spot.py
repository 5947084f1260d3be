"""The sweet spot: the cheapest model, with a skill or without,
that is about as good as all.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from .._util.texts import dollars, first_few, one_line
from ..stats import Lift, guarded, paired_lift, shared_level
from ..trials.arm import BASELINE, SKILL
from .contrasts import MARGIN, is_within, points_words, size_of
from .verdict import Verdict, share_words

_MOST_NAMES: Final = 5


class PricedChoice(NamedTuple):
    """A model with the skill or without it."""

    model: str
    arm: str
    score: float
    cost: float  # USD of an answer
    share: str  # the score in words
    scores: Mapping[str, float]  # by sample
    runs: int

    @property
    def name(self) -> str:
        return f"{self.model} {'with' if self.arm == 'skill' else 'without'} the skill"

    @property
    def price(self) -> str:
        return dollars(1000 * self.cost)


def sweet_spot(verdicts: Sequence[Verdict]) -> str | None:
    """Of one skill: the cheapest choice shown to be about as good as all,
    if prices are known.
    """
    if not (choices := _choices(verdicts)):
        return None
    spot, best, likely = sweet_choice(verdicts), _best(choices), _likely_choice(choices)
    margin = size_of(MARGIN)
    if spot and spot != best:
        words = (
            f"{spot.name} ({spot.share}) is the cheapest choice shown to be within"
            f" {margin} of the best ({best.name}, {best.share}): {spot.price} instead"
            f" of {best.price} per 1000 answers"
        )
    elif spot and spot.cost == min(choice.cost for choice in choices):
        words = (
            f"{spot.name} ({spot.share}) is the cheapest, and no other is {margin}"
            " better"
        )
    elif spot and spot == likely:
        words = (
            f"{spot.name} ({spot.share}) is the best; no cheaper choice is within"
            f" {margin}"
        )
    else:
        words = _doubt(likely, choices)
    return f"{words}{_left_out(verdicts)}."


def sweet_choice(verdicts: Sequence[Verdict]) -> PricedChoice | None:
    """What ``sweet_spot`` names, unless there are too few cases to tell.

    A choice that is worse than another by the margin is named in at most 2.5 %
    of all runs: all that may be named share the error, and each has to be
    close to every other one.
    """
    choices = _choices(verdicts)
    for choice in sorted(choices, key=lambda choice: choice.cost):
        if choice.cost > _best(choices).cost:
            break
        if all(is_within(change, MARGIN) for _, change in _changes(choice, choices)):
            return choice
    return None


def _likely_choice(choices: Sequence[PricedChoice]) -> PricedChoice:
    """The cheapest by the scores alone."""
    least = _best(choices).score - MARGIN
    return min((c for c in choices if c.score >= least), key=lambda choice: choice.cost)


def _doubt(likely: PricedChoice, choices: Sequence[PricedChoice]) -> str:
    """``too few cases to tell: haiku with the skill (85%) is -3
    points (-31 to +25) from …``.
    """
    rival, change = min(_changes(likely, choices), key=lambda pair: pair[1].low)
    return (
        f"too few cases to tell: {likely.name} ({likely.share}) is "
        f"{points_words(change)} from {rival.name} ({rival.share})"
    )


def _changes(
    choice: PricedChoice, choices: Sequence[PricedChoice]
) -> Iterator[tuple[PricedChoice, Lift]]:
    """Each other choice, and the score of this one less its score,
    over the cases of all.
    """
    level, cases = shared_level(len(choices) - 1), sorted(_common_cases(choices))
    for other in choices:
        if other is not choice:
            pairs = [(other.scores[case], choice.scores[case]) for case in cases]
            change = paired_lift(pairs, max(choice.runs, other.runs), level)
            differences = [after - before for before, after in pairs]
            yield other, guarded(change, differences, level)


def _choices(verdicts: Sequence[Verdict]) -> list[PricedChoice]:
    """Both arms of each model, but not with a skill that hurts,
    nor where cases are missing.

    None unless several models of several prices have cases in common,
    and pass anything.
    """
    choices = []
    for verdict in verdicts:
        row = verdict.summary
        for arm in (SKILL, BASELINE) if not _why_left_out(verdict) else ():
            score, cost = row.scored(arm), row.arm(arm).cost
            harmful = arm == SKILL and verdict.word == "hurts"
            if score is not None and cost is not None and not harmful:
                scores, share = row.sample_scores(arm), share_words(row, arm)
                choices.append(
                    PricedChoice(row.label, arm, score, cost, share, scores, row.runs)
                )
    models, costs = (
        {choice.model for choice in choices},
        {choice.cost for choice in choices},
    )
    comparable = len(models) > 1 and len(costs) > 1 and _common_cases(choices)
    return choices if comparable and _best(choices).score else []


def _common_cases(choices: Sequence[PricedChoice]) -> set[str]:
    return set[str].intersection(*(set(choice.scores) for choice in choices))


def _left_out(verdicts: Sequence[Verdict]) -> str:
    reasons = [(verdict, _why_left_out(verdict)) for verdict in verdicts]
    named = [
        f"{one_line(verdict.summary.label, 60)} ({reason})"
        for wanted in ("incomplete", "over budget", "no price")
        for verdict, reason in reasons
        if reason == wanted
    ]
    return f"; left out: {first_few(named, _MOST_NAMES)}" if named else ""


def _why_left_out(verdict: Verdict) -> str:
    if verdict.is_of_oracle:
        return "no model"
    if verdict.word == "incomplete":
        return "incomplete"
    if verdict.summary.budget_words:
        return "over budget"
    return "" if verdict.summary.arm(SKILL).cost is not None else "no price"


def _best(choices: Sequence[PricedChoice]) -> PricedChoice:
    return max(choices, key=lambda choice: (choice.score, -choice.cost))
