"""A graded trial as a plain value that crosses processes and goes to disk."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from pydantic import Field

from .._util.json_forms import (
    Amount,
    Flag,
    Items,
    Seconds,
    Share,
    Time,
    Whole,
    form_of,
    json_values,
)
from .answer import AnswerFile, NoAnswer, Reply, SideCalls, Usage
from .answer_times import are_apart
from .arm import ArmName
from .subject import CHAT, SkillOnSubject, WithPair
from .transcript import Activity, Transcript
from .trial import Trial

Span = tuple[Whole, Whole]
Outcome = Literal["passed", "failed", "errored"]
RECORDS_PROPERTY: Final = "upskill_records"  # of a test's report


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one check. If it is not required, it only counts for the score."""

    check: str
    passed: Flag
    reason: str
    weight: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = 1.0
    required: Flag = True
    # The argument as written in the case. Not compared: a grade is what was found,
    # not what was looked for.
    asks: str = field(default="", compare=False)
    # Where in the answer, in code points: what it looks for,
    # and what must not be there.
    found: tuple[Span, ...] = field(default=(), compare=False)
    unwanted: tuple[Span, ...] = field(default=(), compare=False)
    # The other arms are not asked for it, so no lift compares it
    with_skill: Flag = False
    # Of it that was reached, as a verifier's reward; None: all or none
    share: Share | None = None
    output: str = ""  # the end of what a verifier printed

    @property
    def reached(self) -> float:
        """How much of it was reached, from 0 to 1."""
        return float(self.passed) if self.share is None else self.share

    @property
    def fails(self) -> bool:
        """Whether the answer fails for it."""
        return self.required and not self.passed

    @property
    def label(self) -> str:
        """The name of the check, and where only some arms have it."""
        return f"{self.check} (only with the skill)" if self.with_skill else self.check


@dataclass(frozen=True, slots=True)
class Record(WithPair):
    """A graded trial. ``score`` is the share of its checks that passed, by weight,
    or the reward.

    Checks that only answers with the skill have decide the ``outcome``,
    but are not in the score.
    """

    skill: str
    case: str
    model: str
    arm: ArmName
    run: Whole
    outcome: Outcome
    output: str | None = None
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    cached_tokens: Whole | None = None
    seconds: Seconds | None = None
    stored: Flag = False
    checks: tuple[Grade, ...] = ()
    error: str | None = None
    score: Share | None = None
    judge: SideCalls | None = None
    # In USD; filled in by the controller, which knows the prices
    cost: Amount | None = None
    files: Items[AnswerFile] = ()
    transcript: Transcript = ()
    written_tokens: Whole = 0  # to the provider's cache
    agent: str = CHAT
    activity: Activity | None = None  # of an agent
    hour_tokens: Whole = 0  # of those written, kept for an hour at a higher price
    retries: Whole = 0  # how often it was asked again after errors
    asked_at: Time | None = None  # seconds since the epoch
    # It was not begun, since it could have exceeded the budget
    over_budget: Flag = False
    # It failed, and ended at a limit or was refused
    cut_off: Flag = False
    # It was asked after all planned runs failed, and is no part of lift and verdict
    extra: Flag = False
    user: SideCalls | None = None  # of a model that played the user

    @property
    def usage(self) -> Usage:
        return Usage(
            self.input_tokens,
            self.output_tokens,
            cached=self.cached_tokens,
            written=self.written_tokens,
            hour=self.hour_tokens,
        )

    @property
    def tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    @property
    def common_checks(self) -> tuple[Grade, ...]:
        """The checks that all arms have, which a lift compares."""
        return tuple(grade for grade in self.checks if not grade.with_skill)

    @property
    def passed_common(self) -> bool:
        """Whether it passed the checks that all arms have."""
        only_with_skill = any(grade.with_skill for grade in self.checks)
        if self.outcome != "failed" or not only_with_skill:
            return self.outcome == "passed"
        return not any(grade.fails for grade in self.common_checks)


def make_record(
    trial: Trial,
    reply: Reply,
    grades: tuple[Grade, ...] = (),
    error: str | None = None,
) -> Record:
    """The record of an answer with its grades, or with an ``error`` if it can't be
    graded; and of no answer.
    """
    record = Record(
        trial.skill,
        trial.case,
        model=trial.model,
        arm=trial.arm,
        run=trial.run,
        outcome="errored",
        error=error,
        agent=trial.agent,
        retries=reply.retries,
        extra=trial.extra,
    )
    if isinstance(reply, NoAnswer):
        return replace(record, error=reply.reason, over_budget=reply.over_budget)

    record = replace(
        record,
        output=reply.text,
        input_tokens=reply.usage.input,
        output_tokens=reply.usage.output,
        cached_tokens=reply.usage.cached,
        written_tokens=reply.usage.written or 0,
        hour_tokens=reply.usage.hour or 0,
        seconds=None if reply.seconds is None else round(reply.seconds, 3),
        stored=reply.stored,
        files=reply.files,
        transcript=reply.transcript,
        activity=reply.activity,
        asked_at=reply.asked_at,
        user=reply.user,
    )
    if error:
        return record

    passed = not any(grade.fails for grade in grades)
    return replace(
        record,
        outcome="passed" if passed else "failed",
        checks=grades,
        score=_score([grade for grade in grades if not grade.with_skill] or grades),
        cut_off=not passed and reply.is_cut_off,
    )


def _score(grades: Sequence[Grade]) -> float:
    if all(grade.passed for grade in grades):
        return 1.0  # exactly, whatever the rounding of the weights
    most = max(grade.weight for grade in grades)  # or the sum of huge ones is infinite
    reached = sum(grade.reached * grade.weight / most for grade in grades)
    return reached / sum(grade.weight / most for grade in grades)


def agents_in(records: Iterable[Record]) -> dict[str, str]:
    """The agents that carried out trials, with their versions;
    several if trials differ.
    """
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for agent, version in record.activity.agents if record.activity else ():
            versions.setdefault(agent, {})[version] = None
    return {
        agent: ", ".join(filter(None, sorted(versions[agent]))) for agent in versions
    }


def asked_apart(records: Iterable[Record], max_age: float) -> bool:
    """Whether answers to the same run of a case are too far apart to be compared."""
    times: dict[tuple[SkillOnSubject, str, int], list[int | None]] = {}
    for record in records:
        times.setdefault((record.pair, record.case, record.run), []).append(
            record.asked_at
        )
    return any(are_apart(of_run, max_age) for of_run in times.values())


def dump_records(records: list[Record]) -> str:
    """What a test report carries; defaults are left out,
    since a large run keeps all reports.
    """
    values = [json_values(record, brief=True) for record in records]
    return json.dumps(values, separators=(",", ":"))


def load_records(dumped: object) -> list[Record]:
    return form_of(list[Record]).validate_python(json.loads(str(dumped)))
