"""The sandboxes of a run: what its cases need, and what must be allowed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..agents.task_sandbox import choose_sandbox, has_own_image
from ..errors import InputError, SettingsError
from ..settings import Settings
from ..skills.case import NO_NEEDS, SandboxNeeds
from .open_run import AskedSkill, OpenRun

_TOOL_FOLDERS: Final = ("/opt", "/usr")  # anyone may read these


def needs_sandbox(run: OpenRun, skills: Iterable[AskedSkill]) -> bool:
    """Not if all that is done is to write the files of references."""
    if not run.kind_without_model or run.settings.judge_agent:
        return run.has_agents

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
    from ..agents.sandboxes.sandbox import SandboxError

    sandbox = "" if settings.cluster else _choose_sandboxes(skills, settings)
    needs: dict[str, list[SandboxNeeds]] = {}
    for skill in skills:
        # Naming tasks allows their images.
        cases = [case for _, case in skill.cases if not case.is_task]
        needs[skill.label] = [case.sandbox for case in cases]
    require_allowed(needs, settings)
    if settings.cluster:
        return sandbox

    packages: dict[tuple[str, ...], None] = {}
    for label, needs_of_skill in needs.items():
        for each in needs_of_skill:
            for path in each.paths:
                if problem := why_no_path(path):
                    place = f"{label}: sandbox.paths"
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


def require_allowed(
    needs: Mapping[str, Sequence[SandboxNeeds]], settings: Settings
) -> None:
    """SettingsError if skills need something that requires --skill-allow-code."""
    if settings.allow_code:
        return

    problems = []
    for label, needs_of_skill in needs.items():
        packages: list[str] = []
        paths: list[str] = []
        for each in needs_of_skill:
            packages += each.python
            paths += filter(_is_unusual, each.paths)
        if packages:
            names = ", ".join(dict.fromkeys(packages))
            problems.append(f"{label} needs Python packages, which are code: {names}")
        if paths:
            names = ", ".join(dict.fromkeys(paths))
            problems.append(f"{label} lets agents read {names}")
        if any(each.image or each.build for each in needs_of_skill):
            problems.append(f"{label} needs an image, and building one runs code")
    if problems:
        hint = "Add it if you trust them."
        raise SettingsError("allow_code", "; ".join(problems), hint)


def _is_unusual(path: str) -> bool:
    return not any(Path(path).is_relative_to(folder) for folder in _TOOL_FOLDERS)
