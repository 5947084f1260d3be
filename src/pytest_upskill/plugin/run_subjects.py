"""The agents and models of a run of pytest, and what they need before the first
call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from ..agents.roster import AGENTS, Roster
from ..errors import InputError, SettingsError
from ..measure.models_of_run import Models, login_line
from ..measure.open_run import AskedSkill, OpenRun, open_run
from ..measure.requirements import require
from ..models.prices import parse_prices
from ..models.providers import PROVIDERS
from ..settings import Settings
from ..skills.bundle import load_entry, skill_files_in
from ..skills.case import NO_NEEDS, Case, SandboxNeeds
from ..skills.kinds import CASE
from ..skills.mcp_mocks import McpMocks
from ..trials.subject import ORACLE
from .display import agent_lines, download_bar, other_skill_lines, unfit_lines
from .hooks import registered_agents, registered_providers
from .paths import Selected, SkillSource

_VERSIONS: Final = "upskill_versions"  # of agents, sent to xdist workers
_TOOL_FOLDERS: Final = ("/opt", "/usr")  # anyone may read these


def open_pytest_run(
    config: pytest.Config, settings: Settings, selected: Selected, *, asks: bool
) -> OpenRun:
    """The run of these settings, and of the agents and models of node ids."""
    roster = Roster({**AGENTS, **registered_agents(config)})
    roster.set_versions(getattr(config, "workerinput", {}).get(_VERSIONS, {}))
    providers = {**PROVIDERS, **registered_providers(config)}
    names = None
    if selected.labels and not selected.on_usual_models:
        # Without arguments there are no tests in Python
        names = settings.models if config.args else ()
    run = open_run(
        settings,
        _find_skills(selected.sources, settings),
        models=Models(parse_prices(settings.prices), providers),
        roster=roster,
        names=names,
        labels=selected.labels,
    )
    run.asks = asks
    if has_other_skills(run, selected):
        files = (skill_files_in(source.skill_file) for source in selected.all)
        run.arm_maker.require_apart(chain.from_iterable(files))
    return run


def send_versions(run: OpenRun, node: object) -> None:
    """Send the versions of agents to a worker that is about to start."""
    node.workerinput[_VERSIONS] = run.roster.versions  # type: ignore[attr-defined]


def has_other_skills(run: OpenRun, selected: Selected) -> bool:
    """Whether others are installed: for agents, and where a model chooses a skill."""
    has_triggers = any(source.suites.has_triggers for source in selected.all)
    return bool(run.agents) or has_triggers


def header_lines(run: OpenRun, selected: Selected, config: pytest.Config) -> list[str]:
    """Who carries out the cases, and with which other skills."""
    lines = []
    if run.agents:
        agents = dict.fromkeys(subject.agent for subject in run.by_label.values())
        lines += agent_lines(list(agents), run.roster, run.sandbox)
        if run.cluster:
            lines += [f"upskill: {line}" for line in run.cluster.lines]
        unfit = [subject.label for subject in run.unfit]
        lines += unfit_lines(unfit, verbose=config.get_verbosity() > 0)
    if line := login_line(run.models, run.settings.logins):
        lines.append(f"upskill: {line}")
    if has_other_skills(run, selected):
        lines += other_skill_lines(run.arm_maker.others, run.settings.noise)
    return lines


# Before the first call.


def require_models(
    run: OpenRun,
    sources: Sequence[SkillSource],
    config: pytest.Config,
    tell: Callable[[str], None],
) -> None:
    """InputError if something is missing: a key, a package, a price, a sandbox."""

    def say(line: str) -> None:
        tell(f"upskill: {line}")

    config.add_cleanup(run.leave_cluster)
    skills = _find_skills(sources, run.settings)
    require(run, skills, say, download_bar(config))
    if run.settings.replay_file is not None:  # a replay needs no sandbox
        return

    if run.agents:
        notes = set()
        for source in sources:
            with suppress(InputError):  # which collection reports
                mocks = McpMocks(source.case_folder or source.folder).with_folder("")
                notes |= set(mocks.notes)
        for note in sorted(notes):
            say(note)
    if _needs_sandbox(run, sources):
        run.sandbox = _prepare_sandbox(sources, run.settings, tell)


def _find_skills(
    sources: Iterable[SkillSource], settings: Settings
) -> list[AskedSkill]:
    skills = []
    for source in sources:
        size = partial(_size_of, source, settings)
        skills.append(AskedSkill(source.label, _asked_cases(source), size))
    return skills


def _size_of(source: SkillSource, settings: Settings) -> int:
    """The tokens of a skill that has cases of its own; 0 if it is broken, which
    collection reports.
    """
    if source.suites.has_cases:
        with suppress(InputError):
            return load_entry(source.skill_file, settings).tokens
    return 0


def _needs_sandbox(run: OpenRun, sources: Iterable[SkillSource]) -> bool:
    """Not if the oracle just writes the files of references,
    and no agent is beside it.
    """
    if run.agents != [ORACLE] or run.settings.judge_agent:
        return run.has_agents

    cases = (case for source in sources for _, case in _asked_cases(source))
    return any(
        case.sandbox != NO_NEEDS or case.setup or case.reference.run
        for case in cases
        if case.reference
    )


def _prepare_sandbox(
    sources: Sequence[SkillSource], settings: Settings, tell: Callable[[str], None]
) -> str:
    """The name of the sandbox; InputError if none works with what these skills need.

    Tasks may have several: those that can't run are skipped, and the images and
    packages of the others are made when they first run. With a cluster, its
    workers look at their own.
    """
    from ..agents.needs import python_packages, why_no_path
    from ..agents.sandboxes.sandbox import SandboxError
    from ..agents.task_sandbox import has_own_image

    sandbox = "" if settings.cluster else _choose_sandboxes(sources, settings)
    needs: dict[str, list[SandboxNeeds]] = {}
    for source in sources:
        # Naming tasks allows their images.
        cases = [case for _, case in _asked_cases(source) if not case.is_task]
        needs[source.label] = [case.sandbox for case in cases]
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
        tell(f"upskill: Python packages for agents: {', '.join(names)}")
        try:
            python_packages(names)
        except SandboxError as error:
            raise InputError("sandbox.python", str(error)) from None
    return sandbox


def _choose_sandboxes(sources: Sequence[SkillSource], settings: Settings) -> str:
    """The names of all sandboxes that cases run in."""
    from ..agents.sandboxes.kinds import kind_of
    from ..agents.task_sandbox import choose_sandbox, has_own_image

    image = settings.image or ""
    asked = [case.sandbox for source in sources for _, case in _asked_cases(source)]
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


def _asked_cases(source: SkillSource) -> list[tuple[Path, Case]]:
    """The cases of a skill that may run, each with its file."""
    suite = source.suites.cases
    picked = dict(source.picks)
    cases = []
    for loaded in suite.files if suite else ():
        for case in loaded.cases:
            is_asked = not case.skip and case.kind.noun == CASE.noun
            if is_asked and (not picked or case.id in picked):
                cases.append((loaded.file, case))
    return cases
