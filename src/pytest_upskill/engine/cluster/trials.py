"""Trials that are carried out on a cluster: what each may spend, and what it spent."""

import asyncio
from contextlib import suppress

from ...errors import InputError, Spell, spelled
from ...trials.answer import Answer, NoAnswer, Reply
from ...trials.trial import Question
from ..agent_jobs import TrialCalls
from ..budget import Allowance, Budget
from .cluster import Cluster
from .dispatch import OnItsWay
from .exchange import Outcome


class ClusterTrials:
    """Carries out trials on a cluster, in place of this machine."""

    def __init__(self, cluster: Cluster, budget: Budget, spell: Spell) -> None:
        self._cluster = cluster
        self._budget = budget
        self._spell = spell
        self._settled = asyncio.Event()

    @property
    def places(self) -> int:
        return self._cluster.places

    @property
    def at_work(self) -> int:
        return self._cluster.at_work

    @property
    def note(self) -> str:
        return self._cluster.note

    def memory_of(self, agent: str) -> int:  # noqa: ARG002
        return 0  # of this machine

    async def run(self, question: Question, call: TrialCalls) -> Reply:
        assert question.task
        agent = question.task.agent
        while True:
            if refusal := self._budget.refusal(question):
                return NoAnswer(spelled(refusal, self._spell))
            allowance = await self._allotted(question)
            trial, done = OnItsWay(call), Outcome(None)
            try:
                came = await self._cluster.hand_out(question, allowance, trial)
                done = Outcome(NoAnswer(f"{agent}: {came}")) if isinstance(came, str) else came
            except InputError as error:
                return NoAnswer(error.message(self._spell))
            finally:
                self._count(question, done, trial)
            assert done.reply
            if not done.short:
                return done.reply
            if allowance.whole:
                return NoAnswer(spelled(self._budget.reached(question), self._spell))

    async def close(self) -> None:
        pass  # whoever opened the cluster closes it

    async def _allotted(self, question: Question) -> Allowance:
        while (allowance := self._budget.allot(question)) is None:
            self._settled.clear()
            with suppress(TimeoutError):  # a judge's call may end, too, which nobody tells
                await asyncio.wait_for(self._settled.wait(), 1.0)
        return allowance

    def _count(self, question: Question, done: Outcome, trial: OnItsWay) -> None:
        """All that was paid counts, also what a lost worker paid."""
        lost = trial.lost if done.reply else [*trial.lost, *trial.spent]
        tokens = done.tokens + sum((one.input or 0) + (one.output or 0) for one in lost)
        usd = done.usd + self._budget.price(question, lost)
        more = done.short
        self._budget.spend(question, tokens, usd, done.unanswered, wanted_more=more)
        if isinstance(done.reply, Answer):  # else who waits for it counts all as unanswered
            self._budget.lose(question, lost)
        self._settled.set()
