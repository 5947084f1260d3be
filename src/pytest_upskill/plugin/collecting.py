"""Collecting: the settings, skills and models of a run, and what pytest collects."""

import linecache
import warnings
from collections.abc import Generator, Sequence
from typing import Final

import pytest

from .._util.interrupts import take_sigterm_as_ctrl_c
from .._util.texts import counted, one_line
from ..errors import InputError
from .announcing import announce_tests
from .case_reading import SkillWarning
from .display import fitted_lines, screen_of, send_screen
from .header import header_lines
from .items import BrokenCaseItem, Unrunnable
from .paths import ini_folder, select_skills
from .pytest_options import message_of
from .run import Run, planned_of
from .run_settings import (
    read_settings,
    require_own_paths,
    require_refs,
    with_upskill_config,
)
from .run_subjects import open_pytest_run, send_versions
from .skill_code import code_kept_out
from .skill_files import files_of

_SKIP_REASON: Final = "upskill_skip_reason"  # sent to xdist workers
_MAX_LINE_LENGTH: Final = 100
_DRY_RUNS: Final = ("collectonly", "setuponly", "setupplan")


class Collecting:
    def __init__(self, run: Run) -> None:
        self._run = run
        run.skip_reason = run.workerinput.get(_SKIP_REASON, "")

    # Settings, skills and models.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None]:
        run = self._run
        run.session = session
        screen_of(run.config)
        # An option is missing if its plugin is disabled.
        options = run.config.option
        is_dry = any(getattr(options, name, False) for name in _DRY_RUNS)
        run.asks = not run.skip_reason and not is_dry
        if run.asks and not run.is_worker:
            run.config.add_cleanup(take_sigterm_as_ctrl_c())
        try:
            self._select()
        except InputError as error:
            raise pytest.UsageError(message_of(error, run.config)) from None
        return (yield)

    def _select(self) -> None:
        run = self._run
        code = code_kept_out(run.config)
        settings = read_settings(run.config)
        settings = with_upskill_config(settings, ini_folder(run.config), code)
        run.selected = selected = select_skills(run.config, settings)
        require_refs(settings, selected.sources)
        require_own_paths(settings, selected.all, run.config)
        run.subjects = open_pytest_run(run.config, settings, selected, asks=run.asks)
        run.settings = run.subjects.settings

    def pytest_report_header(self) -> list[str]:
        return fitted_lines(self._run.config, header_lines(self._run))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Send to an xdist worker what it can't find out alone."""
        send_versions(self._run.subjects, node)
        send_screen(self._run.config, node)
        node.workerinput[_SKIP_REASON] = self._run.skip_reason  # type: ignore[attr-defined]

    # Tests.

    @pytest.hookimpl(wrapper=True, trylast=True)  # --lf sorts what is collected
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the skills to what pytest collects of its own arguments."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            run = self._run
            run.files = []
            for source in run.selected.sources:
                run.files += files_of(collector, source, run)
            report.result = [*report.result, *run.files]
        return report

    @pytest.hookimpl(tryfirst=True)  # before it is shown, or sent to the controller
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Add the number of files, and shorten the line that pytest shows:
        it may be endless.
        """
        if not issubclass(warning_message.category, SkillWarning):
            return

        line = linecache.getline(warning_message.filename, warning_message.lineno)
        warning_message.line = one_line(line, _MAX_LINE_LENGTH)
        warning = warning_message.message
        if isinstance(warning, SkillWarning):
            others = self._run.warned[warning.kind] - 1
            if others > 0:
                files = f"{counted(others, 'more file')} like this"
                text = f"{warning} ({files}: pytest-upskill lint)"
                warning_message.message = SkillWarning(text)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None]:
        """Like an error of collection, a broken skill can't be deselected by -k or
        -m.
        """
        run = self._run
        run.collected = list(items)
        deselected = tuple(config.getoption("deselect", None) or ())
        broken = []
        items.clear()
        for item in run.collected:
            is_deselected = item.nodeid.startswith(deselected)
            if isinstance(item, Unrunnable) and not is_deselected:
                broken.append(item)
            else:
                items.append(item)
        yield
        items += broken
        if run.skip_reason:
            skip = pytest.mark.skip(reason=run.skip_reason)
            for item in items:
                if planned_of(item):
                    item.add_marker(skip)

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        run = self._run
        # With -qq pytest does not say what it collected.
        if run.config.get_verbosity() < -1 or run.skip_reason:
            return []
        return fitted_lines(run.config, announce_tests(run, items))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """With --collect-only, tell what a run would report as errors and failures."""
        if self._run.config.option.collectonly:
            for item in session.items:
                if isinstance(item, Unrunnable | BrokenCaseItem):
                    self._run.problems.append(item.message)
                    if not session.exitstatus:
                        session.exitstatus = pytest.ExitCode.TESTS_FAILED
