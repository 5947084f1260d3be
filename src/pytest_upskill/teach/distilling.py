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
from ..results.losses import is_within, standing_of
from ..results.parts import Parts, Version
from ..results.run import RunResults, versions
from ..results.to_json import results_bytes
from ..settings import Settings
from ..skills.beside import save_beside
from ..skills.context import load_for_run
from ..skills.folder import SKILL_NAMES, skill_file
from ..skills.skill import Skill, fields_of
from ..stats import LEVEL, Differences, Lift, cases_needed, cases_within, guarded
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import Subject
from .attempts import checked, measure_skill, require_answers
from .case_file import ids_held_out, read_case_file, require_judge
from .case_writing import UsableCase
from .distilled import Distilled, short_text, with_conclusion, with_folder
from .drafts import Draft, draft_of, loaded, require_writable
from .progress_lines import ProgressScreen, cells_of
from .shortening import Short, Shortening, best_of_sizes, within
from .sources import Material, size_of
from .teach_costs import estimate_distillation
from .teach_models import TeachModels
from .teach_run import (
    TeachContext,
    TeachState,
    open_models,
    require_consent,
    require_unfinished,
    state_of_run,
)
from .teach_settings import TeachSettings, check

_FEWEST: Final = 2  # cases to learn from, and to hold out

_WHOLE: Final = "whole"
_BASELINE: Final = "baseline"


def distill(path: Path, settings: TeachSettings, context: TeachContext) -> Distilled:
    """A shorter version of a skill that has cases, if one is shown to lose little."""
    check(settings)
    file = skill_file(path)
    skill = load_for_run(file, Settings())
    whole = draft_of(skill, fields_of(file))
    limit = settings.max_skill_tokens
    begun = Distilled(whole, limit, settings.margin)
    if begun.short_enough:
        return begun
    learn, rest = _split(file, settings)
    require_writable(file.parent.resolve().parent)
    with open_models(settings, context) as models:
        material = _material(whole)
        require_unfinished(settings, context, material)
        cases = (*learn, *rest)
        parts = {
            student: len(_ablation(models, skill, cases, student, Path()).parts)
            for student in models.students
        }
        guess = estimate_distillation(settings, models, skill.tokens, parts, learn, rest)
        require_consent(context, material, models, guess)
        state = state_of_run(settings, context, material, whole.name)
        run = DistillRun(settings, models, state, context.screen, skill, whole, learn, rest)
        found = replace(run.distilled(begun), state=state.folder)
        spent = models.spent()
        models.close()  # only then it is known what could not be stored
        notes = (*found.notes, *dict.fromkeys(models.notes))
        return _saved(replace(found, cost=spent, notes=notes), settings, models, state)


def _split(file: Path, settings: TeachSettings) -> tuple[list[UsableCase], list[UsableCase]]:
    """The learning and the held-out cases; InputError if there are too few."""
    known = read_case_file(file.parent, agents=settings.only_agents)
    cases = [one for one in known.cases if not one.case.skip]
    require_judge(cases, settings.judge)
    held = ids_held_out([one.case for one in cases], settings.holdout)
    parts = (
        [one for one in cases if one.case.id not in held],
        [one for one in cases if one.case.id in held],
    )
    if min(map(len, parts)) < _FEWEST:
        problem = (
            f"too few cases: {len(parts[0])} to learn from and {len(parts[1])} held out, and at "
            f"least {_FEWEST} of each are needed"
        )
        hint = ("Write more with pytest-upskill cases, or change ", Setting("holdout"), ".")
        raise InputError(known.file or file, problem, hint)
    return parts


def _material(whole: Draft) -> Material:
    # The text tells this run from those of other commands when it is resumed.
    sent = (size_of(SKILL_NAMES[0], whole.text),)
    return Material("A shorter version.", start=whole, sent=sent)


