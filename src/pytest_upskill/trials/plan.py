"""The plan of a run: its skills, and every case on every model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field, GetPydanticSchema, PlainSerializer
from pydantic_core import core_schema

from .._util.json_forms import Flag, Number, Whole
from .._util.texts import digest, shortened
from ..settings import MOST_RUNS, Score
from ..skills.case import OPENS, Case
from ..skills.kinds import CASE, CaseKind, kind_named
from ..skills.skill import Skill, UnseenFile
from .subject import CHAT, SkillOnSubject, WithPair
from .trial import Question, Trial, lift_sample

# More take too long to compare
Runs = Annotated[int, Field(strict=True, ge=1, le=MOST_RUNS)]

# In a row, of a case that had passed in all accepted runs: then it is a regression
FAILURES_OF_A_REGRESSION: Final = 5
_MOST_OF_A_SKILL: Final = 100_000  # characters of SKILL.md


@dataclass(frozen=True)
class SkillInfo:
    """A skill as reports show it."""

    name: str
    path: str
    digest: str
    tokens: Whole
    against: str | None = None  # the git ref of the arm ``previous``
    score: Score = "pass"  # what its lift and verdict are of
    seen_files: tuple[str, ...] = ()  # put in context besides SKILL.md
    unseen_files: tuple[UnseenFile, ...] = ()  # that SKILL.md refers to
    members: tuple[str, ...] = ()  # the skills of a bundle
    # SKILL.md, and as it was at the ref; cut if it is huge. Not compared:
    # its digest tells.
    text: str = field(default="", compare=False)
    previous_text: str | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        skill: Skill,
        name: str,
        path: str,
        against: str | None = None,
        score: Score = "pass",
    ) -> "SkillInfo":
        members = tuple(member.name for member in skill.members if member is not skill)
        before = skill.previous_file if against else None
        return cls(
            name,
            path,
            digest=skill.digest,
            tokens=skill.tokens,
            against=against,
            score=score,
            seen_files=tuple(path for path, _ in skill.references),
            unseen_files=skill.unseen,
            members=members,
            text=_cut(skill.file_text or skill.body),
            previous_text=before and _cut(before),
        )


def _cut(text: str) -> str:
    return shortened(text, _MOST_OF_A_SKILL, saving=1)


def score_of(chosen: Score | None, cases: Iterable[Case]) -> Score:
    """As chosen; else as the tools do that evals.json and
    tasks of benchmarks come from.
    """
    return chosen or (
        "checks" if any(c.is_eval or c.is_task for c in cases) else "pass"
    )


class Count(NamedTuple):
    """Passes out of runs."""

    passes: int
    runs: int

    def __str__(self) -> str:
        return f"{self.passes} of {self.runs}"

    @property
    def share(self) -> float:
        return self.passes / self.runs


def _possible_count(count: Count) -> Count:
    if not 1 <= count.runs <= MOST_RUNS:
        raise ValueError(f"must be of 1 to {MOST_RUNS:,} runs")
    if not 0 <= count.passes <= count.runs:
        raise ValueError("more passes than runs")
    return count


# Of any number of runs, as of all cases together.
CountSum = Annotated[Count, PlainSerializer(Count._asdict, return_type=dict[str, int])]
CountValue = Annotated[CountSum, AfterValidator(_possible_count)]


@dataclass(frozen=True)
class Expectation:
    """The accepted result of a case on a model."""

    was: CountValue
    date: str
    version: str = ""  # of the agent
    baseline: CountValue | None = None
    model_id: str = ""


# In files, a kind is its name.
KindValue = Annotated[
    CaseKind,
    GetPydanticSchema(
        lambda *_: core_schema.no_info_before_validator_function(
            lambda kind: kind if isinstance(kind, CaseKind) else kind_named(kind),
            core_schema.is_instance_schema(CaseKind),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda kind: kind.name, return_schema=core_schema.str_schema()
            ),
            json_schema_input_schema=core_schema.str_schema(),
        )
    ),
]
# Trials go to other processes, never to a file.
_NotInFiles = GetPydanticSchema(
    lambda *_: core_schema.no_info_plain_validator_function(
        lambda _: (), json_schema_input_schema=core_schema.any_schema()
    )
)


class Group(NamedTuple):
    """Tests that are counted and compared together: those of a skill on a model."""

    pair: SkillOnSubject
    noun: str = CASE.noun


@dataclass(frozen=True, slots=True)
class PlannedCase(WithPair):
    """A case on a model: one test of a run.

    It crosses processes with its trials, and goes to disk without them.
    """

    nodeid: str
    skill: str
    case: str
    model: str
    trials: Annotated[tuple[Trial, ...], _NotInFiles, Field(exclude=True)] = ()
    # With the skill, after the planned runs. They are asked one by one, as long as
    # all runs fail, if the case had passed in all accepted runs.
    extra_trials: Annotated[tuple[Trial, ...], _NotInFiles, Field(exclude=True)] = ()
    digest: str = ""  # of the question and the expected answer
    # Digest of how, with the skill, and the judge
    asked: Annotated[str, Field(exclude=True)] = ""
    folder: Annotated[str, Field(exclude=True)] = ""  # of the skill
    file: str = ""  # of the case, relative to the rootdir
    line: Whole = 1
    tags: tuple[str, ...] = ()
    # The share of runs that must pass; None is more than half
    threshold: Number | None = None
    compared: Flag = True  # with accepted results; not if it has an xfail mark
    expected: Expectation | None = None
    sample: str = ""  # the same for all cases that ask the same; unknown if empty
    case_group: str = ""  # that the case names
    of: Whole = 0  # cases that a run of all of them has on this model; 0 is not known
    agent: str = CHAT
    kind: KindValue = CASE

    @property
    def all_trials(self) -> tuple[Trial, ...]:
        return self.trials + self.extra_trials

    @property
    def should_open(self) -> bool:
        """Whether a trigger should open the skill."""
        return OPENS in self.tags

    @property
    def lift_sample(self) -> str:
        """The same for all cases that a lift counts as one; unknown if empty."""
        return lift_sample(self.case_group, self.sample)

    @property
    def group(self) -> Group:
        return Group(self.pair, self.kind.noun)


Why = Literal["gone", "skipped", "changed"]


@dataclass(frozen=True)
class Unmatched(WithPair):
    """An accepted result that no test of a run is compared with."""

    skill: str
    model: str
    case: str
    was: CountValue
    why: Why
    folder: Annotated[str, Field(exclude=True)] = ""  # of the skill
    agent: str = CHAT


@dataclass(frozen=True)
class Plan:
    """All that a run is going to ask, in the order of its tests."""

    skills: tuple[SkillInfo, ...]
    tests: tuple[PlannedCase, ...]
    unmatched: tuple[Unmatched, ...] = ()
    nodeids: tuple[str, ...] = ()  # of all tests of skills, also those that ask nothing
    # Skills and models, and why
    untested: Mapping[str, str] = field(default_factory=dict)
    idle_gates: tuple[str, ...] = ()  # that don't apply to what was selected
    # Whether tests were selected by how they ended the last time
    by_outcome: bool = False

    def questions(self) -> Iterable[Question]:
        return (trial.question for trial in self.trials())

    def trials(self) -> Iterable[Trial]:
        """Those that are asked before their tests run."""
        trials = (trial for test in self.tests for trial in test.trials)
        return (trial for trial in trials if not trial.is_open)

    def extra_trials(self) -> Iterable[Trial]:
        """Those that may be asked after others have failed."""
        trials = (trial for test in self.tests for trial in test.extra_trials)
        return (trial for trial in trials if not trial.is_open)

    @cached_property
    def key(self) -> str:
        nodeids = (test.nodeid for test in self.tests)
        return digest(*nodeids, *(question.key for question in self.questions()))
