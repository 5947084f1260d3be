"""The loop that improves a skill, and the held-out cases that decide.

Propose a version (by the teacher, with what fails), measure it on the learning cases,
keep the best; then compare it with the skill before on cases that no teacher saw. A
kind of proposal is a subclass in its own file: whole versions (``bodies``), shorter
ones (``shorter``), and descriptions.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final

from .._util.texts import counted, message_line
from ..checks import CheckedCase
from ..errors import BudgetError, UnusableError
from ..reports.terminal.progress_screen import Cell, as_sentence, cells_of
from ..results.comparison import unit_of
from ..results.contrasts import Contrast
from ..results.run import RunResults
from ..settings import Score
from ..stats import LEVEL, Lift, paired_lift
from ..trials.arm import AGAIN, BASELINE, SKILL, TRACE, Arm
from ..trials.records import asked_apart
from ..trials.subject import Subject
from .case_writing import UsableCase
from .drafts import Draft, loaded
from .outcome import CURRENT, HELD_OUT, LEARNING, Attempt, AttemptChange, Part, Taught
from .replies import Request, ask_for, no_answer
from .teach_run import TeachRun

_PLATEAU: Final = 2  # stop after this many versions without a better one


@dataclass
class Improvement(ABC):
    """The loop; a subclass says what is proposed, what is better,
    and what held-out cases decide.

    ``learning`` and ``held_out`` are the cases; of the latter,
    no step before the last knows.
    """

    run: TeachRun
    learning: Sequence[UsableCase]
    held_out: Sequence[UsableCase] = ()
    before: Attempt | None = None  # the skill as it was, if it is none of the versions
    attempts: list[Attempt] = field(default_factory=list, init=False)

    # What a kind of proposal says.

    @abstractmethod
    def request(self) -> tuple[str, Request[Draft]]:
        """What the teacher does next, in words, and what it is asked for."""

    @abstractmethod
    def is_different(self, draft: Draft) -> bool:
        """Whether students can tell it from the versions so far."""

    @abstractmethod
    def merit(self, attempt: Attempt) -> tuple[float, ...]:
        """What makes a version better than others, on the learning cases."""

    @abstractmethod
    def why_enough(self) -> str | None:
        """Why the best version needs no improvement, if so."""

    @abstractmethod
    def candidates(self) -> list[Attempt]:
        """The versions that the held-out cases are asked with."""

    @abstractmethod
    def decide(self, taught: Taught) -> Taught:
        """Choose a version, by the learning and perhaps the held-out cases."""

    def propose(self) -> Draft:
        """Ask the teacher; UnusableError if no reply is usable, or BudgetError."""
        teacher, (doing, request) = self.run.models.teacher, self.request()
        self.run.screen.begin(f"attempt {len(self.attempts) + 1}: {teacher} {doing}…")
        return ask_for(self.run.models, teacher, request)

    def measure(self, draft: Draft, cases: Sequence[UsableCase]) -> RunResults:
        return measure(self.run, draft, cases)

    def cells(self, results: RunResults) -> list[Cell]:
        """The numbers of each student, for the screen."""
        return cells_of(results)

    def size(self, attempt: Attempt) -> str:
        """What is shown beside the numbers of a version."""
        return "best" if len(self.attempts) > 1 and self.best is attempt else ""

    @property
    def most_tokens(self) -> int | None:
        """The size that the next version should have."""
        return self.run.settings.max_skill_tokens

    # The loop.

    @property
    def best(self) -> Attempt:
        return max(self.attempts, key=self.merit)

    @property
    def later(self) -> list[Attempt]:
        """What was tried after the best version, and is no better."""
        return self.attempts[self.best.number :]

    @property
    def current(self) -> Attempt | None:
        """The skill as it was before this run, if there was one."""
        first = self.attempts[0] if self.attempts else None
        return first if first and not first.is_new else self.before

    @property
    def written(self) -> int:
        return sum(attempt.is_new for attempt in self.attempts)

    def improve(self, first: Draft, *, is_new: bool) -> str:
        """Write versions, beginning with a first one; return why they ended."""
        models = self.run.models
        self._measure(first, is_new=is_new, required=True)
        while True:
            if models.out_of_budget:
                return f"another version {models.past_budget()}"
            if stop := self.why_stop():
                return stop
            draft = self._propose()
            if draft is not None and not self.is_different(draft):
                return "the teacher wrote nothing new"
            if draft is not None:
                self._measure(draft)

    def why_stop(self) -> str | None:
        if stop := self.why_enough():
            return stop
        if self.written >= self.run.settings.attempts:
            return f"limit of {counted(self.run.settings.attempts, 'attempt')} reached"
        return self.why_stuck()

    def why_stuck(self) -> str | None:
        if len(self.attempts) - self.best.number >= _PLATEAU:
            return f"{_PLATEAU} attempts in a row were no better"
        return None

    def _propose(self) -> Draft | None:
        """A version; None if it is unusable, which counts as one, or over the
        budget.
        """
        try:
            return self.propose()
        except BudgetError:
            self.run.screen.drop()
        except UnusableError as error:
            self._add(replace(self._attempt(self.best.draft), problem=str(error)))
        return None

    def _measure(
        self, draft: Draft, *, is_new: bool = True, required: bool = False
    ) -> None:
        attempt = self._attempt(draft, is_new=is_new)
        self.run.screen.begin(f"{attempt.label}…")
        try:
            self._add(replace(attempt, learning=self.measure(draft, self.learning)))
        except BudgetError as error:
            if required:
                self._add(replace(attempt, problem=str(error)))
            else:
                self.run.screen.drop()

    def _attempt(self, draft: Draft, *, is_new: bool = True) -> Attempt:
        most = self.most_tokens
        return Attempt(len(self.attempts) + 1, draft, is_new=is_new, most_tokens=most)

    def _add(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        if attempt.learning:
            self.run.screen.row(
                attempt.label, self.cells(attempt.learning), self.size(attempt)
            )
        else:
            problem = message_line(attempt.problem or "", 120)
            self.run.screen.text(f"{attempt.label:<11}{problem}")
        self.run.versions.keep(attempt)

    # The decision.

    def taught(
        self, first: Draft, *, is_new: bool, no_signal: tuple[str, ...] = ()
    ) -> Taught:
        """All of it: the loop, the held-out cases, the decision."""
        stop = self.improve(first, is_new=is_new)
        best, notes = self.best, list[str]()
        if (
            best.learning
            and len(self.attempts) > 1
            and best is self.attempts[0]
            and self.written
        ):
            # Not marked so far
            self.run.screen.row(best.label, self.cells(best.learning), "best")
        if best.learning and self.held_out:
            try:
                for _ in range(2):
                    self._ask_held_out()
                    if not self._is_apart(
                        attempt.held_out for attempt in self._tested()
                    ):
                        break  # else a new version makes the answers of others too old
            except BudgetError:
                self.run.screen.drop()
                past = self.run.models.past_budget()
                notes.append(f"not all held-out cases were asked: it {past}")
        taught = Taught(
            name=self.best.draft.name,
            attempts=tuple(self.attempts),
            chosen=self.best.number,
            cases=parts_of(self.learning, self.held_out),
            stop=stop,
            before=self.before,
            no_signal=no_signal,
        )
        taught = self.decide(taught)
        return replace(taught, sentences=(*taught.sentences, *map(as_sentence, notes)))

    def _tested(self) -> list[Attempt]:
        """The candidates, after the skill before if one is new."""
        candidates = self.candidates()
        current = (
            [self.current]
            if self.current and any(best.is_new for best in candidates)
            else []
        )
        return [*current, *candidates]

    def _is_apart(self, results: Iterable[RunResults | None]) -> bool:
        """Whether versions were asked too far apart to compare them."""
        records = (record for run in results if run for record in run.records)
        return asked_apart(records, self.run.models.settings.max_age)

    def _ask_held_out(self) -> None:
        tested = self._tested()
        for attempt in tested:
            self.run.screen.begin("held out…")
            results = self.measure(attempt.draft, self.held_out)
            measured = replace(attempt, held_out=results)
            if attempt is self.before:
                self.before = measured
            else:
                self.attempts[attempt.number - 1] = measured
            label = HELD_OUT if len(tested) == 1 else attempt.label
            beside = "" if label == HELD_OUT else HELD_OUT
            self.run.screen.row(label, self.cells(results), beside)
            self.run.versions.keep(measured)

    def compared(
        self, attempt: Attempt, part: str, student: str = "", level: float = LEVEL
    ) -> AttemptChange | None:
        """A version less the current one; None if one of them is not measured there."""
        of, over = self.results(attempt, part), self.results(self.current, part)
        if not of or not over:
            return None
        students = [student] if student else list(of.model_ids)
        differences: list[float] = []
        if not self._is_apart([over, of]):
            differences = self.differences(over, of, students)
        lift = paired_lift(differences, level) if differences else None
        return change_of(
            attempt,
            CURRENT,
            part=part,
            student=student,
            lift=lift,
            cases=len(differences),
            score=of.skills[0].score,
        )

    def results(self, attempt: Attempt | None, part: str) -> RunResults | None:
        """What is known of a version on a part of the cases."""
        if attempt is None:
            return None
        return attempt.learning if part == LEARNING else attempt.held_out

    def differences(
        self, before: RunResults, after: RunResults, students: Sequence[str]
    ) -> list[float]:
        """How the score of each sample changes, as a mean over students."""
        old = sample_scores(before, students)
        new = sample_scores(after, students)
        return [new[sample] - old[sample] for sample in old if sample in new]


def change_of(
    attempt: Attempt,
    against: str,
    *,
    part: str,
    student: str,
    lift: Lift | None,
    cases: int,
    score: Score = "pass",
) -> AttemptChange:
    name = f"{attempt.label} against {against}"
    contrast = Contrast(name, (attempt.label,), (against,), lift=lift, cases=cases)
    return AttemptChange(attempt.number, part, student, contrast, score)


def sample_scores(results: RunResults, students: Sequence[str]) -> dict[str, float]:
    """The score with the skill, as a mean over students and runs,
    by the first case of a sample.

    Cases of a group, or that ask the same, are one sample.
    """
    first: dict[str, str] = {}
    keys = {
        test.case: first.setdefault(test.lift_sample or test.case, test.case)
        for test in results.tests
    }
    by_case: dict[tuple[str, str], list[float]] = {}
    for record in results.records:
        if record.arm == SKILL and record.label in students:
            passed = float(record.outcome == "passed")
            value = passed if results.skills[0].score == "pass" else record.score or 0.0
            by_case.setdefault((record.case, record.label), []).append(value)
    by_sample: dict[str, list[float]] = {}
    for (case, _), values in by_case.items():
        by_sample.setdefault(keys.get(case, case), []).append(fmean(values))
    return {case: fmean(values) for case, values in by_sample.items()}


def lifts_of(attempt: Attempt) -> Iterator[AttemptChange]:
    """A version less no skill at all, by part and student, as the verdicts have it."""
    for part, results in ((LEARNING, attempt.learning), (HELD_OUT, attempt.held_out)):
        for row in results.rows if results else ():
            over = row.over(BASELINE)
            yield change_of(
                attempt,
                BASELINE,
                part=part,
                student=row.label,
                lift=over.lift if over else None,
                cases=len(row.by_case),
                score=row.score,
            )


def mean_lift(attempt: Attempt) -> float:
    """Of all students, on the learning cases."""
    if attempt.learning is None:
        return float("-inf")
    lifts = [row.lift for row in attempt.learning.rows if row.lift is not None]
    return fmean(lifts) if lifts else 0.0


def why_good_enough(attempt: Attempt, target: float) -> str | None:
    """Whether the weakest student gets enough right."""
    rows = attempt.learning.rows if attempt.learning else []
    if (
        not rows
        or attempt.too_long
        or min(row.scored(SKILL) or 0.0 for row in rows) < target
    ):
        return None
    with_current = "" if attempt.is_new else " with the current skill"
    return f"every student reached {target:.0%}{unit_of(rows[0].score)}{with_current}"


def parts_of(
    learning: Iterable[UsableCase], held_out: Iterable[UsableCase]
) -> Mapping[str, Part]:
    parts: dict[str, Part] = {usable.case.id: "learn" for usable in learning}
    return {**parts, **{usable.case.id: "holdout" for usable in held_out}}


def with_checks(cases: Sequence[UsableCase]) -> list[CheckedCase]:
    return [(usable.case, usable.checks) for usable in cases]


def measure(
    run: TeachRun,
    draft: Draft,
    cases: Sequence[UsableCase],
    students: Mapping[Subject, str] | None = None,
    *,
    trace: str | None = None,
    screening: bool = False,
) -> RunResults:
    """All cases on the students; TeachError if one could not be asked.

    With a trace there is one more arm, which has the trace instead of the skill.
    ``screening`` asks without the skill only, in runs of its own: cases that are chosen
    by their answers would make any skill look good if the same answers counted again.
    """
    checked = with_checks(cases)
    students = run.models.students if students is None else students
    with loaded(draft, run.versions.folder) as skill:
        baseline, with_skill = run.models.arms(skill, checked, students)
        arms = [replace(baseline, name=AGAIN)] if screening else [baseline, with_skill]
        if trace is not None:
            arms.insert(1, Arm(TRACE, trace))
        results = run.models.evaluate(skill, checked, students, arms)
    for record in results.records:
        if record.outcome == "errored":
            raise no_answer(run.models, record.error or "no answer")
    return results
