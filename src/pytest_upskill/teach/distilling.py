"""Distill a skill from end to end: parts, shorter versions, held-out cases, decision.

The teacher sees what each part of the skill was shown to earn, what fails, and the size to reach.
What a version loses is decided on the held-out cases, of which neither the teacher nor the choice
of versions knows anything.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from .._util.files import save_file
from .._util.texts import counted
from ..errors import BudgetError, InputError, Setting, shown
from ..measure.ablation import Ablation
from ..measure.study import SkillCases, Studied, Study, Variant, differences
from ..results.effects import is_within, loss_standing
from ..results.part_effects import Parts, ShorterVersion
from ..results.run import RunResults, versions
from ..results.run_file import results_bytes
from ..settings import Settings
from ..skills.context import load_for_run
from ..skills.copies import save_beside
from ..skills.folder import SKILL_NAMES, skill_file
from ..skills.skill import Skill, fields_of
from ..stats import LEVEL, Differences, Lift, cases_needed, cases_within, guarded
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import Subject
from .attempts import Attempt, joined_results, measure_skill, require_answers, with_checks
from .case_file import read_case_file, require_judge, split_cases
from .case_writing import UsableCase
from .distilled import Distilled, with_conclusion, with_folder
from .drafts import Draft, draft_of, loaded, require_writable
from .progress_lines import cells_of
from .shortening import Shortening, best_of_sizes, within
from .sources import Material, size_of
from .teach_costs import estimate_distillation
from .teach_models import TeachModels
from .teach_run import TeachContext, TeachRun, open_models, require_unfinished, start_run
from .teach_settings import TeachSettings, check

_FEWEST: Final = 2  # cases to learn from, and to hold out
_WHOLE: Final = "whole"
_BASELINE: Final = "baseline"


def distill(path: Path, settings: TeachSettings, context: TeachContext) -> Distilled:
    """A shorter version of a skill that has cases, if one is shown to lose little."""
    check(settings)
    file = skill_file(path)
    skill = load_for_run(file, Settings())
    original = draft_of(skill, fields_of(file))
    distilled = Distilled(original, settings.max_skill_tokens, settings.margin)
    if distilled.short_enough:
        return distilled
    learning, held_out = _split(file, settings)
    require_writable(file.parent.resolve().parent)
    with open_models(settings, context) as models:
        # The text tells this run from those of other commands when it is resumed.
        sent = (size_of(SKILL_NAMES[0], original.text),)
        material = Material("A shorter version.", start=original, sent=sent)
        require_unfinished(settings, context, material)
        cases = (*learning, *held_out)
        parts = {
            student: len(_ablation(models, skill, cases, student, Path()).parts)
            for student in models.students
        }
        estimate = estimate_distillation(
            settings, models, skill.tokens, parts, len(learning), held_out
        )
        run = start_run(settings, context, models, material, estimate, original.name)
        steps = _Distillation(run, skill, original, learning, held_out)
        distilled = replace(steps.distilled(distilled), state=run.state.folder, cost=models.spent())
        return _saved(replace(distilled, notes=(*distilled.notes, *run.final_notes())), run)


def _split(file: Path, settings: TeachSettings) -> tuple[list[UsableCase], list[UsableCase]]:
    """The learning and the held-out cases; InputError if there are too few."""
    case_file = read_case_file(file.parent, agents=settings.only_agents)
    cases = [usable for usable in case_file.cases if not usable.case.skip]
    require_judge(cases, settings.judge)
    learning, held_out = split_cases(cases, settings.holdout)
    if min(len(learning), len(held_out)) < _FEWEST:
        problem = (
            f"too few cases: {len(learning)} to learn from and {len(held_out)} held out, and at "
            f"least {_FEWEST} of each are needed"
        )
        hint = ("Write more with pytest-upskill cases, or change ", Setting("holdout"), ".")
        raise InputError(case_file.file or file, problem, hint)
    return learning, held_out


@dataclass(frozen=True)
class _Distillation:
    """The steps in order."""

    run: TeachRun
    skill: Skill
    original: Draft
    learning: Sequence[UsableCase]
    held_out: Sequence[UsableCase]

    def distilled(self, distilled: Distilled) -> Distilled:
        started, clock, models = datetime.now(UTC), monotonic(), self.run.models
        try:
            parts = self._parts()
            before = self._before()
        except BudgetError:
            self.run.screen.drop()
            problem = f"the whole skill is not measured: it {models.past_budget()}"
            return replace(distilled, problem=problem)
        distilled = replace(distilled, before=before)
        if all((row.lift or 0.0) <= 0 for row in before.summaries):
            problem = "the whole skill helps no student on the learning cases: nothing can be lost"
            return replace(distilled, problem=problem)
        loop = Shortening(self.run, self.original, before, parts, self.learning)
        stop = loop.improve()
        measured = tuple(best_of_sizes(loop.attempts))
        distilled = replace(distilled, versions=tuple(loop.attempts), stop=stop)
        if not measured:
            return replace(distilled, problem="there is no shorter version")
        try:
            by_student, tested = self._held_out(before, measured, parts)
            held_out = measure_skill(models, self.skill, self.held_out, models.students)
        except BudgetError:
            self.run.screen.drop()
            problem = f"no version was measured on the held-out cases: it {models.past_budget()}"
            return replace(distilled, problem=problem)
        results = self._results(by_student, started, clock)
        distilled = replace(distilled, measured=measured, results=results)
        verdicts = joined_results(before, held_out).verdicts
        if not any(verdict.word == "helps" for verdict in verdicts):
            problem = "the whole skill is not shown to help a student: no loss can be shown either"
            return replace(distilled, problem=problem)
        return replace(distilled, chosen=choose(by_student, measured, tested))

    def _parts(self) -> list[Parts]:
        """What each part earns on the learning cases, by student."""
        by_student, models, screen = list[Parts](), self.run.models, self.run.screen
        for subject in models.students:
            with TemporaryDirectory(prefix="tmp-", dir=self.run.state.folder) as folder:
                cases = (*self.learning, *self.held_out)
                ablation = replace(
                    _ablation(models, self.skill, cases, subject, Path(folder)),
                    cases=tuple(with_checks(self.learning)),
                    margin=self.run.settings.margin,
                )
                study = ablation.study() if ablation.parts else None
                if study is None:
                    parts = Parts(self.skill.name, subject.model, self.skill.tokens, None, ())
                    by_student.append(replace(parts, agent=subject.agent))
                    continue
                number = counted(len(ablation.parts), "part")
                screen.begin(f"{subject.label} without each of {number}…")
                studied = models.runner.run(study)
            require_answers(models, chain.from_iterable(studied.records.values()))
            by_student.append(ablation.concluded(studied))
            screen.row("parts", [(subject.label, _standings(by_student[-1]))])
        return by_student

    def _before(self) -> RunResults:
        models, screen = self.run.models, self.run.screen
        screen.begin("whole…")
        results = measure_skill(models, self.skill, self.learning, models.students)
        screen.row("whole", cells_of(results), counted(self.original.tokens, "token"))
        return results

    def _held_out(
        self, before: RunResults, measured: Sequence[Attempt], parts: Sequence[Parts]
    ) -> tuple[list[Parts], frozenset[int]]:
        """All versions there; tested are those that lose little on the learning cases, if any."""
        run, margin = self.run, self.run.settings.margin
        good = [one for one in measured if one.results and within(before, one.results, margin)]
        tested = frozenset(attempt.number for attempt in good or measured)
        held_out = _HeldOut(
            run.models, self.skill, measured, tested, self.held_out, margin, run.state.folder
        )
        run.screen.begin("held out…")
        pairs = zip(run.models.students, parts, strict=True)
        by_student = [held_out.measure(subject, own_parts) for subject, own_parts in pairs]
        run.screen.drop()
        return by_student, tested

    def _results(self, parts: Sequence[Parts], started: datetime, clock: float) -> RunResults:
        """For reports."""
        students = self.run.models.students
        return RunResults(
            started=started,
            seconds=monotonic() - clock,
            skills=(SkillInfo.of(self.skill, self.skill.name, shown(self.skill.file.parent)),),
            model_ids={subject.label: model_id for subject, model_id in students.items()},
            tests=(),
            records=(),
            parts=tuple(parts),
            versions=versions(),
        )


def _standings(parts: Parts) -> str:
    """How many parts are missed, could go, or neither is known."""
    counts = Counter(
        "could go"
        if part.could_go
        else "missed"
        if part.standing(parts.margin) == "loses"
        else "not known"
        for part in parts.parts
    )
    words = ("missed", "could go", "not known")
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word])


def _ablation(
    models: TeachModels, skill: Skill, cases: Sequence[UsableCase], subject: Subject, folder: Path
) -> Ablation:
    """By section, or by paragraph if there is only one."""
    checked = tuple(with_checks(cases))
    score = score_of(models.settings.score, [case for case, _ in checked])
    source = SkillCases(skill.name, skill, checked, score)
    ablation = Ablation(source, subject, checked, folder, models.settings)
    return ablation if ablation.parts else replace(ablation, by="paragraph")


def _saved(distilled: Distilled, run: TeachRun) -> Distilled:
    """Write the chosen version beside the skill, and the results to the folder of the run."""
    if distilled.chosen:
        file = skill_file(distilled.original.base or Path())
        try:
            folder = save_beside(file, distilled.chosen.draft.text)
        except InputError as error:
            return replace(distilled, unsaved=f"Not saved: {error.where}: {error.problem}.")
        distilled = with_folder(distilled, folder)
    distilled = with_conclusion(distilled)
    if distilled.results:
        with suppress(InputError):  # the skill is saved, and that is what counts
            save_file(run.state.folder / "results.json", results_bytes(distilled.results))
    run.mark_saved(distilled.folder, distilled.cost)
    return distilled


@dataclass(frozen=True)
class _HeldOut:
    """The versions that are measured on the held-out cases, and those that are tested there."""

    models: TeachModels
    skill: Skill  # the whole one
    versions: Sequence[Attempt]  # from long to short
    tested: frozenset[int]  # their numbers
    cases: Sequence[UsableCase]
    margin: float
    scratch: Path

    def measure(self, subject: Subject, parts: Parts) -> Parts:
        """The parts, with the lift of the whole skill and of all versions."""
        cases = tuple(with_checks(self.cases))
        score = score_of(self.models.settings.score, [case for case, _ in cases])
        with ExitStack() as stack:
            skills = {_WHOLE: self.skill}
            for version in self.versions:
                skills[version.label] = stack.enter_context(loaded(version.draft, self.scratch))
            variants = [Variant(_BASELINE, self.skill, cases, "baseline", score=score)]
            variants += [Variant(name, skill, cases, score=score) for name, skill in skills.items()]
            studied = self.models.runner.run(Study(subject, tuple(variants), (), lambda _: parts))
        require_answers(self.models, chain.from_iterable(studied.records.values()))
        return replace(
            parts,
            versions=tuple(self._version(version, studied) for version in self.versions),
            held_out=studied.lift(_WHOLE, _BASELINE),
            margin=self.margin,
        )

    def _version(self, attempt: Attempt, studied: Studied) -> ShorterVersion:
        change = self._change(attempt, studied)
        losses = self._differences(attempt, studied)
        pairs = [(0.0, value) for value in losses.values] if losses else []
        needed = None
        if pairs and loss_standing(change, self.margin) == "not known":
            needed = cases_within(pairs, self.margin) or cases_needed(pairs, self._shared_level)
            needed = needed and max(needed, len(pairs) + 1)  # this many were not enough
        return ShorterVersion(
            attempt.draft.tokens,
            studied.lift(attempt.label, _BASELINE),
            change,
            cases=len(pairs),
            cases_needed=needed,
        )

    def _differences(self, attempt: Attempt, studied: Studied) -> Differences | None:
        scores = studied.scores
        return differences([scores[attempt.label]], [scores[_WHOLE]], self.models.settings.runs)

    @property
    def _shared_level(self) -> float:
        """The level of each claim if all versions may be said to lose something."""
        return 1 - (1 - LEVEL) / len(self.versions)

    def _change(self, attempt: Attempt, studied: Studied) -> Lift | None:
        """Against the whole skill; the two ends serve two claims.

        That a version loses something (the upper end) may be said of each, so all share the error.
        That it loses little (the lower end) is said of one only if it holds for the longer ones,
        so each has the whole level; see `choose`. Which versions are tested does not depend on
        these cases.
        """
        shared = studied.lift(attempt.label, _WHOLE, self._shared_level)
        alone = studied.lift(attempt.label, _WHOLE)
        if shared is None or alone is None or attempt.number not in self.tested:
            return shared
        losses = self._differences(attempt, studied)
        return shared._replace(low=guarded(alone, losses.values if losses else ()).low)


def choose(
    by_student: Sequence[Parts], versions: Sequence[Attempt], tested: frozenset[int]
) -> Attempt | None:
    """The shortest version that every student was shown to lose no more than the margin with.

    They are looked at from long to short, up to the first that is not shown to lose so little:
    tests in a fixed order, each only if the one before it held, err no more often than one test.
    """
    chosen = None
    for place, version in enumerate(versions):
        if version.number not in tested:
            continue
        if not all(is_within(parts.versions[place].change, parts.margin) for parts in by_student):
            break
        chosen = version
    return chosen
