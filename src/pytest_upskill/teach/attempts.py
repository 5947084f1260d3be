"""Versions of a skill, measured on its cases; each is written by what fails with the best one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from .._util.texts import counted, one_line, shortened
from ..checks import CheckedCase
from ..results.arm_comparison import unit_of
from ..results.run import RunResults
from ..results.summary import Summary
from ..skills.skill import Skill
from ..trials.answer import AnswerFile
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from .case_writing import UsableCase
from .drafts import Draft, DraftSpec, ask_for_draft, loaded
from .improvement import Improvement
from .progress_lines import cells_of
from .prompts import SkillText, fenced, refine_prompt
from .replies import no_answer
from .secrets import masked
from .teach_models import TeachModels
from .teach_run import TeachRun
from .traces import condensed, teaching_turns

_MOST_TRIED: Final = 8_000  # characters of an earlier version that the teacher is shown
MOST_TRACES: Final = 12_000  # tokens of what agents did, in all
_MOST_FAILURES: Final = 10  # that the teacher is shown
_MOST_TRACE: Final = 3_000  # tokens of one trace
_MOST_ANSWER: Final = 1_500  # characters
_MOST_FILES: Final = 5
_MOST_FILE: Final = 1_000  # characters
_MOST_MASKED: Final = 20_000  # characters: masking a large file may take a second
_NOT_OPENED: Final = (
    "It did not open the skill: it saw the name and the description, and no word of the body. So "
    "the body is not the cause. Change the description: say when to use the skill, in words that "
    "such questions use."
)


@dataclass(frozen=True)
class Attempt:
    """A version of a skill on the learning cases, or why it could not be measured."""

    number: int
    draft: Draft
    results: RunResults | None
    problem: str | None = None
    written: bool = True  # False: the skill as it was before this run
    most_tokens: int | None = None
    noun: str = "attempt"

    @property
    def too_long(self) -> bool:
        """The current skill never is: somebody chose its length."""
        return self.written and self.draft.tokens > (self.most_tokens or self.draft.tokens)

    @property
    def label(self) -> str:
        return f"{self.noun} {self.number}" if self.written else "current"

    @property
    def lift(self) -> float:
        """Mean over the students."""
        if self.results is None:
            return float("-inf")
        lifts = [row.lift for row in self.results.summaries if row.lift is not None]
        return fmean(lifts) if lifts else 0.0

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


@dataclass
class SkillImprovement(Improvement[Draft, Attempt]):
    """Versions of a skill, each written by what fails with the best one."""

    spec: DraftSpec
    cases: Sequence[UsableCase]  # only the learning ones

    def improve(self, first: Draft | None = None) -> str:
        stop, best = super().improve(first), self.best
        if len(self.attempts) > 1 and best.number == 1 and best.results:
            self.run.screen.row(best.label, cells_of(best.results), "best")  # not marked so far
        return stop

    def propose(self) -> Draft:
        settings, models, best = self.run.settings, self.run.models, self.best
        assert best.results, "the best attempt is a measured one"
        tried = [_tried_text(attempt) for attempt in self.attempts if attempt.number > best.number]
        prompt = refine_prompt(
            settings.task,
            self.run.material.text,
            SkillText(best.draft.description, best.draft.body, best.draft.files),
            report_for_teacher(best.results),
            tried,
            settings.max_skill_tokens,
            agents=models.with_agents,
        )
        number = len(self.attempts) + 1
        self.run.screen.begin(f"attempt {number}: {models.teacher} rewrites the skill…")
        return ask_for_draft(models, prompt, self.spec, self.run.state.session)

    def measure(self, number: int, version: Draft) -> Attempt:
        attempt = self.unmeasured(number, "", version)
        self.run.screen.begin(f"{attempt.label}…")
        models = self.run.models
        results = measure(models, version, self.cases, models.students, self.spec.scratch)
        return replace(attempt, results=results, problem=None)

    def unmeasured(self, number: int, problem: str, version: Draft | None) -> Attempt:
        draft = version or self.best.draft
        written = version is not self.spec.base or version is None
        return Attempt(number, draft, None, problem, written, self.spec.most_tokens)

    def is_new(self, version: Draft) -> bool:
        return not any(self._is_same(version, attempt.draft) for attempt in self.attempts)

    def _is_same(self, version: Draft, other: Draft) -> bool:
        """Whether students can't tell them apart: only agents see a description."""
        if self.run.models.with_agents and version.description != other.description:
            return False
        return (version.body, version.files) == (other.body, other.files)

    def why_enough(self) -> str | None:
        return why_good_enough(self.best, self.run.settings.target)

    def show(self, attempt: Attempt) -> None:
        show_attempt(self.run, attempt, "best" if self._is_better(attempt) else "")

    def _is_better(self, attempt: Attempt) -> bool:
        return len(self.attempts) > 1 and self.best is attempt

    def keep(self, attempt: Attempt) -> None:
        self.run.state.keep_attempt(
            attempt.number, attempt.draft, attempt.results, attempt_text(attempt)
        )