@dataclass
class DistillRun:
    """What all steps of a run need."""

    settings: TeachSettings
    models: TeachModels
    state: TeachState
    screen: ProgressScreen
    skill: Skill
    whole: Draft
    learn: Sequence[UsableCase]
    rest: Sequence[UsableCase]

    def distilled(self, begun: Distilled) -> Distilled:
        started, clock = datetime.now(UTC), monotonic()
        try:
            parts = self._parts()
            before = self._before()
        except BudgetError:
            self.screen.drop()
            return replace(begun, problem=f"the whole skill is not measured: it {self._spent()}")
        begun = replace(begun, before=before)
        if all((row.lift or 0.0) <= 0 for row in before.summaries):
            why = "the whole skill helps no student on the learning cases, so nothing can be lost"
            return replace(begun, problem=why)
        loop = Shortening(
            self.models,
            self.settings,
            self.whole,
            before,
            parts,
            self.learn,
            self.state.folder,
            self.state.session,
            self.screen,
            self._keep,
        )
        versions, stop = loop.run()
        begun = replace(begun, versions=tuple(versions), stop=stop)
        measured = tuple(best_of_sizes(versions))
        if not measured:
            return replace(begun, problem="there is no shorter version")
        try:
            found, tested = self._held_out(before, measured, parts)
            whole = self._all_cases(before)
        except BudgetError:
            self.screen.drop()
            why = f"no version was measured on the held-out cases: it {self._spent()}"
            return replace(begun, problem=why)
        begun = replace(begun, measured=measured, results=self._results(found, started, clock))
        if not any(verdict.word == "helps" for verdict in whole.verdicts):
            why = "the whole skill is not shown to help a student, so no loss can be shown either"
            return replace(begun, problem=why)
        return replace(begun, chosen=choose(found, measured, tested))

    def _parts(self) -> list[Parts]:
        """What each part earns on the learning cases, by student."""
        found = list[Parts]()
        for subject in self.models.students:
            with TemporaryDirectory(prefix="tmp-", dir=self.state.folder) as folder:
                cases = (*self.learn, *self.rest)
                ablation = _ablation(self.models, self.skill, cases, subject, Path(folder))
                ablation = replace(
                    ablation, cases=tuple(checked(self.learn)), margin=self.settings.margin
                )
                study = ablation.study() if ablation.parts else None
                if study is None:
                    about = Parts(self.skill.name, subject.label, self.skill.tokens, None, ())
                    found.append(replace(about, agent=subject.agent))
                    continue
                number = counted(len(ablation.parts), "part")
                self.screen.begin(f"{subject.label} without each of {number}…")
                studied = self.models.lab.run(study)
            require_answers(self.models, chain.from_iterable(studied.records.values()))
            found.append(ablation.concluded(studied))
            self.screen.row("parts", [(subject.label, _standings(found[-1]))])
        return found

    def _before(self) -> RunResults:
        self.screen.begin("whole…")
        results = measure_skill(self.models, self.skill, self.learn, self.models.students)
        self.screen.row("whole", cells_of(results), counted(self.whole.tokens, "token"))
        return results

    def _held_out(
        self, before: RunResults, measured: Sequence[Short], parts: Sequence[Parts]
    ) -> tuple[list[Parts], frozenset[int]]:
        """All versions there; tested are those that lose little on the learning cases, if any."""
        margin = self.settings.margin
        good = [one for one in measured if one.results and within(before, one.results, margin)]
        tested = frozenset(one.number for one in good or measured)
        held = HeldOut(
            self.models, self.skill, measured, tested, self.rest, margin, self.state.folder
        )
        self.screen.begin("held out…")
        found = [
            held.measure(subject, about)
            for subject, about in zip(self.models.students, parts, strict=True)
        ]
        self.screen.drop()
        return found, tested

    def _all_cases(self, before: RunResults) -> RunResults:
        """The whole skill on all cases; all answers are known."""
        held = measure_skill(self.models, self.skill, self.rest, self.models.students)
        return replace(
            before,
            tests=(*before.tests, *held.tests),
            records=(*before.records, *held.records),
            questions={**before.questions, **held.questions},
        )

    def _results(self, found: Sequence[Parts], started: datetime, clock: float) -> RunResults:
        """For reports."""
        students = self.models.students
        return RunResults(
            started=started,
            seconds=monotonic() - clock,
            skills=(SkillInfo.of(self.skill, self.skill.name, shown(self.skill.file.parent)),),
            model_ids={subject.label: model_id for subject, model_id in students.items()},
            tests=(),
            records=(),
            parts=tuple(found),
            versions=versions(),
        )

    def _keep(self, short: Short) -> None:
        self.state.keep_attempt(
            short.number, short.draft or self.whole, short.results, short_text(short)
        )

    def _spent(self) -> str:
        return self.models.past_budget()


def _standings(found: Parts) -> str:
    """How many parts are missed, could go, or neither is known."""
    counts = Counter(
        "could go" if one.could_go else "missed" if one.standing(found.margin) == "loses" else ""
        for one in found.parts
    )
    words = [f"{counts[word]} {word or 'not known'}" for word in ("missed", "could go", "")]
    return ", ".join(word for word in words if not word.startswith("0 "))


