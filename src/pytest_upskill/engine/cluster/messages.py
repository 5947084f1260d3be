"""What the controller and the workers of a cluster send each other."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pydantic import ValidationError

from ..._util.json_forms import Amount, Flag, Items, Whole, form_of, json_values
from ..._util.keys import password_of
from ...errors import Setting
from ...models import ModelSpec
from ...models.local import LocalProvider
from ...models.no_model import NO_MODEL
from ...models.prices import Price
from ...models.providers import PROVIDERS
from ...settings import Settings
from ...skills.case import WorkspaceFile
from ...trials.answer import Answer, Reply
from ...trials.trial import Question
from ..budget import Allowance, UnansweredCall

# More than all texts, turns and files of a trial that are kept
_MAX_MESSAGE_BYTES: Final = 64 * 2**20

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Brief:
    """What workers must know of a run. It has no repr, which could end in a log.

    ``variables`` are set while a worker carries out trials: keys, if the user sends
    them, and what else it takes to ask the same servers.
    """

    agents: tuple[str, ...]
    sandbox: str
    image: str | None
    agent_timeout: float
    call_timeout: float
    specs: Mapping[str, ModelSpec]
    prices: Mapping[str, Price | None]
    variables: Mapping[str, str]


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has, and lacks. ``versions`` are those of the agents."""

    lacks: tuple[str, ...] = ()
    sandbox: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SentTrial:
    """A trial as it is sent to a worker, or only its setup.

    ``files`` are those of the skills, by digest. ``start`` is what the setup made.
    """

    trial: str
    question: Question
    allowance: Allowance
    calls_at_once: int = 1
    files: Mapping[str, tuple[WorkspaceFile, ...]] = field(default_factory=dict)
    start: Answer | None = None
    is_setup: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a trial, and what it spent, with its unanswered calls.

    ``exceeded``: it needed more than its allowance.
    """

    reply: Reply
    trial: str = ""
    tokens: Whole = 0
    usd: Amount = 0.0
    unanswered: Items[UnansweredCall] = ()
    exceeded: Flag = False


def packed(value: object) -> bytes:
    """A value as it is sent: nobody has to unpickle it."""
    return json.dumps(json_values(value), ensure_ascii=False).encode("utf-8", "replace")


def from_worker(kind: type[T], data: object) -> T:
    """A value that a worker has sent; ValueError if it is not one, or too large."""
    if not isinstance(data, bytes):
        raise ValueError("it is no data")

    if len(data) > _MAX_MESSAGE_BYTES:
        raise ValueError(f"{len(data):,} bytes (limit {_MAX_MESSAGE_BYTES:,})")

    try:
        return form_of(kind).validate_json(data)
    except ValidationError:
        raise ValueError(f"it is no {kind.__name__}") from None


def outcome_from_worker(data: object, trial: str) -> Outcome:
    """What came of a trial; ValueError as above."""
    outcome = from_worker(Outcome, data)
    if outcome.trial != trial:
        raise ValueError("it is that of another trial")

    reply = outcome.reply
    if isinstance(reply, Answer):
        # Only models and stores set these.
        reply = replace(reply, stored=False, calls=(), thinking="", raw="")
    return replace(outcome, reply=reply)


def brief_of(
    settings: Settings,
    agents: tuple[str, ...],
    specs: Mapping[str, ModelSpec],
    prices: Mapping[str, Price | None],
) -> Brief:
    """What workers must know of a run.

    Raises SettingsError if a model can't be asked from there.
    """
    variables: dict[str, str] = {}
    for spec in specs.values():
        if spec.provider not in (NO_MODEL, *PROVIDERS.values()):
            problem = (
                "a model of a conftest.py is not known to the workers of a cluster"
            )
            raise spec.error(problem, ("Drop ", Setting("cluster"), "."))

        if isinstance(spec.provider, LocalProvider):
            # It would be loaded again for each trial.
            problem = "an embedded model can't be asked by the workers of a cluster"
            raise spec.error(problem, ("Drop ", Setting("cluster"), "."))

        if password_of(spec.base_url or "") and not settings.cluster_send_keys:
            problem = "the password in its address would go to the workers"
            hint = ("Add ", Setting("cluster_send_keys"), " if they may have it.")
            raise spec.error(problem, hint)

        variables |= spec.provider.place_in(os.environ)
        if settings.cluster_send_keys:
            variables |= spec.provider.login_in(os.environ)

    return Brief(
        agents=agents,
        sandbox=settings.sandbox,
        image=settings.image,
        agent_timeout=settings.agent_timeout,
        call_timeout=settings.call_timeout,
        specs=specs,
        prices=prices,
        variables=variables,
    )
