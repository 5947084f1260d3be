"""From model names to an engine: the one way for pytest, the commands and Python."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._util.keys import know, password_of
from .._util.texts import harmless
from ..agents.logins import LoginProvider
from ..agents.roster import Roster, fitting_models, subjects_of
from ..engine.agent_jobs import Trials
from ..engine.budget import Budget
from ..engine.engine import Engine
from ..engine.recording import ReplayedAnswers, load_recording, recorded_versions
from ..engine.store import FILE_NAME, FOLDER, KnownAnswers, Store, StoredAnswers
from ..errors import InputError, Setting, SettingsError, Spell, Text, shown, spelled
from ..models import Model, ModelSpec
from ..models.hosted import Hosted
from ..models.model import Download, ModelName, NamedBy, Progress, price_of
from ..models.no_model import NO_MODEL
from ..models.prices import FREE, ON_A_PLAN, Price
from ..models.providers import PROVIDERS, Providers, resolve
from ..options import FOREVER
from ..settings import Settings
from ..trials.answer_times import renewed
from ..trials.subject import CHAT, ORACLE, Subject
from ..trials.trial import Question, Trial
from .estimate import StoredTrial, stored_trials

if TYPE_CHECKING:
    from ..engine.cluster import Cluster

DEFAULT_MODEL: Final = "local"

Specs = Mapping[str, ModelSpec]


def require_own_server(spec: ModelSpec) -> None:
    """SettingsError if a model is not at its provider's own address."""
    provider = spec.provider
    if isinstance(provider, Hosted) and spec.base_url != provider.base_url:
        variable, _ = provider.set_in(os.environ)
        problem = f"{variable} names another server, which a login never goes to"
        hint = (f"Unset {variable}, or drop ", Setting("login"), ".")
        raise SettingsError("login", problem, hint)


def announced(tell: Callable[[str], None]) -> Download:
    """Announce each download with one line, without progress."""

    def begin(name: str) -> Progress:
        tell(f"Fetching {name}…")
        return lambda _bytes, _total: None

    return begin


