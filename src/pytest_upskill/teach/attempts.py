"""Measure a skill, let the teacher improve it by what fails, measure again; keep the best."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from .._util.texts import counted, one_line, shortened
from ..checks import CheckedCase
from ..errors import BudgetError, UnusableError
from ..results.arm_comparison import unit_of
from ..results.run import RunResults
from ..results.summary import Summary
from ..skills.skill import Skill
from ..trials.answer import AnswerFile
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from ..trials.trial import ARMS, Arm
from .case_writing import UsableCase
from .drafts import Draft, Wanted, ask_for_draft, loaded
from .progress_lines import ProgressScreen, cells_of
from .prompts import SkillText, fenced, refine_prompt
from .replies import no_answer
from .secrets import masked
from .teach_models import TeachModels
from .teach_settings import TeachSettings
from .traces import condensed
from .traces.reading import trace_of

_MOST_TRIED: Final = 8_000  # characters of an earlier version that the teacher is shown
_PLATEAU: Final = 2  # stop after this many attempts without a better one

MOST_TRACES: Final = 12_000  # tokens of what agents did, in all
_MOST_FAILURES: Final = 10  # that the teacher is shown
_MOST_TRACE: Final = 3_000  # tokens of one
_MOST_ANSWER: Final = 1_500  # characters
_MOST_FILES_SHOWN: Final = 5
_MOST_FILE_SHOWN: Final = 1_000  # characters
_MOST_MASKED: Final = 20_000  # characters: masking a whole file may take a second
_NOT_OPENED: Final = (
    "It did not open the skill: it saw the name and the description, and no word of the body. So "
    "the body is not the cause. Change the description: say when to use the skill, in words that "
    "such questions use."
)


@dataclass(frozen=True)
class Attempt:
    """A version measured on the learning cases, or why it could not be."""

    number: int
    draft: Draft
    results: RunResults | None
    problem: str | None = None
    written: bool = True  # False: the skill as it was before this run
    most_tokens: int | None = None

    @property
    def too_long(self) -> bool:
        """The current skill never is: somebody chose its length."""
        return self.written and self.draft.tokens > (self.most_tokens or self.draft.tokens)

    @property
    def label(self) -> str:
        return f"attempt {self.number}" if self.written else "current"

    @property
    def lift(self) -> float:
        """Mean over the students."""
        return mean_lift(self.results) if self.results else float("-inf")

    @property
    def worst_score(self) -> float:
        """Of the weakest student: its pass rate, or its share of checks."""
        rows = self.results.summaries if self.results else []
        return min((row.scored("skill") or 0.0 for row in rows), default=0.0)

    @property
    def merit(self) -> tuple[bool, float, int, int]:
        """What makes it the best: it helps and is not too long; lift; fewer tokens; being first."""
        fits = self.lift > 0 and not self.too_long
        return fits, self.lift, -self.draft.tokens, -self.number


def mean_lift(results: RunResults) -> float:
    lifts = [row.lift for row in results.summaries if row.lift is not None]
    return fmean(lifts) if lifts else 0.0


def checked(cases: Sequence[UsableCase]) -> list[CheckedCase]:
    return [(one.case, one.checks) for one in cases]


def measure(
    models: TeachModels,
    draft: Draft,
    cases: Sequence[UsableCase],
    measured: Mapping[Subject, str],
    scratch: Path,
    *,
    arms: Sequence[Arm] = ARMS,
    trace: str | None = None,
) -> RunResults:
    """All cases on the ``measured`` students; TeachError if one could not be asked.

    With a trace there is one more arm, which has the trace instead of the skill.
    """
    with loaded(draft, scratch) as skill:
        return measure_skill(models, replace(skill, trace=trace), cases, measured, arms)


def measure_skill(
    models: TeachModels,
    skill: Skill,
    cases: Sequence[UsableCase],
    measured: Mapping[Subject, str],
    arms: Sequence[Arm] = ARMS,
) -> RunResults:
    """The same for a skill in a folder."""
    results = models.evaluate(skill, checked(cases), measured, arms)
    require_answers(models, results.records)
    return results


def require_answers(models: TeachModels, records: Iterable[Record]) -> None:
    """TeachError if a trial has no answer."""
    for record in records:
        if record.outcome == "errored":
            raise no_answer(models, record.error or "no answer")


def passed_by_all(results: RunResults) -> set[str]:
    """The cases that every model passes in every run without the skill."""
    failed = {
        record.case
        for record in results.records
        if record.arm == "baseline" and record.outcome != "passed"
    }
    return {test.case for test in results.tests} - failed


KeepAttempt = Callable[[Attempt, list[Attempt]], None]


@dataclass(frozen=True)
class AttemptLoop:
    """What all attempts share."""

    models: TeachModels
    settings: TeachSettings
    material: str
    wanted: Wanted
    cases: Sequence[UsableCase]  # only the learning ones
    session: int
    screen: ProgressScreen
    keep: KeepAttempt

    def run(self, first: Draft) -> tuple[list[Attempt], str]:
        """All attempts, and why they ended."""
        attempts, stop = self._attempts(first)
        best = best_of(attempts)
        if len(attempts) > 1 and best.number == 1 and best.results:  # its row does not say so yet
            self.screen.row(best.label, cells_of(best.results), "best")
        return attempts, stop

    def _attempts(self, first: Draft) -> tuple[list[Attempt], str]:
        attempts: list[Attempt] = []
        draft: Draft | None = first
        while True:
            attempt = self._measured(draft, attempts) if draft else None
            if attempt:
                attempts.append(attempt)
                self._show(attempts)
                self.keep(attempt, attempts)
            if self.models.out_of_budget:
                return attempts, f"another version {self.models.past_budget()}"
            if stop := why_stop(attempts, self.settings):
                return attempts, stop
            draft = self._next(attempts)
            if draft and any(self._same(draft, former.draft) for former in attempts):
                return attempts, "the teacher wrote nothing new"

    def _measured(self, draft: Draft, attempts: Sequence[Attempt]) -> Attempt:
        written = draft is not self.wanted.base
        most = self.wanted.most_tokens
        attempt = Attempt(len(attempts) + 1, draft, None, written=written, most_tokens=most)
        self.screen.begin(f"{attempt.label}…")
        try:
            results = measure(
                self.models, draft, self.cases, self.models.students, self.wanted.scratch
            )
        except BudgetError as error:
            return replace(attempt, problem=str(error))
        return replace(attempt, results=results)

    def _next(self, attempts: list[Attempt]) -> Draft | None:
        """A new version of the best; None if it is unusable, which counts as an attempt."""
        best = best_of(attempts)
        assert best.results, "the best attempt is a measured one"
        tried = [_tried_text(one) for one in attempts if one.number > best.number]
        prompt = refine_prompt(
            self.settings.task,
            self.material,
            SkillText(best.draft.description, best.draft.body, best.draft.files),
            report_for_teacher(best.results),
            tried,
            self.settings.max_skill_tokens,
            agents=self.models.with_agents,
        )
        number = len(attempts) + 1
        self.screen.begin(f"attempt {number}: {self.models.teacher} rewrites the skill…")
        try:
            return ask_for_draft(self.models, prompt, self.wanted, self.session)
        except BudgetError:
            self.screen.drop()
            return None
        except UnusableError as error:
            attempt = Attempt(number, best.draft, None, str(error))
            attempts.append(attempt)
            self._show(attempts)
            self.keep(attempt, attempts)
            return None

    def _same(self, one: Draft, other: Draft) -> bool:
        """Whether students could not tell them apart: only agents see a description."""
        if self.models.with_agents and one.description != other.description:
            return False
        return (one.body, one.files) == (other.body, other.files)

    def _show(self, attempts: list[Attempt]) -> None:
        latest = attempts[-1]
        if not latest.results:
            self.screen.line(f"{latest.label:<11}{one_line(latest.problem or '', 120)}")
            return
        better = len(attempts) > 1 and best_of(attempts) is latest
        self.screen.row(latest.label, cells_of(latest.results), "best" if better else "")


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    return max(attempts, key=lambda attempt: attempt.merit)


def why_stop(attempts: Sequence[Attempt], settings: TeachSettings) -> str | None:
    best = best_of(attempts)
    if best.worst_score >= settings.target and not best.too_long:
        how = "" if best.written else " with the current skill"
        unit = unit_of(best.results.skills[0].score) if best.results else ""
        return f"every student reached {settings.target:.0%}{unit}{how}"
    if len(attempts) >= settings.attempts:
        return f"limit of {counted(settings.attempts, 'attempt')} reached"
    if len(attempts) - best.number >= _PLATEAU:
        return f"{_PLATEAU} attempts in a row were no better"
    return None


def _tried_text(attempt: Attempt) -> str:
    """A version that was no better, or why there was none."""
    if attempt.results:
        return shortened(attempt.draft.body, _MOST_TRIED)
    return f"(attempt {attempt.number} could not be used: {attempt.problem})"


def report_for_teacher(results: RunResults) -> str:
    """Pass rates, and failed answers with their questions and reasons: part of a prompt."""
    skill = results.skills[0].name
    failing = _failing(results)
    chosen = failing[:_MOST_FAILURES]
    room = min(_MOST_TRACE, MOST_TRACES // max(1, sum(one.agent != CHAT for one in chosen)))
    shown = [_failure(results.questions[skill, one.case], one, room) for one in chosen]
    rates = "; ".join(map(_rates, results.summaries))
    failed = {record.case for record in failing}
    fine = [case.case for case in results.summaries[0].by_case if case.case not in failed]
    what = "The share that passes" if results.skills[0].score == "pass" else "The share of checks"
    parts = [f"{what}: {rates}."]
    parts += [f"These pass with every student: {', '.join(fine)}."] if fine else []
    if failing:
        parts += [f"{counted(len(failing), 'answer')} fail; these are some of them.", *shown]
    return "\n\n".join(parts)


def _rates(row: Summary) -> str:
    bare, skilled = row.scored("baseline") or 0.0, row.scored("skill") or 0.0
    text = f"{row.model} {bare:.0%} without the skill, {skilled:.0%} with it"
    return f"{text}, {row.activation.opened}" if row.activation else text


def _failing(results: RunResults) -> list[Record]:
    """A failed answer of each case and student; every case comes once before any comes twice."""
    first: dict[tuple[str, str], Record] = {}
    for record in results.records:
        if record.arm == "skill" and record.outcome == "failed":
            first.setdefault((record.case, record.label), record)
    seen = dict[str, int]()
    ranked = []
    for record in first.values():
        seen[record.case] = seen.get(record.case, 0) + 1
        ranked.append((seen[record.case], record))
    return [record for _, record in sorted(ranked, key=lambda pair: pair[0])]


def _failure(question: str, record: Record, room: int) -> str:
    """A failed answer, or what an agent did in ``room`` tokens."""
    wrong = [grade.reason for grade in record.checks if not grade.passed]
    right = [grade.reason for grade in record.checks if grade.passed]
    parts = [f"Question:\n{fenced('question', question)}"]
    if record.agent == CHAT:
        answer = shortened(record.output or "", _MOST_ANSWER)
        parts.append(f"{record.label} answered:\n{fenced('answer', answer)}")
    else:
        parts += _of_agent(record, room)
    parts.append("What is wrong: " + "; ".join(wrong) + ".")
    parts += ["What is right: " + "; ".join(right) + "."] if right else []
    return "\n".join(parts)


def _of_agent(record: Record, room: int) -> list[str]:
    """What an agent did, in numbered steps, and what it left behind."""
    done = (turn for turn in record.transcript if turn.reply)  # before that it was asked
    trace = condensed(trace_of(done), room)
    parts = [f"{record.label}, an agent, did this:\n{fenced('trial', trace.text)}"]
    parts += [trace.left_out] if trace.left_out else []
    parts.append(_opened(record))
    parts.append(_files(record.files))
    return parts


def _opened(record: Record) -> str:
    activity = record.activity
    if activity is None or activity.activated is None:
        return ""
    if not activity.activated:
        return _NOT_OPENED
    others = [f"read {', '.join(activity.read)}"] if activity.read else []
    others += [f"ran {', '.join(activity.scripts)}"] if activity.scripts else []
    done = f", and {' and '.join(others)}" if others else " and none of its other files"
    return masked(one_line(f"It opened the skill{done}.", 500))


def _files(files: Sequence[AnswerFile]) -> str:
    """The files that it made, changed or deleted, as far as they are texts and short."""
    if not files:
        return "It left no file behind and changed none."
    names = [f"{one_line(file.path, 100)} ({file.change})" for file in files]
    more = f", and {len(files) - 20:,} more" if len(files) > 20 else ""
    parts = [f"Files that it left:\n{fenced('names', masked(', '.join(names[:20]) + more))}"]
    for file in [one for one in files if one.text is not None][:_MOST_FILES_SHOWN]:
        text, start = file.text or "", masked((file.text or "")[:_MOST_MASKED])[:_MOST_FILE_SHOWN]
        start += "…" if len(text) > _MOST_FILE_SHOWN else ""
        parts.append(fenced("file", f"{one_line(file.path, 100)}:\n{start}"))
    return "\n".join(parts)
