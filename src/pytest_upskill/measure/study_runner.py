"""Studies: the same cases, asked in several arms, and how these differ.

A plan says what is asked (cases in arms), what is compared (contrasts) and what
follows from that (``conclude``); a `StudyRunner` carries it out.
The rooms ``matrix`` and ``ablate`` plan.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from .._util import grouped
from .._util.texts import counted
from ..checks import CheckedCase
from ..checks.grading import ToGrade
from ..results.arm_contrasts import ArmRecords, judge_arms
from ..results.comparison import Cases
from ..results.contrasts import Contrast, Study
from ..settings import Score
from ..skills.skill import Skill
from ..stats import FEWEST_CASES
from ..trials.arm import Arm
from ..trials.records import Record
from ..trials.subject import Subject
from ..trials.trial import lift_sample_of
from .evaluate import Evaluator


@dataclass(frozen=True)
class CasesInArms:
    """Cases of a skill, and the arms that they are carried out in."""

    skill: Skill
    cases: tuple[CheckedCase, ...]
    arms: tuple[Arm, ...]  # each of its name in the study
    score: Score = "pass"


@dataclass(frozen=True)
class StudyPlan:
    """Contrasts of one subject that are judged together, with 5 % error for all of
    them.
    """

    title: str
    legend: str  # what a change is
    subject: Subject
    groups: tuple[CasesInArms, ...]
    contrasts: tuple[Contrast, ...]
    # In sentences, from the results of the arms too.
    conclude: Callable[[Study, Mapping[str, Cases]], Study] = lambda study, _: study


def why_too_few(plans: Iterable[StudyPlan]) -> str:
    """A warning if the cases of studies can't show anything; empty if they can."""
    most = 0
    for plan in plans:
        for group in plan.groups:
            # Cases that ask the same are one.
            most = max(most, len({lift_sample_of(case) for case, _ in group.cases}))
    if most >= FEWEST_CASES:
        return ""
    reason = f"{most} can't show any difference ({FEWEST_CASES} needed)"
    return f"Too few cases: {reason}."


@dataclass(frozen=True)
class StudyRunner:
    """Carries out studies: asks their trials, and compares their arms."""

    evaluator: Evaluator
    begin: Callable[[str], None] = lambda _: None  # a step, in words
    done: Callable[[str], None] = lambda _: None  # what came of it
    stop: Callable[[], None] | None = None  # after Ctrl-C, ask no more

    def trials(self, plan: StudyPlan) -> list[ToGrade]:
        trials = []
        for group in plan.groups:
            trials += self.evaluator.trials(
                group.skill, group.cases, subject=plan.subject, arms=group.arms
            )
        return trials

    def run(self, plan: StudyPlan) -> Study:
        """Ask everything at once, and judge all contrasts together."""
        settings = self.evaluator.settings
        asked = self.trials(plan)
        size = f"{counted(settings.runs, 'run')}, {counted(len(asked), 'trial')}"
        self.begin(f"{plan.subject.label}: {size}")
        records, interrupted = self.ask(asked)

        arms = _gather_arms(plan, records)
        judged = judge_arms(plan.contrasts, arms, settings.max_age)
        # Arms share some questions.
        by_question = {}
        for item, record in zip(asked, records, strict=True):
            by_question[item.trial.question.key] = record
        errors = Counter(r.error or "" for r in records if r.outcome == "errored")
        reasons = [error for error, _ in errors.most_common() if error]
        study = Study(
            title=plan.title,
            legend=plan.legend,
            agent=plan.subject.agent,
            model=plan.subject.model,
            arms=tuple(arm.describe() for arm in arms.values()),
            contrasts=judged.contrasts,
            runs=settings.runs,
            trials=len(by_question),
            errored=errors.total(),
            error=reasons[0] if reasons else "",
            cost=_sum_cost(by_question.values()),
            interrupted=interrupted,
            apart=judged.apart,
        )
        self.done(_done_words(study))
        return plan.conclude(study, {name: arm.cases for name, arm in arms.items()})

    def ask(self, asked: Sequence[ToGrade]) -> tuple[list[Record], bool]:
        """The records, and whether Ctrl-C came: then only of what was answered
        before.
        """
        try:
            return self.evaluator.records(asked), False
        except KeyboardInterrupt:
            if self.stop is None:
                raise
            self.stop()
            return self.evaluator.records(asked), True


def _gather_arms(plan: StudyPlan, records: Iterable[Record]) -> dict[str, ArmRecords]:
    by_arm = grouped(records, lambda record: record.arm)
    arms = {}
    for group in plan.groups:
        samples = {case.id: lift_sample_of(case) for case, _ in group.cases}
        for arm in group.arms:
            of_arm = by_arm.get(arm.name, [])
            arms[arm.name] = ArmRecords(
                arm.name, arm.digest, of_arm, samples=samples, score=group.score
            )
    return arms


def _done_words(study: Study) -> str:
    """``1 of 5 differences shown, 1 incomplete``."""
    counts = Counter(contrast.word for contrast in study.contrasts)
    shown = counts["helps"] + counts["hurts"]
    words = f"{shown:,} of {counted(counts.total(), 'difference')} shown"
    if counts["incomplete"]:
        words += f", {counts['incomplete']:,} incomplete"
    return words


def _sum_cost(records: Iterable[Record]) -> float | None:
    """The cost of new answers; None if one is not known."""
    total = 0.0
    for record in records:
        if not record.stored:
            if record.cost is None:
                return None
            total += record.cost
    return total
