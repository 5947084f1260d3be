"""A query of a trigger as a pytest item: is the skill opened when it should be, and only then?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._util.keys import without_keys
from ..checks.judging import Ask
from ..reports.terminal.trigger_lines import trigger_failure
from ..results.accepted import planned_trigger
from ..results.triggers import query_rate
from ..skills.triggers import Trigger
from ..trials.choice import Choice
from ..trials.outfit import Outfit
from ..trials.records import Record
from ..trials.subject import Subject
from ..trials.triggers import trigger_record, trigger_trials
from .again import link_to, what_to_do
from .asked_item import AskedItem
from .display import screen_of
from .outcomes import WrongAnswer
from .paths import relative

if TYPE_CHECKING:
    from .nodes import SkillFile


class TriggerItem(AskedItem):
    """A query on a model, by an agent or as a choice of the model."""

    trigger: Trigger

    @classmethod
    def make(
        cls, parent: "SkillFile", trigger: Trigger, subject: Subject, among: Outfit | Choice
    ) -> "TriggerItem":
        name = f"{trigger.id}[{subject.label}]"
        item: TriggerItem = cls.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}")
        item.trigger, item.place, item.line = trigger, trigger.place, trigger.line
        source, settings, queries = parent.source, parent.run.settings, parent.queries
        item._planned = planned_trigger(
            item.nodeid,
            trigger,
            trigger_trials(
                source.label, trigger, subject.model, settings, among, settings.trigger_runs
            ),
            settings,
            folder=source.folder,
            file=relative(trigger.file, parent.config.rootpath),
            accepted=parent.accepted,
            siblings=tuple(one.id for one in queries.triggers),
            of=len(queries.triggers) + len(queries.broken),
        )
        for mark in ("skill", "trigger"):
            item.add_marker(mark)
        return item

    def setup(self) -> None:
        """See what was decided: a trial that decided nothing is an error, not a failure."""
        run = self.parent.run
        if run.asks:
            (self._records,) = records_of_queries([self], run.ask)
            self._require_answers()

    def runtest(self) -> None:
        """Fail unless enough runs decided right."""
        if standing := self._wrong():
            planned = self._planned
            text = trigger_failure(
                query_rate(planned, self.trigger.query, self._records),
                self._records,
                standing=standing.reason if standing.kind == "regressed" else "",
                where=self.trigger.where,
            )
            link, width = link_to(planned, self.parent.run.settings), screen_of(self.config).width
            text = "\n".join([text, *what_to_do(self, link, width)])
            raise WrongAnswer(without_keys(text), pytrace=False)

    @property
    def _line(self) -> int:
        return self.line if self.path == self.trigger.file else 1


def records_of_queries(items: Sequence[TriggerItem], ask: Ask) -> list[list[Record]]:
    """The records of each item; new questions are asked all at once."""
    new = [item for item in items if not item._records]
    replies = iter(ask([trial.question for item in new for trial in item.trials]))
    for item in new:
        wish = item.trigger.should_trigger
        item._records = [trigger_record(trial, next(replies), wish) for trial in item.trials]
    return [item._records for item in items]
