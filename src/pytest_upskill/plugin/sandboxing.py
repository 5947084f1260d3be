"""What agents need of this machine, found out before the first call."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..errors import InputError, SettingsError
from ..settings import Settings
from ..skills.case import SandboxNeeds
from ..skills.case_loading import load_cases
from .paths import SkillSource

_OF_TOOLS: Final = ("/opt", "/usr")  # anyone may read these


def prepare(sources: Iterable[SkillSource], settings: Settings, tell: Callable[[str], None]) -> str:
    """The name of the sandbox; InputError if none works, or not with what these skills need.

    With a cluster, its workers look at their own.
    """
    from ..agents.needs import python_packages, why_no_path
    from ..agents.sandboxes.kinds import kind_of
    from ..agents.sandboxes.sandbox import SandboxError

    sandbox = "" if settings.cluster else kind_of(settings.sandbox, settings.image).name
    needs = {source.label: _needs_of(source) for source in sources if source.asks_cases(settings)}
    require_allowed(needs, settings)
    if settings.cluster:
        return sandbox
    for label, own in needs.items():
        for path in (path for one in own for path in one.paths):
            if problem := why_no_path(path):
                raise InputError(f"{label}: sandbox.paths", problem, "Name the folder of a tool.")
    for packages in dict.fromkeys(one.python for own in needs.values() for one in own):
        if packages:
            tell(f"upskill: Python packages for agents: {', '.join(packages)}")
            try:
                python_packages(packages)
            except SandboxError as error:
                raise InputError("sandbox.python", str(error)) from None
    return sandbox


def require_allowed(needs: Mapping[str, Sequence[SandboxNeeds]], settings: Settings) -> None:
    """SettingsError if skills need what is only there with --skill-allow-code."""
    if settings.allow_code:
        return
    told = list[str]()
    for label, own in needs.items():
        if packages := dict.fromkeys(name for one in own for name in one.python):
            told.append(f"{label} needs Python packages, which are code: {', '.join(packages)}")
        if paths := dict.fromkeys(path for one in own for path in _unusual(one.paths)):
            told.append(f"{label} lets agents read {', '.join(paths)}")
    if told:
        raise SettingsError("allow_code", "; ".join(told), "Add it if you trust them.")


def _unusual(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if not any(Path(path).is_relative_to(one) for one in _OF_TOOLS)]


def _needs_of(source: SkillSource) -> list[SandboxNeeds]:
    """What the cases of a skill need that a run may ask."""
    try:
        cases = load_cases(source.cases_file or source.file, source.folder).cases
    except InputError:  # which collection reports
        return []
    picked = dict(source.picks)
    return [case.sandbox for case in cases if not case.skip and (not picked or case.id in picked)]
