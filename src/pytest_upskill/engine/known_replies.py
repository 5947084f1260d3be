"""What needs no call: what this run has asked, and answers that were kept."""

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..options import FOREVER
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.answer_times import find_outdated
from ..trials.trial import Question
from .lane import Job
from .store import KnownAnswers, Store


class Jobs(NamedTuple):
    """The jobs of questions, and those of them that this run has not asked before."""

    all: list[Job]
    new: list[Job]


class KnownReplies:
    """The questions of a run by their keys, and the answers that it need not ask for.

    Arms that are compared must be of one day: a kept answer that is older than
    ``max_age`` seconds is asked again. Only the engine's thread changes anything here.
    """

    def __init__(self, answers: KnownAnswers, max_age: float) -> None:
        self.answers = answers
        self.jobs: dict[str, Job] = {}
        self.settled: list[Job] = []
        # Asked by another run, or by this one under another name; the keys of their
        # answers
        self.elsewhere: dict[Job, str] = {}
        self.not_kept = False
        self.store: Store | None = None  # once something is asked that is kept
        self._max_age = max_age
        self._compared: dict[Hashable, list[Question]] = {}

    def final_replies(self, questions: Sequence[Question]) -> list[Reply] | None:
        """The replies that nothing can replace; None if one is missing.

        Any thread may call this.
        """
        replies = []
        for question in questions:
            job = self.jobs.get(question.key)
            if not job or not job.reply:
                return None
            if job.used_stored and self._max_age < FOREVER:
                return None
            replies.append(job.reply)
        return replies

    def add(self, questions: Iterable[Question]) -> Jobs:
        jobs = []
        new = []
        for question in questions:
            job = self.jobs.get(question.key)
            if job is None or (question.renew and job.used_stored):
                self._compared.setdefault(question.compared, []).append(question)
                # A judge comes first: an answer without a ruling is worth nothing.
                number = len(self.jobs) if question.verdicts is None else 0
                job = Job(question, number)
                job.when_settled(partial(self._note_settled, job))
                self.jobs[question.key] = job
                new.append(job)
            jobs.append(job)
        return Jobs(jobs, new)

    def mark_outdated(self, questions: Sequence[Question]) -> Sequence[Question]:
        """Mark what has to be asked again before it is compared."""
        if self._max_age >= FOREVER or self.final_replies(questions):
            return questions

        others: list[Question] = []
        for group in {question.compared for question in questions}:
            others += self._compared.get(group, ())
        outdated = find_outdated([*questions, *others], self._asked_at, self._max_age)
        return [
            replace(question, renew=True) if question.key in outdated else question
            for question in questions
        ]

    def use_stored(self, job: Job) -> bool:
        """Settle a question with its stored answer; False if it has none,
        or one too old.
        """
        reply = self.answers.get(job.question)
        if reply is None:
            return False

        if isinstance(reply, Answer) and self._is_outdated(job, reply):
            job.outdated = reply
            return False

        job.settle(reply)
        return True

    def lease(self, jobs: Sequence[Job]) -> set[Job]:
        """Take the leases of questions that are about to be asked.

        Those that must not be asked are returned: another run is asking them, or has
        had the answer just now.
        """
        keys: dict[Job, str] = {}
        for job in jobs:
            if job.lease is None:
                job.lease = ""
                if not job.of_trial and (key := self.answers.key_of(job.question)):
                    keys[job] = key
        if not keys:
            return set()

        self.store = self.answers.store
        assert self.store
        gone = set()
        taken = self.store.leases.take(list(keys.values()))
        for job, key in keys.items():
            if key not in taken and not self.answers.fresh:
                job.lease = None
                self.elsewhere[job] = key
                gone.add(job)
            else:
                taken.discard(key)
                job.lease = key
                if self.use_stored(job):
                    gone.add(job)
        return gone

    def watch_leases(self) -> list[Job]:
        """Keep our leases; the questions that other runs are not asking any more."""
        assert self.store
        self.store.leases.renew()
        if not self.elsewhere:
            return []

        leased = self.store.leases.all()
        ended = [job for job, key in self.elsewhere.items() if key not in leased]
        for job in ended:
            del self.elsewhere[job]
        return ended

    def save(self) -> None:
        """Write down what has arrived."""
        if self.store and self.store.unsaved:
            self.store.save()

    @property
    def trouble(self) -> str:
        """Why nothing more must be asked: answers can't be kept. Empty if they can."""
        trouble = self.answers.trouble
        self.not_kept |= bool(trouble)
        return trouble

    def stop(self, reason: str) -> None:
        """Wait for no other run."""
        jobs = list(self.elsewhere)
        self.elsewhere.clear()
        for job in jobs:
            job.settle(NoAnswer(reason))

    def close(self) -> None:
        self.not_kept |= not self.answers.close()

    def _note_settled(self, job: Job, _reply: Reply) -> None:
        self.settled.append(job)
        if job.lease and self.store:
            self.store.leases.release(job.lease)

    def _asked_at(self, question: Question) -> int | None:
        """When the answer was given that a question has;
        None if it is asked in this run.
        """
        job = self.jobs.get(question.key)
        if job is None:
            return self.answers.asked_at(question)
        return job.reply.asked_at if isinstance(job.reply, Answer) else None

    def _is_outdated(self, job: Job, stored: Answer) -> bool:
        if job.outdated and job.outdated.asked_at != stored.asked_at:
            return False  # Another run has asked it again.

        # A clock may have been wrong.
        judged_at = min(job.question.judged_at or 0, time.time())
        return job.question.renew or judged_at - (stored.asked_at or 0) > self._max_age