class Assembly:
    """Models by the names that questions go to; what they need, what they cost,
    their engine.
    """

    def __init__(
        self,
        prices: Mapping[str, Price] | None = None,
        providers: Providers = PROVIDERS,
        roster: Roster | None = None,
    ) -> None:
        self.specs: dict[str, ModelSpec] = {}
        self._prices = prices or {}
        self._providers = providers
        self.roster = roster or Roster()
        self.cluster: Cluster | None = None
        # That plays the users of this run's cases, if there are any
        self.user_model = ""

    def add(self, model: ModelName, role: str = "") -> str:
        """Resolve a model, and return the name that questions to it go to.

        If two models have the same name at different addresses,
        the later one gets its role as a suffix.
        """
        spec = resolve(model, os.environ, self._providers)
        _, key = spec.provider.key_in(os.environ) or ("", "")
        know(key, *password_of(spec.base_url or ""))
        name = model.name
        if self.specs.get(name, spec) != spec:
            name = f"{name} ({role})"
        self.specs.setdefault(name, spec)
        return name

    def add_models(self, settings: Settings) -> Specs:
        """The models under test."""
        if settings.base_url and not settings.models:
            hint = ("Add ", Setting("models"), " NAME (llama-server takes any name).")
            raise SettingsError("base_url", "no model of that server is named", hint)

        origin = ""
        if settings.models_file:
            origin = f"{shown(settings.models_file)}: eval_model"
        specs: dict[str, ModelSpec] = {}
        for name in settings.models or (DEFAULT_MODEL,):
            specs.update(self.add_named(name, settings, NamedBy(origin=origin)))
        return specs

    def add_oracle(self) -> Specs:
        """What stands for the model of the oracle, which has none."""
        return {ORACLE: self.specs.setdefault(ORACLE, ModelSpec(ORACLE, NO_MODEL, ""))}

    def use_logins(self, settings: Settings, subjects: Iterable[Subject]) -> Settings:
        """Have agents of vendors asked on their logins, if that is chosen.

        SettingsError if no subject can, or if a token could go to another server,
        or be read.
        """
        if not settings.login or settings.replay_file:  # a replay asks nobody
            return settings
        others = {
            "base_url": settings.base_url is not None,
            "cluster": settings.cluster is not None,
            "sandbox": settings.sandbox == "none",
        }
        for setting in (name for name, is_set in others.items() if is_set):
            problem = ("can't be combined with ", Setting(setting))
            value = settings.sandbox if setting == "sandbox" else ""
            hint = "Drop one of them: a login stays here, out of reach of agents."
            raise SettingsError("login", (*problem, f" {value}".rstrip()), hint)
        judge, labels = self._judge(settings), list[str]()
        for subject in (*subjects, *([judge] if judge else [])):
            spec = self._judge_spec(subject, settings) if subject is judge else None
            spec = spec or self.specs[subject.model]
            if login := self.roster.login_for(subject, spec):
                require_own_server(spec)
                self.specs[subject.label] = login.spec(spec)
                labels.append(subject.label)
        if not labels:
            usable = (
                f"{login.agent} on {login.models}" for login in self.roster.logins
            )
            hint = f"These can: {'; '.join(usable)}."
            raise SettingsError("login", "no agent of this run can use one", hint)
        return replace(settings, logins=tuple(dict.fromkeys(labels)))

    def login_line(self, labels: Iterable[str]) -> str:
        """Who is asked on a login, and where that was found; empty if nobody is."""
        names = ", ".join(map(self._login_note, labels))
        if not names:
            return ""
        return f"on your login, not with a key: {names}; costs {ON_A_PLAN}"

    def _login_note(self, label: str) -> str:
        """A subject that is asked on a login, and where that was found."""
        provider = self.specs[label].provider
        assert isinstance(provider, LoginProvider)
        try:
            tokens = provider.login.find(os.environ)
        except InputError:
            tokens = None
        return f"{label} ({tokens.source})" if tokens else label

    def add_judge(self, settings: Settings) -> Specs:
        """The judge, if there is one; it may be an agent,
        whose model then has the name of both.
        """
        if judge := self._judge(settings):
            if settings.cluster:
                problem = ("an agent can't judge with ", Setting("cluster"))
                hint = f"Name its model alone: {judge.model}."
                raise SettingsError("judge", problem, hint, value=judge.label)
            spec = self._judge_spec(judge, settings)
            self.roster.require_fit(judge.label, judge, spec)
            return {judge.label: self.specs.setdefault(judge.label, spec)}
        if settings.judge:
            return self.add_named(settings.judge, settings, NamedBy("judge"))
        return {}

    def _judge(self, settings: Settings) -> Subject | None:
        """The judge, if it is an agent. Models at a base URL may have any name,
        like gemini/x.
        """
        judge = self.roster.subject_of(settings.judge or "")
        if judge.agent == CHAT or settings.base_url:
            return None
        if judge.agent == ORACLE:
            raise SettingsError("judge", "the oracle asks no model, so it can't judge")
        return judge

    def _judge_spec(self, judge: Subject, settings: Settings) -> ModelSpec:
        name = ModelName(judge.model, None, settings.models_folder, NamedBy("judge"))
        return resolve(name, os.environ, self._providers)

    def with_limits(self, settings: Settings) -> Settings:
        """Settings with the output limits of the models that have been added."""
        outputs = []
        for name, spec in self.specs.items():
            if output := spec.provider.limits(spec).output:
                outputs.append((name, output))
        judge = self._judge(settings)
        return replace(
            settings,
            model_outputs=tuple(outputs),
            judge_agent=judge.agent if judge else "",
        )

    def seconds_for(self, name: str, settings: Settings) -> float:
        """How long an answer of a model may take."""
        spec = self.specs[name]
        usual = spec.provider.limits(spec).seconds or settings.call_timeout
        return usual if settings.timeout is None else settings.timeout

    def limited(self, subjects: Iterable[Subject]) -> dict[str, int]:
        """The models without an agent whose context is known to be small, with its
        tokens.
        """
        limits = {}
        for agent, model in subjects:
            if agent == CHAT:
                spec = self.specs[model]
                if context := spec.provider.limits(spec).context:
                    limits[model] = context
        return limits

    def require_room(
        self,
        settings: Settings,
        subjects: Collection[Subject],
        sizes: Mapping[str, int],
        tell: Callable[[str], None],
    ) -> None:
        """SettingsError if skills fit the context of no model; else tell which don't
        fit.

        ``sizes`` are the tokens of skills by their names.
        """
        problems = []
        limits = self.limited(subjects)
        for label, tokens in sizes.items():
            for name, most in limits.items():
                if tokens + settings.answer_output(name) > most:
                    size = f"about {tokens:,} tokens of {most:,}"
                    problem = f"{label} is too long: {size}"
                    problems.append((self.specs[name], problem))

        for spec, problem in problems:
            hint = f"Use another model{spec.provider.longer_prompts}."
            if len(problems) == len(sizes) * len(subjects):
                raise spec.error(problem, hint)
            tell(f"{spec.name}: {harmless(problem)}. {hint}")

    def add_named(self, name: str, settings: Settings, by: NamedBy) -> Specs:
        """Add a model of the settings."""
        added = self.add(ModelName(name, settings.base_url, settings.models_folder, by))
        return {added: self.specs[added]}

    def price_of(self, name: str) -> Price | None:
        """None if it is not known, as of the user in a recording of another run."""
        spec = self.specs.get(name)
        return price_of(spec, self._prices) if spec else None

    @property
    def is_free(self) -> bool:
        return all(self.price_of(name) == FREE for name in self.specs)

    def subjects(
        self, agents: Iterable[str], models: Sequence[str], tell: Callable[[str], None]
    ) -> dict[Subject, str]:
        """The pairs of agents and models that fit, with the ids of the models."""
        names = dict.fromkeys(map(self.roster.parse, agents))
        if ORACLE in names:
            problem = (
                "it plays the references of cases, which shows nothing about a skill"
            )
            hint = "Use it in a run of pytest."
            raise SettingsError("agents", problem, hint, value=ORACLE)
        fit, unfit = self.roster.pairs(subjects_of(names, models).values(), self.specs)
        if unfit:
            labels = ", ".join(subject.label for subject in unfit)
            tell(f"Left out, as agent and model don't fit: {labels}")
        return {subject: self.specs[subject.model].model_id for subject in fit}

    def require_all(
        self,
        settings: Settings,
        subjects: Collection[Subject],
        tell: Callable[[str], None],
        *,
        stored: bool = False,
    ) -> None:
        """Raise SettingsError before the first call of a
        command if anything is missing.

        If answers may be ``stored``, what models need is left to `require_asked`.
        """
        self.require_tools(subjects)
        self.require_asked(settings, subjects, tell, () if stored else subjects)
        self.require_prices(settings.max_cost)
        judge = {settings.judge_agent} if settings.judge_agent else set()
        if agents := judge | {subject.agent for subject in subjects} - {CHAT}:
            from ..agents.sandboxes.kinds import kind_of

            self.roster.look_up_versions(agents)
            kind_of(settings.sandbox)
            if settings.sandbox == "none":
                tell("No sandbox: agents can read and change all that you can.")

    def require_asked(
        self,
        settings: Settings,
        subjects: Collection[Subject],
        tell: Callable[[str], None],
        asked: Collection[Subject],
    ) -> None:
        """`require`, of these subjects only for those that are asked:
        others are stored.
        """
        known = set()
        for subject in subjects:
            if subject not in asked:
                known |= {subject.model, subject.label}
        if not asked:
            known.add(self.user_model)
        here = {settings.judge, *(subject.model for subject in asked)}
        elsewhere = self.asked_elsewhere(settings, subjects) | (known - here)
        self.require(announced(tell), subjects, elsewhere=elsewhere)

    def opening(self, name: str) -> str:
        """What it takes before a model can be asked, in words."""
        return self.specs[name].provider.opening

    def require(
        self,
        download: Download,
        subjects: Collection[Subject] = (),
        *,
        elsewhere: Collection[str] = (),
    ) -> None:
        """Raise SettingsError before the first call if a key,
        a package or a file is missing.

        Models that only agents ask are not looked at if they are asked ``elsewhere``:
        by workers of a cluster, or on a login.
        """
        by_agents = {subject.model for subject in subjects if subject.agent != CHAT}
        for name, spec in self.specs.items():
            if name in elsewhere:
                continue
            by = replace(spec.by, agent=name in by_agents)
            spec.provider.require(replace(spec, by=by), os.environ, download)

    def asked_elsewhere(
        self, settings: Settings, subjects: Collection[Subject]
    ) -> set[str]:
        """The models that only workers of a cluster ask, with keys of their own,
        or logins.
        """
        by_workers = bool(settings.cluster and not settings.cluster_send_keys)
        asked = {subject.model for subject in subjects}
        if by_workers:
            asked.add(self.user_model)

        here = {settings.judge}
        for subject in subjects:
            is_here = subject.label not in settings.logins
            if by_workers:
                is_here = subject.agent == CHAT
            if is_here:
                here.add(subject.model)
        return asked - here

    def join_cluster(
        self, settings: Settings, subjects: Collection[Subject]
    ) -> "Cluster":
        """Have the trials of agents carried out on a cluster;
        SettingsError if it can't.
        """
        from ..engine.cluster import Cluster, brief_of

        by_agents = [subject for subject in subjects if subject.agent != CHAT]
        agents = tuple(dict.fromkeys(subject.agent for subject in by_agents))
        for agent in agents:
            if not self.roster.is_built_in(agent):
                problem = (
                    "an agent of a conftest.py is not known to the workers of a cluster"
                )
                hint = ("Drop ", Setting("cluster"), ".")
                raise SettingsError("agents", problem, hint, value=agent)
        names = dict.fromkeys(subject.model for subject in by_agents)
        names |= {self.user_model: None} if self.user_model else {}
        specs = {name: self.specs[name] for name in names}
        prices = {name: self.price_of(name) for name in specs}
        brief = brief_of(settings, agents, specs, prices)
        assert settings.cluster
        self.cluster = Cluster(
            settings.cluster,
            brief,
            settings.calls_at_once,
            at_once=settings.agents_at_once,
            pins=self.roster.pins,
        )
        self.roster.set_versions(self.cluster.prepare())
        return self.cluster

    def leave_cluster(self) -> None:
        if self.cluster:
            self.cluster.leave()

    def require_tools(self, subjects: Iterable[Subject]) -> None:
        """Raise SettingsError if a model that an agent is to use takes no tools."""
        for subject in subjects:
            agent, spec = subject.agent, self.specs[subject.model]
            if agent != CHAT and not spec.provider.takes_tools(spec):
                fitting = fitting_models(self.roster.agent(agent), self._providers)
                hint = ("An agent needs a model that calls tools. ", *fitting)
                raise spec.error("this model takes no tools", hint)

    def require_prices(self, max_cost: float | None) -> None:
        """Raise SettingsError if a budget can't cover a model, as its price is
        unknown.
        """
        unknown = [name for name in self.specs if not self.price_of(name)]
        if max_cost is not None and unknown:
            problem = f"the price of {', '.join(unknown)} is not known"
            drop = (", or drop ", Setting("max_cost"), ".")
            hint = ("Set it in ", Setting("prices"), *drop)
            raise SettingsError("max_cost", problem, hint)

    def engine(
        self,
        settings: Settings,
        root: Path,
        notify: Callable[[str], None],
        *,
        spell: Spell = str,
        how_to_record: str = "",
        store_hint: str = "",
        budget_hint: Text = "raise it, or ask for less",
        recording: Path | None = None,
    ) -> Engine:
        """What asks the models; ``notify`` gets warnings about
        them and the stored answers.

        Answers of a ``recording`` are used like stored ones.
        """
        if settings.replay_file is None:
            providers = {
                spec.provider.name: spec.provider for spec in self.specs.values()
            }
            notes = (provider.note(os.environ) for provider in providers.values())
            for note in filter(None, notes):
                notify(note)
            if settings.base_url not in (
                None,
                *(spec.base_url for spec in self.specs.values()),
            ):
                unused = (
                    Setting("base_url"),
                    f" is not used by {', '.join(self.specs)}",
                )
                notify(spelled(unused, spell))

        async def open_model(name: str) -> Model:
            spec = self.specs[name]
            return await spec.provider.open(spec, self.seconds_for(name, settings))

        budget = Budget(
            settings.max_tokens, settings.max_cost, cache(self.price_of), budget_hint
        )
        open_trials: Callable[[], Trials] = partial(self._agent_trials, settings)
        if self.cluster:
            open_trials = partial(self.cluster.use, budget, spell)
        return Engine(
            open_model,
            concurrency=settings.calls_at_once,
            timeout=settings.call_timeout,
            timeout_of=lambda name: self.seconds_for(name, settings),
            answers=self._answers(
                settings,
                root,
                notify,
                how_to_record=how_to_record,
                store_hint=store_hint,
                recording=recording,
            ),
            budget=budget,
            spell=spell,
            open_trials=open_trials,
            agents_at_once=settings.agents_at_once,
            takes_tools=self._takes_tools,
            caches_from=self.caches_from if settings.prompt_cache else lambda _: None,
            max_age=FOREVER if settings.replay_file else settings.max_age,
        )

    def caches_from(self, name: str) -> int | None:
        """Tokens of the shortest prefix that the server of a model caches."""
        spec = self.specs[name]
        return spec.provider.caches_from(spec)

    def stored_trials(
        self,
        settings: Settings,
        root: Path,
        trials: Sequence[Trial],
        notify: Callable[[str], None],
    ) -> tuple[dict[str, StoredTrial], set[str]]:
        """The trials that need no call, by the key of their question,
        and what is asked again.
        """
        if settings.fresh or not (root / FOLDER / FILE_NAME).is_file():
            return {}, set()
        answers = self._answers(settings, root, notify)
        try:
            questions = [trial.question for trial in trials]
            marked = renewed(questions, answers.asked_at, settings.max_age)
            outdated = {question.key for question in marked if question.renew}
            current = [trial for trial in trials if trial.question.key not in outdated]
            return stored_trials(current, answers.get), outdated
        finally:
            answers.close()

    def _takes_tools(self, name: str) -> bool:
        spec = self.specs[name]
        return spec.provider.takes_tools(spec)

    def _answers(
        self,
        settings: Settings,
        root: Path,
        notify: Callable[[str], None],
        *,
        how_to_record: str = "",
        store_hint: str = "",
        recording: Path | None = None,
    ) -> KnownAnswers:
        if file := settings.replay_file:
            recorded = load_recording(file)
            for pair in recorded_versions(recorded.values()):
                self.roster.set_versions(dict([pair]), shown(file))
            return ReplayedAnswers(recorded, shown(file), how_to_record)
        identities = {
            name: spec.provider.identity(spec) for name, spec in self.specs.items()
        }
        stored = root / FOLDER / FILE_NAME
        return StoredAnswers(
            lambda: Store(stored, notify),
            lambda name: identities[name],
            fresh=settings.fresh,
            hint=store_hint,
            recorded=load_recording(recording, "recorded") if recording else {},
            seconds_for=partial(self._time_limit, settings),
        )

    def _time_limit(self, settings: Settings, question: Question) -> float:
        if question.task is None:
            return self.seconds_for(question.asked_as, settings)
        if question.task.timeout is None:
            return settings.agent_timeout
        return question.task.timeout

    def _agent_trials(self, settings: Settings) -> Trials:
        """Who carries out the trials of agents; imported only if there are any."""
        from ..agents.agent_trials import AgentTrials
        from ..agents.task_sandbox import sandbox_for

        sandbox = partial(
            sandbox_for, sandbox=settings.sandbox, image=settings.image or ""
        )
        return AgentTrials(
            self.roster.agent,
            sandbox,
            settings.agent_timeout,
            self.specs.__getitem__,
            price_of=self.price_of,
        )
