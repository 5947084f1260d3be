"""Cases written by a model: each is tried before it counts, and replaced if it fails."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from .._util.json_forms import json_path
from .._util.texts import digest, one_line, slug
from ..checks import AnyCheck, grade, load_checked_cases, rubric_of, why_agent
from ..checks.final_workspace import Workspace
from ..checks.grading import rubric_for
from ..checks.judging import Ask, judge
from ..errors import CasesError, CheckError
from ..lint.check_rules import leaked_texts, written_checks
from ..lint.question_rules import near_duplicates
from ..skills.case import Case
from ..skills.case_forms import CaseTag
from ..trials.answer import Answer, AnswerFile, Usage
from ..trials.task import start_files
from ..trials.transcript import Activity
from ..trials.trial import Question, user_text
from .prompts import cases_prompt, replace_prompt
from .replies import (
    Authored,
    CaseReply,
    LeftFileForm,
    NotUsable,
    QuestionFileForm,
    Rejected,
    TeachRequest,
    ask_for,
    cases_schema,
    offered,
    read_entries,
    read_reply,
)
from .secrets import masked
from .teach_run import TeachRun

LEARN: Final = "learn"
HOLDOUT: Final = "holdout"
_OWN_TAGS: Final = (LEARN, HOLDOUT)
_NOTHING_SAID: Final = "Okay."
_OFF_TOPIC: Final = (
    "I am not sure about that. The weather was mild in the evening, so we walked along the shore "
    "until the lamps were lit, and talked about the garden."
)
_TAG: Final[TypeAdapter[str]] = TypeAdapter(CaseTag)
_SHOWN: Final = 300
_MOST_TAGS: Final = 3
CASE_BATCH: Final = 12  # replies with more cases get cut off
_ROUNDS: Final = 2  # of replacing rejected cases
_LONGEST_QUESTION: Final = 20_000  # characters, with its files: it is asked and paid for often


@dataclass(frozen=True)
class UsableCase:
    """A case that passed its trial, or was read from a file; ``data`` is how it is saved."""

    data: dict[str, Any]
    case: Case
    checks: tuple[AnyCheck, ...]
    reference: str = ""


def try_cases(
    replies: Sequence[Any],
    existing: Sequence[UsableCase],
    scratch: Path,
    ask: Ask,
    judge_name: str | None,
    *,
    agents: bool = False,
) -> tuple[list[UsableCase], list[Rejected]]:
    """Try each case that an author wrote; none may ask the same as the ``existing`` ones.

    ``agents``: whether they may look at the files that an agent leaves.
    """
    usable, rejected = list[UsableCase](), list[Rejected]()
    for reply in replies:
        question = one_line(str(reply.get("input", "")), _SHOWN) if isinstance(reply, dict) else ""
        taken = [*existing, *usable]
        try:
            form = read_reply(json.dumps(reply), CaseReply)
            form = form if agents else form.model_copy(update={"leaves": []})
            new = _parsed(form, {usable.case.id for usable in taken}, scratch, judge_name)
            for problem in _problems(new, form, ask, judge_name):
                raise NotUsable([problem])
            twins = list(near_duplicates([usable.case for usable in (*taken, new)]))
            if any(second is new.case for _, second in twins):
                raise NotUsable(["it asks nearly the same as another case"])
        except NotUsable as error:
            rejected.append(Rejected(question, one_line("; ".join(error.problems), _SHOWN)))
        else:
            usable.append(new)
    return usable, rejected


def _parsed(form: CaseReply, taken: set[str], scratch: Path, judge_name: str | None) -> UsableCase:
    """The case as it is read from a file; NotUsable if it is not valid there."""
    size = len(form.input) + sum(len(file.text) for file in form.files)
    if size > _LONGEST_QUESTION:
        raise NotUsable([f"the question has {size:,} characters (limit {_LONGEST_QUESTION:,})"])
    data = _as_saved(form, taken)
    allowed = offered(judge_name is not None)
    unknown = [
        check.name for check in written_checks(data["expected"]) if check.name not in allowed
    ]
    if unknown:
        raise NotUsable([f"unknown check {unknown[0]!r}; use only the checks listed"])
    if form.leaves:
        data["expected"]["files"] = {file.path: _file_checks(file) for file in form.leaves}
    try:
        [(case, checks)] = load_written([data], scratch)
        start_files(case)
    except ValueError as error:
        raise NotUsable([str(error)]) from None
    except CasesError as error:
        raise NotUsable(
            [f"{json_path(place[2:])}: {problem}" for place, problem in error.problems]
            or [error.problem]
        ) from None
    return UsableCase(data, case, checks, form.reference)


def load_written(
    cases: Sequence[dict[str, Any]], scratch: Path
) -> list[tuple[Case, tuple[AnyCheck, ...]]]:
    """Cases, read as those of a skill are."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=scratch) as folder:
        file = Path(folder, "skill_meta.json")
        file.write_text(json.dumps({"cases": list(cases)}), encoding="utf-8")
        return load_checked_cases(file).require_all()


