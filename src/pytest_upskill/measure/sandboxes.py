"""The sandboxes of a run: what its cases need, and what must be allowed."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from .._util.texts import plain
from ..agents.sandboxes.sandbox import SandboxError, SandboxLimits
from ..agents.task_sandbox import choose_sandbox, has_own_image
from ..errors import InputError, SettingsError
from ..settings import DEFAULT_AGENT_TIMEOUT, Settings
from ..skills.case import NO_NEEDS, Case
from ..trials.subject import works_on_model
from .open_run import AskedSkill, OpenRun

_TOOL_FOLDERS: Final = ("/opt", "/usr")  # anyone may read these


def needs_sandbox(run: OpenRun, skills: Iterable[AskedSkill]) -> bool:
    """Not if all that is done is to write the files of references."""
    if run.settings.judge_agent or any(map(works_on_model, run.agents)):
        return True

    skills = skills if run.agents else ()
    cases = (case for skill in skills for _, case in skill.cases)
    return any(
        case.sandbox != NO_NEEDS or case.setup or case.reference.run
        for case in cases
        if case.reference
    )


def prepare_sandbox(
    skills: Sequence[AskedSkill], settings: Settings, tell: Callable[[str], None]
) -> str:
    """The name of the sandbox; InputError if none works with what these skills need.

    Tasks may have several: those that can't run are skipped, and the images and
    packages of the others are made when they first run. With a cluster, its
    workers look at their own.
    """
    from ..agents.needs import python_packages, why_no_path

    sandbox = "" if settings.cluster else _choose_sandboxes(skills, settings)
    if settings.cluster:
        return sandbox

    packages: dict[tuple[str, ...], None] = {}
    for skill in skills:
        for each in (case.sandbox for _, case in skill.cases):
            for path in each.paths:
                if problem := why_no_path(path):
                    place = f"{skill.label}: sandbox.paths"
                    raise InputError(place, problem, "Name the folder of a tool.")
            if each.python and not has_own_image(each):
                packages[each.python] = None
    for names in packages:
        tell(f"Python packages for agents: {', '.join(names)}")
        try:
            python_packages(names)
        except SandboxError as error:
            raise InputError("sandbox.python", str(error)) from None
    return sandbox


def _choose_sandboxes(skills: Iterable[AskedSkill], settings: Settings) -> str:
    """The names of all sandboxes that cases run in."""
    from ..agents.sandboxes.kinds import kind_of

    image = settings.image or ""
    asked = [case.sandbox for skill in skills for _, case in skill.cases]
    own = [needs for needs in asked if has_own_image(needs)]
    kinds = set()
    for needs in own:
        kind = choose_sandbox(needs, settings.sandbox, image).kind
        if kind and not image:
            kinds.add(kind)
    if image or len(own) < len(asked) or not own or settings.judge_agent:
        kinds.add(kind_of(settings.sandbox, settings.image).name)
    return ", ".join(sorted(kinds))


def require_allowed(skills: Iterable[AskedSkill], settings: Settings) -> None:
    """SettingsError if cases ask for something that requires --skill-allow-code."""
    if settings.allow_code:
        return

    problems = []
    for skill in skills:
        cases = [case for _, case in skill.cases if not case.skip]
        needs = [case.sandbox for case in cases]
        packages = [name for each in needs for name in each.python]
        if packages:
            names = ", ".join(dict.fromkeys(packages))
            problems.append(
                f"{skill.label} needs Python packages, which are code: {names}"
            )
        paths = [path for each in needs for path in each.paths if _is_unusual(path)]
        if paths:
            names = ", ".join(dict.fromkeys(paths))
            problems.append(f"{skill.label} lets agents read {names}")
        # An image of the user replaces all others.
        if any(map(has_own_image, needs)) and not settings.image:
            problems.append(f"{skill.label} needs an image, and building one runs code")
        for limit in _raised_limits(cases, settings):
            problems.append(f"{skill.label} asks for {limit}")
    if problems:
        hint = "Add it if you trust them."
        raise SettingsError("allow_code", "; ".join(problems), hint)


def _raised_limits(cases: Sequence[Case], settings: Settings) -> list[str]:
    """What cases ask for beyond what any case may have."""
    usual = SandboxLimits()
    memory = max((case.sandbox.memory_mb or 0 for case in cases), default=0)
    storage = max((case.sandbox.storage_mb or 0 for case in cases), default=0)
    seconds = max((case.timeout or 0.0 for case in cases), default=0.0)
    most_seconds = max(DEFAULT_AGENT_TIMEOUT, settings.agent_timeout)
    limits = []
    if memory > usual.memory // 2**20:
        limits.append(f"{memory:,} MB of memory, not {usual.memory // 2**20:,}")
    if storage > usual.disk // 2**20:
        limits.append(f"{storage:,} MB of files, not {usual.disk // 2**20:,}")
    if seconds > most_seconds:
        limits.append(f"{plain(seconds)} s for a trial, not {plain(most_seconds)}")
    return limits


def _is_unusual(path: str) -> bool:
    return not any(Path(path).is_relative_to(folder) for folder in _TOOL_FOLDERS)
