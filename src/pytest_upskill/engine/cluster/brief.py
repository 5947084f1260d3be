"""What the controller and the workers of a cluster send each other."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Annotated, Final, TypeVar

from pydantic import Field, ValidationError

from ..._util.files import read_file
from ..._util.json_forms import Amount, Flag, Items, Whole, form_of, json_values
from ..._util.keys import password_of
from ...errors import Setting
from ...models import ModelSpec
from ...models.no_model import NO_MODEL
from ...models.prices import Price
from ...models.providers import PROVIDERS
from ...models.scripted import ScriptedProvider, script_file
from ...settings import Settings
from ...skills.case import WorkspaceFile
from ...trials.answer import Answer, Reply, Usage
from ...trials.trial import Question
from ..budget import Allowance, UnansweredCall

PACKAGE: Final = "pytest-upskill"
MEMORY: Final = "upskill-memory"  # megabytes
CPU: Final = "upskill-cpu"
# Bytes that a worker may send: more than all texts,
# turns and files of a trial that are kept.
MOST_OUTCOME: Final = 64 * 2**20
_MOST_REPORT: Final = 2**16
# A parsed value takes much more room than its text,
# unless most of that is in few strings.
_MOST_STRINGS: Final = 1_000_000
_MOST_BESIDE_STRINGS: Final = 4 * 2**20  # bytes
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|$)', re.DOTALL)
_MOST_PLACES: Final = 10_000

T = TypeVar("T")


@dataclass(frozen=True, repr=False)  # a repr could end in a log
class Brief:
    """What workers must know of a run. It is sent to each of them, and is in no
    task.
    """

    run: str
    specs: Mapping[str, ModelSpec]
    prices: Mapping[str, Price | None]
    # Of scripted models: name of the file, content
    scripts: Mapping[str, tuple[str, bytes]]
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
    places: Annotated[int, Field(strict=True, ge=0, le=_MOST_PLACES)] = 0
    memory: Amount = 0.0  # megabytes for agents


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
    tokens: Whole = 0
    usd: Amount = 0.0
    unanswered: Items[UnansweredCall] = ()
    exceeded: Flag = False  # it needed more than its allowance
    trial: str = ""  # as it was sent


@dataclass(frozen=True)
class TrialEvent:
    """A trial began on a worker, or a call of it was answered."""

    trial: str
    worker: str
    address: str  # of the worker, as the scheduler knows it
    usage: Usage | None = None  # of the answered call
    by_user: Flag = False  # whether the user of the case made it


def packed(value: object) -> bytes:
    """A value as it is sent: nobody has to unpickle it."""
    return json.dumps(json_values(value), ensure_ascii=False).encode("utf-8", "replace")


def from_worker(kind: type[T], data: object, most: int = _MOST_REPORT) -> T:
    """A value that a worker has sent; ValueError if it is not one, or too large."""
    if not isinstance(data, bytes):
        raise ValueError("it is no data")
    require_size(len(data), most)
    beside, strings = _STRING.subn(b"", data, _MOST_STRINGS)
    if strings == _MOST_STRINGS or len(beside) > _MOST_BESIDE_STRINGS:
        raise ValueError("it has too many parts")
    try:
        return form_of(kind).validate_json(data)
    except ValidationError:
        raise ValueError(f"it is no {kind.__name__}") from None


def require_size(size: int, most: int = MOST_OUTCOME) -> None:
    if size > most:
        raise ValueError(f"{size:,} bytes (limit {most:,})")


def outcome_from_worker(data: object) -> Outcome:
    """What came of a trial; ValueError as above."""
    outcome = from_worker(Outcome, data, MOST_OUTCOME)
    if isinstance(reply := outcome.reply, Answer):  # only models and stores set these
        reply = replace(reply, stored=False, calls=(), thinking="", raw="", quotas=())
    return replace(outcome, reply=reply)


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
    """What workers must know of a run; SettingsError if a model
    can't be asked from there.
    """
    keys, places = dict[str, str](), dict[str, str]()
    scripts = dict[str, tuple[str, bytes]]()
    for name, spec in specs.items():
        if spec.provider not in (NO_MODEL, *PROVIDERS.values()):
            problem = (
                "a model of a conftest.py is not known to the workers of a cluster"
            )
            raise spec.error(problem, ("Drop ", Setting("cluster"), "."))
        places |= spec.provider.place_in(os.environ)
        if settings.cluster_send_keys:
            keys |= spec.provider.login_in(os.environ)
        if password_of(spec.base_url or "") and not settings.cluster_send_keys:
            hint = ("Add ", Setting("cluster_send_keys"), " if they may have it.")
            raise spec.error(
                "the password in its address would go to the workers", hint
            )
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
        settings.calls_at_once,
        keys,
        places,
    )
