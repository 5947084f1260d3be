"""Verdicts: does a skill help? One answer per skill, over its models, and one for each
model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Annotated, Final, Literal

from pydantic import Field

from .._util import grouped
from .._util.json_forms import Number, Whole
from .._util.texts import counted, first_few, one_line, points, span, whole
from ..stats import (
    FEWEST_CASES,
    RELEVANT_LIFT,
    cases_to_show,
    detectable_lift,
    paired_ratio,
    worst_loss,
)
from ..trials.arm import AGAIN, BASELINE, PREVIOUS, SKILL
from .activation import activation_words
from .arm_times import ARM_WORDS
from .comparison import (
    CasePair,
    Comparison,
    adjust_for_models,
    compare,
    find_fallen,
    token_words,
    unit_of,
    with_fallen,
)
from .contrasts import points_words, size_of
from .row import Row, Saving, Word, missing_words, share_words

PASSES_ALREADY: Final = 0.9  # the score of a baseline that needs no skill
_AS_GOOD: Final = 0.05  # a smaller loss does not matter
_MAX_MISSING: Final = 3  # models whose answers are missing, by name
_FEWEST_CASES_OF_A_SAVING: Final = 10
# Ten cases without a loss can show that no more than this is lost.
_MAX_MARGIN: Final = 0.31


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a skill helps, over its models: paired over cases, whose differences are
    means over models.
    """

    skill: str
    verdict: Word | None  # None: there can be none, and the sentence says why
    lift: Number | None = None
    lift_low: Number | None = None
    lift_high: Number | None = None
    p_value: Number | None = None
    models: Whole
    cases: Whole
    # How often this SKILL.md was measured on these models, if the history knows
    looks: Whole | None = None
    sentence: str  # follows the name of the skill
    saving: Saving | None = None
    cases_needed: Whole | None = None  # by a new run, to show such a lift
    # The verdicts on single models, by label
    by_model: Annotated[Mapping[str, Word | None], Field(exclude=True)] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class _Evidence:
    """What a word and its sentence are made of, for one model or several."""

    over: Comparison | None  # with the skill compared with without it
    baseline: float | None  # the score without the skill
    cases: int  # that count, as samples
    missing: str = ""  # why answers are missing, or can't be compared
    hardly_answered: str = ""  # the arm whose answers are mostly missing or cut off
    withheld: str = ""  # why there is no verdict on what was selected
    unit: str = ""  # what points are of
    saving: Saving | None = None


# Single models.


def judge_rows(rows: Sequence[Row], withheld: Mapping[str, str]) -> list[Row]:
    """Add comparisons and verdicts, adjusted for several models of a skill.

    ``withheld`` says of which skills there is no verdict, and why.
    """
    judged: dict[int, Row] = {}
    numbered = list(enumerate(rows))
    for skill, group in grouped(numbered, lambda item: item[1].skill).items():
        compared = _compare_arms([row for _, row in group])
        for (number, _), row in zip(group, compared, strict=True):
            judged[number] = _judge_row(row, withheld.get(skill, ""))
    return _add_falls([judged[number] for number in range(len(rows))])


def _compare_arms(rows: Sequence[Row]) -> list[Row]:
    """The skill compared with each other arm, on each of its models."""
    arms = dict.fromkeys(arm for row in rows for arm in row.arms if arm != SKILL)
    comparisons: list[dict[str, Comparison]] = [{} for _ in rows]
    for arm in arms:
        alone = [
            None
            if row.incomplete
            else compare([row.case_results(arm)], [row.case_results(SKILL)])
            for row in rows
        ]
        adjusted = adjust_for_models(alone)
        for of_row, comparison in zip(comparisons, adjusted, strict=True):
            if comparison:
                of_row[arm] = comparison
    return [
        replace(row, comparisons=of_row)
        for row, of_row in zip(rows, comparisons, strict=True)
    ]


def _add_falls(rows: Sequence[Row]) -> list[Row]:
    """What got worse since the git ref of --skill-against, over all rows of a run."""
    groups = {
        number: passes_since(row, PREVIOUS)
        for number, row in enumerate(rows)
        if row.over(PREVIOUS)
    }
    fallen = find_fallen(groups)
    results = []
    for number, row in enumerate(rows):
        comparisons = dict(row.comparisons)
        if since := row.over(PREVIOUS):
            comparisons[PREVIOUS] = with_fallen(since, fallen[number])
        results.append(replace(row, comparisons=comparisons))
    return results


def passes_since(row: Row, arm: str) -> list[CasePair]:
    """How often each case passes with the skill, and how often in another arm."""
    return [
        CasePair(
            case.case,
            before=case.arm(arm).count,
            now=case.arm(SKILL).count,
            sample=case.question,
        )
        for case in row.by_case
        if arm in case.arms
    ]


