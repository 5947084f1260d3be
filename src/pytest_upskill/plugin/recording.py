"""Recording: the reports of tests go to the ledger, in the process with the engine."""

from collections.abc import Generator, Sequence

import pytest

from .item_reports import NotAnswered, taken_properties
from .items import ItemOfFile
from .run import Run


class Recording:
    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self) -> Generator[None]:
        run = self._run
        if run.asking.engine:
            from .ledger import Ledger

            subjects = run.subjects
            run.ledger = Ledger(subjects.model_ids, subjects.models.price_of)
        return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if self._run.ledger:
            self._run.ledger.add_collected(ids)

    # Outermost, to have the last word.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """An xfail expects a wrong answer, not a missing one."""
        report = yield
        failure = call.excinfo.value if call.excinfo else None
        if isinstance(failure, NotAnswered):
            if isinstance(item, ItemOfFile):
                item.shorten(report.longrepr, failure)
            if hasattr(report, "wasxfail"):
                report.outcome = "failed"
                del report.wasxfail
        if call.when == "teardown":
            taken_properties(report)  # earlier reports of the test had them
        return report

    @pytest.hookimpl(tryfirst=True)  # before features see the report
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        run = self._run
        if run.ledger:
            run.ledger.add_report(report)
        if run.session.shouldfail or run.session.shouldstop:
            run.asking.stop()
