"""Read a --skill-json file back; summaries and verdicts are derived from its records."""

import errno
import gzip
import io
import zlib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from .._util.files import LARGEST, read_file
from .._util.git import Commit
from .._util.json_forms import read_json_form
from ..errors import ResultsError
from ..settings import Gates, Score
from ..skills.skill import UnseenFile
from ..trials.number_types import MOST, Number, Runs, Seconds, Whole
from ..trials.plan import Count, Expectation, PlannedCase, SkillInfo, Unmatched, Why
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from .neighbours_json import MatrixForm
from .parts_json import PartsForm
from .rerun import Rerun
from .run import RunResults

_GZIP_MAGIC: Final = b"\x1f\x8b"
_HINT: Final = "Give a JSON report of a run, or a run from the history."


class _Form(BaseModel):
    """Later versions may write more keys; known ones are validated."""

    model_config = ConfigDict(extra="ignore")


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    if not 1970 < moment.year < 3000:
        raise ValueError("no time of a run")
    return text


def _rising(looks: list[int]) -> list[int]:
    if sorted(set(looks)) != looks:
        raise ValueError("numbers of runs that do not rise")
    return looks


class _Unseen(_Form):
    path: str
    reason: str | None = None


class _Skill(_Form):
    name: str
    path: str
    digest: str
    tokens: Whole
    against: str | None = None
    score: Score = "pass"
    seen_files: list[str] = []
    unseen_files: list[_Unseen] = []
    text: str = ""
    previous_text: str | None = None

    def info(self) -> SkillInfo:
        facts = self.model_dump(exclude={"seen_files", "unseen_files"})
        unseen = tuple(UnseenFile(file.path, file.reason) for file in self.unseen_files)
        return SkillInfo(**facts, seen_files=tuple(self.seen_files), unseen_files=unseen)


class _Subject(_Form):
    """The report has an agent and its model apart; inside, ``model`` is the label of both."""

    model: str
    agent: str = CHAT  # as in all files of earlier versions

    @property
    def label(self) -> str:
        return Subject(self.agent, self.model).label


class _Summary(_Subject):
    model_id: str


class _Gates(_Form):
    min_lift: Number | None = None
    min_pass_rate: Number | None = None
    max_token_growth: Number | None = None
    confident: bool = False
    no_worse: bool = False
    min_recall: Number | None = None
    max_false_alarms: Number | None = None


class _Case(_Form):
    skill: str
    case: str
    question: str | None = None
    tags: list[str] = []
    file: str = ""
    line: Whole = 1
    digest: str = ""
    threshold: Number | None = None
    compared: bool = True


class _Was(_Form):
    passes: Whole
    runs: Runs
    date: str

    @model_validator(mode="after")
    def _no_more_passes_than_runs(self) -> Self:
        if self.passes > self.runs:
            raise ValueError("more passes than runs")
        return self


class _Accepted(_Was):
    agent_version: str | None = None
    among: Annotated[int, Field(ge=1, le=MOST)]


class _Unmatched(_Subject):
    skill: str
    case: str
    accepted: _Was
    why: Why
    of: Whole = 0
    trigger: bool = False

    def value(self) -> Unmatched:
        was, date = Count(self.accepted.passes, self.accepted.runs), self.accepted.date
        place = (self.skill, self.model, self.case)
        return Unmatched(
            *place, was, date, self.why, self.of, trigger=self.trigger, agent=self.agent
        )


class _Test(_Subject):
    nodeid: str
    skill: str
    case: str
    accepted: _Accepted | None = None
    new: bool = False
    sample: str = ""
    regression: str = ""
    of: Whole = 0
    own_runs: bool = False


class _Trigger(_Test):
    should_trigger: bool
    query: str | None = None
    file: str = ""
    line: Whole = 1
    digest: str = ""
    threshold: Number | None = None
    compared: bool = True


class _Commit(_Form):
    id: str
    dirty: bool


class _Rerun(_Form):
    options: list[str] = []
    models: list[str] = []
    root: str = ""

    def value(self) -> Rerun:
        return Rerun(tuple(self.options), tuple(self.models), self.root)