def _judge_row(row: Row, withheld: str) -> Row:
    if AGAIN in row.arms:
        return replace(
            row,
            verdict="incomplete" if row.incomplete else None,
            sentence=_self_words(row),
        )

    over = row.over(BASELINE)
    evidence = _Evidence(
        over=over,
        baseline=row.scored(BASELINE),
        cases=row.samples,
        missing=missing_words(row) if row.incomplete else "",
        hardly_answered=_find_hardly_answered(row),
        withheld=withheld,
        unit=unit_of(row.score),
        saving=find_saving(over) if over else None,
    )
    word = _word(evidence)
    return replace(
        row,
        verdict=word,
        sentence=_row_sentence(row, word, evidence),
        saving=evidence.saving if word == "cheaper" else None,
        detectable_lift=detectable_lift(over.differences) if over else None,
        cases_needed=_find_cases_needed(word, evidence),
    )


def _self_words(row: Row) -> str:
    """Of a skill that is compared with itself."""
    over = row.over(AGAIN)
    if over is None:
        return missing_words(row)
    words = f"A/A: {points_words(over.lift)}"
    if over.lift.shown:
        return (
            f"{words}: the same skill differs from itself; if it happens again, look"
            " at caches, limits and load of the server"
        )
    if not _rules_out_relevant(over):
        return f"{words}: too few cases to tell"
    return f"{words}: no difference shown, as it should be"


# A skill over its models.


def judge_skills(
    rows: Sequence[Row], looks: Mapping[str, int], withheld: Mapping[str, str]
) -> tuple[Verdict, ...]:
    """One verdict for each skill that was asked with and without it."""
    verdicts = []
    for skill, of_skill in grouped(rows, lambda row: row.skill).items():
        if not any(AGAIN in row.arms for row in of_skill):
            verdict = _judge_skill(skill, of_skill, withheld.get(skill, ""))
            if verdict.verdict:
                verdict = replace(verdict, looks=looks.get(skill))
            verdicts.append(verdict)
    return tuple(verdicts)


def _judge_skill(skill: str, rows: Sequence[Row], withheld: str) -> Verdict:
    # Where most answers were cut off, they say nothing about a skill.
    measured = [row for row in rows if row.verdict != "nothing measured"]
    compared = [row for row in measured if row.over(BASELINE)]
    over = compare(
        [row.case_results(BASELINE) for row in compared],
        [row.case_results(SKILL) for row in compared],
    )
    missing = [
        f"{one_line(row.label, 60)}: {missing_words(row)}"
        for row in rows
        if row.incomplete
    ]
    evidence = _Evidence(
        over=over,
        baseline=fmean(sample.before for sample in over.samples) if over else None,
        cases=len(over.samples) if over else max(row.samples for row in rows),
        missing=first_few(missing, _MAX_MISSING, "; "),
        hardly_answered="" if measured else _find_hardly_answered(rows[0]),
        withheld=withheld,
        unit=unit_of(rows[0].score),
        saving=find_saving(over) if over else None,
    )
    word = _word(evidence)
    needed = _find_cases_needed(word, evidence)
    lift = over.lift if over else None
    return Verdict(
        skill=skill,
        verdict=word,
        lift=lift.lift if lift else None,
        lift_low=lift.low if lift else None,
        lift_high=lift.high if lift else None,
        p_value=lift.p_value if lift else None,
        models=len(rows),
        cases=evidence.cases,
        sentence=_skill_sentence(word, evidence, models=len(compared), needed=needed),
        saving=evidence.saving if word == "cheaper" else None,
        cases_needed=needed,
        by_model={row.label: row.verdict for row in rows},
    )


def _find_hardly_answered(row: Row) -> str:
    """``12 of 20 answers without the skill are missing, refused or cut off``."""
    for name, arm_words in ARM_WORDS.items():
        arm = row.arm(name)
        if arm.is_hardly_answered:
            unanswered = arm.errored + arm.cut_off
            verb = "is" if unanswered == 1 else "are"
            return (
                f"{unanswered:,} of {counted(arm.asked, 'answer')} {arm_words} {verb}"
                " missing, refused or cut off"
            )
    return ""


# Words.


def _word(evidence: _Evidence) -> Word | None:
    if evidence.hardly_answered:
        return "nothing measured"
    if evidence.missing:
        return "incomplete"
    over = evidence.over
    if over is None or evidence.withheld or evidence.cases < FEWEST_CASES:
        return None
    if over.lift.shown:
        return "helps" if over.lift.lift > 0 else "hurts"
    if evidence.saving:
        return "cheaper"

    if not _rules_out_relevant(over):
        return "unclear"
    passes_already = (evidence.baseline or 0.0) >= PASSES_ALREADY
    if passes_already and over.lift.lift >= -_AS_GOOD:
        return "not needed"
    return "no effect"


def _rules_out_relevant(over: Comparison) -> bool:
    """Whether a lift of 20 points is ruled out, and so is such a loss.

    Student's interval would be too short: a few cases may differ, by much.
    """
    turned = [-difference for difference in over.differences]
    return max(worst_loss(over.differences), worst_loss(turned)) < RELEVANT_LIFT


def _find_cases_needed(word: Word | None, evidence: _Evidence) -> int | None:
    """How many cases a new run needs, where there are too few to tell."""
    if evidence.over is None or evidence.withheld or word not in (None, "unclear"):
        return None
    return cases_to_show(evidence.over.differences)