def why_good_enough(best: Attempt, target: float) -> str | None:
    if best.worst_score < target or best.too_long:
        return None
    current = "" if best.written else " with the current skill"
    unit = unit_of(best.results.skills[0].score) if best.results else ""
    return f"every student reached {target:.0%}{unit}{current}"


def show_attempt(run: TeachRun, attempt: Attempt, mark: str) -> None:
    if attempt.results:
        run.screen.row(attempt.label, cells_of(attempt.results), mark)
    else:
        run.screen.line(f"{attempt.label:<11}{one_line(attempt.problem or '', 120)}")


def attempt_text(attempt: Attempt) -> str:
    """An attempt as the report.txt that is kept with it."""
    tokens, limit = counted(attempt.draft.tokens, "token"), attempt.most_tokens
    lines = [f"{attempt.label}: SKILL.md of {tokens}" + (f" (limit {limit:,})" if limit else "")]
    if attempt.results:
        lines += ["  ".join(cell).rstrip() for cell in cells_of(attempt.results)]
        lines += [f"{v.summary.label}: {v.word}: {v.sentence}" for v in attempt.results.verdicts]
    else:
        lines.append(one_line(attempt.problem or "", 500) or "not measured")
    return "\n".join(lines)


def _tried_text(attempt: Attempt) -> str:
    """A version that was no better, or why there was none."""
    if attempt.results:
        return shortened(attempt.draft.body, _MOST_TRIED)
    return f"(attempt {attempt.number} could not be used: {attempt.problem})"


def with_checks(cases: Sequence[UsableCase]) -> list[CheckedCase]:
    return [(usable.case, usable.checks) for usable in cases]


def measure(
    models: TeachModels,
    draft: Draft,
    cases: Sequence[UsableCase],
    students: Mapping[Subject, str],
    scratch: Path,
    *,
    arms: Sequence[str] | None = None,
    trace: str | None = None,
) -> RunResults:
    """All cases on the students; TeachError if one could not be asked.

    With a trace there is one more arm, which has the trace instead of the skill.
    """
    with loaded(draft, scratch) as skill:
        return measure_skill(models, replace(skill, trace=trace), cases, students, arms)


def measure_skill(
    models: TeachModels,
    skill: Skill,
    cases: Sequence[UsableCase],
    students: Mapping[Subject, str],
    arms: Sequence[str] | None = None,
) -> RunResults:
    """The same for a skill in a folder."""
    results = models.evaluate(skill, with_checks(cases), students, arms)
    require_answers(models, results.records)
    return results


def require_answers(models: TeachModels, records: Iterable[Record]) -> None:
    """TeachError if a trial has no answer."""
    for record in records:
        if record.outcome == "errored":
            raise no_answer(models, record.error or "no answer")


def joined_results(learning: RunResults, held_out: RunResults) -> RunResults:
    """The results of both parts of the cases."""
    return replace(
        learning,
        tests=(*learning.tests, *held_out.tests),
        records=(*learning.records, *held_out.records),
        questions={**learning.questions, **held_out.questions},
    )


def passed_by_all(results: RunResults) -> set[str]:
    """The cases that every model passes in every run without the skill."""
    failed = {
        record.case
        for record in results.records
        if record.arm == "baseline" and record.outcome != "passed"
    }
    return {test.case for test in results.tests} - failed


# How students fail, for the teacher


