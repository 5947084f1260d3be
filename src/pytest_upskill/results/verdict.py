"""The verdict on a skill and model: one word and one sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Final, Literal

from .._util.texts import counted, first_few, one_line, points
from ..settings import Score
from ..stats import (
    POWER,
    RELEVANT_LIFT,
    ROUNDING,
    ByChance,
    Lift,
    detectable_lift,
    lift_per_use,
    normalised_gain,
    shared_level,
)
from ..trials.arm import AGAIN, BASELINE, PREVIOUS, SKILL
from ..trials.subject import ORACLE
from .activation import activation_words
from .arm_comparison import (
    Comparison,
    compare_arms,
    compare_versions,
    token_words,
    unit_of,
)
from .contrasts import size_of
from .oracle_results import oracle_sentence
from .regressions import SinceAccepted
from .self_comparison import aa_words, by_chance_of
from .summary import Summary

# too few cases to tell: the interval of the lift holds 0 and a relevant lift or loss;
# no effect shown: it excludes both; not needed: so it does, and the baseline passes.
Word = Literal[
    "helps",
    "hurts",
    "no effect shown",
    "too few cases to tell",
    "not needed",
    "incomplete",
]
_OPEN: Final = ("no effect shown", "too few cases to tell")

PASSES_ALREADY: Final = 0.9  # the score of a baseline that needs no skill
_AS_GOOD: Final = 0.05  # a smaller difference of scores does not matter
_MOST_NAMES: Final = 5


@dataclass(frozen=True)
class Verdict:
    """The verdict on a skill and model; there is no word without a baseline."""

    summary: Summary
    # The skill over each other arm; none while incomplete
    comparisons: Mapping[str, Comparison]
    word: Word | None
    sentence: str
    detectable_lift: float | None
    # Of an agent that did not open the skill in all trials
    lift_per_opening: Lift | None = None
    by_chance: ByChance | None = None  # of a skill that is compared with itself
    # Its accepted results beside the present ones
    accepted: SinceAccepted | None = None

    def over(self, arm: str) -> Comparison | None:
        return self.comparisons.get(arm)

    @property
    def lift(self) -> Lift | None:
        """Over the baseline."""
        over = self.over("baseline")
        return over.lift if over else None

    @property
    def since(self) -> str | None:
        """The skill compared with itself at the ref of --skill-against, in words."""
        over = self.over("previous")
        ref = one_line(self.summary.against or "", 60)
        return f"since {ref}: {over.words}" if over else None

    @property
    def worse_since(self) -> str | None:
        """That the skill is worse than at the ref of --skill-against, if that is
        shown.
        """
        over = self.over("previous")
        ref = one_line(self.summary.against or "", 60)
        return f"worse than at {ref}" if over and over.word == "worse" else None

    @property
    def fell(self) -> str:
        """``fell 67 → 17 since 2026-11-01``, if it is worse than accepted."""
        return self.accepted.words if self.accepted else ""

    @property
    def is_of_oracle(self) -> bool:
        """Whether it is about the references of cases, not about a skill."""
        return self.summary.agent == ORACLE

    @property
    def gain(self) -> float | None:
        """The lift as a share of what the baseline left to gain."""
        baseline, skill = self.summary.scored("baseline"), self.summary.scored("skill")
        if (
            baseline is None
            or skill is None
            or self.summary.incomplete
            or self.is_of_oracle
        ):
            return None
        return normalised_gain(baseline, skill)

    @property
    def worse(self) -> tuple[str, ...]:
        """Cases that do worse with the skill; while answers are missing,
        these may be chosen.
        """
        if self.word == "incomplete":
            return ()
        return self._cases(lambda baseline, skill: skill < baseline - ROUNDING)

    @property
    def always_pass(self) -> tuple[str, ...]:
        """Cases that pass even without the skill, with all
        checks if these are the score.
        """
        return self._cases(lambda baseline, skill: baseline == skill == 1)

    @property
    def always_fail(self) -> tuple[str, ...]:
        """Cases that fail even with the skill, with all checks if these are the
        score.
        """
        return self._cases(lambda baseline, skill: baseline == skill == 0)

    def _cases(self, condition: Callable[[float, float], bool]) -> tuple[str, ...]:
        scores = {} if self.is_of_oracle else self.summary.case_scores(over="baseline")
        return tuple(case for case, pair in scores.items() if condition(*pair))


def verdicts_of(summaries: Sequence[Summary]) -> list[Verdict]:
    """One for each summary, in their order, adjusted for several models of a skill."""
    models = [row for row in summaries if row.agent != ORACLE]
    judged = iter(_verdicts_on(models))
    return [
        _of_oracle(row) if row.agent == ORACLE else next(judged) for row in summaries
    ]


def _of_oracle(row: Summary) -> Verdict:
    """What the references show about the cases; nothing about the skill."""
    word: Word | None = "incomplete" if row.incomplete else None
    parts = [missing_words(row)] if word else []
    return Verdict(row, {}, word, "; ".join([*parts, oracle_sentence(row)]), None)


def _verdicts_on(summaries: Sequence[Summary]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    versions = iter(compare_versions(summaries, PREVIOUS))
    for _, group in groupby(summaries, key=lambda summary: summary.skill):
        rows = list(group)
        arms = dict.fromkeys(chain([BASELINE], *(row.arms for row in rows)))
        compared_arms = [arm for arm in arms if arm != SKILL]
        over = {arm: compare_arms(rows, arm) for arm in compared_arms}
        compared_with = over.get(AGAIN, over[BASELINE])
        models = sum(comparison is not None for comparison in compared_with)
        for number, row in enumerate(rows):
            comparisons: dict[str, Comparison] = {
                arm: comparison
                for arm in compared_arms
                if (comparison := over[arm][number]) and not row.incomplete
            }
            change = next(versions)
            if since := comparisons.get(PREVIOUS):
                comparisons[PREVIOUS] = replace(since, versions=change)
            verdicts.append(_verdict(row, comparisons, models))
    return verdicts


def _verdict(
    row: Summary, comparisons: Mapping[str, Comparison], models: int
) -> Verdict:
    # Several models can show less than one
    level_per_model = shared_level(models)
    if over := comparisons.get(AGAIN):
        by_chance = by_chance_of(row, level_per_model)
        words = aa_words(row, over, by_chance)
        return Verdict(row, comparisons, None, words, None, by_chance=by_chance)
    scores = row.scores(over="baseline")
    smallest = detectable_lift(scores, level_per_model) if scores else None
    over = comparisons.get("baseline")
    lift = over.lift if over else None
    word = _word(row, lift)
    outlook = _outlook(row, lift, smallest, models) if word in _OPEN else ""
    effect = _lift_per_opening(row, over)
    sentence = _sentence(row, word, over, effect, outlook)
    return Verdict(row, comparisons, word, sentence, smallest, effect)


def _lift_per_opening(row: Summary, over: Comparison | None) -> Lift | None:
    """None where it is the lift itself, or hardly known."""
    used = row.activation
    if not over or not used or used.count == used.trials:
        return None
    return lift_per_use(over.lift, row.scores(over="baseline"), used.shares)


def _word(row: Summary, lift: Lift | None) -> Word | None:
    if row.incomplete:
        return "incomplete"
    baseline = row.scored("baseline")
    if lift is None or baseline is None:
        return None
    if lift.shown:
        return _direction(lift)
    if lift.low <= -RELEVANT_LIFT or lift.high >= RELEVANT_LIFT:
        return "too few cases to tell"
    passes, harmless = baseline >= PASSES_ALREADY, lift.lift >= -_AS_GOOD
    return "not needed" if passes and harmless else "no effect shown"


def _direction(lift: Lift) -> Literal["helps", "hurts"]:
    return "helps" if lift.lift > 0 else "hurts"


def _sentence(
    row: Summary,
    word: Word | None,
    over: Comparison | None,
    effect: Lift | None,
    outlook: str,
) -> str:
    parts = []
    if word == "incomplete":
        parts.append(
            "; ".join([missing_words(row), *_arm_counts(row), *_possible(row)])
        )
    elif over:
        parts.append(over.lift_words)
    elif row.scored("skill") is not None:
        parts.append(
            f"{share_words(row, 'skill')} pass with the skill{_other_share(row)}"
        )
    if word == "not needed":
        parts.append(f"{share_words(row, 'baseline')} pass without it")
    if over and over.tokens:
        parts.append(token_words(over.tokens))
    budget = row.budget_words if word != "incomplete" else ""
    used = row.activation
    opened = (
        activation_words(used, word, over.lift if over else None, effect)
        if used
        else ""
    )
    untold = used and used.untold == used.trials
    if row.unfinished and word != "helps" and not untold:
        opened = "; ".join([*([used.opened] if used else []), _unfinished(row)])
        outlook = ""
    if used and not used.count:
        outlook = ""  # no number of such cases would tell
    return "; ".join(filter(None, [", ".join(parts), budget, opened, outlook]))


def _unfinished(row: Summary) -> str:
    """That the model fails, whatever the skill says."""
    shares = [
        f"{arm.unfinished:,} of {counted(arm.asked - arm.errored, 'trial')} {name} it"
        for name, arm in (("with", row.arm(SKILL)), ("without", row.arm(BASELINE)))
    ]
    return (
        f"{' and '.join(shares)} ended at a limit or without a word, which points to"
        " the model, not to the skill: take a stronger one, or raise the limit, before"
        " you work on the skill"
    )


def _arm_counts(row: Summary) -> list[str]:
    """``baseline 18 of 20 answered, 9 passed``, of each arm."""
    return [
        f"{name} {arm.asked - arm.errored:,} of {arm.asked:,} answered, {arm.passed:,}"
        " passed"
        for name, arm in row.arms.items()
    ]


def _possible(row: Summary) -> list[str]:
    if not (lift := row.possible_lift):
        return []
    low, high = map(points, lift)
    return [
        (
            f"with what is missing, the lift is between {low} and {high}"
            f" points{unit_of(row.score)}"
        )
    ]


def share_words(row: Summary, arm: str) -> str:
    return f"{row.scored(arm):.0%}{unit_of(row.score)}"


def _other_share(row: Summary) -> str:
    """What is not the score, if it differs."""
    skill = row.arm("skill")
    if (
        skill.rate is None
        or skill.score is None
        or f"{skill.rate:.0%}" == f"{skill.score:.0%}"
    ):
        return ""
    cases, checks = f" ({skill.rate:.0%} of cases)", f" ({skill.score:.0%} of checks)"
    return checks if row.score == "pass" else cases


def missing_words(row: Summary) -> str:
    """``2 answers missing and 1 case not run``."""
    parts = [f"{counted(row.errored, 'answer')} missing"] if row.errored else []
    parts += [f"{counted(row.not_run, 'case')} not run"] if row.not_run else []
    parts += [row.why_withheld] if row.why_withheld else []
    return " and ".join(parts) or row.budget_words or "no answers"


def _outlook(
    row: Summary, lift: Lift | None, smallest: float | None, models: int
) -> str:
    """Which lift so many cases are likely to show; or that just
    a loss is still possible.
    """
    scores = row.scores(over="baseline")
    if not scores or not lift:
        return ""
    if lift.low <= -RELEVANT_LIFT and lift.high < RELEVANT_LIFT:
        return f"a loss of {size_of(RELEVANT_LIFT)} is not ruled out"
    noun = "case" if len(scores) == len(row.by_case) else "group"
    cases = counted(len(scores), noun) + (f" for {models} models" if models > 1 else "")
    if smallest is None:
        return f"{cases} can show no lift with {POWER:.0%} power"
    size = f"{round(smallest * 100)}+ points{unit_of(row.score)}"
    return f"{cases} can show a lift of {size} with {POWER:.0%} power"


def signal_lines(verdict: Verdict, *, failures: bool = True) -> list[str]:
    """Cases that got worse, then those that show no difference; ``failures``:
    also failed ones.
    """
    words = _SIGNALS[verdict.summary.score]
    lists = (
        verdict.worse,
        verdict.always_pass,
        verdict.always_fail if failures else (),
    )
    return [
        f"{signal}: {first_names(cases)}"
        for signal, cases in zip(words, lists, strict=True)
        if cases
    ]


_SIGNALS: Final[Mapping[Score, tuple[str, str, str]]] = {
    "pass": (
        "worse with the skill",
        "pass even without the skill",
        "fail even with the skill",
    ),
    "checks": (
        "fewer checks pass with the skill",
        "all checks pass even without the skill",
        "no check passes even with the skill",
    ),
}


def first_names(cases: Sequence[str]) -> str:
    """The first few of many."""
    return first_few([one_line(case, 60) for case in cases], _MOST_NAMES)