def _as_saved(form: CaseReply, taken: set[str]) -> dict[str, Any]:
    name = slug(form.id) or slug(form.input) or f"case-{digest(form.input)[:6]}"
    number = 2
    while name in taken:
        name, number = f"{name.rsplit('--', 1)[0]}--{number}", number + 1
    data: dict[str, Any] = {"id": name, "input": masked(form.input.strip())}
    if form.files:
        data["context"] = {"files": {file.name: masked(file.text) for file in form.files}}
    tags = [tag for tag in map(slug, form.tags) if tag not in _OWN_TAGS and _is_tag(tag)]
    return {
        **data,
        "expected": _without_empty(form.expected),
        "tags": list(dict.fromkeys(tags))[:_MOST_TAGS],
    }


def _file_checks(file: LeftFileForm) -> Any:
    """The checks of a file: at least that it is there."""
    checks = _without_empty({"contains": file.contains, "not_contains": file.not_contains})
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
        name: value for name, value in expected.items() if value not in (None, "", [], 0, False)
    }


def _problems(
    usable: UsableCase, form: CaseReply, ask: Ask, judge_name: str | None
) -> Iterator[str]:
    """Why a case does not tell right answers from wrong ones, the cheapest reason first."""
    wrong = form.wrong
    for text, _ in leaked_texts(usable.case):
        yield f"the expected text {one_line(text, 60)!r} is in the question itself"
    reason = _why_failed(usable, usable.reference, ask, judge_name, form.reference_files)
    if reason is not None:
        yield f"its reference answer fails: {reason}"
    for kind, text in (("a bare Okay", _NOTHING_SAID), ("an off-topic answer", _OFF_TOPIC)):
        if _why_failed(usable, text, ask, judge_name) is None:
            yield f"{kind} passes its checks"
    if not wrong.strip():
        yield "it has no wrong answer"
    elif _why_failed(usable, wrong, ask, judge_name, form.wrong_files) is None:
        yield f"its wrong answer passes: {one_line(wrong, 100)!r}"


def _why_failed(
    usable: UsableCase,
    text: str,
    ask: Ask,
    judge_name: str | None,
    files: Sequence[QuestionFileForm] = (),
) -> str | None:
    """Why an answer fails; None if it passes. The judge is asked only if all rules pass."""
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
        rubric = rubric_for(usable.checks, judge_name)
        assert rubric is not None, "a rubric without a judge is not offered"
        question = Question("", "", (("user", user_text(usable.case)),), 0, 1)
        (ruled,) = judge(ask, [(rubric, question, answer)])
        if ruled.problem:
            return masked(ruled.problem)
        graded = grade(usable.checks, answer, ruled.by_text, usable.case, space)
        return next((g.reason for g in graded if g.required and not g.passed), None)
    except CheckError as error:
        return str(error)


@dataclass(frozen=True)
class Author:
    """A model that writes cases for a skill."""

    run: TeachRun
    model: str
    system: str
    body: str  # of the skill

    def write(self, number: int, existing: Sequence[UsableCase] = ()) -> Authored[UsableCase]:
        """Up to ``number`` cases that differ from the ``existing`` ones."""
        written = Authored[UsableCase]()
        while len(written.usable) + len(written.rejected) < number:
            batch = min(CASE_BATCH, number - len(written.usable) - len(written.rejected))
            before = len(written.usable) + len(written.rejected)
            self._add(written, self._prompt(batch, [*existing, *written.usable]), batch, existing)
            if len(written.usable) + len(written.rejected) == before:
                break
        for _ in range(_ROUNDS):
            if (missing := number - len(written.usable)) <= 0:
                break
            self._replace(written, missing, existing)
        return written

    def replace(
        self, rejected: Sequence[Rejected], existing: Sequence[UsableCase]
    ) -> list[UsableCase]:
        """Replacements for cases that were rejected later; those that are usable at once."""
        written = Authored[UsableCase](rejected=list(rejected))
        self._replace(written, len(rejected), existing)
        return written.usable

    def _replace(
        self, written: Authored[UsableCase], missing: int, existing: Sequence[UsableCase]
    ) -> None:
        reasons = [(case.text, case.reason) for case in written.rejected]
        prompt = self._prompt(missing, [*existing, *written.usable])
        number = len(written.usable)
        self._add(written, replace_prompt(missing, reasons, prompt), missing, existing)
        written.replaced += len(written.usable) - number

    def _add(
        self, written: Authored[UsableCase], prompt: str, most: int, existing: Sequence[UsableCase]
    ) -> None:
        models, state, agents = self.run.models, self.run.state, self.run.settings.only_agents
        schema = cases_schema(models.judge is not None, agents=agents)
        request = TeachRequest(self.model, self.system, prompt, schema, state.session)
        replies = ask_for(models, request, lambda text: read_entries(text, "cases", "input"))
        replies = replies[:most]
        existing = [*existing, *written.usable]
        usable, rejected = try_cases(
            replies, existing, state.folder, models.ask, models.judge, agents=agents
        )
        written.usable += usable
        written.rejected += rejected

    def _prompt(self, number: int, existing: Sequence[UsableCase]) -> str:
        return cases_prompt(
            self.run.settings.task,
            self.run.material.text,
            self.body,
            number,
            [usable.case.input for usable in existing],
            judge=self.run.models.judge is not None,
            agents=self.run.settings.only_agents,
        )
