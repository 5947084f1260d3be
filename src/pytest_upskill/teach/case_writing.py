"""Cases written by a model: each is tried before it counts, and replaced if it fails."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from .._util.json_forms import json_path
from .._util.texts import digest, one_line, slug
from ..checks import AnyCheck, grade, load_checked_cases, rubric_of
from ..checks.grading import rubric_for
from ..checks.judging import Ask, judge
from ..errors import CasesError, CheckError
from ..lint.case_rules import leaked_texts, near_duplicates, written_checks
from ..skills.case_forms import CaseTag
from ..skills.cases import Case
from ..trials.answer import Answer, Usage
from ..trials.trial import Question, user_text
from .classroom import Classroom
from .prompts import cases_prompt, replace_prompt
from .replies import (
    CaseReply,
    CasesReply,
    NotUsable,
    Request,
    ask_for,
    cases_schema,
    objects_in,
    offered,
    read_reply,
)
from .secrets import masked

LEARN: Final = "learn"
HOLDOUT: Final = "holdout"
_OWN_TAGS: Final = (LEARN, HOLDOUT)
_OFF_TOPIC: Final = (
    "I am not sure about that. The weather was mild in the evening, so we walked along the shore "
    "until the lamps were lit, and talked about the garden."
)
_TAG: Final[TypeAdapter[str]] = TypeAdapter(CaseTag)
_SHOWN: Final = 300
_MOST_TAGS: Final = 3
_LONGEST_QUESTION: Final = 20_000  # with its files: it is asked again and again, and paid for


@dataclass(frozen=True)
class GoodCase:
    """A case that was tried; ``data`` is how it is saved."""

    data: dict[str, Any]
    case: Case
    checks: tuple[AnyCheck, ...]
    reference: str = ""


@dataclass(frozen=True)
class FallenCase:
    """A case that does not tell right from wrong, and why."""

    question: str
    why: str


def try_cases(
    replies: Sequence[Any],
    kept: Sequence[GoodCase],
    scratch: Path,
    ask: Ask,
    judge_name: str | None,
) -> tuple[list[GoodCase], list[FallenCase]]:
    """Sort what an author wrote; cases that were kept before are only compared with."""
    good, fallen = list[GoodCase](), list[FallenCase]()
    for reply in replies:
        question = one_line(str(reply.get("input", "")), _SHOWN) if isinstance(reply, dict) else ""
        known = [*kept, *good]
        try:
            form = read_reply(json.dumps(reply), CaseReply)
            found = _parsed(form, {one.case.id for one in known}, scratch, judge_name)
            for problem in _problems(found, form.wrong, ask, judge_name):
                raise NotUsable([problem])
            twins = list(near_duplicates([one.case for one in (*known, found)]))
            if any(second is found.case for _, second in twins):
                raise NotUsable(["it is nearly the same question as another"])
        except NotUsable as error:
            fallen.append(FallenCase(question, one_line("; ".join(error.problems), _SHOWN)))
        else:
            good.append(found)
    return good, fallen


def _parsed(form: CaseReply, taken: set[str], scratch: Path, judge_name: str | None) -> GoodCase:
    """The case as a file of cases would have it; NotUsable if it can't stand in one."""
    size = len(form.input) + sum(len(file.text) for file in form.files)
    if size > _LONGEST_QUESTION:
        raise NotUsable([f"the question has more than {_LONGEST_QUESTION:,} characters"])
    data = _as_saved(form, taken)
    allowed = offered(judge_name is not None)
    unknown = [
        check.name for check in written_checks(data["expected"]) if check.name not in allowed
    ]
    if unknown:
        raise NotUsable([f"there is no check {unknown[0]!r} here; use those that I named"])
    try:
        [(case, checks)] = load_written([data], scratch)
    except CasesError as error:
        raise NotUsable(
            [f"{json_path(place[2:])}: {what}" for place, what in error.problems] or [error.problem]
        ) from None
    return GoodCase(data, case, checks, form.reference)


def load_written(
    cases: Sequence[dict[str, Any]], scratch: Path
) -> list[tuple[Case, tuple[AnyCheck, ...]]]:
    """Cases read as those of a skill are."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=scratch) as folder:
        file = Path(folder, "skill_meta.json")
        file.write_text(json.dumps({"cases": list(cases)}), encoding="utf-8")
        return load_checked_cases(file)


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


def _is_tag(tag: str) -> bool:
    """Whether it can be a mark of pytest; a case is not given up for one that can't."""
    try:
        _TAG.validate_python(tag)
    except ValidationError:
        return False
    return True


def _without_empty(expected: dict[str, Any]) -> dict[str, Any]:
    """Where a schema wants every check to be there, those that are not meant are empty."""
    return {
        name: value for name, value in expected.items() if value not in (None, "", [], 0, False)
    }


