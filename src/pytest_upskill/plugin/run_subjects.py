"""The agents and models of a run: which are asked,
and what they need before the first call.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from ..agents.roster import AGENTS, Roster, subjects_of
from ..errors import InputError, SettingsError
from ..measure.arm_maker import ArmMaker
from ..measure.assembly import DEFAULT_MODEL, Assembly, Specs
from ..measure.case_users import (
    CaseOfFile,
    add_user_model,
    cases_with_user,
    require_users,
)
from ..models.prices import parse_prices
from ..models.providers import PROVIDERS
from ..settings import Settings
from ..skills.bundle import load_entry, skill_files_in
from ..skills.case import NO_NEEDS, SandboxNeeds
from ..skills.mcp_mocks import McpMocks
from ..trials.subject import CHAT, ORACLE, Subject
from .display import agent_lines, download_bar, other_skill_lines, unfit_lines
from .hooks import registered_agents, registered_providers
from .paths import Selected, SkillSource

_VERSIONS: Final = "upskill_versions"  # of agents, sent to xdist workers
_TOOL_FOLDERS: Final = ("/opt", "/usr")  # anyone may read these


class RunSubjects:
    """The agents on models that a run asks, by label."""

    settings: Settings  # with the models that node ids name
    by_label: dict[str, Subject]
    model_ids: dict[str, str]  # by label
    usual: tuple[str, ...]  # labels, without those that only node ids name
    unfit: list[Subject]  # pairs that are left out
    specs: Specs  # the models under test
    judges: Specs
    sandbox: str  # its name, if agents will run
    asks: bool  # whether anything will be asked

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        selected: Selected,
        *,
        asks: bool,
    ) -> None:
        """Agents and models of node ids are for these tests alone."""
        self._config = config
        self.asks = asks
        self.judges, self.sandbox = {}, ""
        self._with_user: list[CaseOfFile] = []  # cases
        roster = Roster({**AGENTS, **registered_agents(config)})
        agents = dict.fromkeys(map(roster.parse, settings.agents))
        roster.set_versions(getattr(config, "workerinput", {}).get(_VERSIONS, {}))
        models = _usual_models(config, settings, selected)
        usual = subjects_of(agents, models)
        named = [
            usual.get(label) or roster.subject_of(label) for label in selected.labels
        ]
        by_label = {**usual, **{subject.label: subject for subject in named}}
        asking = [subject for subject in by_label.values() if subject.agent != ORACLE]
        if selected.labels or not asking:
            names = tuple(dict.fromkeys(subject.model for subject in asking))
            file = settings.models_file if models and asking else None
            settings = replace(settings, models=names, models_file=file)
        providers = {**PROVIDERS, **registered_providers(config)}
        self.models = Assembly(parse_prices(settings.prices), providers, roster)
        self.specs = self.models.add_models(settings) if asking else {}
        if len(asking) < len(by_label):
            self.specs = {**self.specs, **self.models.add_oracle()}
        fit, self.unfit = roster.pairs(by_label.values(), self.specs, named, providers)
        settings = self.models.use_logins(settings, fit)
        self.settings = self.models.with_limits(settings)
        self.by_label = {subject.label: subject for subject in fit}
        self.usual = tuple(label for label, subject in usual.items() if subject in fit)
        self.model_ids = {
            label: self.specs[subject.model].model_id
            for label, subject in self.by_label.items()
        }
        self.arm_maker = ArmMaker(settings)
        # For agents, and where a model chooses a skill.
        self._has_other_skills = bool(self.agents) or any(
            source.suites.has_triggers for source in selected.all
        )
        if self._has_other_skills:
            files = (skill_files_in(source.skill_file) for source in selected.all)
            self.arm_maker.require_apart(chain.from_iterable(files))

    @property
    def agents(self) -> list[str]:
        """The agents of the run, without chat, which is none."""
        agents = dict.fromkeys(subject.agent for subject in self.by_label.values())
        return [agent for agent in agents if agent != CHAT]

    @property
    def has_agents(self) -> bool:
        """Whether agents are started at all, and be it as the judge."""
        return bool(self.agents or self.settings.judge_agent)

    def send_versions(self, node: object) -> None:
        """Send the versions of agents to a worker that is about to start."""
        node.workerinput[_VERSIONS] = self.models.roster.versions  # type: ignore[attr-defined]

    # Before the first call.

    def add_judge(self, sources: Iterable[SkillSource]) -> None:
        """Also add the model that plays users, if there are any."""
        self.judges = self.models.add_judge(self.settings)
        if self.agents:
            cases = (case for source in sources for case in _asked_cases(source))
            self._with_user = cases_with_user(cases, self._subjects)
            add_user_model(self.models, self._with_user, self.settings)

    @property
    def _subjects(self) -> dict[Subject, str]:
        """With the ids of their models."""
        return {
            subject: self.model_ids[label] for label, subject in self.by_label.items()
        }

    def require(
        self, sources: Iterable[SkillSource], tell: Callable[[str], None]
    ) -> None:
        """InputError if something is missing: a key, a package, a price, a sandbox."""
        settings, models = self.settings, self.models
        if settings.replay_file is None:  # a replay needs no key
            subjects = list(self.by_label.values())
            models.require_tools(subjects)
            require_users(models, self._with_user, self._subjects, settings)
            self._require_room(sources, tell)
            elsewhere = models.asked_elsewhere(settings, subjects)
            models.require(download_bar(self._config), subjects, elsewhere=elsewhere)
            if self.agents and settings.cluster:
                tell(f"upskill: looking at the workers of {settings.cluster}")
                self._config.add_cleanup(models.leave_cluster)
                models.join_cluster(settings, subjects)
            judge = [settings.judge_agent] if settings.judge_agent else []
            models.roster.look_up_versions(dict.fromkeys([*self.agents, *judge]))
            if self.agents:
                self._require_mcp(sources, tell)
            if self._needs_sandbox(sources):
                self.sandbox = _prepare_sandbox(sources, settings, tell)
        models.require_prices(settings.max_cost)

    def require_keys(self) -> None:
        """NoKeyError if a model under test has none; nothing is downloaded."""
        if self.settings.replay_file is not None:
            return

        subjects = list(self.by_label.values())
        elsewhere = self.models.asked_elsewhere(self.settings, subjects)
        for name, spec in self.specs.items():
            if spec.provider.needs_key and name not in elsewhere:
                spec.provider.require(spec, os.environ, download_bar(self._config))

    def _needs_sandbox(self, sources: Iterable[SkillSource]) -> bool:
        """Not if the oracle just writes the files of references,
        and no agent is beside it.
        """
        if self.agents != [ORACLE] or self.settings.judge_agent:
            return self.has_agents
        cases = (case for source in sources for _, case in _asked_cases(source))
        return any(
            case.sandbox != NO_NEEDS or case.setup or case.reference.run
            for case in cases
            if case.reference
        )

    def _require_mcp(
        self, sources: Iterable[SkillSource], tell: Callable[[str], None]
    ) -> None:
        """SettingsError if an agent can't have the MCP servers of cases;
        tell what they lack.
        """
        told = set[str]()
        for source in sources:
            cases = (case for _, case in _asked_cases(source))
            self.models.roster.require_mcp(self.agents, source.label, cases)
            with suppress(InputError):  # which collection reports
                told |= set(
                    McpMocks(source.case_folder or source.folder).with_folder("").notes
                )
        for note in sorted(told):
            tell(f"upskill: {note}")

    def _require_room(
        self, sources: Iterable[SkillSource], tell: Callable[[str], None]
    ) -> None:
        """SettingsError if skills fit the context of no model;
        else tell which don't fit.
        """
        subjects, sizes = self.by_label.values(), dict[str, int]()
        if not self.models.limited(subjects):
            return
        for source in sources:
            with suppress(InputError):  # which collection reports
                if source.suites.has_cases:
                    sizes[source.label] = load_entry(
                        source.skill_file, self.settings
                    ).tokens
        self.models.require_room(
            self.settings, subjects, sizes, lambda line: tell(f"upskill: {line}")
        )

    def subject_of(self, agent: str, model: str) -> Subject:
        """For a test in Python that names its agent; InputError if
        that can't ask the model.
        """
        roster = self.models.roster
        subject = Subject(roster.parse(agent), model)
        if subject.agent == ORACLE:
            raise InputError(
                f'ask(agent="{agent}")', "a test in Python has no reference to play"
            )
        roster.require_fit(f'ask(agent="{agent}")', subject, self.models.specs[model])
        return subject

    def version_of(self, agent: str) -> str:
        """The version of an agent; empty if nothing is asked."""
        if not self.asks:
            return ""
        try:
            return self.models.roster.version(agent)
        except InputError:
            if self.settings.replay_file is None:
                raise
            return ""  # not installed, and not in the recording

    def header_lines(self) -> list[str]:
        """Who carries out the cases, and with which other skills."""
        lines = list[str]()
        if self.agents:
            names = list(
                dict.fromkeys(subject.agent for subject in self.by_label.values())
            )
            lines += agent_lines(names, self.models.roster, self.sandbox)
            if cluster := self.models.cluster:
                lines += [f"upskill: {line}" for line in cluster.lines]
            verbose = self._config.get_verbosity() > 0
            lines += unfit_lines(
                [subject.label for subject in self.unfit], verbose=verbose
            )
        if line := self.models.login_line(self.settings.logins):
            lines.append(f"upskill: {line}")
        if self._has_other_skills:
            lines += other_skill_lines(self.arm_maker.others, self.settings.noise)
        return lines


def _usual_models(
    config: pytest.Config, settings: Settings, selected: Selected
) -> tuple[str, ...]:
    """The models of all tests, except those selected on another model."""
    if not selected.labels or selected.on_usual_models:
        return settings.models or (DEFAULT_MODEL,)
    # Without arguments there are no tests in Python
    return settings.models if config.args else ()


def _prepare_sandbox(
    sources: Iterable[SkillSource], settings: Settings, tell: Callable[[str], None]
) -> str:
    """The name of the sandbox; InputError if none works with what these skills need.

    Tasks may have several: those that can't run are skipped, and the images and
    packages of the others are made when they first run. With a cluster, its
    workers look at their own.
    """
    from ..agents.needs import python_packages, why_no_path
    from ..agents.sandboxes.kinds import kind_of
    from ..agents.sandboxes.sandbox import SandboxError
    from ..agents.task_sandbox import choose_sandbox, has_own_image

    sources = list(sources)
    asked = [case.sandbox for source in sources for _, case in _asked_cases(source)]
    own = [needs for needs in asked if has_own_image(needs)]
    needs = {
        source.label: _needs_of(source) for source in sources if source.suites.has_cases
    }
    kinds = list[str]()
    if not settings.cluster:
        image = settings.image or ""
        places = (choose_sandbox(each, settings.sandbox, image).kind for each in own)
        kinds += [] if image else filter(None, places)
        if image or len(own) < len(asked) or not own or settings.judge_agent:
            kinds.append(kind_of(settings.sandbox, settings.image).name)
    sandbox = ", ".join(sorted(set(kinds)))
    require_allowed(needs, settings)
    if settings.cluster:
        return sandbox
    for label, needs_of_skill in needs.items():
        for path in (
            path for sandbox_needs in needs_of_skill for path in sandbox_needs.paths
        ):
            if problem := why_no_path(path):
                raise InputError(
                    f"{label}: sandbox.paths", problem, "Name the folder of a tool."
                )
    for packages in dict.fromkeys(
        sandbox_needs.python
        for needs_of_skill in needs.values()
        for sandbox_needs in needs_of_skill
        if not has_own_image(sandbox_needs)
    ):
        if packages:
            tell(f"upskill: Python packages for agents: {', '.join(packages)}")
            try:
                python_packages(packages)
            except SandboxError as error:
                raise InputError("sandbox.python", str(error)) from None
    return sandbox


def require_allowed(
    needs: Mapping[str, Sequence[SandboxNeeds]], settings: Settings
) -> None:
    """SettingsError if skills need something that requires --skill-allow-code."""
    if settings.allow_code:
        return
    problems = list[str]()
    for label, needs_of_skill in needs.items():
        if packages := dict.fromkeys(
            name for sandbox_needs in needs_of_skill for name in sandbox_needs.python
        ):
            problems.append(
                f"{label} needs Python packages, which are code: {', '.join(packages)}"
            )
        if paths := dict.fromkeys(
            path
            for sandbox_needs in needs_of_skill
            for path in _unusual(sandbox_needs.paths)
        ):
            problems.append(f"{label} lets agents read {', '.join(paths)}")
        if any(
            sandbox_needs.image or sandbox_needs.build
            for sandbox_needs in needs_of_skill
        ):
            problems.append(f"{label} needs an image, and building one runs code")
    if problems:
        raise SettingsError(
            "allow_code", "; ".join(problems), "Add it if you trust them."
        )


def _unusual(paths: Iterable[str]) -> list[str]:
    return [
        path
        for path in paths
        if not any(Path(path).is_relative_to(folder) for folder in _TOOL_FOLDERS)
    ]


def _needs_of(source: SkillSource) -> list[SandboxNeeds]:
    """What the cases of a skill need that may run.

    Naming tasks allows their images.
    """
    return [case.sandbox for _, case in _asked_cases(source) if not case.is_task]


def _asked_cases(source: SkillSource) -> list[CaseOfFile]:
    """The cases of a skill that may run, each with its file."""
    suite, picked = source.suites.cases, dict(source.picks)
    return [
        (loaded.file, case)
        for loaded in (suite.files if suite else ())
        for case in loaded.cases
        if not case.skip and not case.is_trigger and (not picked or case.id in picked)
    ]
