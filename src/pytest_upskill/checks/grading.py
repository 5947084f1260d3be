"""From trials to records: ask, judge and grade."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ..errors import CheckError
from ..skills.case import Case
from ..skills.kinds import rules_of
from ..skills.skill import Skill
from ..trials.answer import SILENT, Answer, NoAnswer, Reply
from ..trials.records import (
    Grade,
    Record,
    make_record,
)
from ..trials.transcript import UNTOLD, Activity
from ..trials.trial import Hidden, Rubric, Task, Trial
from .check import (
    AnyCheck,
    CheckContext,
    Result,
    asked_checks,
    asks_only_for_files,
    places,
    walk,
    wants_refusal,
)
from .final_workspace import Workspace
from .judging import JUDGE, Ask, Rulings, judge, rubric_of
from .time_budget import time_budget

_NO_CASE: Final = Case("", "")


def grade(
    checks: Sequence[AnyCheck],
    answer: Answer,
    rulings: Mapping[str, Result] | None = None,
    case: Case = _NO_CASE,
    workspace: Workspace | None = None,
    *,
    even_if_empty: bool = False,
) -> tuple[Grade, ...]:
    """Apply every check of a case to an answer; ``rulings`` are the judge's.

    No check of an empty or refused answer passes, unless a refusal is what is asked
    for, or only whether the skill is opened. An agent's files are graded also if it
    says nothing at the end, and by a verifier whatever it did. With ``even_if_empty``
    nothing is taken for granted: only judges and Python are not asked. CheckError if a
    check breaks, or if all of them together take too long.
    """
    context = CheckContext(
        answer,
        case,
        rulings=rulings or {},
        why_not_gradable=(
            "" if case.kind.until_opened else _why_not_gradable(answer, checks)
        ),
        final_workspace=workspace or Workspace(answer),
    ).within(checks)
    plain_context = replace(context, why_not_gradable="")
    graded, numbers = list[Grade](), list[int]()
    with time_budget():
        for check in checks:
            kinds = [inner.kind for inner in walk([check])]
            skips_empty = any(kind is JUDGE or kind.calls_code for kind in kinds)
            graded_as_is = (
                context if skips_empty or not even_if_empty else plain_context
            )
            results = list(check.results(graded_as_is))
            numbers.append(len(results))
            for (passed, reason), asks in zip(
                results, check.asks(len(results)), strict=True
            ):
                values = (
                    check.name,
                    passed is True,
                    str(reason),
                    check.weight,
                    check.required,
                )
                measured = check.measured(graded_as_is)._asdict()
                graded.append(
                    Grade(*values, asks, with_skill=check.with_skill, **measured)
                )
    highlights = places(checks, numbers, answer.text)
    return tuple(
        replace(grade, found=spans.found, unwanted=spans.unwanted)
        for grade, spans in zip(graded, highlights, strict=True)
    )


def _why_not_gradable(answer: Answer, checks: Sequence[AnyCheck]) -> str:
    if checks and all(check.kind.grades_anything for check in walk(checks)):
        return ""
    reason = answer.why_not_gradable
    by_files = (
        reason.startswith(SILENT) and answer.files and asks_only_for_files(checks)
    )
    return "" if by_files else reason


@dataclass(frozen=True)
class ToGrade:
    """A trial, its case, and the checks of its answer."""

    trial: Trial
    case: Case
    checks: tuple[AnyCheck, ...]


class _Grading(NamedTuple):
    """Where commands and verifiers run."""

    sandbox: str
    network: bool  # for verifiers


def rubric_for(
    checks: Sequence[AnyCheck],
    judge_name: str | None,
    skill: Skill | None = None,
    task: Task | None = None,
) -> Rubric | None:
    """What a judge is asked about the answers to a case;
    None if no judge is needed or set.

    The ``skill`` is hidden from it. ``task`` is that of a judge that is an agent.
    """
    rubric = rubric_of(checks)
    if not rubric.texts or not judge_name:
        return None

    hidden = Hidden()
    if skill:
        parts = list(dict.fromkeys([skill, *skill.members]))
        names = [name for part in parts for name in (part.name, part.folder.name)]
        texts_of = [(part.description, part.body, part.previous) for part in parts]
        skill_texts = [text for part_texts in texts_of for text in part_texts if text]
        hidden = Hidden(tuple(dict.fromkeys(filter(None, names))), tuple(skill_texts))
    return replace(
        rubric,
        judge=judge_name,
        refusals=wants_refusal(walk(checks)),
        hidden=hidden,
        task=task,
    )


def records_of(
    to_grade: Sequence[ToGrade],
    ask: Ask,
    sandbox: str = "auto",
    *,
    network: bool = False,
) -> list[Record]:
    """The record of each trial. All models are asked at once,
    then the judge about all answers.

    Commands that check an agent's workspace run in the same kind of ``sandbox``;
    verifiers may have a ``network``.
    """
    trials = [item.trial for item in to_grade]
    replies = ask([trial.question for trial in trials])
    ruled = _judged(ask, trials, replies)
    each = zip(to_grade, replies, ruled, strict=True)
    grading = _Grading(sandbox, network)
    return [_record(item, reply, rulings, grading) for item, reply, rulings in each]


def _judged(
    ask: Ask, trials: Sequence[Trial], replies: Sequence[Reply]
) -> list[Rulings | None]:
    """The rulings on each answer that a judge is asked about."""
    to_judge = {
        number: (trial.rubric, trial.question, reply)
        for number, (trial, reply) in enumerate(zip(trials, replies, strict=True))
        if trial.rubric and trial.question and isinstance(reply, Answer)
    }
    ruled = dict(zip(to_judge, judge(ask, list(to_judge.values())), strict=True))
    return [ruled.get(number) for number in range(len(trials))]


def _record(
    item: ToGrade, reply: Reply, ruled: Rulings | None, grading: _Grading
) -> Record:
    if isinstance(reply, NoAnswer):
        return make_record(item.trial, reply)
    record = _graded(item, reply, ruled, grading)
    return replace(record, judge=ruled.took) if ruled else record


def _graded(
    item: ToGrade, answer: Answer, ruled: Rulings | None, grading: _Grading
) -> Record:
    problem = ruled.problem if ruled else ""
    if item.case.kind.until_opened:
        problem = _why_undecided(answer)
    if problem:
        return make_record(item.trial, answer, error=problem)
    try:
        workspace = _workspace(answer, item.trial.question.task, grading)
        trial = item.trial
        checks = asked_checks(item.checks, trial.agent, has_skill=trial.has_skill)
        kind = item.case.kind
        if kind.agent:
            checks = rules_of(kind).choose_checks(item.checks, trial.arm)
        grades = grade(
            checks,
            answer,
            ruled.by_text if ruled else {},
            item.case,
            workspace,
            even_if_empty=bool(kind.agent),
        )
    except CheckError as error:
        return make_record(item.trial, answer, error=str(error))
    return make_record(item.trial, answer, grades)


def _why_undecided(answer: Answer) -> str:
    """Why a trial does not tell whether the skill is opened, which is not "not
    opened".
    """
    activity = answer.activity or Activity()
    if activity.activated:
        return ""
    if answer.stop == "time":
        return (
            f"{answer.why_not_gradable}, before it was decided whether the skill is"
            " opened"
        )
    if activity.untold:
        return UNTOLD
    return (
        ""
        if activity.activated is False
        else "nothing tells whether the skill was opened"
    )


def _workspace(answer: Answer, task: Task | None, grading: _Grading) -> Workspace:
    if task is None:
        return Workspace(answer)

    from .command_check import commands_in
    from .verifier_run import verifiers_in

    place = (grading.sandbox, task.image, task.needs, task.files)
    run, verify = commands_in(*place), verifiers_in(*place, network=grading.network)
    return Workspace(
        answer, task.files, has_setup=bool(task.setup), run=run, verify=verify
    )
