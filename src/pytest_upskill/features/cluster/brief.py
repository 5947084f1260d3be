"""What the workers of a cluster must know of a run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..._util.keys import know, password_of
from ...errors import Setting
from ...measure.models_of_run import Models
from ...measure.open_run import OpenRun
from ...models.no_model import NO_MODEL
from ...models.prices import parse_prices
from ...models.providers import PROVIDERS
from ...settings import Settings
from ...trials.subject import CHAT
from .connection import cluster_error


@dataclass(frozen=True, repr=False)
class Brief:
    """What workers must know of a run. It has no repr, which could end in a log.

    ``variables`` are set while a worker carries out trials: keys, if the user sends
    them, and what else it takes to ask the same servers.
    """

    settings: Settings
    agents: tuple[str, ...]
    models: Models
    variables: Mapping[str, str]

    def mask_keys(self) -> None:
        """Have the keys of all models masked."""
        for spec in self.models.specs.values():
            know(*spec.provider.login_in(os.environ).values())
            know(*password_of(spec.base_url or ""))


def make_brief(run: OpenRun) -> Brief:
    """What workers must know of a run.

    Raises SettingsError if they can't ask an agent or a model.
    """
    settings = run.settings
    names = [each.model for each in run.by_label.values() if each.agent != CHAT]
    if run.user_model:
        names.append(run.user_model)
    models = Models(parse_prices(settings.prices))
    unknown = [name for name in run.agents if not run.roster.is_built_in(name)]
    variables: dict[str, str] = {}
    for name in names:
        models.specs[name] = spec = run.models.specs[name]
        if password_of(spec.base_url or "") and not settings.cluster_send_keys:
            problem = "the password in its address would go to the workers"
            hint = ("Add ", Setting("cluster_send_keys"), " if they may have it.")
            raise spec.error(problem, hint)

        if spec.provider not in (NO_MODEL, *PROVIDERS.values()):
            unknown.append(name)
        variables |= spec.provider.place_in(os.environ)
        if settings.cluster_send_keys:
            variables |= spec.provider.login_in(os.environ)

    if unknown:
        problem = f"its workers can't ask {', '.join(unknown)}"
        fix = "Agents and models of a conftest.py are not known there."
        raise cluster_error(settings.cluster or "", problem, fix)
    return Brief(settings, tuple(run.agents), models, variables)
