"""What tests that ask something have in common: their answers, and what these come to."""

from dataclasses import replace
from typing import Any

from .._util.texts import harmless
from ..results.accepted import case_result
from ..results.regressions import Standing
from ..trials.plan import PlannedCase
from ..trials.records import Record, dump_records
from ..trials.trial import Trial
from .again import what_to_do
from .display import screen_of
from .items import ItemOfFile
from .outcomes import RECORDS_PROPERTY, NotAnswered, is_expected_to_fail, judge_present


class AskedItem(ItemOfFile):
    """A test of answers. One that is missing is an error, a wrong one is a failure."""

    _planned: PlannedCase

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._records: list[Record] = []

    @property
    def trials(self) -> tuple[Trial, ...]:
        return self._planned.trials

    @property
    def planned(self) -> PlannedCase:
        """With the marks that it has by now."""
        compared = not is_expected_to_fail(self)
        if compared is not self._planned.compared:
            self._planned = replace(self._planned, compared=compared)
        return self._planned

    def _require_answers(self) -> None:
        """NotAnswered if a trial of the records erred."""
        errors = [record.error for record in self._records if record.error is not None]
        if errors:
            self._send_records()  # other trials may have been answered
            reasons = "\n".join(dict.fromkeys(map(harmless, errors)))
            replayed = self.parent.run.settings.replay_file
            text = f"{self.name}: {reasons}" if replayed else reasons
            again = what_to_do(self, "", screen_of(self.config).width)
            raise NotAnswered("\n".join([text, "", *again]), pytrace=False)

    def _wrong(self) -> Standing | None:
        """Why the test fails, if it does: too few of its runs were right."""
        self._send_records()
        planned, run = self.planned, self.parent.run
        result = case_result(self._records, planned.digest)
        assert result, "setup reports missing answers"
        return judge_present(
            self, run.settings, planned, result.count, lambda: run.regression_of(self)
        )

    def _send_records(self) -> None:
        """Attach the records to the test's report."""
        self.user_properties[:] = [(RECORDS_PROPERTY, dump_records(self._records))]
