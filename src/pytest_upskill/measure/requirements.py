"""What a run needs before its first call, in this order.

Models that call tools; agents that can be answered, and someone who plays users; room
in the context; MCP servers; keys, packages and files; workers of a cluster; agents that
are installed; prices that a budget needs. Nothing is needed for a replay but prices.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from .._util.texts import harmless, plural
from ..agents.roster import AGENTS, fitting_models
from ..errors import InputError, Setting, SettingsError, Text, shown
from ..models.model import Download, Progress
from ..registry import open_remote
from ..skills.kinds import kinds_by_agent
from ..trials.subject import CHAT, Subject
from .open_run import AskedSkill, OpenRun
from .sandboxes import require_allowed

Tell = Callable[[str], None]
_HOW_TO_NAME_USER: Final = (
    "Name one in the ini file, such as skill_user_model = haiku, or with ",
    Setting("judge"),
    ": a model that judges plays users, too.",
)


def announced(tell: Tell) -> Download:
    """Announce each download with one line, without progress."""

    def begin(name: str) -> Progress:
        tell(f"Fetching {name}…")
        return lambda _bytes, _total: None

    return begin


def require(
    run: OpenRun,
    skills: Sequence[AskedSkill],
    tell: Tell,
    download: Download | None = None,
    *,
    may_be_stored: bool = False,
) -> None:
    """SettingsError or InputError if anything is missing.

    If all answers ``may_be_stored``, `require_reachable` is left to the caller.
    """
    # A replay, too, runs commands of cases in a sandbox.
    if run.has_agents:
        require_allowed(skills, run.settings)
    if run.settings.replay_file is None:
        subjects = list(run.by_label.values())
        _require_tools(run)
        require_skills(run, skills, tell)
        asked = () if may_be_stored else subjects
        require_reachable(run, download or announced(tell), asked)
    _require_prices(run)
    if run.settings.replay_file is not None:
        return

    if run.agents and run.settings.cluster:
        run.remote = open_remote(run, tell)
    judging = [run.settings.judge_agent] if run.settings.judge_agent else []
    run.roster.look_up_versions(dict.fromkeys([*run.agents, *judging]))


def require_skills(
    run: OpenRun,
    skills: Sequence[AskedSkill],
    tell: Tell,
    how_to_name_user: Text = _HOW_TO_NAME_USER,
) -> None:
    """SettingsError or InputError if skills and their cases don't fit the run."""
    _require_users(run, skills, how_to_name_user)
    _require_room(run, skills, tell)
    for skill in skills:
        cases = (case for _, case in skill.cases)
        run.roster.require_mcp(run.agents, skill.label, cases)


def _require_tools(run: OpenRun) -> None:
    """SettingsError if a model that an agent is to use takes no tools."""
    for agent, model in run.by_label.values():
        if agent != CHAT and not run.models.takes_tools(model):
            agent_fits = fitting_models(run.roster.agent(agent), run.models.providers)
            hint = ("An agent needs a model that calls tools. ", *agent_fits)
            raise run.models.specs[model].error("this model takes no tools", hint)


def _require_users(
    run: OpenRun, skills: Iterable[AskedSkill], how_to_name: Text
) -> None:
    """InputError if an agent can't be answered, or if no model is there to answer
    it.
    """
    for skill in skills:
        for file, case in skill.cases:
            agents = run.answering_agents(case)
            place = f"{shown(file)}:{case.line}"
            for agent in agents:
                if not run.roster.agent(agent).takes_answers:
                    problem = f"{case.id} has a user, and {agent} can't be answered"
                    raise InputError(place, problem, _fitting_agents(run))
            facts = agents and case.user and case.user.facts
            if facts and not run.settings.model_of_users:
                problem = f"{case.id} has a user with facts, and no model plays it"
                problem += ": the judge is an agent" if run.settings.judge else ""
                raise InputError(place, problem, how_to_name)


def _fitting_agents(run: OpenRun) -> str:
    names = [name for name in AGENTS if run.roster.agent(name).takes_answers]
    patterns = ", ".join(f'"{name}/*"' for name in names)
    keep = f'keep the case to them with "models": [{patterns}]'
    return f"Use {' or '.join(names)}, or {keep}."


