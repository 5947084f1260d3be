"""A graded trial as a plain value that crosses processes and goes to disk."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, Literal

from .activity import Activity
from .answer import Answer, AnswerFile, Usage, extras_from_json, extras_to_json
from .subject import CHAT
from .transcript import Transcript
from .trial import Arm, Trial

Span = tuple[int, int]
Outcome = Literal["passed", "failed", "errored"]


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of one check. If it is not required, it only counts for the score."""

    check: str
    passed: bool
    reason: str
    weight: float = 1.0
    required: bool = True
    # The argument as written in the case. Not compared: a grade is what was found, not what was
    # looked for.
    asks: str = field(default="", compare=False)
    # Where in the answer is what it looks for, and where is what must not be there: code points.
    found: tuple[Span, ...] = field(default=(), compare=False)
    unwanted: tuple[Span, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """Without places if there are none."""
        data = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in _PLACES:
            if not data[name]:
                del data[name]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Grade":
        places = {name: tuple((a, b) for a, b in data.get(name, ())) for name in _PLACES}
        return cls(**{**data, **places})


_PLACES: Final = ("found", "unwanted")


@dataclass(frozen=True, slots=True)
class Record:
    """A graded trial. ``score`` is the share of its checks that passed, by weight."""

    skill: str
    case: str
    model: str  # the label of an agent on its model
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
    cost: float | None = None  # in USD; filled in by the controller, which knows the prices
    files: tuple[AnswerFile, ...] = ()
    transcript: Transcript = ()
    written_tokens: int = 0  # to the provider's cache
    judge_cached_tokens: int = 0
    judge_written_tokens: int = 0
    agent: str = CHAT
    activity: Activity | None = None  # of an agent
    batch: bool = False  # whether its answer came by batch, at half the price
    judge_batch: bool = False  # whether all replies of the judge did
    hour_tokens: int = 0  # of those written, kept for an hour at a higher price

    @property
    def usage(self) -> Usage:
        counts = (self.input_tokens, self.output_tokens, self.cached_tokens, self.written_tokens)
        return Usage(*counts, self.batch, self.hour_tokens)

    @property
    def judge_usage(self) -> Usage:
        counts = (self.judge_input_tokens, self.judge_output_tokens)
        more = (self.judge_cached_tokens, self.judge_written_tokens)
        return Usage(*counts, *more, self.judge_batch)

    @property
    def tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, Any]:
        """Without what few records have: tokens in caches, batches, and what only agents do."""
        # Not dataclasses.asdict: it copies every value, which took a tenth of a test's time.
        data = {
            **{one.name: getattr(self, one.name) for one in fields(self)},
            "checks": [grade.to_json() for grade in self.checks],
        }
        del data["files"], data["transcript"], data["activity"]
        for name in ("written_tokens", "judge_cached_tokens", "judge_written_tokens"):
            if not data[name]:
                del data[name]
        if self.agent == CHAT:
            del data["agent"]
        for name in ("batch", "judge_batch", "hour_tokens"):
            if not data[name]:
                del data[name]
        done = self.activity.to_json() if self.activity else {}
        return {**data, **done, **extras_to_json(self.files, self.transcript)}

    def brief(self) -> "Record":
        """Without the transcript and the contents of files, which can be megabytes."""
        if not self.files and not self.transcript:
            return self
        files = tuple(replace(file, text=None, data="") for file in self.files)
        return replace(self, files=files, transcript=())

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Record":
        own = {name: data[name] for name in _NAMES & data.keys()}
        files, transcript = extras_from_json(data)
        return cls(
            **{
                **own,
                "checks": tuple(map(Grade.from_json, data["checks"])),
                "files": files,
                "transcript": transcript,
                "activity": Activity.from_json(data) if "turns" in data else None,
            }
        )


_NAMES: Final = {field.name for field in fields(Record)}


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
        seconds=None if answer.seconds is None else round(answer.seconds, 3),
        stored=answer.stored,
        checks=grades,
        score=_score(grades),
        files=answer.files,
        transcript=answer.transcript,
        written_tokens=answer.usage.written or 0,
        hour_tokens=answer.usage.hour or 0,
        batch=answer.usage.batch,
        agent=trial.agent,
        activity=answer.activity,
    )


def with_judge(record: Record, calls: int, usage: Usage) -> Record:
    """Add what judging took, apart from the answer itself."""
    return replace(
        record,
        judge_calls=calls,
        judge_input_tokens=usage.input,
        judge_output_tokens=usage.output,
        judge_cached_tokens=usage.cached or 0,
        judge_written_tokens=usage.written or 0,
        judge_batch=usage.batch,
    )


def _score(grades: tuple[Grade, ...]) -> float:
    if all(grade.passed for grade in grades):
        return 1.0  # exactly, whatever the rounding of the weights
    most = max(grade.weight for grade in grades)  # or the sum of huge ones is infinite
    passed = sum(grade.weight / most for grade in grades if grade.passed)
    return passed / sum(grade.weight / most for grade in grades)


def errored_record(trial: Trial, reason: str, answer: Answer | None = None) -> Record:
    """The record of a trial without an answer, or with one that could not be graded."""
    where = (trial.skill, trial.case, trial.model, trial.arm, trial.run)
    record = Record(*where, "errored", error=reason, agent=trial.agent)
    if answer is None:
        return record
    graded = graded_record(trial, answer, ())
    return replace(graded, outcome="errored", error=reason, score=None)


def agents_in(records: Iterable[Record]) -> dict[str, str]:
    """The agents that carried out trials, with their versions; several if trials differ."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for agent, version in record.activity.agents if record.activity else ():
            found.setdefault(agent, {})[version] = None
    return {agent: ", ".join(filter(None, sorted(found[agent]))) for agent in found}


class DumpedRecords(str):
    """Records as JSON, which also has them as they are, for readers in the same process."""

    __slots__ = ("records",)
    records: list[Record]


def dump_records(records: list[Record]) -> DumpedRecords:
    """Without what is as it mostly is: in a large run, this is kept of every test."""
    told = [
        {
            **_told_of_record(record),
            "checks": list(map(_told_of_grade, record.checks)),
            **(record.activity.to_json() if record.activity else {}),
            **extras_to_json(record.files, record.transcript),
        }
        for record in records
    ]
    dumped = DumpedRecords(json.dumps(told, separators=(",", ":")))
    dumped.records = records
    return dumped


def _teller(
    kind: type[Record | Grade], apart: Collection[str] = ()
) -> Callable[[Any], dict[str, Any]]:
    """What tells a value's fields, without those that are as they mostly are."""
    told = [field for field in fields(kind) if field.name not in apart]
    names, defaults = [field.name for field in told], [field.default for field in told]
    values_in = attrgetter(*names)

    def tell(one: Record | Grade) -> dict[str, Any]:
        each = zip(names, values_in(one), defaults, strict=True)
        return {name: value for name, value, default in each if value != default}

    return tell


_told_of_grade: Final = _teller(Grade)
_told_of_record: Final = _teller(Record, ("checks", "files", "transcript", "activity"))


def load_records(dumped: object) -> list[Record]:
    if isinstance(dumped, DumpedRecords):
        return dumped.records
    return [Record.from_json(data) for data in json.loads(str(dumped))]
