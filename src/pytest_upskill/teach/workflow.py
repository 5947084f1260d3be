"""Generate, refine and cases from end to end: draft, cases, split, attempts, held-out cases."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .._util.texts import counted, one_line, slug
from ..checks import why_agent
from ..errors import BudgetError, InputError, Setting, SettingsError, TeachError, shown
from ..measure.estimate import Estimate
from ..skills.folder import SKILL_NAMES, is_skill, skill_file
from ..skills.skill import fields_of, load_skill
from .attempts import Attempt, AttemptLoop, best_of, measure, passed_by_all
from .case_file import (
    CaseFile,
    case_file_text,
    ids_held_out,
    read_case_file,
    require_growable,
    require_judge,
)
from .case_writing import HOLDOUT, LEARN, Author, RejectedCase, UsableCase
from .drafts import (
    Draft,
    Wanted,
    ask_for_draft,
    checked_name,
    draft_of,
    free_name,
    require_free,
    require_writable,
    save_skill,
)
from .outcome import Taught, attempt_text
from .progress_lines import ProgressScreen, cells_of
from .prompts import ADVERSARY, AUTHOR, draft_prompt
from .secrets import masked
from .sources import Material, gather, size_of
from .teach_costs import estimate_teaching, too_few
from .teach_models import TeachModels
from .teach_run import (
    TeachContext,
    TeachState,
    open_models,
    require_consent,
    require_unfinished,
    state_of_run,
)
from .teach_settings import FEWEST_CASES, TeachSettings, check

_FORMAT_VERSION: Final = "1.0"  # of the format, as upskill writes it


@dataclass
class Steps:
    """The steps, and what they all need."""

    settings: TeachSettings
    models: TeachModels
    material: Material
    state: TeachState
    screen: ProgressScreen

    def draft(self, free_name: Callable[[str], str]) -> Draft:
        """The first version; ``free_name`` gives it another name if its own is taken."""
        settings, start, trace = self.settings, self.material.start, self.material.trace
        if trace:
            left_out = f"; {trace.left_out}" if trace.left_out else ""
            self.screen.line(f"Trace of {counted(trace.tokens, 'token')}{left_out}")
        self.screen.begin(f"Generating skill with {self.models.teacher}…")
        prompt = draft_prompt(
            settings.task,
            self.material.text,
            settings.max_skill_tokens,
            improves=start is not None,
            agents=self.models.with_agents,
        )
        name = settings.name or (start.name if start else None)
        draft = ask_for_draft(self.models, prompt, self._wanted(name), self.state.session)
        draft = replace(draft, name=free_name(draft.name))
        limit = settings.max_skill_tokens
        over = f" (limit {limit:,})" if draft.tokens > limit else ""
        self.screen.done(f"SKILL.md  {counted(draft.tokens, 'token')}{over}")
        self.state.rename(draft.name)
        return draft

    def write_cases(
        self, draft: Draft, known: Sequence[UsableCase], number: int, fewest: int = 0
    ) -> tuple[list[UsableCase], tuple[str, ...]]:
        """New cases, and the ids of those that show nothing: every student passes them anyway.

        TeachError if fewer than ``fewest`` are usable, or too few together with the known ones.
        """
        if number <= 0:
            return [], ()
        self.screen.begin("Generating cases…")
        author = self._author(self.models.author, AUTHOR, draft)
        written = author.write(number, known)
        cases, replaced = written.usable[:number], written.replaced
        no_signal: set[str] = set()
        if self.models.students and cases:
            with suppress(BudgetError):  # the attempts will report it, and the cases are usable
                cases, no_signal, others = self._with_signal(author, draft, cases, known)
                replaced += others
        counts = f"{len(cases)} kept" + (f", {replaced} replaced" if replaced else "")
        if len(cases) < number:
            counts += f", {number - len(cases)} given up"
        self.screen.done(counts)
        if len(cases) < max(fewest, FEWEST_CASES - len(known)):
            reasons = "; ".join(f"{one.question!r}: {one.why}" for one in written.rejected[-3:])
            problem = (
                f"{self.models.author}: only {len(cases)} of {counted(number, 'case')} usable. "
                f"Rejected: {one_line(reasons, 400)}\n  Try a stronger model with "
            )
            raise TeachError((problem, Setting("author"), ", or describe the task more precisely."))
        return cases, tuple(sorted(no_signal))

    def write_adversarial_cases(
        self, draft: Draft, known: Sequence[UsableCase]
    ) -> list[UsableCase]:
        """Usable cases by the adversary; the teacher learns from them."""
        if not self.models.adversary:
            return []
        self.screen.begin(f"Generating adversarial cases with {self.models.adversary}…")
        author = self._author(self.models.adversary, ADVERSARY, draft)
        number = max(2, round(self.settings.cases / 4))
        written = author.write(number, known)
        cases = [_with_tag(one, "adversary") for one in written.usable[:number]]
        self.screen.done(f"{len(cases)} kept")
        return cases

    def split(self, cases: Sequence[UsableCase]) -> frozenset[str]:
        """The ids of the held-out cases."""
        return ids_held_out([one.case for one in cases], self.settings.holdout)

    def teach(
        self,
        draft: Draft,
        cases: Sequence[UsableCase],
        held: frozenset[str],
        no_signal: tuple[str, ...] = (),
        before: Draft | None = None,
    ) -> Taught:
        """Attempts on the learning cases, then the best one on the held-out cases."""
        learn = [one for one in cases if one.case.id not in held]
        rest = [one for one in cases if one.case.id in held]
        models, scratch = self.models, self.state.folder
        self.state.save(cases=[_case_data(one, held) for one in cases])
        taught = Taught((), tuple(cases), held, "", trace=self.material.trace)
        if before:
            results = measure(models, before, learn, models.students, scratch)
            self.screen.row("before", cells_of(results))
            taught = replace(taught, before=results)
        loop = AttemptLoop(
            models,
            self.settings,
            self.material.text,
            self._wanted(draft.name),
            learn,
            self.state.session,
            self.screen,
            self._keep,
        )
        attempts, stop = loop.run(draft)
        self.state.save(stop=stop, best=best_of(attempts).number)
        taught = replace(taught, attempts=tuple(attempts), stop=stop, no_signal=no_signal)
        return self._decided(taught, rest) if taught.learning else taught

    def _with_signal(
        self,
        author: Author,
        draft: Draft,
        cases: list[UsableCase],
        known: Sequence[UsableCase],
    ) -> tuple[list[UsableCase], set[str], int]:
        """Replace, once, the cases that every student passes without the skill."""
        passed = self._passed_without(draft, cases)
        if not passed:
            return cases, passed, 0
        telling = [one for one in cases if one.case.id not in passed]
        easy = [one for one in cases if one.case.id in passed]
        why = (
            "every student passes it without the skill: ask about something only the skill explains"
        )
        rejected = [RejectedCase(one_line(one.case.input, 300), why) for one in easy]
        new = author.replace(rejected, [*known, *cases])
        still_passed = self._passed_without(draft, new)
        better = [one for one in new if one.case.id not in still_passed]
        kept = easy[len(better) :]
        return [*telling, *better, *kept], {one.case.id for one in kept}, len(better)

    def _passed_without(self, draft: Draft, cases: Sequence[UsableCase]) -> set[str]:
        if not cases:
            return set()
        models, scratch = self.models, self.state.folder
        results = measure(models, draft, cases, models.students, scratch, arms=("baseline",))
        return passed_by_all(results)

    def _decided(self, taught: Taught, rest: Sequence[UsableCase]) -> Taught:
        models, scratch, best = self.models, self.state.folder, taught.best
        try:
            if rest:
                self.screen.begin("held out…")
                results = measure(models, best.draft, rest, models.students, scratch)
                self.screen.row("held out", cells_of(results))
                taught = replace(taught, held_out=results)
            plain = [one for one in taught.cases if not why_agent(one.case, one.checks)]
            if taught.trace and plain:
                self.screen.begin(f"Comparing the skill with the trace on {models.teacher}…")
                results = measure(
                    models,
                    best.draft,
                    plain,
                    models.as_student,
                    scratch,
                    trace=taught.trace.text,
                )
                self.screen.drop()
                taught = replace(taught, teacher=results)
        except BudgetError:
            self.screen.drop()
            note = f"not all of the last step was measured: it {models.past_budget()}"
            return replace(taught, notes=(*taught.notes, note))
        return taught

    def _keep(self, attempt: Attempt, attempts: list[Attempt]) -> None:
        self.state.keep_attempt(
            attempt.number, attempt.draft, attempt.results, attempt_text(attempt)
        )
        self.state.save(attempts=[_attempt_data(one) for one in attempts])

    def _wanted(self, name: str | None) -> Wanted:
        fallback = slug(self.settings.task, 64) or "my-skill"
        settings, start = self.settings, self.material.start
        return Wanted(settings.max_skill_tokens, self.state.folder, fallback, start, name)

    def _author(self, model: str, system: str, draft: Draft) -> Author:
        return Author(
            self.models,
            model,
            system,
            self.settings.task,
            self.material.text,
            draft.body,
            self.state.folder,
            self.state.session,
            self.settings.only_agents,
        )


def all_cases(known: CaseFile, new: Sequence[UsableCase]) -> list[UsableCase]:
    return [*(one for one in known.cases if not one.case.skip), *new]


def _with_tag(case: UsableCase, tag: str) -> UsableCase:
    """The case with a tag, marked for learning."""
    tags = [*case.data["tags"], tag, LEARN]
    own = replace(case.case, tags=tuple(tags))
    return replace(case, data={**case.data, "tags": tags}, case=own)


def _case_data(one: UsableCase, held: frozenset[str]) -> dict[str, Any]:
    part = HOLDOUT if one.case.id in held else LEARN
    return {"id": one.case.id, "part": part, "case": one.data, "reference": one.reference}


def _attempt_data(attempt: Attempt) -> Mapping[str, Any]:
    return {
        "number": attempt.number,
        "tokens": attempt.draft.tokens,
        "lift": attempt.lift if attempt.results else None,
        "problem": attempt.problem,
    }


def write_skill(settings: TeachSettings, context: TeachContext) -> Taught:
    """Write a skill and its cases from a task, a trace or a skill, measure and improve it."""
    check(settings, fewest_cases=FEWEST_CASES)
    parent = context.skills or context.root / "skills"
    if settings.output:
        name = checked_name("output", settings.output.resolve().name)
        settings = replace(settings, name=name)
    elif settings.name:
        checked_name("name", settings.name)
    with open_models(settings, context) as models:
        material = gather(settings, models.provider)
        start = material.start
        known = CaseFile()
        if start and start.base:
            known = read_case_file(start.base, agents=settings.only_agents)
        require_growable(known)
        require_unfinished(settings, context, material)
        in_place = start is not None and settings.output is None and settings.name is None
        if in_place and not context.in_place:
            raise SettingsError(
                "source",
                "this would change the skill in place",
                (
                    *("Allow it with ", Setting("force"), " (the old version is kept), "),
                    *("or choose another folder with ", Setting("output"), "."),
                ),
                value=shown(settings.source or parent),
            )
        target = settings.output or (parent / settings.name if settings.name else None)
        if target:
            setting = "output" if settings.output else "name"
            require_free(setting, target, force=settings.force)
            place = target.resolve().parent if target.is_dir() else target
            require_writable(place, setting)
        else:
            require_writable(start.base if in_place and start and start.base else parent)
        missing = max(0, settings.cases - len(known.cases))
        guess = estimate_teaching(
            settings, models, material, missing, len(known.cases), drafts=True
        )
        guess = _with_warning(guess, known, missing, settings, models)
        require_consent(context, material, models, guess)
        first_name = settings.name or (start.name if start else slug(settings.task) or "my-skill")
        steps = _steps(settings, context, models, material, first_name)

        taken = list[Path]()

        def named(name: str) -> str:
            if target or in_place:
                return name
            found = _free_name(parent, name, steps.state, force=settings.force)
            taken.extend([parent / name] if found != name else [])
            return found

        draft = steps.draft(named)
        new, no_signal = steps.write_cases(draft, known.cases, missing)
        new += steps.write_adversarial_cases(draft, [*known.cases, *new]) if models.students else []
        cases = all_cases(known, new)
        held = steps.split(cases)
        if models.students:
            taught = steps.teach(draft, cases, held, no_signal, start)
        else:
            taught = Taught((Attempt(1, draft, None),), tuple(cases), held, "")
        folder = start.base if in_place and start else target or parent / draft.name
        taught = _saved(steps, taught, known, folder or parent / draft.name)
        for other in taken if taught.folder else ():
            context.screen.line(f"{shown(other)} already exists: saved as {draft.name}")
        return taught


def refine_skill(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Improve a skill that has cases; unchanged if no version does better."""
    check(settings)
    start, known = _skill_with_cases(path, settings)
    if len(known.cases) < 2:
        problem = "this skill has too few cases"
        raise InputError(path, problem, "Run pytest-upskill cases first.")
    require_judge(known.cases, settings.judge)
    if settings.adversary:
        require_growable(known)
    _require_writable_base(start)
    with open_models(settings, context) as models:
        material = Material(start=start, sent=(size_of(SKILL_NAMES[0], start.text),))
        require_unfinished(settings, context, material)
        guess = estimate_teaching(settings, models, material, 0, len(known.cases))
        guess = _with_warning(guess, known, 0, settings, models)
        require_consent(context, material, models, guess)
        steps = _steps(settings, context, models, material, start.name)
        new = steps.write_adversarial_cases(start, known.cases)
        cases = all_cases(known, new)
        taught = steps.teach(start, cases, steps.split(cases))
        if taught.best.number == 1 and not new:
            return replace(taught, cost=models.spent(), notes=_notes(taught, models))
        return _saved(steps, taught, known, start.base or path)


