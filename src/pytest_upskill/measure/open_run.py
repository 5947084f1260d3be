"""From settings to who is asked: the one way for pytest, studies, teaching and
Python.

`open_run` resolves names to models and agents. `requirements` says what is missing
before the first call, and `engine_of_run` makes what asks.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..agents.roster import Roster, subjects_of
from ..errors import InputError, Setting, SettingsError
from ..models.model import NamedBy
from ..settings import Settings
from ..skills.case import Case
from ..skills.kinds import CaseKind, kinds_by_agent
from ..trials.subject import CHAT, Subject, asks_model, works_on_model
from .arm_maker import ArmMaker
from .models_of_run import (
    DEFAULT_MODEL,
    Models,
    Specs,
    add_judge,
    use_logins,
)


@dataclass(frozen=True)
class AskedSkill:
    """A skill as a run needs it before the first call."""

    label: str
    # That may run, each with its file
    cases: Sequence[tuple[Path, Case]] = ()
    # Estimated tokens, which must fit the context of a model
    size: Callable[[], int] = lambda: 0


@dataclass
class OpenRun:
    """The agents on models that a run asks, and what asks them."""

    settings: Settings  # with the limits of the models, and who is asked on a login
    models: Models
    roster: Roster
    by_label: dict[str, Subject]
    usual: tuple[str, ...]  # labels, without those that were asked for by label
    unfit: list[Subject]  # pairs of agents and models that are left out
    specs: Specs  # the models under test
    arm_maker: ArmMaker
    user_model: str = ""  # plays the users of cases, if there are any
    asks: bool = True  # whether anything will be asked
    sandbox: str = ""  # its name, if agents will run
    remote: Any = None  # carries out trials on other machines, see `open_remote`

    @cached_property
    def subjects(self) -> dict[Subject, str]:
        """With the ids of their models."""
        specs = self.models.specs
        return {each: specs[each.model].model_id for each in self.by_label.values()}

    @cached_property
    def model_ids(self) -> dict[str, str]:
        """By label."""
        return {subject.label: name for subject, name in self.subjects.items()}

    @cached_property
    def agents(self) -> list[str]:
        """The agents of the run, without chat, which is none."""
        agents = dict.fromkeys(subject.agent for subject in self.by_label.values())
        return [agent for agent in agents if agent != CHAT]

    @property
    def has_agents(self) -> bool:
        """Whether agents are started at all, and be it as the judge."""
        return bool(self.agents or self.settings.judge_agent)

    @property
    def kind_without_model(self) -> CaseKind | None:
        """The kind of all its cases, if no model is asked."""
        kinds = {kinds_by_agent().get(each.agent) for each in self.by_label.values()}
        return kinds.pop() if len(kinds) == 1 else None

    def version_of(self, agent: str) -> str:
        """The version of an agent; empty if nothing is asked."""
        if not self.asks:
            return ""
        try:
            return self.roster.version(agent)
        except InputError:
            if self.settings.replay_file is None:
                raise
            return ""  # not installed, and not in the recording

    def subject_of(self, agent: str, model: str) -> Subject:
        """For a test in Python that names its agent; InputError if
        that can't ask the model.
        """
        place = f'ask(agent="{agent}")'
        subject = Subject(self.roster.parse(agent), model)
        if kind := kinds_by_agent().get(subject.agent):
            raise InputError(place, f"a test in Python has no {kind.name} to play")
        self.roster.require_fit(place, subject, self.models.specs[model])
        return subject

    def answering_agents(self, case: Case) -> list[str]:
        """The agents that are asked a case, and that may ask its user something."""
        if case.skip or not case.user:
            return []
        agents = []
        for subject, model_id in self.subjects.items():
            is_for = case.is_for(subject.label, subject.model, model_id)
            if is_for and works_on_model(subject.agent):
                agents.append(subject.agent)
        return agents

    def add_user_model(self, skills: Iterable[AskedSkill]) -> None:
        """Add the model that plays the users of cases, if they have facts."""
        settings = self.settings
        name = settings.model_of_users
        cases = [case for skill in skills for _, case in skill.cases]
        if name and any(
            case.user and case.user.facts and self.answering_agents(case)
            for case in cases
        ):
            by = NamedBy("user_model" if settings.user_model else "judge")
            self.user_model = self.models.add_named(name, settings, by)


def open_run(
    settings: Settings,
    skills: Iterable[AskedSkill] = (),
    *,
    models: Models | None = None,
    roster: Roster | None = None,
    names: Sequence[str] | None = None,
    labels: Iterable[str] = (),
) -> OpenRun:
    """The agents and models of a run; SettingsError if one is not known.

    ``models`` may hold some already. ``names`` are models under test, in place of
    those of the settings; ``labels`` are of subjects that are asked as well.
    """
    models = models or Models()
    roster = roster or Roster()
    choice = _choose_subjects(settings, roster, names, list(labels))
    settings = choice.settings
    subjects = choice.by_label.values()
    models.add_tested(subjects, settings)
    specs = {subject.model: models.specs[subject.model] for subject in subjects}
    fit, unfit = roster.pairs(subjects, specs, choice.named, models.providers)

    judging = None
    if settings.judge and settings.judge not in models.specs:
        judging = add_judge(models, settings, roster)
    asking = [*fit, judging] if judging else fit
    settings = replace(
        use_logins(models, settings, asking, roster),
        model_outputs=models.output_limits(),
        judge_agent=judging.agent if judging else "",
    )
    run = OpenRun(
        settings=settings,
        models=models,
        roster=roster,
        by_label={subject.label: subject for subject in fit},
        usual=tuple(name for name, each in choice.usual.items() if each in fit),
        unfit=unfit,
        specs=specs,
        arm_maker=ArmMaker(settings),
    )
    run.add_user_model(skills)
    return run


class _Choice(NamedTuple):
    """Who is asked, by label, and the settings with the models that this names."""

    settings: Settings
    usual: dict[str, Subject]
    named: list[Subject]

    @property
    def by_label(self) -> dict[str, Subject]:
        return {**self.usual, **{subject.label: subject for subject in self.named}}


def _choose_subjects(
    settings: Settings,
    roster: Roster,
    names: Sequence[str] | None,
    labels: Sequence[str],
) -> _Choice:
    if names is None:
        names = settings.models or (DEFAULT_MODEL,)
        needs_model = any(map(asks_model, map(roster.parse, settings.agents)))
        if settings.base_url and needs_model and not (settings.models or labels):
            hint = ("Add ", Setting("models"), " NAME (llama-server takes any name).")
            raise SettingsError("base_url", "no model of that server is named", hint)

    usual = subjects_of(dict.fromkeys(map(roster.parse, settings.agents)), names)
    named = [usual.get(label) or roster.subject_of(label) for label in labels]
    choice = _Choice(settings, usual, named)
    subjects = choice.by_label.values()
    asked = dict.fromkeys(each.model for each in subjects if asks_model(each.agent))
    if not labels and asked:
        return choice
    file = settings.models_file if names and asked else None
    settings = replace(settings, models=tuple(asked), models_file=file)
    return choice._replace(settings=settings)