def _problems(found: GoodCase, wrong: str, ask: Ask, judge_name: str | None) -> Iterator[str]:
    """What keeps a case from telling right from wrong, the cheapest to find out first."""
    for text, _ in leaked_texts(found.case):
        yield f"the expected text {one_line(text, 60)!r} stands in the question itself"
    failed = _failed(found, found.reference, ask, judge_name)
    if failed is not None:
        yield f"its own reference does not pass: {failed}"
    for told, text in (("an empty answer", ""), ("an answer about something else", _OFF_TOPIC)):
        if _failed(found, text, ask, judge_name) is None:
            yield f"{told} passes its checks"
    if not wrong.strip():
        yield "there is no wrong answer to try it with"
    elif _failed(found, wrong, ask, judge_name) is None:
        yield f"its own wrong answer passes: {one_line(wrong, 100)!r}"


def _failed(found: GoodCase, text: str, ask: Ask, judge_name: str | None) -> str | None:
    """Why an answer does not pass; None if it does. A judge is asked only if nothing else fails."""
    answer = Answer(text, Usage(1, max(1, len(text.split())), 0))
    plain = [check for check in found.checks if not rubric_of([check]).texts]
    try:
        for grading in grade(plain, answer, case=found.case):
            if grading.required and not grading.passed:
                return grading.reason
        if len(plain) == len(found.checks):
            return None
        if not text:
            return "it is empty"
        rubric = rubric_for(found.checks, judge_name)
        assert rubric is not None, "a rubric without a judge is not offered"
        question = Question("", "", (("user", user_text(found.case)),), 0, 1)
        (ruled,) = judge(ask, [(rubric, question, answer)])
        if ruled.problem:
            return masked(ruled.problem)
        graded = grade(found.checks, answer, ruled.by_text, found.case)
        return next((one.reason for one in graded if one.required and not one.passed), None)
    except CheckError as error:
        return str(error)


_BATCH: Final = 12  # more at once than this and replies get cut off
_ROUNDS: Final = 2


@dataclass
class Authored:
    """What came of it: cases that hold, how many are replacements, and all that fell."""

    good: list[GoodCase] = field(default_factory=list)
    replaced: int = 0
    fallen: list[FallenCase] = field(default_factory=list)


@dataclass(frozen=True)
class Author:
    """A model that writes cases, and what it is told of the task."""

    room: Classroom
    model: str
    system: str
    task: str
    material: str
    body: str
    scratch: Path
    session: int

    def write(self, number: int, known: Sequence[GoodCase] = ()) -> Authored:
        """So many cases, if it can; ``known`` are there already and not asked again."""
        made = Authored()
        while len(made.good) + len(made.fallen) < number:
            batch = min(_BATCH, number - len(made.good) - len(made.fallen))
            before = len(made.good) + len(made.fallen)
            self._add(made, self._prompt(batch, [*known, *made.good]), batch, known)
            if len(made.good) + len(made.fallen) == before:
                break
        for _ in range(_ROUNDS):
            if (missing := number - len(made.good)) <= 0:
                break
            self._replace(made, missing, known)
        return made

    def replace(self, fallen: Sequence[FallenCase], known: Sequence[GoodCase]) -> list[GoodCase]:
        """Others in the place of cases that fell later, as far as they hold at once."""
        made = Authored(fallen=list(fallen))
        self._replace(made, len(fallen), known)
        return made.good

    def _replace(self, made: Authored, missing: int, known: Sequence[GoodCase]) -> None:
        told = [(one.question, one.why) for one in made.fallen]
        before = self._prompt(missing, [*known, *made.good])
        kept = len(made.good)
        self._add(made, replace_prompt(missing, told, before), missing, known)
        made.replaced += len(made.good) - kept

    def _add(self, made: Authored, prompt: str, most: int, known: Sequence[GoodCase]) -> None:
        judge = self.room.judge
        schema = cases_schema(judge is not None)
        request = Request(self.model, self.system, masked(prompt), schema, self.session)
        replies = ask_for(self.room, request, _read_cases)[:most]
        good, fallen = try_cases(replies, [*known, *made.good], self.scratch, self.room.ask, judge)
        made.good += good
        made.fallen += fallen

    def _prompt(self, number: int, known: Sequence[GoodCase]) -> str:
        asked = [one.case.input for one in known]
        judge = self.room.judge is not None
        return cases_prompt(self.task, self.material, self.body, number, asked, judge=judge)


def _read_cases(text: str) -> list[Any]:
    """The cases of a reply; those that are whole, of one that was cut off or has no frame."""
    try:
        cases = read_reply(text, CasesReply).cases
    except NotUsable:
        cases = [data for data in objects_in(text) if _is_case(data)]
        if not cases:
            raise
    if not cases:
        raise NotUsable(["there are no cases in it"])
    return cases


def _is_case(data: dict[str, Any]) -> bool:
    try:
        CaseReply.model_validate(data)
    except ValidationError:
        return False
    return True
