"""What a worker of a cluster does: report what it has, and carry out trials."""

import asyncio
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from ..._util.json_forms import form_of
from ..._util.keys import know, password_of
from ...agents.agent import Call
from ...agents.agent_trials import AgentTrials
from ...agents.probe import is_installed, probes
from ...agents.roster import Roster
from ...agents.run_folder import end_run_folder
from ...agents.sandboxes.kinds import kind_of
from ...agents.task_sandbox import sandbox_for
from ...errors import InputError
from ...models import Model
from ...models.model import Progress
from ...trials.answer import NoAnswer, Reply
from ...trials.trial import Question
from ..agent_jobs import AgentPlaces
from ..budget import Budget
from ..engine import Engine
from ..lane import unexpected
from ..model_calls import ModelFacts
from .messages import Brief, Outcome, SentTrial, WorkerReport, packed

_POLL_SECONDS: Final = 0.5
_lock: Final = threading.Lock()
# What runs have sent, for each of their trials that is at work here
_variables: Final[list[Mapping[str, str]]] = []
_own_variables: Final[dict[str, str]] = {}


async def examine(brief: Brief) -> bytes:
    """A WorkerReport. Dask calls this on the worker's event loop."""
    return packed(await asyncio.to_thread(_examine, brief))


def _examine(brief: Brief) -> WorkerReport:
    lacks: list[str] = []
    try:
        kind = kind_of(brief.sandbox, brief.image)
    except InputError as error:
        return WorkerReport((f"no sandbox: {error.problem}",))

    agents = [Roster().agent(name) for name in brief.agents]
    for agent in agents:
        if not is_installed(agent):
            lacks.append(f"{agent.name} is not installed")

    with sent_variables(brief.variables):
        for spec in brief.specs.values():
            try:
                spec.provider.require(spec, os.environ, _no_download)
            except InputError as error:
                lacks.append(f"{spec.name}: {error.problem}")
        if lacks:
            return WorkerReport(tuple(lacks))

        versions: dict[str, str] = {}
        for name, probe in asyncio.run(probes(agents, kind)).items():
            versions[name] = probe.version
            if not probe.works:
                lacks.append(f"{name}: {probe.problem}")
    return WorkerReport(tuple(lacks), kind.name, versions)


def _no_download(_what: str) -> Progress:
    return lambda _done, _total: None


def carry_out(brief: Brief, sent: bytes) -> bytes:
    """Carry out a trial as its controller sent it: an Outcome.

    Dask calls this on a thread of a worker.
    """
    trial = form_of(SentTrial).validate_json(sent)
    try:
        with sent_variables(brief.variables):
            return packed(_carry_out(brief, trial))
    except Exception as bug:
        # Dask would write it to the worker's log, with the trial.
        return packed(Outcome(NoAnswer(unexpected(bug)), trial.trial))


@contextmanager
def sent_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that a run sends, as long as trials are at work."""
    with _lock:
        if not _variables:
            _own_variables.update(os.environ)
        _variables.append(variables)
        os.environ.update(variables)
    try:
        yield
    finally:
        with _lock:
            _variables.remove(variables)
            if not _variables:
                for name in set(os.environ) - set(_own_variables):
                    del os.environ[name]
                os.environ.update(_own_variables)
                _own_variables.clear()
                # The process may live for days.
                end_run_folder()


def _carry_out(brief: Brief, trial: SentTrial) -> Outcome:
    async def open_model(name: str) -> Model:
        spec = brief.specs[name]
        know(*spec.provider.login_in(os.environ).values())
        know(*password_of(spec.base_url or ""))
        return await spec.provider.open(spec, brief.call_timeout)

    allowance = trial.allowance
    budget = Budget(allowance.tokens, allowance.usd, brief.prices.get)
    engine = Engine(
        ModelFacts(open_model, timeout=lambda _: brief.call_timeout),
        concurrency=trial.calls_at_once,
        budget=budget,
        agents=AgentPlaces(partial(_SentTrials, brief, trial), at_once=1),
    )
    try:
        reply = _wait_while_wanted(engine, trial.question)
    finally:
        engine.close()
    tokens, usd = budget.spent
    unanswered = tuple(budget.unanswered)
    return Outcome(reply, trial.trial, tokens, usd, unanswered, budget.refused)


def _wait_while_wanted(engine: Engine, question: Question) -> Reply:
    """The reply to a question. Its trial is ended if its controller or worker ends."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.get_current_task()
    reply = engine.submit(question)
    while True:
        try:
            return reply.result(timeout=_POLL_SECONDS)
        except TimeoutError:
            state = worker.state.tasks.get(task)
            is_wanted = state and state.state in ("executing", "long-running")
            if not is_wanted or worker.status.name not in ("running", "paused"):
                engine.stop()


class _SentTrials(AgentTrials):
    """Carries out a trial with what was sent with it."""

    def __init__(self, brief: Brief, trial: SentTrial) -> None:
        super().__init__(
            Roster().agent,
            partial(sandbox_for, sandbox=brief.sandbox, image=brief.image or ""),
            brief.agent_timeout,
            brief.specs.__getitem__,
            price_of=brief.prices.get,
            files_of=lambda skill: trial.files[skill.digest],
        )
        self._trial = trial

    async def run(self, question: Question, call: Call) -> Reply:
        assert question.task
        if self._trial.is_setup:
            return await self.set_up(question.task)
        if self._trial.start:
            self.start_from(question.task, self._trial.start)
        return await super().run(question, call)