class _Results(_Form):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    started: Annotated[str, AfterValidator(_moment)]
    seconds: Seconds
    skills: list[_Skill]
    summary: list[_Summary]
    records: list[Record]
    cases: list[_Case] = []
    tests: list[_Test] = []
    gates: _Gates = _Gates()
    looks: Annotated[list[Runs], Field(max_length=50), AfterValidator(_rising)] = []
    broken: dict[str, str] = {}
    unmatched: list[_Unmatched] = []
    interrupted: str | None = None
    lost: list[str] = []
    untested: dict[str, str] = {}
    models: dict[str, str] = {}
    commit: _Commit | None = None
    versions: dict[str, str] = {}
    bundled_skills: dict[str, list[str]] = {}
    with_skills: list[str] = []
    noise: int = 0
    rerun: _Rerun = _Rerun()
    judge: str | None = None
    prompt_cache_saved: Number = 0.0
    matrix: list[MatrixForm] = []
    parts: list[PartsForm] = []
    trigger_tests: list[_Trigger] = []
    trigger_records: list[Record] = []


_FORM: Final = TypeAdapter(_Results)


def read_run(file: Path) -> RunResults:
    """The results of a run; ResultsError with the place of the problem."""
    form: _Results = read_json_form(file, _FORM, ResultsError, _HINT, unpacked)
    return _run(form)


def unpacked(file: Path) -> bytes:
    """The content of a file, compressed or not; OSError or ValueError if it can't be read."""
    data = read_file(file)
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            content = packed.read(LARGEST + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"damaged gzip file: {error}") from None
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST:,} bytes, unpacked")
    return content


def _run(form: _Results) -> RunResults:
    cases = {(case.skill, case.case): case for case in form.cases}
    records = tuple(form.records)
    # The oldest files have no tests: their records tell.
    tests = tuple(_test(test, cases.get((test.skill, test.case))) for test in form.tests) or tuple(
        PlannedCase("", skill, case, model, agent=agent)
        for skill, case, model, agent in dict.fromkeys(
            (record.skill, record.case, record.model, record.agent) for record in records
        )
    )
    return RunResults(
        started=datetime.fromisoformat(form.started),
        seconds=form.seconds,
        skills=tuple(skill.info() for skill in form.skills),
        model_ids=form.models or {row.label: row.model_id for row in form.summary},
        tests=tests,
        records=records,
        questions={
            **{(one.skill, one.case): one.query for one in form.trigger_tests if one.query},
            **{key: case.question for key, case in cases.items() if case.question},
        },
        gates=Gates(**form.gates.model_dump()),
        looks=tuple(form.looks),
        broken=form.broken,
        unmatched=tuple(one.value() for one in form.unmatched),
        interrupted=form.interrupted,
        lost=tuple(form.lost),
        untested=form.untested,
        commit=Commit(form.commit.id, form.commit.dirty) if form.commit else None,
        versions=form.versions,
        bundled={name: tuple(skills) for name, skills in form.bundled_skills.items()},
        matrices=tuple(one.value() for one in form.matrix),
        parts=tuple(one.value() for one in form.parts),
        triggers=tuple(map(_trigger, form.trigger_tests)),
        trigger_records=tuple(form.trigger_records),
        with_skills=tuple(form.with_skills),
        noise=form.noise,
        rerun=form.rerun.value(),
        judge=form.judge,
        prompt_cache_saved=form.prompt_cache_saved,
    )


def _test(form: _Test, case: _Case | None) -> PlannedCase:
    facts = case.model_dump(exclude={"skill", "case", "question"}) if case else {"tags": ()}
    return PlannedCase(
        **form.model_dump(exclude={"accepted"}),
        **{**facts, "tags": tuple(facts["tags"])},
        expected=_expected(form.accepted),
    )


def _trigger(form: _Trigger) -> PlannedCase:
    facts = form.model_dump(exclude={"accepted", "query"})
    return PlannedCase(**facts, expected=_expected(form.accepted))


def _expected(known: _Accepted | None) -> Expectation | None:
    if known is None:
        return None
    count = Count(known.passes, known.runs)
    return Expectation(count, known.date, known.among, known.agent_version or "")