def report_for_teacher(results: RunResults) -> str:
    """Pass rates, and failed answers with their questions and reasons: part of a prompt."""
    skill, score = results.skills[0].name, results.skills[0].score
    failing = _failing(results)
    examples = failing[:_MOST_FAILURES]
    by_agents = sum(record.agent != CHAT for record in examples)
    most_tokens = min(_MOST_TRACE, MOST_TRACES // max(1, by_agents))
    rates = "; ".join(map(_rates, results.summaries))
    failed = {record.case for record in failing}
    passing = [case.case for case in results.summaries[0].by_case if case.case not in failed]
    share = "The share that passes" if score == "pass" else "The share of checks"
    parts = [f"{share}: {rates}."]
    parts += [f"These pass with every student: {', '.join(passing)}."] if passing else []
    if failing:
        parts.append(f"{counted(len(failing), 'answer')} fail; these are some of them.")
    parts += [_failure(results.questions[skill, one.case], one, most_tokens) for one in examples]
    return "\n\n".join(parts)


def _rates(row: Summary) -> str:
    bare, skilled = row.scored("baseline") or 0.0, row.scored("skill") or 0.0
    text = f"{row.label} {bare:.0%} without the skill, {skilled:.0%} with it"
    return f"{text}, {row.activation.opened}" if row.activation else text


def _failing(results: RunResults) -> list[Record]:
    """A failed answer of each case and student; every case comes once before any comes twice."""
    first: dict[tuple[str, str], Record] = {}
    for record in results.records:
        if record.arm == "skill" and record.outcome == "failed":
            first.setdefault((record.case, record.label), record)
    by_case = dict[str, int]()
    ranked = []
    for record in first.values():
        by_case[record.case] = by_case.get(record.case, 0) + 1
        ranked.append((by_case[record.case], record))
    return [record for _, record in sorted(ranked, key=lambda pair: pair[0])]


def _failure(question: str, record: Record, most_tokens: int) -> str:
    """A failed answer, or what an agent did."""
    wrong = [grade.reason for grade in record.checks if not grade.passed]
    right = [grade.reason for grade in record.checks if grade.passed]
    parts = [f"Question:\n{fenced('question', question)}"]
    if record.agent == CHAT:
        answer = shortened(record.output or "", _MOST_ANSWER)
        parts.append(f"{record.label} answered:\n{fenced('answer', answer)}")
    else:
        parts += _agent_failure(record, most_tokens)
    parts.append("What is wrong: " + "; ".join(wrong) + ".")
    parts += ["What is right: " + "; ".join(right) + "."] if right else []
    return "\n".join(parts)


def _agent_failure(record: Record, most_tokens: int) -> list[str]:
    """What an agent did, in numbered steps, and the files it left."""
    replies = (turn for turn in record.transcript if turn.reply)  # not what it was asked
    trace = condensed(teaching_turns(replies), most_tokens)
    parts = [f"{record.label}, an agent, did this:\n{fenced('trial', trace.text)}"]
    parts += [trace.left_out] if trace.left_out else []
    return [*parts, _opened(record), _files(record.files)]


def _opened(record: Record) -> str:
    activity = record.activity
    if activity is None or activity.activated is None:
        return ""
    if not activity.activated:
        return _NOT_OPENED
    actions = [f"read {', '.join(activity.read)}"] if activity.read else []
    actions += [f"ran {', '.join(activity.scripts)}"] if activity.scripts else []
    also = f", and {' and '.join(actions)}" if actions else " and none of its other files"
    return masked(one_line(f"It opened the skill{also}.", 500))


def _files(files: Sequence[AnswerFile]) -> str:
    """The files that it made, changed or deleted, with the text of the first ones."""
    if not files:
        return "It left no file behind and changed none."
    names = [f"{one_line(file.path, 100)} ({file.change})" for file in files]
    omitted = f", and {len(files) - 20:,} more" if len(files) > 20 else ""
    parts = [f"Files that it left:\n{fenced('names', masked(', '.join(names[:20]) + omitted))}"]
    for file in [file for file in files if file.text is not None][:_MOST_FILES]:
        text, start = file.text or "", masked((file.text or "")[:_MOST_MASKED])[:_MOST_FILE]
        start += "…" if len(text) > _MOST_FILE else ""
        parts.append(fenced("file", f"{one_line(file.path, 100)}:\n{start}"))
    return "\n".join(parts)
