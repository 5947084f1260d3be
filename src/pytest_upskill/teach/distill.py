"""Distill a skill from end to end: parts, versions, held-out cases, decision."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from .._util.files import save_file
from .._util.texts import counted, points
from ..errors import BudgetError, InputError, Setting, shown
from ..measure.ablation import Ablation
from ..measure.estimate import ANSWER, QUESTION, Calls, Estimate, calls_of_trials, estimate_of
from ..measure.study import SkillCases
from ..results.parts import Parts
from ..results.run import RunResults, versions
from ..results.to_json import results_bytes
from ..settings import Settings
from ..skills.beside import save_beside
from ..skills.context import load_for_run
from ..skills.folder import SKILL_NAMES, skill_file
from ..skills.skill import Skill, fields_of
from ..stats import cases_within
from ..trials.answer import Usage
from ..trials.plan import SkillInfo, score_of
from ..trials.subject import Subject
from ..trials.trial import sample_of
from . import saving
from .attempts import checked, measure_skill, require_answers
from .case_file import ids_held_out, read_case_file, require_judge
from .case_writing import UsableCase
from .distilled import Distilled, short_text, with_conclusion, with_folder
from .distilling import HeldOut, Short, Shortening, best_of_sizes, choose, within
from .drafts import Draft, draft_of
from .failures import MOST_TRACES
from .progress_lines import Screen, cells_of
from .shortening import MOST_SIZES
from .sources import Material, size_of
from .state import TeachState
from .teach_models import TeachModels
from .teach_settings import TeachSettings, check
from .workflow import (
    TeachContext,
    open_models,
    require_consent,
    require_unfinished,
    state_of_run,
)

_FEWEST: Final = 2  # cases to learn from, and to hold out
# Tokens of what a teacher gets besides the skill, where nothing better is known.
_PROMPT: Final = 900
_FAILURES: Final = 3_000


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
    saving.require_writable(file.parent.resolve().parent)
    with open_models(settings, context) as models:
        material = _material(whole)
        require_unfinished(settings, context, material)
        guess = _estimate(settings, models, skill, learn, rest)
        require_consent(context, material, models, guess)
        state = state_of_run(settings, context, material, whole.name)
        run = _Run(settings, models, state, context.screen, skill, whole, learn, rest)
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
class _Run:
    """What all steps of a run need."""

    settings: TeachSettings
    models: TeachModels
    state: TeachState
    screen: Screen
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


def _estimate(
    settings: TeachSettings,
    models: TeachModels,
    skill: Skill,
    learn: Sequence[UsableCase],
    rest: Sequence[UsableCase],
) -> Estimate:
    """An upper estimate: as if every version were written and measured."""
    most, whole = settings.attempts, skill.tokens
    failures = MOST_TRACES if models.with_agents else _FAILURES
    asked = _PROMPT + 2 * whole + failures
    calls = [Calls(models.teacher, most, Usage(asked, settings.max_skill_tokens, 0))]
    answer = min(ANSWER, models.settings.answer_output)
    sizes = min(MOST_SIZES, most)
    bare, cases = len(learn) + len(rest), (*learn, *rest)
    for student in models.students:
        parts = len(_ablation(models, skill, cases, student, Path()).parts)
        skilled = (parts + 1 + most) * len(learn) + (1 + sizes) * len(rest)
        for times, tokens in ((bare, QUESTION), (skilled, QUESTION + whole)):
            trials = student.agent, student.model, times * settings.runs, tokens, answer
            calls.append(calls_of_trials(*trials, settings.max_turns))
    guess = estimate_of(calls, models.price_of, free=models.is_free)
    return replace(guess, warning=_too_few(rest, settings.margin))


def _too_few(rest: Sequence[UsableCase], margin: float) -> str:
    """A warning if the held-out cases can't rule out a loss, whatever the answers."""
    held = len({sample_of(one.case) for one in rest})  # those that ask the same count as one
    needed = cases_within([(1.0, 1.0)] * held, margin)
    if needed is not None and held >= needed:
        return ""
    least = next(
        one / 100
        for one in range(1, 101)
        if (cases_within([(1.0, 1.0)], one / 100) or held + 1) <= held
    )
    told = f"they can rule out {points(least).lstrip('+')} points or more"
    fewest = f" ({needed:,} needed)" if needed else ""
    lost = points(margin).lstrip("+")
    cases = counted(held, "held-out case")
    return f"Too few cases: {cases} can't rule out a loss of {lost} points{fewest}; {told}."
