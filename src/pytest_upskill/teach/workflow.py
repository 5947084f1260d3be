"""Generate, refine and cases from end to end: draft, cases, split, attempts, held-out cases."""

from collections.abc import Callable, Sequence
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
from .attempts import Attempt, SkillImprovement, measure, passed_by_all
from .case_file import (
    CaseFile,
    case_file_text,
    ids_held_out,
    read_case_file,
    require_growable,
    require_judge,
)
from .case_writing import LEARN, Author, CaseAuthor, Rejected, UsableCase
from .drafts import (
    Draft,
    DraftSpec,
    ask_for_draft,
    checked_name,
    draft_of,
    free_name,
    require_free,
    require_writable,
    save_skill,
)
from .outcome import Taught
from .progress_lines import cells_of
from .prompts import ADVERSARY, AUTHOR, draft_prompt
from .secrets import masked
from .sources import Material, gather, size_of
from .teach_costs import estimate_teaching, too_few_cases
from .teach_models import TeachModels
from .teach_run import (
    StateFolder,
    TeachContext,
    TeachRun,
    open_models,
    require_unfinished,
    start_run,
)
from .teach_settings import FEWEST_CASES, TeachSettings, check

_FORMAT_VERSION: Final = "1.0"  # of the format, as upskill writes it
_NOT_TELLING: Final = (
    "every student passes it without the skill: ask about something only the skill explains"
)


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
        old = CaseFile()
        if start and start.base:
            old = read_case_file(start.base, agents=settings.only_agents)
        require_growable(old)
        require_unfinished(settings, context, material)
        target = _target_folder(settings, context, start, parent)
        missing = max(0, settings.cases - len(old.cases))
        estimate = estimate_teaching(
            settings, models, material, missing, len(old.cases), drafts=True
        )
        estimate = _with_warning(estimate, old, missing, settings, models)
        first_name = settings.name or (start.name if start else slug(settings.task) or "my-skill")
        run = start_run(settings, context, models, material, estimate, first_name)
        steps, taken = _Steps(run), list[Path]()

        def unused_name(name: str) -> str:
            if target:
                return name
            free = _free_name(parent, name, run.state, force=settings.force)
            taken.extend([parent / name] if free != name else [])
            return free

        draft = steps.draft(unused_name)
        new, no_signal = steps.write_cases(draft, old.cases, missing)
        new += steps.write_adversarial_cases(draft, [*old.cases, *new]) if models.students else []
        cases = _active_cases(old, new)
        held = ids_held_out([usable.case for usable in cases], settings.holdout)
        if models.students:
            taught = steps.teach(draft, cases, held, no_signal, start)
        else:
            taught = Taught((Attempt(1, draft, None),), tuple(cases), held, "")
        taught = _saved(run, taught, old, target or parent / draft.name)
        for folder in taken if taught.folder else ():
            context.screen.line(f"{shown(folder)} already exists: saved as {draft.name}")
        return taught


def _target_folder(
    settings: TeachSettings, context: TeachContext, start: Draft | None, parent: Path
) -> Path | None:
    """Where to save the skill; None if its name is not known yet. An error if that can't be."""
    if settings.output or settings.name:
        setting = "output" if settings.output else "name"
        target = settings.output or parent / (settings.name or "")
        require_free(setting, target, force=settings.force)
        require_writable(target.resolve().parent if target.is_dir() else target, setting)
        return target
    if start is None:
        require_writable(parent)
        return None
    if not context.in_place:
        raise SettingsError(
            "source",
            "this would change the skill in place",
            (
                *("Allow it with ", Setting("force"), " (the old version is kept), "),
                *("or choose another folder with ", Setting("output"), "."),
            ),
            value=shown(settings.source or parent),
        )
    require_writable(start.base or parent)
    return start.base


