"""The pytest plugin of accepted results."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

from ..._util.keys import shown_command, shown_words
from ...errors import InputError
from ...plugin.item_reports import NotAnswered
from ...plugin.next_command import accepting, only_failures
from ...plugin.pytest_options import message_of
from ...plugin.run import PLANNED, RUN, NextStep, Run, is_skipped, planned_of
from ...plugin.skill_files import SkillFile
from ...results.standings import Standing
from ...trials.plan import PlannedCase, Unmatched, Why
from ...trials.records import Record
from .expecting import Present, expect, find_skipped, find_unmatched
from .file import read_results

if TYPE_CHECKING:
    from ...results.run import RunResults


# Why the accepted results of a test can't be read.
_UNREADABLE: Final = pytest.StashKey[str]()


class Accepted:
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
        for item in items:
            if test := item.stash.get(PLANNED, None):
                if run.settings.accept or run.settings.aa:
                    continue
                try:
                    test.case = expect(test.case)
                except InputError as error:
                    # Only tests in Python name this skill.
                    item.stash[_UNREADABLE] = message_of(error, config)

        tests = []
        selected = set(items)
        for item in run.collected:
            if case := planned_of(item):
                why: Why | None = None if case.compared else "marked xfail"
                if is_skipped(item):
                    why = "skipped"
                tests.append(Present(case, why, item in selected))
        run.unmatched = tuple(find_unmatched(run, tests))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if message := item.stash.get(_UNREADABLE, ""):
            raise NotAnswered(message, pytrace=False)

    def pytest_upskill_graded(
        self, item: pytest.Item, case: PlannedCase, records: Sequence[Record]
    ) -> Standing | None:
        from ...results.outcomes import count_passes, reaches
        from .comparison import compare_case

        if compared := compare_case(case, records):
            return compared.standing
        now = count_passes(records)
        is_good = now and reaches(now, case.threshold)
        if is_good or not item.config.stash[RUN].settings.accept:
            return None
        return Standing("accepted as failing", f"failing, in a run to accept ({now})")

    def pytest_upskill_results(
        self, config: pytest.Config, results: "RunResults"
    ) -> dict[str, Any]:
        self._missing = [*results.unmatched, *find_skipped(results)]
        settings = config.stash[RUN].settings
        is_compared = not settings.accept and not settings.aa
        return {"unmatched": tuple(self._missing) if is_compared else ()}

    @pytest.hookimpl(wrapper=True)  # before reports, which have its notes
    def pytest_upskill_finished(
        self, config: pytest.Config, results: "RunResults"
    ) -> Generator[None, list[Any], list[Any]]:
        from ...plugin.finishing import write_files
        from .accepting import accept

        run = config.stash[RUN]
        accepted: list[str] = []
        if run.settings.accept:
            lower = run.settings.accept_lower
            write_files(run, accept(results, self._missing, accepted, lower=lower))
        chance: list[str] = []
        for comparison in results.comparisons:
            run.notes += comparison.notes
            chance += comparison.warnings
        if command := _choose_command(run, results):
            run.notes.append(f"To accept: {shown_command(command)}")
        run.notes += [*chance, *accepted]
        of_others = yield
        return [[*chance, *accepted], *of_others] if run.is_quiet else of_others

    def pytest_upskill_next_step(
        self, config: pytest.Config, results: "RunResults"
    ) -> NextStep | None:
        from ...plugin.next_step import is_settled
        from ...plugin.notes import is_small

        run = config.stash[RUN]
        if not is_settled(run):
            return None
        if command := _choose_command(run, results):
            return NextStep(command)

        specs = run.subjects.specs.values()
        # A page is opened first.
        if run.has_failed or run.settings.html_file or any(map(is_small, specs)):
            return None
        is_new = not (results.subsets or results.comparisons or run.settings.accept)
        if is_new and _all_help(results):
            hint = "to have later runs fail if it gets worse, accept these results:"
            return NextStep(accepting(config), hint)
        return None

    @pytest.hookimpl(trylast=True)  # below the next command
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        run = config.stash[RUN]
        reporter = config.pluginmanager.getplugin("terminalreporter")
        is_last = reporter and not config.pluginmanager.hasplugin("upskill-try")
        if is_last and run.results and _could_be_known(run, run.results):
            from ...plugin.display import screen_of
            from ...reports.terminal.closing_lines import command_lines

            words = shown_words(accepting(config))
            width = screen_of(config).width
            for line in command_lines("or accept these failures: ", words, width):
                reporter.write_line(line)


def _choose_command(run: Run, results: "RunResults") -> list[str]:
    """The command that accepts the results; empty if there is nothing to accept."""
    from .accepting import find_news

    news = find_news(results)
    fresh = news == "better" and not run.settings.replay_file
    return accepting(run.config, fresh=fresh) if news else []


def _could_be_known(run: Run, results: "RunResults") -> bool:
    """Whether the skills help, and cases that fail regardless are all that fails the
    run.
    """
    if not run.has_failed or results.broken or run.problems:
        return False
    if results.gate.reasons or results.unfinished or results.subsets:
        return False
    failed_cases = results.outcome_counts.get("failed", 0)
    all_known = run.session.testsfailed == failed_cases and _all_help(results)
    return all_known and bool(only_failures(run.config))


def _all_help(results: "RunResults") -> bool:
    verdicts = results.verdicts
    return bool(verdicts) and all(verdict.verdict == "helps" for verdict in verdicts)
