"""Plain values that cross processes and go to disk: Usage, Answer, Grade, Record."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .trial import Arm, Trial

Outcome = Literal["passed", "failed", "errored"]


@dataclass(frozen=True)
class Usage:
    """Tokens of an answer; None where the server does not tell.

    ``input`` counts cached tokens too, whatever the provider does, so that the arms compare.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None


def total_usage(usages: Sequence[Usage]) -> Usage:
    """Of several answers together; None where one of them is not known."""

    def total(values: Sequence[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Usage(
        total([usage.input for usage in usages]),
        total([usage.output for usage in usages]),
        total([usage.cached for usage in usages]),
    )


@dataclass(frozen=True)
class Answer:
    """What a model replied.

    ``stop`` is ``end``, ``length`` (cut off by the limit), ``refusal``, or the provider's word.
    """

    text: str
    usage: Usage = Usage()
    stop: str = "end"
    seconds: float = 0.0
    stored: bool = False
    asked_at: float | None = field(default=None, compare=False)  # by time.time(); not kept on disk


@dataclass(frozen=True)
class NoAnswer:
    """A question that got no answer, with one line that says why and what to do."""

    reason: str


Reply = Answer | NoAnswer


@dataclass(frozen=True)
class Grade:
    """What one check says of an answer; one that is not required counts for the score only."""

    check: str
    passed: bool
    reason: str
    weight: float = 1.0
    required: bool = True
    # The argument as it is written, the same for every answer. Not compared: it tells what was
    # looked for, and a grade is what was found.
    asks: str = field(default="", compare=False)


@dataclass(frozen=True)
class Record:
    """A graded trial; ``score`` is the share of its checks, by weight, that passed."""

    skill: str
    case: str
    model: str
    arm: Arm
    run: int
    outcome: Outcome
    output: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    seconds: float | None = None
    stored: bool = False
    checks: tuple[Grade, ...] = ()
    error: str | None = None
    score: float | None = None
    judge_calls: int = 0
    judge_input_tokens: int | None = None
    judge_output_tokens: int | None = None
    cost: float | None = None  # in USD; the run's controller knows the prices, its workers don't

    @property
    def usage(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens, self.cached_tokens)

    @property
    def tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, Any]:
        # Not dataclasses.asdict: it copies every value, and that took a tenth of a test's time.
        return {**vars(self), "checks": [{**vars(grade)} for grade in self.checks]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Record":
        checks = tuple(Grade(**grade) for grade in data["checks"])
        return cls(**{**data, "checks": checks})


def graded_record(trial: Trial, answer: Answer, grades: tuple[Grade, ...]) -> Record:
    passed = all(grade.passed for grade in grades if grade.required)
    return Record(
        skill=trial.skill,
        case=trial.case,
        model=trial.model,
        arm=trial.arm,
        run=trial.run,
        outcome="passed" if passed else "failed",
        output=answer.text,
        input_tokens=answer.usage.input,
        output_tokens=answer.usage.output,
        cached_tokens=answer.usage.cached,
        seconds=round(answer.seconds, 3),
        stored=answer.stored,
        checks=grades,
        score=_score(grades),
    )


def with_judge(record: Record, calls: int, usage: Usage) -> Record:
    """What judging an answer took, apart from what the answer itself did."""
    return replace(
        record,
        judge_calls=calls,
        judge_input_tokens=usage.input,
        judge_output_tokens=usage.output,
    )


def _score(grades: tuple[Grade, ...]) -> float:
    if all(grade.passed for grade in grades):
        return 1.0  # whatever the sum of many weights would be rounded to
    passed = sum(grade.weight for grade in grades if grade.passed)
    return passed / sum(grade.weight for grade in grades)


def errored_record(trial: Trial, reason: str, answer: Answer | None = None) -> Record:
    """Of a trial that got no answer, or one that could not be graded: that is kept all the same."""
    record = Record(
        trial.skill, trial.case, trial.model, trial.arm, trial.run, "errored", error=reason
    )
    if answer is None:
        return record
    graded = graded_record(trial, answer, ())
    return replace(graded, outcome="errored", error=reason, score=None)


def dump_records(records: list[Record]) -> str:
    return json.dumps([record.to_json() for record in records])


def load_records(text: str) -> list[Record]:
    return [Record.from_json(data) for data in json.loads(text)]
