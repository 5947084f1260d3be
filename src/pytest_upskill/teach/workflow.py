"""generate, refine and cases from end to end: what they need, the loop, saving."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from .._util.keys import shown_command
from .._util.texts import counted
from ..errors import InputError, Setting, SettingsError, shown
from ..skills.folder import SKILL_NAMES, is_skill, skill_file
from ..skills.skill import load_skill
from .case_file import (
    CaseFile,
    read_case_file,
    require_growable,
    require_judge,
    split_cases,
)
from .case_writing import (
    UsableCase,
)
from .drafts import Draft, draft_of
from .outcome import Attempt, Taught
from .saving import (
    checked_name,
    require_free,
    require_writable,
    save_taught,
    with_costs,
)
from .sources import Material, gather, size_of
from .steps import Steps
from .teach_costs import estimate_cases, estimate_teaching
from .teach_run import (
    TeachContext,
    TeachRun,
    free_name,
    open_teaching,
)
from .teach_settings import (
    FEWEST_CASES,
    TeachSettings,
    check,
    command_words,
    require_task,
)

_FEWEST: Final = 2  # cases to learn from, and to hold out


def write_skill(settings: TeachSettings, context: TeachContext) -> Taught:
    """Write a skill and its cases from a task, a trace or a skill,
    measure and improve it.
    """
    check(settings, fewest_cases=FEWEST_CASES)
    require_task(settings)
    parent = context.skills or context.root / "skills"
    settings = _with_checked_name(settings)
    with open_teaching(settings, context) as run:
        run.material = gather(settings, run.models.provider)
        start = run.material.start
        old = _case_file(start, settings)
        if run.models.students:
            require_judge(old.cases, settings.judge)
        if start:
            _require_skill(run, start, old)
        target = _target_folder(settings, context, start, parent)
        run.start(estimate_teaching(run, settings.cases, old.cases, drafts=True))
        return _write_and_measure(run, old, target, parent=parent)


def _require_skill(run: TeachRun, skill: Draft, cases: CaseFile) -> None:
    place = cases.file or Path()
    placed = [(place, usable.case) for usable in cases.cases]
    run.models.require_skill(skill.name, skill.tokens, placed)


def _write_and_measure(
    run: TeachRun, old: CaseFile, target: Path | None, *, parent: Path
) -> Taught:
    """The saved skill; without a target in the parent, under a name that is free."""
    settings = run.settings
    steps = Steps(run)
    first = steps.draft()
    name = first.name
    if not target:
        replaces = settings.force and is_skill(parent / name)
        name = name if replaces else free_name(parent, name)
    draft = replace(first, name=name)
    run.versions.name = name

    fewest = max(1, FEWEST_CASES - len(old.cases))
    new, no_signal = steps.write_cases(draft, old.cases, settings.cases, fewest)
    if run.models.students:
        new += steps.write_adversarial_cases(draft, [*old.cases, *new])
        cases = _active_cases(old, new)
        taught = steps.improve(draft, cases, new=new, no_signal=no_signal)
    else:
        taught = steps.leave_unmeasured(
            Attempt(1, draft), _active_cases(old, new), no_signal
        )

    taught = save_taught(run, taught, old, new, target or parent / name)
    if taught.folder and name != first.name:
        taken = shown(parent / first.name)
        run.screen.text(f"{taken} already exists: saved as {name}")
    return taught


def _with_checked_name(settings: TeachSettings) -> TeachSettings:
    """The settings with the name that the folder for the skill gives it."""
    if settings.output:
        name = checked_name("output", settings.output.resolve().name)
        return replace(settings, name=name)
    if settings.name:
        checked_name("name", settings.name)
    return settings


def _case_file(start: Draft | None, settings: TeachSettings) -> CaseFile:
    """The cases that the skill has already; an error if none can be added."""
    cases = CaseFile()
    if start and start.base_folder:
        cases = read_case_file(start.base_folder, agents=settings.only_agents)
    require_growable(cases)
    return cases


def _target_folder(
    settings: TeachSettings, context: TeachContext, start: Draft | None, parent: Path
) -> Path | None:
    """Where to save the skill; None if its name is not known yet.
    An error if that can't be.
    """
    if settings.output or settings.name:
        setting = "output" if settings.output else "name"
        target = settings.output or parent / (settings.name or "")
        require_free(setting, target, force=settings.force)
        require_writable(
            target.resolve().parent if target.is_dir() else target, setting
        )
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
    require_writable(start.base_folder or parent)
    return start.base_folder


def refine_skill(path: Path, settings: TeachSettings, context: TeachContext) -> Taught:
    """Improve a skill that has cases, or make it shorter;
    unchanged if no version is as good.
    """
    start, old, settings = _skill_with_cases(path, settings)
    check(settings)
    require_task(settings)
    limit = settings.max_skill_tokens
    if limit is not None and start.tokens <= limit:
        return _short_already(start, limit)
    if len(old.cases) < _FEWEST:
        problem = "this skill has too few cases"
        command = shown_command(command_words("cases", shown(path), settings))
        raise InputError(path, problem, f"Write some first: {command}")
    require_judge(old.cases, settings.judge)
    if settings.adversary:
        require_growable(old)
    if limit is not None:
        _require_both_parts(path, old, settings)
    require_writable(start.base_folder or path)
    with open_teaching(settings, context, start.folder_name) as run:
        sent = (size_of(SKILL_NAMES[0], start.text),)
        run.material = Material(start=start, sent=sent)
        _require_skill(run, start, old)
        run.start(estimate_teaching(run, 0, old.cases))
        steps = Steps(run)
        new = steps.write_adversarial_cases(start, old.cases)
        taught = steps.refine(start, _active_cases(old, new))
        if not taught.best.is_new and not new:
            return with_costs(taught, run)
        return save_taught(run, taught, old, new, start.base_folder or path)


def _short_already(start: Draft, limit: int) -> Taught:
    sentence = (
        f"{start.name} has about {counted(start.tokens, 'token')}, and {limit:,}"
        " are allowed. No model was asked."
    )
    attempt = Attempt(1, start, is_new=False)
    return Taught(start.name, (attempt,), 1, sentences=(sentence,))


def _require_both_parts(path: Path, old: CaseFile, settings: TeachSettings) -> None:
    learning, held_out = split_cases(_active_cases(old, ()), settings.holdout)
    if min(len(learning), len(held_out)) < _FEWEST:
        problem = (
            f"too few cases: {len(learning)} to learn from and {len(held_out)} held"
            f" out, and at least {_FEWEST} of each are needed"
        )
        hint = (
            "Write more with pytest-upskill cases, or change ",
            Setting("holdout"),
            ".",
        )
        raise InputError(old.file or path, problem, hint)


def add_cases(
    path: Path,
    settings: TeachSettings,
    context: TeachContext,
    fewest: int = FEWEST_CASES,
) -> Taught:
    """Write cases for a skill, which has at least ``fewest`` then;
    the skill is unchanged.
    """
    start, old, settings = _skill_with_cases(path, settings)
    check(settings, fewest_cases=1)
    require_task(settings)
    require_growable(old)
    missing = fewest - len(old.cases)
    if settings.cases < missing:
        raise SettingsError(
            "cases",
            f"a skill needs at least {fewest} cases",
            f"It has {len(old.cases)}: write at least {missing}.",
            value=settings.cases,
        )
    require_writable(start.base_folder or path)
    with open_teaching(settings, context, start.folder_name) as run:
        _require_skill(run, start, CaseFile())
        material = gather(settings, run.models.provider)
        sent = (size_of(SKILL_NAMES[0], start.text), *material.sent)
        run.material = replace(material, sent=sent)
        run.start(estimate_cases(run, settings.cases))
        steps = Steps(run)
        new, no_signal = steps.write_cases(
            start, old.cases, settings.cases, max(1, missing)
        )
        attempt = Attempt(1, start, is_new=False)
        taught = steps.leave_unmeasured(attempt, _active_cases(old, new), no_signal)
        taught = save_taught(run, taught, old, new, start.base_folder or path)
        return replace(taught, kept=None)  # the skill was not changed


def _skill_with_cases(
    path: Path, settings: TeachSettings
) -> tuple[Draft, CaseFile, TeachSettings]:
    """The skill, its cases, and the settings with its
    description unless they have a task.
    """
    start = draft_of(load_skill(skill_file(path)))
    cases = read_case_file(start.base_folder or path, agents=settings.only_agents)
    return start, cases, replace(settings, task=settings.task or start.description)


def _active_cases(old: CaseFile, new: Sequence[UsableCase]) -> list[UsableCase]:
    return [*(usable for usable in old.cases if not usable.case.skip), *new]
