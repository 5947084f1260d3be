"""The pytest plugin of accepted results."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from ...errors import InputError
from ...plugin.next_command import same_command
from ...plugin.pytest_options import FLAGS, message_of
from ...plugin.run import PLANNED, RUN, NextStep
from ...plugin.skill_files import SkillFile
from ...results.standings import Standing
from ...trials.plan import PlannedCase, Unmatched
from ...trials.records import Record
from .expecting import expect, find_skipped, find_unmatched
from .results import AcceptedFiles, compare_case, excuse_failure, read_results

if TYPE_CHECKING:
    from ...results.run import RunResults


class AcceptedResults:
    """The hooks, in the order of a run."""

    def __init__(self) -> None:
        self._missing: list[Unmatched] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """A skill whose results can't be read has one error in place of its tests."""
        report = yield
        if isinstance(collector, SkillFile):
            try:
                read_results(collector.source.folder)
            except InputError as error:
                message = message_of(error, collector.config)
                report.result = [collector.make_unrunnable(message)]
        return report

    @pytest.hookimpl(trylast=True)  # after tests were deselected
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        run = config.stash[RUN]
        if run.settings.aa:
            return
        try:
            run.unmatched = tuple(find_unmatched(run, set(items)))
            files = AcceptedFiles()
            for item in items:
                test = item.stash.get(PLANNED, None)
                if test and not run.settings.accept:
                    test.case = expect(test.case, files)
        except InputError as error:
            # Of a skill that only tests in Python name.
            raise pytest.UsageError(message_of(error, config)) from None

    def pytest_upskill_graded(
        self, item: pytest.Item, case: PlannedCase, records: Sequence[Record]
    ) -> Standing | None:
        if compared := compare_case(case, records):
            return compared.standing
        if item.config.stash[RUN].settings.accept:
            return excuse_failure(case, records)
        return None

    def pytest_upskill_results(
        self, config: pytest.Config, results: "RunResults"
    ) -> dict[str, Any]:
        settings = config.stash[RUN].settings
        if settings.aa:
            return {}
        self._missing = [*results.unmatched, *find_skipped(results)]
        return {"unmatched": () if settings.accept else tuple(self._missing)}

    @pytest.hookimpl(tryfirst=True)  # before reports, which have its notes
    def pytest_upskill_finished(
        self, config: pytest.Config, results: "RunResults"
    ) -> list[str]:
        from ...plugin.finishing import write_files
        from .accepting import accept

        run = config.stash[RUN]
        for comparison in results.comparisons:
            run.notes += comparison.notes
        if not run.settings.accept:
            return []

        notes: list[str] = []
        lower = run.settings.accept_lower
        write_files(run, accept(results, self._missing, notes, lower=lower))
        run.notes += notes
        return notes if run.is_quiet else []

    def pytest_upskill_next_step(
        self, config: pytest.Config, results: "RunResults"
    ) -> NextStep | None:
        from ...plugin.next_step import is_settled
        from .accepting import find_news

        run = config.stash[RUN]
        news = find_news(results) if is_settled(run) else ""
        if not news:
            return None
        words = same_command(config, FLAGS["accept"])
        # What is better may have been a good draw.
        if news == "better" and not run.settings.replay_file:
            words.append(FLAGS["fresh"])
        return NextStep(words)