def _require_room(run: OpenRun, skills: Sequence[AskedSkill], tell: Tell) -> None:
    """SettingsError if skills fit the context of no model; else tell which don't
    fit.

    Agents read files piece by piece, so only plain completions are looked at.
    """
    has_room = False
    problems = []
    for agent, model in run.by_label.values():
        spec = run.models.specs[model]
        most = spec.provider.limits(spec).context
        if agent != CHAT or not most:
            has_room = True
            continue
        for skill in skills:
            tokens = skill.size()
            if tokens + run.settings.answer_output(model) <= most:
                has_room = has_room or tokens > 0
            elif tokens:
                size = f"about {tokens:,} tokens of {most:,}"
                problems.append((spec, f"{skill.label} is too long: {size}"))

    for spec, problem in problems:
        hint = f"Use another model{spec.provider.longer_prompts}."
        if not has_room:
            raise spec.error(problem, hint)
        tell(f"{spec.name}: {harmless(problem)}. {hint}")


def require_reachable(
    run: OpenRun, download: Download, asked: Collection[Subject]
) -> None:
    """SettingsError if a key, a package or a file is missing of a model that is asked.

    The answers of other subjects are stored.
    """
    subjects = run.by_label.values()
    stored = set()
    for subject in subjects:
        if subject not in asked:
            stored |= {subject.model, subject.label}
    if not asked:
        stored.add(run.user_model)
    here = {run.settings.judge, *(subject.model for subject in asked)}
    elsewhere = find_asked_elsewhere(run) | (stored - here)
    by_agents = {subject.model for subject in subjects if subject.agent != CHAT}
    for name, spec in run.models.specs.items():
        if name not in elsewhere:
            by = replace(spec.by, agent=name in by_agents)
            spec.provider.require(replace(spec, by=by), os.environ, download)


def require_keys(run: OpenRun, download: Download) -> None:
    """NoKeyError if a model under test has none; nothing is downloaded."""
    if run.settings.replay_file is None:
        elsewhere = find_asked_elsewhere(run)
        for name, spec in run.specs.items():
            if spec.provider.needs_key and name not in elsewhere:
                spec.provider.require(spec, os.environ, download)


def find_asked_elsewhere(run: OpenRun) -> set[str]:
    """The models that only workers of a cluster ask, with keys of their own,
    or logins.
    """
    settings = run.settings
    by_workers = bool(settings.cluster and not settings.cluster_send_keys)
    elsewhere = {run.user_model} if by_workers else set()
    here = {settings.judge}
    for subject in run.by_label.values():
        is_away = subject.label in settings.logins
        if by_workers:
            is_away = subject.agent != CHAT
        (elsewhere if is_away else here).add(subject.model)
    return elsewhere - here


def _require_prices(run: OpenRun) -> None:
    """SettingsError if a budget can't cover a model, as its price is unknown."""
    unknown = [name for name in run.models.specs if not run.models.price_of(name)]
    if run.settings.max_cost is not None and unknown:
        problem = f"the price of {', '.join(unknown)} is not known"
        drop = (", or drop ", Setting("max_cost"), ".")
        hint = ("Set it in ", Setting("prices"), *drop)
        raise SettingsError("max_cost", problem, hint)


def require_agents_with_models(run: OpenRun, tell: Tell) -> None:
    """SettingsError if an agent asks no model; tell which pairs don't fit."""
    for agent, kind in kinds_by_agent().items():
        if agent in run.agents:
            what = f"the {plural(kind.name)} of cases"
            problem = f"it plays {what}, which shows nothing about a skill"
            hint = "Use it in a run of pytest."
            raise SettingsError("agents", problem, hint, value=agent)
    if run.unfit:
        labels = ", ".join(subject.label for subject in run.unfit)
        tell(f"Left out, as agent and model don't fit: {labels}")


def require_sandbox(run: OpenRun, tell: Tell) -> None:
    """SettingsError if agents are to run, and no sandbox works."""
    if not run.has_agents:
        return
    from ..agents.sandboxes.kinds import kind_of

    kind_of(run.settings.sandbox)
    if run.settings.sandbox == "none":
        tell("No sandbox: agents can read and change all that you can.")
