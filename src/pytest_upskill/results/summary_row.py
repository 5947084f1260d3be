"""A skill on a model in one flat row: ``summary`` of --skill-json,
and every line of the history.

A new number is a field here. If it is a field of `ArmSummary` and named ``ARM_FIELD``,
it is filled in by name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final

from .._util.json_forms import Number, Whole
from ..settings import Score
from ..stats import Change, Interval, Lift
from ..trials.arm import AGAIN, PREVIOUS, TRACE
from ..trials.subject import CHAT, SkillOnSubject, WithPair
from ..trials.transcript import Sent
from .summary import AMOUNTS, AmountName, ArmSummary, Summary
from .trigger_summary import TriggerSummary
from .verdict import Verdict, Word


@dataclass(frozen=True)
class SummaryRow(WithPair):
    """Rates are 0–1, costs in USD; None means not known.

    ``previous`` is the skill at the git ref of --skill-against, the same skill again
    (--skill-aa), or the trace of a teacher.
    """

    skill: str
    model: str
    model_id: str = ""
    cases: Whole = 0
    runs: Whole = 0  # the most that a case has
    baseline_rate: Number | None = None
    skill_rate: Number | None = None
    lift: Number | None = None  # of what ``score`` says; None while answers are missing
    lift_low: Number | None = None
    lift_high: Number | None = None
    p_value: Number | None = None
    possible_lift_low: Number | None = None  # whatever the missing answers would be
    possible_lift_high: Number | None = None
    detectable_lift: Number | None = None
    baseline_tokens: Number | None = None
    skill_tokens: Number | None = None
    token_change: Number | None = None  # a share, as all changes of amounts are
    baseline_cost: Number | None = None
    skill_cost: Number | None = None
    checks_passed: Whole = 0  # with the skill
    checks_total: Whole = 0
    errored: Whole = 0
    # Cases that the budget kept from being asked; ``cases`` has the others
    over_budget: Whole = 0
    baseline_asked: Whole = 0  # trials, those without an answer too
    skill_asked: Whole = 0
    baseline_errored: Whole = 0
    skill_errored: Whole = 0
    baseline_passed: Whole = 0
    skill_passed: Whole = 0
    baseline_retries: Whole = 0  # questions that were asked again after errors
    skill_retries: Whole = 0
    verdict: Word | None = None

    agent: str = CHAT
    agent_version: str | None = None
    score: Score = "pass"
    sentence: str = ""
    samples: Whole = 0  # cases of a group, or that ask the same, count once
    # Of the skill; -k or --lf may have selected fewer. 0 is not known
    all_cases: Whole = 0
    interrupted: bool = False  # the run was stopped before its end
    skill_digest: str = ""
    against: str | None = None  # the git ref

    baseline_score: Number | None = None
    skill_score: Number | None = None
    previous_rate: Number | None = None
    previous_score: Number | None = None
    previous_tokens: Number | None = None
    previous_cost: Number | None = None
    baseline_seconds: Number | None = None
    skill_seconds: Number | None = None
    baseline_turns: Number | None = None
    skill_turns: Number | None = None
    baseline_tool_calls: Number | None = None
    skill_tool_calls: Number | None = None
    baseline_rate_low: Number | None = None
    baseline_rate_high: Number | None = None
    skill_rate_low: Number | None = None
    skill_rate_high: Number | None = None
    baseline_checks_passed: Whole = 0
    baseline_checks_total: Whole = 0
    baseline_graded: Whole = 0  # answers with checks
    skill_graded: Whole = 0
    baseline_uneven: bool = False  # some answers have more checks than others
    skill_uneven: bool = False
    baseline_asked_first: datetime | None = None
    baseline_asked_last: datetime | None = None
    skill_asked_first: datetime | None = None
    skill_asked_last: datetime | None = None
    previous_asked_first: datetime | None = None
    previous_asked_last: datetime | None = None
    token_change_low: Number | None = None
    token_change_high: Number | None = None
    cost_change: Number | None = None
    cost_change_low: Number | None = None
    cost_change_high: Number | None = None
    seconds_change: Number | None = None
    seconds_change_low: Number | None = None
    seconds_change_high: Number | None = None
    normalised_gain: Number | None = None
    rate_lift: Number | None = None
    rate_lift_low: Number | None = None
    rate_lift_high: Number | None = None
    score_lift: Number | None = None
    score_lift_low: Number | None = None
    score_lift_high: Number | None = None
    change: Number | None = None  # since ``previous``
    change_low: Number | None = None
    change_high: Number | None = None
    change_p_value: Number | None = None
    change_verdict: str | None = None
    # With --skill-aa: the share of such runs that show a lift
    chance_lift: Number | None = None
    chance_regression: Number | None = None  # likewise a regression

    # Pass rate of the cases that have an accepted result
    accepted_rate: Number | None = None
    accepted_date: str | None = None
    accepted_change: Number | None = None  # of these cases since, 0.1 is 10 points
    accepted_verdict: str | None = None  # worse, if cases regressed
    accepted_words: str = ""  # fell 67 → 17 since 2026-11-01, if so

    activated: Whole | None = None  # trials that opened the skill
    activated_trials: Whole | None = None
    activated_rate: Number | None = None
    activated_low: Number | None = None
    activated_high: Number | None = None
    # Of a bundle: trials that opened each of its skills.
    opened_by_skill: Mapping[str, Whole] = field(default_factory=dict, hash=False)
    listed_whole: Whole | None = None  # trials: the agent's list had the description
    listed_cut: Whole | None = None
    listed_by_name: Whole | None = None
    not_listed: Whole | None = None
    lift_per_opening: Number | None = None
    lift_per_opening_low: Number | None = None
    lift_per_opening_high: Number | None = None

    recall: Number | None = None  # of the queries of triggers
    recall_low: Number | None = None
    recall_high: Number | None = None
    false_alarms: Number | None = None
    false_alarms_low: Number | None = None
    false_alarms_high: Number | None = None

    @property
    def subset(self) -> bool:
        return self.cases < self.all_cases

    @property
    def whole(self) -> bool:
        return not self.subset and not self.interrupted


def summary_rows(
    verdicts: Iterable[Verdict],
    triggers: Iterable[TriggerSummary],
    skill_digests: Mapping[str, str],
    all_cases: Mapping[SkillOnSubject, int],
    *,
    interrupted: bool,
    model_ids: Mapping[str, str],
) -> tuple[SummaryRow, ...]:
    """One row per skill and model, with the numbers of its cases, of its triggers,
    or both.
    """
    rows = {verdict.summary.pair: row_of(verdict) for verdict in verdicts}
    for summary in triggers:
        row = row_of_triggers(summary, model_ids.get(summary.label, ""))
        known = {name: getattr(row, name) for name in _OF_TRIGGERS}
        rows[summary.pair] = replace(rows.get(summary.pair, row), **known)
    return tuple(
        replace(
            row,
            all_cases=all_cases.get(pair, 0),
            skill_digest=skill_digests.get(row.skill, ""),
            interrupted=interrupted,
        )
        for pair, row in rows.items()
    )


def row_of_triggers(summary: TriggerSummary, model_id: str = "") -> SummaryRow:
    """The row of a skill on a model without cases."""
    recall, alarms = summary.recall, summary.false_alarms
    return SummaryRow(
        skill=summary.skill,
        model=summary.model,
        model_id=model_id,
        runs=summary.runs,
        errored=summary.errored + summary.not_asked,
        verdict="incomplete" if summary.incomplete else None,
        agent=summary.agent,
        agent_version=summary.agent_version or None,
        sentence=summary.sentence,
        recall=recall.rate if recall else None,
        false_alarms=alarms.rate if alarms else None,
        **_bounds("recall", recall.interval if recall else None),
        **_bounds("false_alarms", alarms.interval if alarms else None),
        **_listed(summary.sent),
    )


def row_of(verdict: Verdict) -> SummaryRow:
    summary, over = verdict.summary, verdict.over("baseline")
    third = next((arm for arm in (TRACE, AGAIN) if arm in summary.arms), PREVIOUS)
    since, skill = verdict.over(third), summary.arm("skill")
    lifts = over.lifts if over else {}
    return SummaryRow(
        skill=summary.skill,
        model=summary.model,
        model_id=summary.model_id,
        cases=summary.cases,
        runs=summary.runs,
        lift=None if summary.incomplete else summary.lift,
        p_value=over.lift.p_value if over else None,
        detectable_lift=verdict.detectable_lift,
        checks_passed=skill.checks_passed,
        checks_total=skill.checks_total,
        errored=summary.errored + summary.not_asked,
        over_budget=summary.over_budget,
        verdict=verdict.word,
        agent=summary.agent,
        agent_version=summary.agent_version or None,
        score=summary.score,
        sentence=verdict.sentence,
        samples=summary.samples,
        against=summary.against,
        normalised_gain=verdict.gain,
        change_p_value=since.lift.p_value if since else None,
        change_verdict=since.word if since else None,
        chance_lift=verdict.by_chance.lift if verdict.by_chance else None,
        chance_regression=verdict.by_chance.regression if verdict.by_chance else None,
        **_bounds("lift", over.lift if over else None),
        **_bounds("possible_lift", summary.possible_lift),
        **_bounds("baseline_rate", summary.arm("baseline").interval),
        **_bounds("skill_rate", skill.interval),
        **_with_bounds("rate_lift", lifts.get("pass")),
        **_with_bounds("score_lift", lifts.get("checks")),
        **_with_bounds("change", since.lift if since else None),
        **_changes(summary, over.changes if over else {}),
        **_arm("baseline", summary.arm("baseline")),
        **_arm("skill", skill),
        **_arm("previous", summary.arm(third)),
        **_accepted(verdict),
        **_activation(summary),
        **_with_bounds("lift_per_opening", verdict.lift_per_opening),
    )


def _bounds(name: str, interval: Interval | Lift | Change | None) -> dict[str, Any]:
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _with_bounds(name: str, lift: Lift | None) -> dict[str, Any]:
    return {name: lift.lift if lift else None, **_bounds(name, lift)}


def _changes(summary: Summary, changes: Mapping[AmountName, Change]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for amount in AMOUNTS:
        name = "token_change" if amount == "tokens" else f"{amount}_change"
        change = changes.get(amount)
        growth = change.change if change else summary.growth(amount)
        values |= {name: growth, **_bounds(name, change)}
    return values


def _arm(arm: str, numbers: ArmSummary) -> dict[str, Any]:
    named = {
        f"{arm}_{field.name}": getattr(numbers, field.name) for field in fields(numbers)
    }
    return {name: value for name, value in named.items() if name in _NAMES}


def _accepted(verdict: Verdict) -> dict[str, Any]:
    if not (accepted := verdict.accepted):
        return {}
    return {
        "accepted_rate": accepted.rate,
        "accepted_date": accepted.date,
        "accepted_change": accepted.change,
        "accepted_verdict": "worse" if accepted.words else None,
        "accepted_words": accepted.words,
    }


def _activation(summary: Summary) -> dict[str, Any]:
    if not (activation := summary.activation):
        return {}
    return {
        "activated": activation.count,
        "activated_trials": activation.trials,
        "activated_rate": activation.rate,
        **_bounds("activated", activation.interval),
        "opened_by_skill": activation.by_skill,
        **_listed(activation.sent),
    }


def _listed(sent: Mapping[Sent, int]) -> dict[str, Any]:
    return {name: sent.get(kind, 0) for kind, name in _SENT.items()} if sent else {}


_SENT: Final[Mapping[Sent, str]] = {
    "whole": "listed_whole",
    "cut": "listed_cut",
    "name": "listed_by_name",
    "not listed": "not_listed",
}


_OF_TRIGGERS: Final = tuple(
    f"{name}{bound}"
    for name in ("recall", "false_alarms")
    for bound in ("", "_low", "_high")
)
_NAMES: Final = frozenset(field.name for field in fields(SummaryRow))
