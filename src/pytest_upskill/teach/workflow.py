"""Run generate, refine and cases end to end, for the commands and for Python."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from .._util.texts import digest, slug
from ..errors import InputError, Setting, SettingsError, Spell, TeachError, shown
from ..measure.estimate import Estimate
from ..models.prices import Price
from ..skills.folder import SKILL_NAMES, is_skill, skill_file
from ..skills.skill import fields_of, load_skill
from . import saving
from .attempts import Attempt
from .case_file import CaseFile, read_case_file, require_growable, require_judge
from .drafts import Draft, draft_of
from .estimate import estimate, too_few
from .outcome import Taught
from .progress_lines import Screen
from .secrets import masked
from .sources import Material, gather, size_of
from .state import TeachState, resume_state, start_state
from .steps import Steps, all_cases
from .teach_models import TeachModels
from .teach_settings import FEWEST_CASES, TeachSettings, check


class Declined(Exception):
    """The user did not agree to the cost."""


class AlreadyFinished(Exception):
    """The run to resume has nothing left to do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


@dataclass(frozen=True)
class TeachContext:
    """Where a run takes place, how it is shown, and what it may do."""

    root: Path = field(default_factory=Path.cwd)  # the project
    skills: Path | None = None  # the folder of skills; None is ./skills
    only_unfinished: bool = False  # raise AlreadyFinished rather than replay a finished run
    in_place: bool = False  # the skill to improve may be changed
    screen: Screen = field(default_factory=Screen)
    prices: Mapping[str, Price] = field(default_factory=dict)  # instead of the known ones
    agree: Callable[[Estimate], bool] = lambda _: True
    opened: Callable[[TeachModels], None] = lambda _: None
    spell: Spell = str  # what the user calls a setting


def generate(settings: TeachSettings, context: TeachContext) -> Taught:
    """Write a skill and its cases from a task, a trace or a skill, measure and improve it."""
    check(settings, fewest_cases=FEWEST_CASES)
    parent = context.skills or context.root / "skills"
    if settings.output:
        name = saving.checked_name("output", settings.output.resolve().name)
        settings = replace(settings, name=name)
    elif settings.name:
        saving.checked_name("name", settings.name)
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
            saving.require_free(setting, target, force=settings.force)
            place = target.resolve().parent if target.is_dir() else target
            saving.require_writable(place, setting)
        else:
            saving.require_writable(start.base if in_place and start and start.base else parent)
        missing = max(0, settings.cases - len(known.cases))
        guess = estimate(settings, models, material, missing, len(known.cases), drafts=True)
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


def refine(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Improve a skill that has cases; unchanged if no version does better."""
    check(settings)
    start, known = _skill_with_cases(path, settings)
    if len(known.cases) < 2:
        problem = "this skill has too few cases"
        raise InputError(path, problem, "Run pytest-upskill cases first.")
    require_judge(known.cases, settings.judge)
    if settings.adversary:
        require_growable(known)
    _require_writable(start)
    with open_models(settings, context) as models:
        material = Material(start=start, sent=(size_of(SKILL_NAMES[0], start.text),))
        require_unfinished(settings, context, material)
        guess = estimate(settings, models, material, 0, len(known.cases))
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
    _require_writable(start)
    with open_models(settings, context) as models:
        material = gather(settings, models.provider)
        own = size_of(SKILL_NAMES[0], start.text)
        material = replace(material, sent=(own, *material.sent))
        require_unfinished(settings, context, material)
        once = replace(settings, attempts=1)
        guess = estimate(once, models, material, settings.cases, len(known.cases))
        require_consent(context, material, models, guess)
        steps = _steps(settings, context, models, material, start.name)
        new, no_signal = steps.write_cases(start, known.cases, settings.cases, fewest=1)
        cases = all_cases(known, new)
        held = steps.split(cases)
        unmeasured = Attempt(1, start, None)
        taught = Taught((unmeasured,), tuple(cases), held, "", no_signal=no_signal)
        saved = _saved(steps, taught, known, start.base or path, wrote_skill=False)
        return replace(saved, kept=None)  # the skill was not changed


@contextmanager
def open_models(settings: TeachSettings, context: TeachContext) -> Iterator[TeachModels]:
    """All models of a run; their engine is closed at the end."""
    models = TeachModels(settings, context.root, context.screen.line, context.prices, context.spell)
    context.opened(models)
    try:
        yield models
    except TeachError:
        context.screen.drop()
        raise
    finally:
        models.close()


def _require_writable(skill: Draft) -> None:
    if skill.base:
        saving.require_writable(skill.base)


def require_consent(
    context: TeachContext, material: Material, models: TeachModels, guess: Estimate
) -> None:
    for line in (*material.lines, *models.lines):
        context.screen.line(line)
    if not context.agree(guess):
        raise Declined


def require_unfinished(settings: TeachSettings, context: TeachContext, material: Material) -> None:
    """Raise AlreadyFinished if all was done and saved, and the limits are the same."""
    if not (settings.resume and context.only_unfinished):
        return
    state = resume_state(context.root, digest_of_run(settings, material)).data
    folder = Path(state.get("saved", ""))
    elsewhere = settings.output is not None and settings.output.absolute() != folder
    further = state.get("limits") != settings.on_resume("limit") or state.get("out_of_budget")
    if "saved" in state and is_skill(folder) and not elsewhere and not further:
        raise AlreadyFinished(folder)


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


def state_of_run(
    settings: TeachSettings, context: TeachContext, material: Material, name: str
) -> TeachState:
    """The state of the run to resume, or of a new one."""
    same, root = digest_of_run(settings, material), context.root
    state = resume_state(root, same) if settings.resume else start_state(root, name, same)
    state.save(task=masked(settings.task))
    return state


def _steps(
    settings: TeachSettings,
    context: TeachContext,
    models: TeachModels,
    material: Material,
    name: str,
) -> Steps:
    state = state_of_run(settings, context, material, name)
    return Steps(settings, models, material, state, context.screen)


def digest_of_run(settings: TeachSettings, material: Material) -> str:
    """--resume continues the run with the same digest."""
    same = json.dumps(settings.on_resume("same"), sort_keys=True, default=str)
    return digest(same, material.digest)


def _free_name(parent: Path, name: str, state: TeachState, *, force: bool) -> str:
    """A name that is not taken, unless by what this run saved or by a skill to replace."""
    saved = Path(state.data.get("saved", ""))
    if saved.parent == parent.absolute() and saved.exists():
        return saved.name
    if force and is_skill(parent / name):
        return name
    return saving.free_name(parent, name)


def _saved(
    steps: Steps, taught: Taught, known: CaseFile, folder: Path, *, wrote_skill: bool = True
) -> Taught:
    models, state = steps.models, steps.state
    metadata = (
        saving.metadata_of(taught, steps.settings.task, models.teacher) if wrote_skill else {}
    )
    text = saving.saved_cases(known, taught, metadata)
    spent = models.spent()
    taught = replace(taught, cost=spent, notes=_notes(taught, models))
    try:
        kept = saving.save(taught.best.draft, text, folder, state)
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
