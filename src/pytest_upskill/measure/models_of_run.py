"""The models of a run: by the names that questions go to, with prices and limits."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from .._util.keys import know, password_of
from ..agents.roster import Roster
from ..errors import InputError, Setting, SettingsError, shown
from ..models import ModelSpec
from ..models.hosted import Hosted
from ..models.model import ModelName, NamedBy, price_of
from ..models.no_model import NO_MODEL
from ..models.prices import FREE, ON_A_PLAN, Price
from ..models.providers import PROVIDERS, Providers, resolve
from ..settings import Settings
from ..trials.subject import CHAT, Subject, asks_model

if TYPE_CHECKING:
    from ..agents.logins import LoginProvider

Specs = Mapping[str, ModelSpec]
DEFAULT_MODEL: Final = "local"
_NO_PRICES: Final[Mapping[str, Price]] = {}


class Models:
    """The models of a run: those under test, the judge, users, teachers."""

    def __init__(
        self,
        prices: Mapping[str, Price] = _NO_PRICES,
        providers: Providers = PROVIDERS,
    ) -> None:
        self.specs: dict[str, ModelSpec] = {}
        self.providers = providers
        self._prices = prices

    def add(self, model: ModelName, role: str = "") -> str:
        """Resolve a model, and return the name that questions to it go to.

        If two models have the same name at different addresses,
        the later one gets its role as a suffix.
        """
        spec = resolve(model, os.environ, self.providers)
        _, key = spec.provider.key_in(os.environ) or ("", "")
        know(key, *password_of(spec.base_url or ""))
        name = model.name
        if self.specs.get(name, spec) != spec:
            name = f"{name} ({role})"
        self.specs.setdefault(name, spec)
        return name

    def add_named(self, name: str, settings: Settings, by: NamedBy) -> str:
        """Add a model of the settings."""
        model = ModelName(name, settings.base_url, settings.models_folder, by)
        return self.add(model)

    def add_tested(self, subjects: Iterable[Subject], settings: Settings) -> None:
        """Add the models under test, unless they are there."""
        origin = ""
        if settings.models_file:
            origin = f"{shown(settings.models_file)}: eval_model"
        for agent, name in subjects:
            if name in self.specs:
                continue
            if asks_model(agent):
                self.add_named(name, settings, NamedBy(origin=origin))
            else:
                self.specs[name] = ModelSpec(name, NO_MODEL, "")

    def price_of(self, name: str) -> Price | None:
        """None if it is not known, as of the user in a recording of another run."""
        spec = self.specs.get(name)
        return price_of(spec, self._prices) if spec else None

    @property
    def are_free(self) -> bool:
        return all(self.price_of(name) == FREE for name in self.specs)

    def opening(self, name: str) -> str:
        """What it takes before a model can be asked, in words."""
        return self.specs[name].provider.opening

    def seconds_for(self, name: str, settings: Settings) -> float:
        """How long an answer of a model may take."""
        if settings.timeout is not None:
            return settings.timeout
        spec = self.specs[name]
        return spec.provider.limits(spec).seconds or settings.call_timeout

    def output_limits(self) -> tuple[tuple[str, int], ...]:
        """The models with a limit of their own on the tokens of an answer."""
        outputs = []
        for name, spec in self.specs.items():
            if output := spec.provider.limits(spec).output:
                outputs.append((name, output))
        return tuple(outputs)

    def takes_tools(self, name: str) -> bool:
        spec = self.specs[name]
        return spec.provider.takes_tools(spec)

    def caches_from(self, name: str) -> int | None:
        """Tokens of the shortest prefix that the server of a model caches."""
        spec = self.specs[name]
        return spec.provider.caches_from(spec)


def add_judge(models: Models, settings: Settings, roster: Roster) -> Subject | None:
    """Add the judge; return it if it is an agent, whose model has the name of both."""
    name = settings.judge or ""
    judge = roster.subject_of(name)
    # Models at a base URL may have any name, like gemini/x.
    if judge.agent == CHAT or settings.base_url:
        models.add_named(name, settings, NamedBy("judge"))
        return None
    if not asks_model(judge.agent):
        raise SettingsError(
            "judge", f"the {judge.agent} asks no model, so it can't judge"
        )
    if settings.cluster:
        problem = ("an agent can't judge with ", Setting("cluster"))
        hint = f"Name its model alone: {judge.model}."
        raise SettingsError("judge", problem, hint, value=judge.label)

    model = ModelName(judge.model, None, settings.models_folder, NamedBy("judge"))
    spec = resolve(model, os.environ, models.providers)
    roster.require_fit(judge.label, judge, spec)
    models.specs[judge.label] = spec
    return judge


# Logins.


def use_logins(
    models: Models, settings: Settings, subjects: Iterable[Subject], roster: Roster
) -> Settings:
    """Have agents of vendors asked on their logins, if that is chosen.

    SettingsError if no subject can, or if a token could go to another server,
    or be read.
    """
    if not settings.login or settings.replay_file:  # a replay asks nobody
        return settings

    _require_login_alone(settings)
    labels = []
    for subject in subjects:
        # An agent that judges has a model of its own.
        name = subject.label if subject.label in models.specs else subject.model
        spec = models.specs[name]
        if login := roster.login_for(subject, spec):
            require_own_server(spec)
            models.specs[subject.label] = login.spec(spec)
            labels.append(subject.label)
    if not labels:
        usable = (f"{login.agent} on {login.models}" for login in roster.logins)
        hint = f"These can: {'; '.join(usable)}."
        raise SettingsError("login", "no agent of this run can use one", hint)
    return replace(settings, logins=tuple(dict.fromkeys(labels)))


def _require_login_alone(settings: Settings) -> None:
    others = {
        "base_url": settings.base_url is not None,
        "cluster": settings.cluster is not None,
        "sandbox": settings.sandbox == "none",
    }
    for setting, is_set in others.items():
        if is_set:
            value = " none" if setting == "sandbox" else ""
            problem = ("can't be combined with ", Setting(setting), value)
            hint = "Drop one of them: a login stays here, out of reach of agents."
            raise SettingsError("login", problem, hint)


def require_own_server(spec: ModelSpec) -> None:
    """SettingsError if a model is not at its provider's own address."""
    provider = spec.provider
    if isinstance(provider, Hosted) and spec.base_url != provider.base_url:
        variable, _ = provider.set_in(os.environ)
        problem = f"{variable} names another server, which a login never goes to"
        hint = (f"Unset {variable}, or drop ", Setting("login"), ".")
        raise SettingsError("login", problem, hint)


def login_line(models: Models, labels: Iterable[str]) -> str:
    """Who is asked on a login, and where that was found; empty if nobody is."""
    notes = []
    for label in labels:
        provider = cast("LoginProvider", models.specs[label].provider)
        try:
            tokens = provider.login.find(os.environ)
        except InputError:
            tokens = None
        notes.append(f"{label} ({tokens.source})" if tokens else label)
    if not notes:
        return ""
    return f"on your login, not with a key: {', '.join(notes)}; costs {ON_A_PLAN}"
