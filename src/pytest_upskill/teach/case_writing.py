"""Cases and queries by a model: each is tried before it counts,
and replaced if it fails.
"""

import json
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from .._util.json_forms import json_path
from .._util.secrets import masked
from .._util.texts import digest, one_line, slug
from ..checks import AnyCheck, grade, load_checked_cases, rubric_of, why_agent
from ..checks.final_workspace import Workspace
from ..checks.grading import rubric_for
from ..checks.judging import Ask, judge
from ..errors import BudgetError, CasesError, CheckError, UnusableError
from ..lint.check_rules import leaked_texts, written_checks
from ..lint.question_rules import near_duplicates
from ..skills.case import Case
from ..skills.case_forms import CaseTag
from ..trials.answer import Answer, AnswerFile, Usage
from ..trials.transcript import Activity
from ..trials.trial import Question, start_files, user_text
from .prompts import (
    CHANGE_TO_TEST,
    case_rules,
    fenced,
    fenced_part,
    joined,
    rejected_text,
)
from .replies import (
    CaseReply,
    LeftFileForm,
    NotUsable,
    QuestionFileForm,
    Request,
    ask_for,
    cases_schema,
    offered,
    read_entries,
    read_reply,
)
from .teach_run import TeachRun
from .teach_settings import TeachSettings

LEARN: Final = "learn"
HOLDOUT: Final = "holdout"
_OWN_TAGS: Final = (LEARN, HOLDOUT)
_NOTHING_SAID: Final = "Okay."
_OFF_TOPIC: Final = (
    "I am not sure about that. The weather was mild in the evening, so we walked along"
    " the shore until the lamps were lit, and talked about the garden."
)
_TAG: Final[TypeAdapter[str]] = TypeAdapter(CaseTag)
_SHOWN: Final = 300
_MOST_MASKED: Final = 4_000  # characters of a rejected text
_MOST_TAGS: Final = 3
_ROUNDS: Final = 2  # of replacing rejected cases
_MOST_READ: Final = 3  # times as many as fit into a reply
_MOST_REJECTED: Final = 20  # that the author is told of
# characters, with its files: it is asked and paid for often
_LONGEST_QUESTION: Final = 20_000


@dataclass(frozen=True)
class UsableCase:
    """A case that passed its trial, or was read from a file;
    ``data`` is how it is saved.
    """

    data: dict[str, Any]
    case: Case
    checks: tuple[AnyCheck, ...]


class Rejected(NamedTuple):
    """A case or a query that can't be used, and why."""

    text: str  # of the question, shortened
    reason: str


Cases = Sequence[UsableCase]
Missing = tuple[int, ...]


@dataclass
class Authored:
    """What an author wrote, and why it ended early ("" if it did not)."""

    usable: list[UsableCase] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    stop: str = ""

    def counts(self, number: int) -> str:
        """How many of ``number`` were written, in words."""
        kept, rejected = len(self.usable), len(self.rejected)
        parts = [f"{kept} kept", f"{rejected} rejected" if rejected else ""]
        parts += [f"{number - kept} given up"] if kept < number else []
        return ", ".join(filter(None, parts))

    @property
    def reasons(self) -> str:
        """Why some were rejected."""
        texts = (f"{text!r}: {reason}" for text, reason in self.rejected[-3:])
        return one_line("; ".join(texts), _SHOWN)