def refine_skill(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Improve a skill that has cases; unchanged if no version does better."""
    check(settings)
    start, old = _skill_with_cases(path, settings)
    if len(old.cases) < 2:
        problem = "this skill has too few cases"
        raise InputError(path, problem, "Run pytest-upskill cases first.")
    require_judge(old.cases, settings.judge)
    if settings.adversary:
        require_growable(old)
    require_writable(start.base or path)
    with open_models(settings, context) as models:
        material = Material(start=start, sent=(size_of(SKILL_NAMES[0], start.text),))
        require_unfinished(settings, context, material)
        estimate = estimate_teaching(settings, models, material, 0, len(old.cases))
        estimate = _with_warning(estimate, old, 0, settings, models)
        run = start_run(settings, context, models, material, estimate, start.name)
        steps = _Steps(run)
        new = steps.write_adversarial_cases(start, old.cases)
        cases = _active_cases(old, new)
        held = ids_held_out([usable.case for usable in cases], settings.holdout)
        taught = steps.teach(start, cases, held)
        if taught.best.number == 1 and not new:
            return _with_costs(taught, run)
        return _saved(run, taught, old, start.base or path)


def add_cases(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Write cases for a skill; the skill itself is unchanged."""
    check(settings, fewest_cases=1)
    start, old = _skill_with_cases(path, settings)
    require_growable(old)
    missing = FEWEST_CASES - len(old.cases)
    if settings.cases < missing:
        problem = f"a skill needs at least {FEWEST_CASES} cases"
        hint = f"It has {len(old.cases)}: write at least {missing}."
        raise SettingsError("cases", problem, hint, value=settings.cases)
    require_writable(start.base or path)
    with open_models(settings, context) as models:
        material = gather(settings, models.provider)
        sent = (size_of(SKILL_NAMES[0], start.text), *material.sent)
        material = replace(material, sent=sent)
        require_unfinished(settings, context, material)
        once = replace(settings, attempts=1)
        estimate = estimate_teaching(once, models, material, settings.cases, len(old.cases))
        run = start_run(settings, context, models, material, estimate, start.name)
        steps = _Steps(run)
        new, no_signal = steps.write_cases(start, old.cases, settings.cases, fewest=1)
        cases = _active_cases(old, new)
        held = ids_held_out([usable.case for usable in cases], settings.holdout)
        unmeasured = Attempt(1, start, None)
        taught = Taught((unmeasured,), tuple(cases), held, "", no_signal=no_signal)
        saved = _saved(run, taught, old, start.base or path, wrote_skill=False)
        return replace(saved, kept=None)  # the skill was not changed


def _skill_with_cases(path: Path, settings: TeachSettings) -> tuple[Draft, CaseFile]:
    file = skill_file(path)
    cases = read_case_file(file.parent, agents=settings.only_agents)
    return draft_of(load_skill(file), fields_of(file)), cases


def _active_cases(old: CaseFile, new: Sequence[UsableCase]) -> list[UsableCase]:
    return [*(usable for usable in old.cases if not usable.case.skip), *new]


def _with_warning(
    estimate: Estimate, old: CaseFile, new: int, settings: TeachSettings, models: TeachModels
) -> Estimate:
    if not models.students:  # nothing is measured
        return estimate
    warning = too_few_cases(old.cases, new, settings.holdout, len(models.students))
    return replace(estimate, warning=warning)


def _free_name(parent: Path, name: str, state: StateFolder, *, force: bool) -> str:
    """A name that is not taken, unless by what this run saved or by a skill to replace."""
    saved = Path(state.state.saved)
    if saved.parent == parent.absolute() and saved.exists():
        return saved.name
    if force and is_skill(parent / name):
        return name
    return free_name(parent, name)


@dataclass(frozen=True)
class _Steps:
    """The steps that generate, refine and cases have in common."""

    run: TeachRun

    def draft(self, unused_name: Callable[[str], str]) -> Draft:
        """The first version; ``unused_name`` gives it another name if its own is taken."""
        settings, models, screen = self.run.settings, self.run.models, self.run.screen
        start, trace = self.run.material.start, self.run.material.trace
        if trace:
            left_out = f"; {trace.left_out}" if trace.left_out else ""
            screen.line(f"Trace of {counted(trace.tokens, 'token')}{left_out}")
        screen.begin(f"Generating skill with {models.teacher}…")
        limit = settings.max_skill_tokens
        prompt = draft_prompt(
            settings.task,
            self.run.material.text,
            limit,
            improves=start is not None,
            agents=models.with_agents,
        )
        spec = self._spec(settings.name or (start.name if start else None))
        draft = ask_for_draft(models, prompt, spec, self.run.state.session)
        draft = replace(draft, name=unused_name(draft.name))
        over = f" (limit {limit:,})" if draft.tokens > limit else ""
        screen.done(f"SKILL.md  {counted(draft.tokens, 'token')}{over}")
        self.run.state.rename(draft.name)
        return draft

    def write_cases(
        self, draft: Draft, old: Sequence[UsableCase], number: int, fewest: int = 0
    ) -> tuple[list[UsableCase], tuple[str, ...]]:
        """New cases, and the ids of those that show nothing: every student passes them anyway.

        TeachError if fewer than ``fewest`` are usable, or too few together with the old ones.
        """
        if number <= 0:
            return [], ()
        models, screen = self.run.models, self.run.screen
        screen.begin("Generating cases…")
        author = self._author(models.author, AUTHOR, draft)
        written = author.write(number, old)
        cases, rejected = written.usable, len(written.rejected)
        no_signal: set[str] = set()
        if models.students and cases:
            with suppress(BudgetError):  # the attempts will report it, and the cases are usable
                cases, no_signal, exchanged = self._with_signal(author, draft, cases, old)
                rejected += exchanged
        counts = f"{len(cases)} kept" + (f", {rejected} rejected" if rejected else "")
        if len(cases) < number:
            counts += f", {number - len(cases)} given up"
        screen.done(counts)
        if len(cases) < max(fewest, FEWEST_CASES - len(old)):
            reasons = "; ".join(f"{case.text!r}: {case.reason}" for case in written.rejected[-3:])
            problem = (
                f"{models.author}: only {len(cases)} of {counted(number, 'case')} usable. "
                f"Rejected: {one_line(reasons, 400)}\n  Try a stronger model with "
            )
            raise TeachError((problem, Setting("author"), ", or describe the task more precisely."))
        return cases, tuple(sorted(no_signal))

    def write_adversarial_cases(self, draft: Draft, old: Sequence[UsableCase]) -> list[UsableCase]:
        """Usable cases by the adversary; the teacher learns from them."""
        adversary = self.run.models.adversary
        if not adversary:
            return []
        self.run.screen.begin(f"Generating adversarial cases with {adversary}…")
        number = max(2, round(self.run.settings.cases / 4))
        written = self._author(adversary, ADVERSARY, draft).write(number, old)
        cases = [_with_tags(usable, "adversary", LEARN) for usable in written.usable]
        self.run.screen.done(f"{len(cases)} kept")
        return cases

    def teach(
        self,
        draft: Draft,
        cases: Sequence[UsableCase],
        held: frozenset[str],
        no_signal: tuple[str, ...] = (),
        before: Draft | None = None,
    ) -> Taught:
        """Attempts on the learning cases, then the best one on the held-out cases."""
        learning = [usable for usable in cases if usable.case.id not in held]
        held_out = [usable for usable in cases if usable.case.id in held]
        run, trace = self.run, self.run.material.trace
        previous = None
        if before:
            folder = run.state.folder
            previous = measure(run.models, before, learning, run.models.students, folder)
            run.screen.row("before", cells_of(previous))
        loop = SkillImprovement(run, self._spec(draft.name), learning)
        stop = loop.improve(draft)
        attempts = tuple(loop.attempts)
        taught = Taught(
            attempts, tuple(cases), held, stop, before=previous, trace=trace, no_signal=no_signal
        )
        return self._decided(taught, held_out) if taught.learning else taught

    def _with_signal(
        self,
        author: Author,
        draft: Draft,
        cases: list[UsableCase],
        old: Sequence[UsableCase],
    ) -> tuple[list[UsableCase], set[str], int]:
        """Replace, once, the cases that every student passes without the skill."""
        passed = self._passed_without(draft, cases)
        if not passed:
            return cases, passed, 0
        telling = [usable for usable in cases if usable.case.id not in passed]
        easy = [usable for usable in cases if usable.case.id in passed]
        rejected = [Rejected(one_line(one.case.input, 300), _NOT_TELLING) for one in easy]
        new = author.replace(rejected, [*old, *cases])
        still_passed = self._passed_without(draft, new)
        better = [usable for usable in new if usable.case.id not in still_passed]
        still_easy = easy[len(better) :]
        no_signal = {usable.case.id for usable in still_easy}
        return [*telling, *better, *still_easy], no_signal, len(better)

    def _passed_without(self, draft: Draft, cases: Sequence[UsableCase]) -> set[str]:
        if not cases:
            return set()
        models, folder = self.run.models, self.run.state.folder
        results = measure(models, draft, cases, models.students, folder, arms=("baseline",))
        return passed_by_all(results)

    def _decided(self, taught: Taught, held_out: Sequence[UsableCase]) -> Taught:
        """With the best attempt on the held-out cases, and compared with the trace."""
        models, screen, folder = self.run.models, self.run.screen, self.run.state.folder
        draft = taught.best.draft
        try:
            if held_out:
                screen.begin("held out…")
                results = measure(models, draft, held_out, models.students, folder)
                screen.row("held out", cells_of(results))
                taught = replace(taught, held_out=results)
            plain = [one for one in taught.cases if not why_agent(one.case, one.checks)]
            if taught.trace and plain:
                screen.begin(f"Comparing the skill with the trace on {models.teacher}…")
                trace = taught.trace.text
                results = measure(models, draft, plain, models.as_student, folder, trace=trace)
                screen.drop()
                taught = replace(taught, teacher=results)
        except BudgetError:
            screen.drop()
            note = f"not all of the last step was measured: it {models.past_budget()}"
            return replace(taught, notes=(*taught.notes, note))
        return taught

    def _spec(self, name: str | None) -> DraftSpec:
        settings, start = self.run.settings, self.run.material.start
        fallback = slug(settings.task, 64) or "my-skill"
        return DraftSpec(settings.max_skill_tokens, self.run.state.folder, fallback, start, name)

    def _author(self, model: str, system: str, draft: Draft) -> Author:
        return CaseAuthor(self.run, model, system, draft.body)


def _with_tags(usable: UsableCase, *added: str) -> UsableCase:
    tags = [*usable.data["tags"], *added]
    case = replace(usable.case, tags=tuple(tags))
    return replace(usable, data={**usable.data, "tags": tags}, case=case)


def _saved(
    run: TeachRun, taught: Taught, old: CaseFile, folder: Path, *, wrote_skill: bool = True
) -> Taught:
    metadata = _metadata(taught, run) if wrote_skill else {}
    new = [usable for usable in taught.cases if usable.data]
    cases = case_file_text(old, new, taught.held, metadata)
    taught = _with_costs(taught, run)
    try:
        kept = save_skill(taught.best.draft, cases, folder, run.state.keep_before)
    except InputError as error:
        return replace(taught, unsaved=_why_unsaved(error, taught.best, cases, run))
    run.mark_saved(folder, taught.cost)
    return replace(taught, folder=folder, kept=kept)


def _with_costs(taught: Taught, run: TeachRun) -> Taught:
    spent = run.models.spent()
    return replace(taught, cost=spent, notes=(*taught.notes, *run.final_notes()))


def _metadata(taught: Taught, run: TeachRun) -> dict[str, Any]:
    """As upskill writes it."""
    rows = taught.together.summaries if taught.together else []
    rates = [rate for row in rows if (rate := row.arm("skill").rate) is not None]
    return {
        "version": _FORMAT_VERSION,
        "generated_by": run.models.teacher,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source_task": masked(run.settings.task),
        "test_pass_rate": round(sum(rates) / len(rates), 4) if rates else None,
    }


def _why_unsaved(error: InputError, best: Attempt, cases: str, run: TeachRun) -> str:
    """Why the skill was not saved, and where its best version is."""
    text = f"Not saved: {error.where}: {error.problem}."
    with suppress(InputError, OSError):
        kept = run.state.keep_unsaved(best.number, best.draft, cases)
        text += f"\nThe best version is kept in {shown(kept)}"
    resume = run.models.spell("resume")
    return f"{text}\nOnce that is fixed, {resume} saves it without asking anything again."
