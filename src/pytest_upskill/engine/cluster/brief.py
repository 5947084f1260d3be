"""What the controller and the workers of a cluster send each other."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final

from ..._util.files import read_file
from ..._util.keys import password_of
from ...errors import Setting
from ...models import ModelSpec
from ...models.prices import Price
from ...models.providers import PROVIDERS
from ...models.scripted import ScriptedProvider, script_file
from ...settings import Settings
from ...skills.case import WorkspaceFile
from ...trials.answer import Answer, Reply
from ...trials.trial import Question
from ..budget import Allowance, UnansweredCall

PACKAGE: Final = "pytest-upskill"
MEMORY: Final = "upskill-memory"  # megabytes
CPU: Final = "upskill-cpu"


@dataclass(frozen=True, repr=False)  # a repr could end in a log
class Brief:
    """What workers must know of a run. It is sent to each of them, and is in no task."""

    run: str
    specs: Mapping[str, ModelSpec]
    prices: Mapping[str, Price | None]
    scripts: Mapping[str, tuple[str, bytes]]  # of scripted models: name of the file, content
    memory: Mapping[str, int]  # megabytes that a trial takes, by agent
    sandbox: str
    image: str | None
    agent_timeout: float
    call_timeout: float
    concurrency: int
    # Environment variables: keys, and what else it takes to ask the same servers.
    keys: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(self.memory)


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has, and lacks."""

    name: str
    sandbox: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)  # of agents that work
    lacks: tuple[str, ...] = ()
    places: int = 0
    memory: float = 0.0  # megabytes for agents


@dataclass(frozen=True)
class SentTrial:
    """A trial as it is sent to a worker, or only its setup."""

    trial: str
    question: Question
    allowance: Allowance
    files: tuple[tuple[WorkspaceFile, ...], ...] = ()  # of each skill
    start: Answer | None = None  # what the setup made
    is_setup: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a trial, and what it spent."""

    reply: Reply | None  # None: this worker does not know of the run
    tokens: int = 0
    usd: float = 0.0
    unanswered: tuple[UnansweredCall, ...] = ()
    exceeded: bool = False  # it needed more than its allowance


def resource_of(run: str, agent: str) -> str:
    """The resource of workers that can carry out the trials of an agent."""
    return f"upskill-{run}-{agent}"


def topic_of(run: str) -> str:
    """Where workers report trials that began, and calls that were answered."""
    return f"upskill-{run}"


def brief_of(
    settings: Settings,
    specs: Mapping[str, ModelSpec],
    prices: Mapping[str, Price | None],
    memory: Mapping[str, int],
) -> Brief:
    """What workers must know of a run; SettingsError if a model can't be asked from there."""
    keys, places = dict[str, str](), dict[str, str]()
    scripts = dict[str, tuple[str, bytes]]()
    for name, spec in specs.items():
        if spec.provider not in PROVIDERS.values():
            problem = "a model of a conftest.py is not known to the workers of a cluster"
            raise spec.error(problem, ("Drop ", Setting("cluster"), "."))
        places |= spec.provider.place_in(os.environ)
        if settings.cluster_send_keys:
            keys |= spec.provider.login_in(os.environ)
        if password_of(spec.base_url or "") and not settings.cluster_send_keys:
            hint = ("Add ", Setting("cluster_send_keys"), " if they may have it.")
            raise spec.error("the password in its address would go to the workers", hint)
        if isinstance(spec.provider, ScriptedProvider) and (file := script_file(spec)):
            scripts[name] = file.name, read_file(file)
    return Brief(
        token_hex(4),
        specs,
        prices,
        scripts,
        memory,
        settings.sandbox,
        settings.image,
        settings.agent_timeout,
        settings.call_timeout,
        settings.concurrency,
        keys,
        places,
    )
