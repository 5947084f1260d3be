"""A row of a table: all that was measured of a skill on a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from ..results.summary import ArmSummary
from ..results.summary_row import SummaryRow
from ..results.verdict import Verdict
from ..settings import Score
from ..trials.trial import Arm

Bounds = tuple[float, float]
Gain = tuple[float, Bounds | None]  # a lift and its 95 % interval
_NOT_ASKED: Final = ArmSummary()


@dataclass(frozen=True)
class Opened:
    """How often an agent opened the skill."""

    count: int
    trials: int
    rate: float
    bounds: Bounds | None = None  # the 95 % interval of the rate


@dataclass(frozen=True)
class Measured:
    """A skill on a model, of this run or of a kept one: what a row of a table is made from."""

    arms: Mapping[Arm, ArmSummary]
    lift: float | None
    lift_bounds: Bounds | None = None  # the 95 % interval
    rate_bounds: Bounds | None = None  # of the pass rate with the skill
    verdict: str | None = None
    errored: int = 0
    against: str | None = None  # the git ref of the arm ``previous``
    score: Score = "pass"  # what lift and verdict are of
    lifts: Mapping[Score, Gain] = field(default_factory=dict)  # of both scores, as far as known
    change: Gain | None = None  # since the git ref
    change_word: str | None = None
    opened: Opened | None = None  # of an agent
    recall: Gain | None = None  # of triggers, in a kept run; this one has a table of them
    false_alarms: Gain | None = None

    @classmethod
    def of(cls, verdict: Verdict) -> "Measured":
        row, lift, over = verdict.summary, verdict.lift, verdict.over("baseline")
        lifts, since = over.lifts if over else {}, verdict.over("previous")
        used = row.activation
        return cls(
            row.arms,
            row.lift,
            (lift.low, lift.high) if lift else None,
            row.arm("skill").interval,
            verdict.word,
            row.errored,
            row.against,
            row.score,
            {score: (one.lift, (one.low, one.high)) for score, one in lifts.items()},
            (since.lift.lift, (since.lift.low, since.lift.high)) if since else None,
            since.word if since else None,
            Opened(used.count, used.trials, used.rate, used.interval) if used else None,
        )

    @classmethod
    def of_kept(cls, row: SummaryRow) -> "Measured":
        arms: tuple[Arm, ...] = ("baseline", "skill")
        kept = vars(row)
        return cls(
            {
                arm: ArmSummary(
                    **{
                        one.name: kept[f"{arm}_{one.name}"]
                        for one in fields(ArmSummary)
                        if f"{arm}_{one.name}" in kept
                    }
                )
                for arm in arms
            },
            row.lift,
            _bounds(row.lift_low, row.lift_high),
            _bounds(row.skill_rate_low, row.skill_rate_high),
            row.verdict,
            row.errored,
            None,
            row.score,
            _known_lifts(
                {
                    "pass": (row.rate_lift, row.rate_lift_low, row.rate_lift_high),
                    "checks": (row.score_lift, row.score_lift_low, row.score_lift_high),
                }
            ),
            opened=_kept_opened(row),
            recall=_kept_share(row.recall, row.recall_low, row.recall_high),
            false_alarms=_kept_share(row.false_alarms, row.false_alarms_low, row.false_alarms_high),
        )

    def scored(self, arm: Arm) -> float | None:
        """What the lift is of: the pass rate, or the share of checks."""
        return self.arm(arm).scored(self.score)

    def arm(self, arm: Arm) -> ArmSummary:
        return self.arms.get(arm, _NOT_ASKED)


def _bounds(low: float | None, high: float | None) -> Bounds | None:
    return None if low is None or high is None else (low, high)


def _kept_share(rate: float | None, low: float | None, high: float | None) -> Gain | None:
    return None if rate is None else (rate, _bounds(low, high))


def _kept_opened(row: SummaryRow) -> Opened | None:
    count, trials, rate = row.activated, row.activated_trials, row.activated_rate
    if count is None or trials is None or rate is None:
        return None
    return Opened(count, trials, rate, _bounds(row.activated_low, row.activated_high))


def _known_lifts(
    kept: Mapping[Score, tuple[float | None, float | None, float | None]],
) -> dict[Score, Gain]:
    return {
        score: (lift, _bounds(low, high))
        for score, (lift, low, high) in kept.items()
        if lift is not None
    }