@dataclass(frozen=True)
class Author(ABC):
    """A model that writes what a skill is tested by."""

    run: TeachRun
    model: str

    key: ClassVar[str]  # of the list in its replies
    question: ClassVar[str]  # the key of a question in that list
    batch: ClassVar[int]  # replies with more get cut off

    @abstractmethod
    def missing(self, cases: Cases, total: int) -> Missing:
        """How many of each kind are missing, for ``total`` in all."""

    def kind_of(self, _: UsableCase) -> int:
        """Its place in what is missing."""
        return 0

    @abstractmethod
    def request(
        self, missing: Missing, existing: Cases, rejected: Sequence[Rejected]
    ) -> Request[list[Any]]:
        """What the model is asked for."""

    @abstractmethod
    def tried(self, reply: Any, existing: Cases) -> UsableCase:
        """The case of a reply; NotUsable if it tests nothing,
        or the same as an existing one.
        """

    def write(self, number: int, existing: Cases = ()) -> Authored:
        """Up to ``number`` cases that differ from the ``existing`` ones."""
        return self._write(number, existing, (), self.rounds(number))

    @classmethod
    def rounds(cls, number: int) -> int:
        """How many replies are asked for at most, if some of
        what they hold is rejected.
        """
        return -(-number // cls.batch) + _ROUNDS if number else 0

    def replace(
        self, rejected: Sequence[Rejected], existing: Cases
    ) -> list[UsableCase]:
        """Replacements for cases that were rejected later;
        those that are usable at once.
        """
        return self._write(len(rejected), existing, rejected, 1).usable

    def _write(
        self, number: int, existing: Cases, rejected: Sequence[Rejected], rounds: int
    ) -> Authored:
        written, total = Authored(), len(existing) + number
        for _ in range(rounds):
            missing = self.missing([*existing, *written.usable], total)
            if not any(missing):
                break
            try:
                replies = self._ask(
                    _batch_of(missing, self.batch),
                    [*existing, *written.usable],
                    rejected,
                )
            except (BudgetError, UnusableError) as error:
                if not written.usable:
                    raise
                written.stop = str(error).splitlines()[0].rstrip(":")
                if isinstance(error, BudgetError):
                    written.stop = f"another round {self.run.models.past_budget()}"
                return written
            rejected = self._add(written, replies, existing, total)
        if len(written.usable) < number:
            written.stop = f"{self.model} wrote too few that can be used"
        return written

    def _ask(
        self, missing: Missing, existing: Cases, rejected: Sequence[Rejected]
    ) -> list[Any]:
        request = self.request(missing, existing, rejected[-_MOST_REJECTED:])
        return ask_for(self.run.models, self.model, request)

    def read(self, text: str) -> list[Any]:
        """The entries of a reply."""
        return read_entries(text, self.key, self.question)

    def _add(
        self, written: Authored, replies: Sequence[Any], existing: Cases, total: int
    ) -> list[Rejected]:
        """Add what can be used and is missing; return what was rejected of this
        reply.
        """
        rejected = list[Rejected]()
        for reply in replies[: _MOST_READ * self.batch]:
            cases = [*existing, *written.usable]
            missing = self.missing(cases, total)
            if not any(missing):
                break
            try:
                usable = self.tried(reply, cases)
            except NotUsable as error:
                text = str(
                    reply.get(self.question) if isinstance(reply, dict) else reply
                )
                text = one_line(masked(text[:_MOST_MASKED]), _SHOWN)
                reason = one_line("; ".join(error.problems), _SHOWN)
                rejected.append(Rejected(text, reason))
                continue
            written.usable += [usable] if missing[self.kind_of(usable)] else []
        written.rejected += rejected
        return rejected


def _batch_of(missing: Missing, most: int) -> Missing:
    """As many as one reply can hold, of each kind its share."""
    total = sum(missing)
    if total <= most:
        return missing
    others = [most * number // total for number in missing[1:]]
    return (most - sum(others), *others)


@dataclass(frozen=True)
class CaseAuthor(Author):
    """Writes cases for a skill, in the part that ``system`` gives it."""

    system: str
    body: str  # of the skill

    key = "cases"
    question = "input"
    batch = 12

    def missing(self, cases: Cases, total: int) -> Missing:
        return (max(0, total - len(cases)),)

    def request(
        self, missing: Missing, existing: Cases, rejected: Sequence[Rejected]
    ) -> Request[list[Any]]:
        judged, agents = (
            self.run.models.judge is not None,
            self.run.settings.only_agents,
        )
        questions = "\n".join(f"- {usable.case.input}" for usable in existing)
        task = CHANGE_TO_TEST if self.run.changed_skill else "The task"
        parts = [
            f"{task}:\n{fenced('task', self.run.settings.task)}",
            self.run.material.text,
            fenced_part("A skill for it, which may have gaps", "skill", self.body),
            fenced_part("Asked already, so ask something else", "questions", questions),
            rejected_text(rejected),
            f"Write {sum(missing)} cases. {case_rules(judged, agents=agents)}",
        ]
        schema = cases_schema(judged, agents=agents)
        return Request(self.system, joined(parts), schema, self.read)

    def tried(self, reply: Any, existing: Cases) -> UsableCase:
        models = self.run.models
        trial = CaseTrial(
            models.ask,
            models.judge,
            self.run.settings.only_agents,
        )
        return trial.tried(reply, existing)


@dataclass(frozen=True)
class CaseTrial:
    """Tries a case that an author wrote; ``agents``:
    it may look at the files they leave.
    """

    ask: Ask
    judge: str | None = None
    agents: bool = False

    def tried(self, reply: Any, existing: Cases) -> UsableCase:
        """The case of a reply; NotUsable if it does not tell
        right answers from wrong ones.
        """
        form = read_reply(json.dumps(reply), CaseReply)
        for_agents: dict[str, Any] = {"leaves": [], "reference_files": []}
        form = form if self.agents else form.model_copy(update=for_agents)
        new = self._parsed(form, {usable.case.id for usable in existing})
        for problem in self._problems(new, form):
            raise NotUsable([problem])
        require_different(new, existing)
        return new

    def _parsed(self, form: CaseReply, taken: set[str]) -> UsableCase:
        """The case as it is read from a file; NotUsable if it is not valid there."""
        size = len(form.input) + sum(len(file.text) for file in form.files)
        if size > _LONGEST_QUESTION:
            raise NotUsable(
                [f"the question has {size:,} characters (limit {_LONGEST_QUESTION:,})"]
            )
        data = _as_saved(form, taken)
        allowed = offered(self.judge is not None)
        names = [check.name for check in written_checks(data["expected"])]
        if unknown := [name for name in names if name not in allowed]:
            raise NotUsable(
                [f"unknown check {unknown[0]!r}; use only the checks listed"]
            )
        if form.leaves:
            data["expected"]["files"] = {
                file.path: _file_checks(file) for file in form.leaves
            }
        try:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "skill_meta.json")
                file.write_text(json.dumps({"cases": [data]}), encoding="utf-8")
                [(case, checks)] = load_checked_cases(file).require_all()
            start_files(case)
        except ValueError as error:
            raise NotUsable([str(error)]) from None
        except CasesError as error:
            raise NotUsable(
                [
                    f"{json_path(place[2:])}: {problem}"
                    for place, problem in error.problems
                ]
                or [error.problem]
            ) from None
        return UsableCase(data, case, checks)

    def _problems(self, usable: UsableCase, form: CaseReply) -> Iterator[str]:
        """Why a case does not tell right answers from wrong ones,
        the cheapest reason first.
        """
        for text, _ in leaked_texts(usable.case):
            yield f"the expected text {one_line(text, 60)!r} is in the question itself"
        reason = self._why_failed(usable, form.reference, form.reference_files)
        if reason is not None:
            yield f"its reference answer fails: {reason}"
        for kind, text in (
            ("a bare Okay", _NOTHING_SAID),
            ("an off-topic answer", _OFF_TOPIC),
        ):
            if self._why_failed(usable, text) is None:
                yield f"{kind} passes its checks"
        if not form.wrong.strip():
            yield "it has no wrong answer"
        elif self._why_failed(usable, form.wrong, form.wrong_files) is None:
            yield f"its wrong answer passes: {one_line(form.wrong, 100)!r}"

    def _why_failed(
        self, usable: UsableCase, text: str, files: Sequence[QuestionFileForm] = ()
    ) -> str | None:
        """Why an answer fails; None if it passes. The judge is
        asked only if all rules pass.
        """
        written = tuple(AnswerFile.of(file.name, file.text.encode()) for file in files)
        activity = Activity(turns=1) if why_agent(usable.case, usable.checks) else None
        usage = Usage(1, max(1, len(text.split())), 0)
        answer = Answer(text, usage, files=written, activity=activity)
        space = Workspace(answer, start_files(usable.case))
        plain = [check for check in usable.checks if not rubric_of([check]).texts]
        try:
            for grading in grade(plain, answer, case=usable.case, workspace=space):
                if grading.required and not grading.passed:
                    return grading.reason
            if len(plain) == len(usable.checks):
                return None
            if text == _NOTHING_SAID:
                return "no rubric is met by it"
            rubric = rubric_for(usable.checks, self.judge)
            assert rubric is not None, "a rubric without a judge is not offered"
            question = Question("", "", (("user", user_text(usable.case)),), 0)
            (ruled,) = judge(self.ask, [(rubric, question, answer)])
            if ruled.problem:
                return masked(ruled.problem)
            graded = grade(usable.checks, answer, ruled.by_text, usable.case, space)
            return next((g.reason for g in graded if g.required and not g.passed), None)
        except CheckError as error:
            return str(error)


def adversarial_cases(settings: TeachSettings) -> int:
    """How many cases the adversary writes."""
    return max(2, round(settings.cases / 4))


def require_different(new: UsableCase, existing: Cases) -> None:
    """NotUsable if it asks nearly the same as another."""
    cases = [usable.case for usable in (*existing, new)]
    if any(second is new.case for _, second in near_duplicates(cases)):
        raise NotUsable(["it asks nearly the same as another one"])


def _as_saved(form: CaseReply, taken: set[str]) -> dict[str, Any]:
    name = slug(form.id) or slug(form.input) or f"case-{digest(form.input)[:6]}"
    number = 2
    while name in taken:
        name, number = f"{name.rsplit('--', 1)[0]}--{number}", number + 1
    data: dict[str, Any] = {"id": name, "input": masked(form.input.strip())}
    if form.files:
        data["context"] = {
            "files": {file.name: masked(file.text) for file in form.files}
        }
    tags = [
        tag for tag in map(slug, form.tags) if tag not in _OWN_TAGS and _is_tag(tag)
    ]
    return {
        **data,
        "expected": _without_empty(form.expected),
        "tags": list(dict.fromkeys(tags))[:_MOST_TAGS],
        "reference": _reference(form),
    }


def _reference(form: CaseReply) -> str | dict[str, Any]:
    """The right answer, as a case has it."""
    text = masked(form.reference.strip())
    files = {file.name: masked(file.text) for file in form.reference_files}
    return {"text": text, "files": files} if files else text


def _file_checks(file: LeftFileForm) -> Any:
    """The checks of a file: at least that it is there."""
    checks = _without_empty(
        {"contains": file.contains, "not_contains": file.not_contains}
    )
    return checks or {"exists": True}


def _is_tag(tag: str) -> bool:
    """Whether it can be a pytest mark; if not, the tag is dropped and not the case."""
    try:
        _TAG.validate_python(tag)
    except ValidationError:
        return False
    return True


def _without_empty(expected: dict[str, Any]) -> dict[str, Any]:
    """Schemas require every check, so models leave unused ones empty."""
    return {
        name: value
        for name, value in expected.items()
        if value not in (None, "", [], 0, False)
    }
