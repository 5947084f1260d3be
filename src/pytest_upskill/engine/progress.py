"""How far a run is."""

from ..trials.answer import Reply
from .forecast import PaidCall
from .known_replies import KnownReplies
from .scheduler import Scheduler


class Progress:
    """Figures for the line that shows the progress of a run, and for its notes.

    Other threads read them while the engine works.
    """

    def __init__(self, known: KnownReplies, scheduler: Scheduler) -> None:
        self._known = known
        self._scheduler = scheduler

    @property
    def questions(self) -> int:
        """How many questions there are so far, answered or not."""
        return len(self._known.jobs)

    def settled(self, since: int = 0) -> list[tuple[str, Reply]]:
        """Models and replies in order of arrival, without the first ``since``."""
        replies = []
        for job in self._known.settled[since:]:
            if job.reply:
                replies.append((job.question.model, job.reply))
        return replies

    @property
    def in_flight(self) -> int:
        return self._scheduler.in_flight

    @property
    def elsewhere(self) -> int:
        """How many questions another run is asking."""
        return len(self._known.elsewhere)

    @property
    def opening(self) -> list[str]:
        """Models that can't be asked yet: their SDK is being imported,
        or their server started.
        """
        lanes = list(self._scheduler.lanes.values())
        opening = [lane for lane in lanes if lane.opening and not lane.dead]
        return [lane.name for lane in opening if not lane.model]

    @property
    def pausing(self) -> int:
        """How many questions are waiting for a retry."""
        return sum(lane.to_retry for lane in list(self._scheduler.lanes.values()))

    def retries(self) -> dict[str, int]:
        """The number of retries, by model."""
        return {name: lane.retries for name, lane in self._scheduler.lanes.items()}

    @property
    def agents_at_work(self) -> tuple[int, list[PaidCall]]:
        """How many agents are running, and all replies that they have got."""
        return self._scheduler.agents.at_work, self._scheduler.agents.spent

    @property
    def agents_note(self) -> str:
        """What kept agents waiting, if anything did."""
        return self._scheduler.agents.note

    @property
    def not_renewed(self) -> list[str]:
        """Why outdated answers were used: each could not be asked again."""
        jobs = list(self._known.jobs.values())
        return [job.not_renewed for job in jobs if job.not_renewed]
