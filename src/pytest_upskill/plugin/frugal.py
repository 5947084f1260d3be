"""Frugal runs, ``--skill-runs 3..12``: how many of them the cases of a skill on a model get.

Every process has collected all items, so each finds this out by itself, from the same answers and
with the same end: questions are asked once, whoever asks them. What a look has graded is kept in
the items.
"""

from collections.abc import Sequence

from ..checks.judging import Ask
from ..results.summary import summarize
from ..settings import Settings
from ..stats import look, look_plan
from .items import CaseItem, is_passed_by, records_of_items


def looks_of(settings: Settings) -> tuple[int, ...]:
    """After how many runs the verdict is looked at; never, if the number of runs is given."""
    return look_plan(settings.first_runs, settings.runs) if settings.first_runs else ()


class FrugalRuns:
    """Decides once for each skill and model."""

    def __init__(self, settings: Settings, ask: Ask) -> None:
        self._looks = looks_of(settings)
        self._most = settings.runs
        self._ask = ask
        self._decided: dict[tuple[str, str], int] = {}

    def runs_of(self, item: CaseItem) -> int:
        if not self._looks:
            return self._most
        group = _group(item)
        if group not in self._decided:
            items = [other for other in item.session.items if isinstance(other, CaseItem)]
            own = [other for other in items if _group(other) == group and not is_passed_by(other)]
            self._decided[group] = self._decide(*group, own)
        return self._decided[group]

    def _decide(self, skill: str, model: str, items: Sequence[CaseItem]) -> int:
        for runs in self._looks:
            records = [record for own in records_of_items(items, runs, self._ask) for record in own]
            seen = summarize(records, skill, model, model_id=model, not_run=0)
            # Without all answers the verdict is incomplete, and more of them would not change that.
            if seen.errored or not seen.rates or not look(seen.rates, runs, self._looks).open:
                break
        return runs


def _group(item: CaseItem) -> tuple[str, str]:
    return item.trials[0].skill, item.trials[0].model