def _ablation(
    models: TeachModels, skill: Skill, cases: Sequence[UsableCase], subject: Subject, folder: Path
) -> Ablation:
    """By section, or by paragraph if there is only one."""
    own = tuple(checked(cases))
    score = score_of(models.settings.score, [case for case, _ in own])
    source = SkillCases(skill.name, skill, own, score)
    made = Ablation(source, subject, own, folder, models.settings)
    return made if made.parts else replace(made, by="paragraph")


def _saved(
    found: Distilled, settings: TeachSettings, models: TeachModels, state: TeachState
) -> Distilled:
    """Write the chosen version beside the skill, and what was found to the folder of the run."""
    file = skill_file(found.whole.base or Path())
    if found.chosen:
        try:
            folder = save_beside(file, found.chosen.made.text)
        except InputError as error:
            unsaved = f"Not saved: {error.where}: {error.problem}."
            return replace(found, unsaved=unsaved)
        found = with_folder(found, folder)
    found = with_conclusion(found)
    with suppress(InputError):  # the skill is saved, and that is what counts
        if found.results:
            save_file(state.folder / "results.json", results_bytes(found.results))
        state.save(
            **({"saved": str(found.folder.absolute())} if found.folder else {}),
            cost=found.cost,
            limits=settings.on_resume("limit"),
            out_of_budget=models.out_of_budget,
        )
    return found


# The held-out cases.


@dataclass(frozen=True)
class HeldOut:
    """The versions that are measured on the held-out cases, and those that are tested there."""

    models: TeachModels
    skill: Skill  # the whole one
    versions: Sequence[Short]  # from long to short
    tested: frozenset[int]  # their numbers
    cases: Sequence[UsableCase]
    margin: float
    scratch: Path

    def measure(self, subject: Subject, about: Parts) -> Parts:
        """What is known of the parts, with the lift of the whole skill and of all versions."""
        cases = tuple(checked(self.cases))
        score = score_of(self.models.settings.score, [case for case, _ in cases])
        with ExitStack() as stack:
            skills = {_WHOLE: self.skill}
            for one in self.versions:
                skills[one.label] = stack.enter_context(loaded(one.made, self.scratch))
            variants = [Variant(_BASELINE, self.skill, cases, "baseline", score=score)]
            variants += [Variant(name, own, cases, score=score) for name, own in skills.items()]
            studied = self.models.lab.run(Study(subject, tuple(variants), (), lambda _: about))
        require_answers(self.models, chain.from_iterable(studied.records.values()))
        return replace(
            about,
            versions=tuple(self._version(one, studied) for one in self.versions),
            held_out=studied.lift(_WHOLE, _BASELINE),
            margin=self.margin,
        )

    def _version(self, short: Short, studied: Studied) -> Version:
        change = self._change(short, studied)
        found = self._differences(short, studied)
        pairs = [(0.0, value) for value in found.values] if found else []
        needed = None
        if pairs and standing_of(change, self.margin) == "not known":
            needed = cases_within(pairs, self.margin) or cases_needed(pairs, self._shared)
            needed = needed and max(needed, len(pairs) + 1)  # so many did not tell
        return Version(
            short.made.tokens,
            studied.lift(short.label, _BASELINE),
            change,
            cases=len(pairs),
            cases_needed=needed,
        )

    def _differences(self, short: Short, studied: Studied) -> Differences | None:
        scores = studied.scores
        return differences([scores[short.label]], [scores[_WHOLE]], self.models.settings.runs)

    @property
    def _shared(self) -> float:
        """The level of each claim if all versions may be said to lose something."""
        return 1 - (1 - LEVEL) / len(self.versions)

    def _change(self, short: Short, studied: Studied) -> Lift | None:
        """Against the whole skill; the two ends serve two claims.

        That a version loses something (the upper end) may be said of each, so all share the error.
        That it loses little (the lower end) is said of one only if it holds for the longer ones,
        so each has the whole level; see `choose`. Which versions are tested does not depend on
        these cases.
        """
        shared = studied.lift(short.label, _WHOLE, self._shared)
        alone = studied.lift(short.label, _WHOLE)
        if shared is None or alone is None or short.number not in self.tested:
            return shared
        found = self._differences(short, studied)
        values = found.values if found else ()
        return shared._replace(low=guarded(alone, values).low)


def choose(
    found: Sequence[Parts], versions: Sequence[Short], tested: frozenset[int]
) -> Short | None:
    """The shortest version that every student was shown to lose no more than the margin with.

    They are looked at from long to short, up to the first one of which it is not shown: tests in
    a fixed order, each only if the one before it held, err no more often than a single one.
    """
    chosen = None
    for place, short in enumerate(versions):
        if short.number not in tested:
            continue
        if not all(is_within(one.versions[place].change, one.margin) for one in found):
            break
        chosen = short
    return chosen