def add_cases(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Write cases for a skill; the skill itself is unchanged."""
    check(settings, fewest_cases=1)
    start, known = _skill_with_cases(path, settings)
    require_growable(known)
    missing = FEWEST_CASES - len(known.cases)
    if settings.cases < missing:
        problem = f"a skill needs at least {FEWEST_CASES} cases"
        hint = f"It has {len(known.cases)}: write at least {missing}."
        raise SettingsError("cases", problem, hint, value=settings.cases)
    _require_writable_base(start)
    with open_models(settings, context) as models:
        material = gather(settings, models.provider)
        own = size_of(SKILL_NAMES[0], start.text)
        material = replace(material, sent=(own, *material.sent))
        require_unfinished(settings, context, material)
        once = replace(settings, attempts=1)
        guess = estimate_teaching(once, models, material, settings.cases, len(known.cases))
        require_consent(context, material, models, guess)
        steps = _steps(settings, context, models, material, start.name)
        new, no_signal = steps.write_cases(start, known.cases, settings.cases, fewest=1)
        cases = all_cases(known, new)
        held = steps.split(cases)
        unmeasured = Attempt(1, start, None)
        taught = Taught((unmeasured,), tuple(cases), held, "", no_signal=no_signal)
        saved = _saved(steps, taught, known, start.base or path, wrote_skill=False)
        return replace(saved, kept=None)  # the skill was not changed


def _require_writable_base(skill: Draft) -> None:
    if skill.base:
        require_writable(skill.base)


def _with_warning(
    guess: Estimate, known: CaseFile, new: int, settings: TeachSettings, models: TeachModels
) -> Estimate:
    if not models.students:  # nothing is measured
        return guess
    return replace(guess, warning=too_few(known.cases, new, settings.holdout, len(models.students)))


def _skill_with_cases(path: Path, settings: TeachSettings) -> tuple[Draft, CaseFile]:
    file = skill_file(path)
    known = read_case_file(file.parent, agents=settings.only_agents)
    return draft_of(load_skill(file), fields_of(file)), known


def _steps(
    settings: TeachSettings,
    context: TeachContext,
    models: TeachModels,
    material: Material,
    name: str,
) -> Steps:
    state = state_of_run(settings, context, material, name)
    return Steps(settings, models, material, state, context.screen)


def _free_name(parent: Path, name: str, state: TeachState, *, force: bool) -> str:
    """A name that is not taken, unless by what this run saved or by a skill to replace."""
    saved = Path(state.data.get("saved", ""))
    if saved.parent == parent.absolute() and saved.exists():
        return saved.name
    if force and is_skill(parent / name):
        return name
    return free_name(parent, name)


def _saved(
    steps: Steps, taught: Taught, known: CaseFile, folder: Path, *, wrote_skill: bool = True
) -> Taught:
    models, state = steps.models, steps.state
    metadata = metadata_of(taught, steps.settings.task, models.teacher) if wrote_skill else {}
    text = saved_cases(known, taught, metadata)
    spent = models.spent()
    taught = replace(taught, cost=spent, notes=_notes(taught, models))
    try:
        kept = save_skill(taught.best.draft, text, folder, state.keep_before)
    except InputError as error:
        return replace(taught, unsaved=_unsaved(error, taught.best, text, steps))
    with suppress(InputError):  # the skill is saved, and that is what counts
        state.save(
            saved=str(folder.absolute()),
            cost=spent,
            limits=steps.settings.on_resume("limit"),
            out_of_budget=models.out_of_budget,
        )
    return replace(taught, folder=folder, kept=kept)


def _unsaved(error: InputError, best: Attempt, cases: str, steps: Steps) -> str:
    """Why the skill was not saved, and where its best version is."""
    text = f"Not saved: {error.where}: {error.problem}."
    with suppress(InputError, OSError):
        kept = steps.state.keep_unsaved(best.number, best.draft, cases)
        text += f"\nThe best version is kept in {shown(kept)}"
    resume = steps.models.spell("resume")
    return f"{text}\nOnce that is fixed, {resume} saves it without asking anything again."


def _notes(taught: Taught, models: TeachModels) -> tuple[str, ...]:
    models.close()  # only then it is known what could not be stored
    return (*taught.notes, *dict.fromkeys(models.notes))


def metadata_of(taught: Taught, task: str, teacher: str) -> dict[str, Any]:
    """As upskill writes it."""
    whole = taught.together
    known = [row.arm("skill").rate for row in whole.summaries] if whole else []
    rates = [rate for rate in known if rate is not None]
    return {
        "version": _FORMAT_VERSION,
        "generated_by": teacher,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source_task": masked(task),
        "test_pass_rate": round(sum(rates) / len(rates), 4) if rates else None,
    }


def saved_cases(old: CaseFile, taught: Taught, metadata: dict[str, Any]) -> str:
    new = [one for one in taught.cases if one.data]
    return case_file_text(old, new, taught.held, metadata)