def _skill_sentence(
    word: Word | None, evidence: _Evidence, *, models: int, needed: int | None
) -> str:
    """What follows the name of the skill: ``helps: +34 points over 3 models (…)``."""
    if word is None:
        return _no_verdict_words(evidence)
    if word == "nothing measured":
        return f"{word}: {evidence.hardly_answered}"
    if word == "incomplete":
        return f"{word}: {evidence.missing}"
    if evidence.saving and word == "cheaper":
        return saving_words(evidence.saving)

    sentence = f"{word}: {_lift_words(evidence, models)}"
    if word == "not needed":
        sentence += f", {_already_words(evidence)}"
    if word == "no effect":
        sentence += f"; a lift of {size_of(RELEVANT_LIFT)} is ruled out"
    if word == "unclear" and needed:
        sentence += f"; {new_run_words(needed)}"
    return sentence


def _lift_words(evidence: _Evidence, models: int) -> str:
    if evidence.over is None:
        return "no lift"

    lift = evidence.over.lift
    over_models = f" over {counted(models, 'model')}" if models > 1 else ""
    size = f"{points(lift.lift)} points{evidence.unit}"
    return f"{size}{over_models} ({span(lift.low, lift.high)})"


def _already_words(evidence: _Evidence) -> str:
    return f"{share_words(evidence.baseline)}{evidence.unit} pass without it"


def new_run_words(cases: int) -> str:
    return f"a new run with about {counted(cases, 'case')} would settle it"


def _no_verdict_words(evidence: _Evidence) -> str:
    if evidence.withheld:
        return evidence.withheld
    if evidence.over is None:
        return "no verdict: nothing was asked without the skill"
    return f"{counted(evidence.cases, 'case')}: no verdict; six or more are needed"


def _row_sentence(row: Row, word: Word | None, evidence: _Evidence) -> str:
    """What a model shows, in a sentence beside its numbers."""
    parts = [_result_words(row, word, evidence)]
    if row.budget_words and word != "incomplete":
        parts.append(row.budget_words)
    if row.activation:
        lift = evidence.over.lift if evidence.over else None
        parts.append(activation_words(row.activation, word, lift))
    return "; ".join(part for part in parts if part)


def _result_words(row: Row, word: Word | None, evidence: _Evidence) -> str:
    if word == "incomplete":
        return "; ".join([missing_words(row), *_arm_counts(row), *_possible_words(row)])
    if word == "nothing measured":
        return evidence.hardly_answered
    if evidence.saving and word == "cheaper":
        return saving_words(evidence.saving)

    over = evidence.over
    if over is None:
        if row.scored(SKILL) is None:
            return ""
        return f"{share_words(row.scored(SKILL))}{evidence.unit} pass with the skill"
    parts = [points_words(over.lift, evidence.unit)]
    if word == "not needed":
        parts.append(_already_words(evidence))
    if over.tokens:
        parts.append(token_words(over.tokens))
    return ", ".join(parts)


def _arm_counts(row: Row) -> list[str]:
    """``without the skill 18 of 20 answered, 9 passed``, of each arm."""
    words = []
    for name, arm in row.arms.items():
        answered = f"{arm.asked - arm.errored:,} of {arm.asked:,} answered"
        words.append(f"{ARM_WORDS.get(name, name)} {answered}, {arm.passed:,} passed")
    return words


def _possible_words(row: Row) -> list[str]:
    if not row.possible_lift:
        return []
    low, high = map(points, row.possible_lift)
    return [f"with what is missing, the lift is between {low} and {high} points"]


# The same work for less.


def find_saving(over: Comparison) -> Saving | None:
    """What a skill saves while passing is the same: cost, or tokens where no price is
    known.
    """
    if len(over.samples) < _FEWEST_CASES_OF_A_SAVING:
        return None
    if over.lift.lift < -_AS_GOOD:
        return None

    margin = worst_loss(over.differences)
    measure: Literal["cost", "tokens"] = "cost" if "cost" in over.changes else "tokens"
    change = over.changes.get(measure)
    if change is None or change.high is None or change.low is None:
        return None
    if margin > _MAX_MARGIN or change.high >= 0:
        return None

    # One dear case must not decide.
    logs = [sample.logs[measure] for sample in over.samples]
    doubled = paired_ratio([*logs, max(logs)])
    if doubled is None or doubled.high is None or doubled.high >= 0:
        return None
    return Saving(
        measure=measure,
        change=change.change,
        low=change.low,
        high=change.high,
        margin=margin,
    )


def saving_words(saving: Saving) -> str:
    """``cheaper by 40 % (30 to 50); a loss of more than 14 points is ruled out``."""
    by = whole(-100 * saving.change)
    least = whole(-100 * saving.high)
    most = whole(-100 * saving.low)
    return (
        f"cheaper by {by} % ({least} to {most}); a loss of more than"
        f" {size_of(saving.margin)} is ruled out"
    )
