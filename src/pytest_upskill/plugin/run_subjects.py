"""The agents and models of a run of pytest, and what they need before the first
call.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from ..agents.roster import AGENTS, Roster
from ..errors import InputError
from ..measure.models_of_run import Models
from ..measure.open_run import AskedSkill, OpenRun, open_run
from ..models.prices import parse_prices
from ..models.providers import PROVIDERS
from ..settings import Settings
from ..skills.bundle import load_entry, skill_files_in
from ..skills.case import Case
from ..skills.kinds import CASE
from .hooks import registered_agents, registered_providers
from .paths import Selected
from .skill_source import SkillSource

_VERSIONS: Final = "upskill_versions"  # of agents, sent to xdist workers


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
        find_skills(selected.sources, settings),
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


def find_skills(sources: Iterable[SkillSource], settings: Settings) -> list[AskedSkill]:
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
