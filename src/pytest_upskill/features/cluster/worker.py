"""What a worker of a cluster does: report what it has, and carry out trials.

What it returns is JSON: the controller of a run unpickles nothing of it.
"""

import asyncio
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from ..._util.json_forms import Amount, Flag, Items, Whole, json_values
from ...agents.agent_trials import AgentTrials
from ...agents.probe import probes
from ...agents.roster import Roster
from ...agents.run_folder import end_run_folder
from ...agents.sandboxes.kinds import kind_of
from ...engine import AgentPlaces, Engine
from ...engine.budget import Allowance, Budget, UnansweredCall
from ...engine.lane import unexpected
from ...errors import InputError
from ...measure.requirements import announced
from ...measure.trials_of_run import facts_of, open_trials
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question, Task
from .brief import Brief

PACKAGE: Final = "pytest-upskill"
_POLL_SECONDS: Final = 0.5
_lock: Final = threading.Lock()
# The worker's own, for each trial that is at work here
_environments: Final[list[Mapping[str, str]]] = []


@dataclass(frozen=True)
class WorkerReport:
    """What a worker has, and ``lacks``, if it lacks something."""

    lacks: str = ""
    sandbox: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    threads: int = 0


@dataclass(frozen=True)
class Outcome:
    """What came of a trial, and what it spent, with its unanswered calls.

    ``exceeded``: it needed more than its allowance.
    """

    reply: Reply
    tokens: Whole = 0
    usd: Amount = 0.0
    unanswered: Items[UnansweredCall] = ()
    exceeded: Flag = False


def packed(value: object) -> bytes:
    return json.dumps(json_values(value), ensure_ascii=False).encode("utf-8", "replace")


async def examine(brief: Brief) -> bytes:
    """A WorkerReport. Dask calls this on the worker's event loop."""
    settings = brief.settings
    try:
        kind = await asyncio.to_thread(kind_of, settings.sandbox, settings.image)
    except InputError as error:
        return packed(WorkerReport(f"no sandbox: {error.problem}"))

    problems = []
    versions = {PACKAGE: version(PACKAGE)}
    with sent_variables(brief.variables):
        for spec in brief.models.specs.values():
            try:
                spec.provider.require(spec, os.environ, announced(print))
            except InputError as error:
                problems.append(f"{spec.name}: {error.problem}")
        agents = [Roster().agent(name) for name in brief.agents]
        for name, probe in (await probes(agents, kind)).items():
            versions[name] = probe.version
            if not probe.works:
                problems.append(f"{name}: {probe.problem}")
    return packed(WorkerReport("; ".join(problems), kind.name, versions))


def set_up(brief: Brief, task: Task) -> bytes:
    """Run the setup of a task: an Outcome with its workspace."""

    async def run() -> Reply:
        trials = open_trials(brief.settings, brief.models, Roster())
        try:
            return await trials.set_up(task)
        finally:
            await trials.close()

    with sent_variables(brief.variables):
        return packed(Outcome(asyncio.run(run())))


def carry_out(
    brief: Brief,
    question: Question,
    allowance: Allowance,
    calls_at_once: int,
    start: Answer | None,
) -> bytes:
    """Carry out a trial from the workspace that its setup made: an Outcome.

    Dask calls this on a thread of a worker.
    """

    def start_trial() -> AgentTrials:
        trials = open_trials(brief.settings, brief.models, Roster())
        if question.task and start:
            trials.start_from(question.task, start)
        return trials

    budget = Budget(allowance.tokens, allowance.usd, brief.models.price_of)
    engine = Engine(
        facts_of(brief.models, brief.settings),
        concurrency=calls_at_once,
        budget=budget,
        agents=AgentPlaces(start_trial),
    )
    with sent_variables(brief.variables):
        brief.mask_keys()
        try:
            reply = _wait_while_wanted(engine, question)
        except Exception as bug:
            # Dask would write it to the worker's log, with the trial.
            reply = NoAnswer(unexpected(bug))
        finally:
            engine.close()
    tokens, usd = budget.spent
    unanswered = tuple(budget.unanswered)
    return packed(Outcome(reply, tokens, usd, unanswered, budget.refused))


@contextmanager
def sent_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables that a run sends, as long as trials are at work."""
    with _lock:
        _environments.append(dict(os.environ))
        os.environ.update(variables)
    try:
        yield
    finally:
        with _lock:
            own = _environments.pop()
            if not _environments:
                for name in os.environ.keys() - own.keys():
                    del os.environ[name]
                os.environ.update(own)
                # The process may live for days.
                end_run_folder()


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
            is_wanted = state and state.state == "executing"
            if not is_wanted or worker.status.name not in ("running", "paused"):
                engine.stop()
