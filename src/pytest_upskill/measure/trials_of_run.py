"""What asks models and carries out trials, here or on a worker of a cluster."""

from functools import partial
from typing import TYPE_CHECKING

from ..agents.roster import Roster
from ..engine import ModelFacts
from ..models import Model
from ..settings import Settings
from .models_of_run import Models

if TYPE_CHECKING:
    from ..agents.agent_trials import AgentTrials


def facts_of(models: Models, settings: Settings) -> ModelFacts:
    """What an engine needs of models."""

    async def open_model(name: str) -> Model:
        spec = models.specs[name]
        return await spec.provider.open(spec, models.seconds_for(name, settings))

    return ModelFacts(
        open_model,
        timeout=lambda name: models.seconds_for(name, settings),
        takes_tools=models.takes_tools,
        caches_from=models.caches_from if settings.prompt_cache else lambda _: None,
    )


def open_trials(settings: Settings, models: Models, roster: Roster) -> "AgentTrials":
    """Who carries out the trials of agents; imported only if there are any."""
    from ..agents.agent_trials import AgentTrials
    from ..agents.task_sandbox import sandbox_for

    sandbox = partial(sandbox_for, sandbox=settings.sandbox, image=settings.image or "")
    return AgentTrials(
        roster.agent,
        sandbox,
        settings.agent_timeout,
        models.specs.__getitem__,
        price_of=models.price_of,
    )
