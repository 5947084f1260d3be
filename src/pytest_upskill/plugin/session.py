"""The state of a run: one object registered with pytest,
with its hooks in the order of calls.
"""

import linecache
import os
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from .._util.interrupts import stop_on_second_interrupt, take_sigterm_as_ctrl_c
from .._util.keys import shown_command, without_keys
from .._util.texts import counted, harmless, one_line
from ..errors import InputError, NoKeyError
from ..settings import Settings
from ..skills.bundle import entry_name
from ..skills.context import require_ref
from ..skills.folder import skill_file
from ..skills.search import labels_of
from ..trials.answer import Reply
from ..trials.plan import Plan, Unmatched
from ..trials.subject import CHAT, ORACLE
from ..trials.trial import Question
from .accepting import fail_late, unmatched_of
from .artifacts import (
    refer_to_records,
    require_outputs,
    require_own_paths,
)
from .asking import Asking
from .concluding import Conclusion, write_problems
from .display import (
    fitted_lines,
    header_lines,
    plugin_lines,
    score_lines,
    screen_of,
    send_screen,
)
from .functions import MarkedTests
from .groups import Groups
from .item_lines import BriefSections, ItemLines, only_dots
from .items import BrokenCaseItem, ItemOfFile, NotAnswered, Unrunnable, taken_properties
from .ledger import Ledger
from .next_command import recording
from .paths import NO_CASES, Selected, SkillSource, ini_folder, select_skills
from .planning import (
    Announcement,
    idle_gates,
    lacking_lines,
    plan_of,
    planned_of,
    selected_by_outcome,
    skipped_lines,
    untested,
)
from .pytest_options import FLAGS, cli_agent_flags, cli_value, message_of, spell
from .run_settings import read_settings, with_upskill_config
from .run_subjects import RunSubjects
from .sandbox_choices import sandbox_lines
from .skill_code import asks_for_skills, code_kept_out, task_hint
from .skill_files import SkillFile, SkillWarning, require_judge
from .spending import Spending
from .task_files import files_of, uncompared_lines

_NO_SKILL: Final = (
    "upskill: no skill tested: add --skill PATH, or mark a test with"
    " @pytest.mark.skill(PATH)"
)
_SKIP_REASON: Final = "upskill_skip_reason"  # sent to xdist workers
_LONGEST_LINE: Final = 100  # of a file that a warning is about
_COLLECTION_FAILED: Final = (
    "not asked: collection failed. Fix it, or add --continue-on-collection-errors"
)


class SkillSession:
    """One pytest run that tests skills."""

    settings: Settings
    subjects: RunSubjects
    asks: bool
    groups: Groups  # in the process that runs the tests

    def __init__(self, config: pytest.Config) -> None:
        # Why all tests of skills are skipped, and the whole sentence about it
        self._skip_reason = getattr(config, "workerinput", {}).get(_SKIP_REASON, "")
        self._not_tested = ""
        self._may_skip = not os.environ.get("CI") and not asks_for_skills(config)
        self.warned = Counter[str]()  # files, by the kind of their first problem
        self._config = config
        self._session: pytest.Session | None = None
        self._code = code_kept_out(config)
        self._selected = Selected()
        self._files: list[SkillFile] = []
        self._unmatched: tuple[Unmatched, ...] = ()  # accepted results
        self._untested: dict[str, str] = {}
        self._idle_gates: tuple[str, ...] = ()
        self._stopped: str | None = None  # why the run ended early
        self._with_conftests: set[Path] = set()
        self._asking = Asking(config, None, self._begin)
        self._announcement: Announcement | None = None
        self._ledger: Ledger | None = None
        self._spending: Spending | None = None
        self._required = False
        self._problems: list[str] = []
        self._conclusion: Conclusion | None = None
        config.pluginmanager.register(
            MarkedTests(self, self._label_of), "upskill-marked"
        )

    # Beginning.

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None]:
        self._session = session
        screen_of(self._config)
        # An option is missing if its plugin is disabled.
        dry_run_options = ("collectonly", "setuponly", "setupplan")
        self.asks = not self._skip_reason and not any(
            getattr(self._config.option, name, False) for name in dry_run_options
        )
        if self.asks and not hasattr(self._config, "workerinput"):
            self._config.add_cleanup(take_sigterm_as_ctrl_c())
        try:
            folder = ini_folder(self._config)
            self.settings = with_upskill_config(
                read_settings(self._config), folder, self._code
            )
            self._selected = select_skills(self._config, self.settings)
            if ref := self.settings.against:
                for source in self._selected.sources:
                    require_ref(ref, source.folder.resolve())
            require_own_paths(self.settings, self._selected.all, self._config)
            if (
                self.asks
                and not self.settings.judge
                and set(self.settings.agents) != {ORACLE}
            ):
                require_judge(self._selected.sources)
            self.subjects = RunSubjects(
                self._config, self.settings, self._selected, asks=self.asks
            )
            self.settings = self.subjects.settings
            if not hasattr(self._config, "workerinput"):
                self._prepare_models()
        except InputError as error:
            raise pytest.UsageError(message_of(error, self._config)) from None
        return (yield)

    def _prepare_models(self) -> None:
        subjects, settings, config = self.subjects, self.settings, self._config
        subjects.add_judge(self._selected.sources)
        self._announcement = Announcement(
            config, subjects.models, settings, self._note, asks=self.asks
        )
        if not self.asks:
            return
        try:
            if self._selected.sources:  # or no model may be needed at all
                self._require_models()
            elif self._may_skip:
                subjects.require_keys()
        except NoKeyError as error:
            if not self._may_skip:
                raise
            sentence = harmless(without_keys(error.sentence(spell)))
            self._skip_reason = f"skills not tested: {sentence}"
            self.asks = subjects.asks = False
            return
        engine = subjects.models.engine(
            settings,
            config.rootpath,
            self._note,
            spell=spell,
            budget_hint="raise it, or select fewer tests with -k",
            store_hint=f". {FLAGS['fresh']} asks all the same",
            how_to_record=shown_command(recording(config, settings.replay_file)),
        )
        self._asking = Asking(config, engine, self._begin)
        price_of = subjects.models.price_of
        self._spending = Spending(engine, price_of, settings, subjects.models.opening)
        self._ledger = ledger = Ledger(subjects.model_ids, price_of)
        self._conclusion = Conclusion(config, subjects, ledger, engine, self._spending)
        lines = ItemLines(config, settings.against, ledger.records_of)
        config.pluginmanager.register(lines, "upskill-item-lines")
        config.pluginmanager.register(self._announcement, "upskill-announcement")
        BriefSections(config, ledger).register(config.pluginmanager)

    def _require_models(self) -> None:
        require_outputs(self.settings)
        self.subjects.require(self._selected.sources, self._tell)
        self._required = True

    def _note(self, problem: str) -> None:
        """Note a problem once: stored answers are opened for the
        estimate and for the run.
        """
        if problem not in self._problems:
            self._problems.append(problem)

    def _tell(self, line: str) -> None:
        if reporter := self._config.pluginmanager.get_plugin("terminalreporter"):
            for part in fitted_lines(self._config, [line]):
                reporter.write_line(part)

    def _label_of(self, folder: Path) -> str:
        """The label of a skill that a test in Python names: the same as for --skill."""
        sources = self._selected.all
        labels = [
            source.label for source in sources if source.folder.resolve() == folder
        ]
        file = skill_file(folder)
        return (
            labels[0]
            if labels
            else labels_of(
                [file, *(source.skill_file for source in sources)], entry_name
            )[file]
        )

    def pytest_report_header(self) -> list[str]:
        verbose, sources = self._config.get_verbosity() > 0, self._selected.sources
        subjects = self.subjects
        lines = header_lines(
            self._selected,
            subjects.specs,
            subjects.judges,
            self.settings,
            verbose=verbose,
        )
        has_triggers = any(source.suites.has_triggers for source in sources)
        unused = cli_agent_flags(self._config, has_triggers=has_triggers)
        if not subjects.has_agents and unused and sources:
            lines.append(
                f"upskill: {', '.join(unused)}: only for agents (--skill-agent loop)"
            )
        if set(subjects.specs) == {ORACLE} and cli_value(self._config, "models"):
            lines.append(
                f"upskill: {FLAGS['models']} has no effect: the oracle asks no model"
            )
        if (
            self._config.getoption("numprocesses", None)
            and sources
            and not subjects.agents
        ):
            lines.append(
                "upskill: calls are concurrent already: -n only spreads the work of"
                " checks"
            )
        lines += subjects.header_lines()
        agents = dict.fromkeys(subject.agent for subject in subjects.by_label.values())
        lines += plugin_lines(sources, agents)
        if sources and set(subjects.specs) != {ORACLE}:
            lines += score_lines(sources, self.settings.score)
        if self._code:
            lines += self._code.header_lines(
                source.folder for source in self._selected.all
            )
        return fitted_lines(self._config, lines)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        self._asking.send_link(node)
        self.subjects.send_versions(node)
        send_screen(self._config, node)
        node.workerinput[_SKIP_REASON] = self._skip_reason  # type: ignore[attr-defined]

    # Collecting.

    @pytest.hookimpl(wrapper=True, trylast=True)  # --lf sorts what is collected
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the skills to what pytest collects of its own arguments."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            sources = self._selected.sources
            self._files = [
                file for source in sources for file in files_of(collector, source, self)
            ]
            report.result = [*report.result, *self._files]
        return report

    def load_conftests(self, source: SkillSource) -> Path | None:
        """The folder whose conftest files apply to a skill:
        the nearest that pytest has loaded.

        Those of the project are imported for it, once: if one is broken, that is an
        error of the first skill there, and pytest stops.
        """
        folder, manager = source.conftests, self._config.pluginmanager
        if folder and folder not in self._with_conftests:
            self._with_conftests.add(folder)
            manager._loadconftestmodules(
                folder,
                self._config.getoption("importmode"),
                rootpath=self._config.rootpath,
                consider_namespace_packages=self._config.getini(
                    "consider_namespace_packages"
                ),
            )
        return next(filter(manager._getconftestmodules, source.folder.parents), folder)

    @pytest.hookimpl(tryfirst=True)  # before it is shown, or sent to the controller
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Add the number of files, and shorten the line that pytest shows:
        it may be endless.
        """
        warning = warning_message.message
        if (
            isinstance(warning, SkillWarning)
            and (others := self.warned[warning.kind] - 1) > 0
        ):
            files = f"{counted(others, 'more file')} like this"
            warning_message.message = SkillWarning(
                f"{warning} ({files}: pytest-upskill lint)"
            )
        if issubclass(warning_message.category, SkillWarning):
            line = linecache.getline(warning_message.filename, warning_message.lineno)
            warning_message.line = one_line(line, _LONGEST_LINE)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None]:
        """Like an error of collection, a broken skill can't be deselected by -k or
        -m.
        """
        deselected = tuple(config.getoption("deselect", None) or ())
        collected = list(items)
        runnable = list[pytest.Item]()
        broken = list[pytest.Item]()
        for item in items:
            stays = isinstance(item, Unrunnable) and not item.nodeid.startswith(
                deselected
            )
            (broken if stays else runnable).append(item)
        items[:] = runnable
        yield
        items += broken
        if self._skip_reason:
            skip = pytest.mark.skip(reason=self._skip_reason)
            for item in filter(planned_of, items):
                item.add_marker(skip)
        self._unmatched = unmatched_of(
            items, self._files, self._selected.without_cases, self.subjects.by_label
        )
        without = {source.label: NO_CASES for source in self._selected.without_cases}
        self._untested = untested(
            collected, items, self._files, without, self.subjects.model_ids
        )
        self._idle_gates = idle_gates(collected, items, config)

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        # With -qq pytest does not say what it collected
        if self._config.get_verbosity() < -1 or self._skip_reason:
            return []
        plan = plan_of(items)
        lines = self._announcement.lines(plan) if self._announcement else []
        chat = any(subject.agent == CHAT for subject in self.subjects.by_label.values())
        lines += [] if self.asks else skipped_lines(items, plan)
        lines += lacking_lines(items, self._files if chat else ())
        lines += uncompared_lines(items)
        if self.subjects.agents:
            lines += sandbox_lines(items, self.settings, asks=self.asks)
        return fitted_lines(self._config, lines)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if self._ledger:
            self._ledger.add_collected(ids)

    # Asking.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        only_dots(self._config, session.items)
        broken = (
            session.testsfailed
            and not self._config.option.continue_on_collection_errors
        )
        if broken:  # pytest stops here, but xdist runs what was collected
            self._asking.refuse(_COLLECTION_FAILED)
        elif self.asks:
            self._asking.connect()
            plan = replace(
                plan_of(session.items),
                untested=self._untested,
                unmatched=self._unmatched,
                idle_gates=self._idle_gates,
                by_outcome=selected_by_outcome(session.items, self._config),
            )
            self.groups = Groups(plan, session.items, self.ask)
            # Not in the controller, which collects nothing.
            if plan.nodeids or plan.untested or plan.unmatched:
                self._begin(plan)
        with self._asking.progress_shown(self._spending):
            result = yield
        if self._ledger:
            fail_late(self._ledger, self._config)
        return result

    def _begin(self, plan: Plan) -> None:
        if self._ledger:
            self._ledger.add_plan(plan)
            if self._announcement and self._config.pluginmanager.hasplugin("dsession"):
                self._announcement.keep(plan)
            if plan.tests:
                self._require_late()
        self._asking.start(plan)

    def _require_late(self) -> None:
        """Check the models of tests in Python; perhaps on a thread of the link."""
        try:
            if not self._required:
                self._require_models()
        except InputError as error:
            self._asking.stop(f"not asked: {message_of(error, self._config)}")

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        return self._asking.ask(questions)

    # Ending.

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # to have the last word
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

    @pytest.hookimpl(tryfirst=True)  # before JUnit sees the report
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._ledger:
            self._ledger.add_report(report)
            refer_to_records(report, self._ledger, self._config, self.settings)
        if report.skipped and self._skip_reason in str(report.longrepr):
            self._not_tested = self._skip_reason
        if self._session and (self._session.shouldfail or self._session.shouldstop):
            self._asking.stop()

    # Before pytest describes the interrupt, which takes time
    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Ctrl-C, pytest.exit, or a stop by pytest or a plugin."""
        self._expect_interrupts()
        self._stopped = str(excinfo.value) or excinfo.typename
        self._asking.stop()

    def _expect_interrupts(self) -> None:
        if self._ledger and self._ledger.concerns_skills:
            self._config.add_cleanup(stop_on_second_interrupt())

    def pytest_internalerror(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        self._stopped = f"internal error: {excinfo.exconly()}"

    # Before xdist ends its workers, which may wait for a reply
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._expect_interrupts()
        self._asking.close()
        self.subjects.models.leave_cluster()
        if self._config.option.collectonly:
            # What a run would report as errors and failures.
            kinds = (Unrunnable, BrokenCaseItem)
            broken = [item.message for item in session.items if isinstance(item, kinds)]
            self._problems += broken
            if broken:
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        if self._conclusion:
            good = self._conclusion.draw(session, self._stopped)
            # A plugin may turn "no tests" into a success, but not
            # a gate without evidence.
            if not good and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            elif not good:
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        shows_summary = config.get_verbosity() >= 0 and not config.option.no_summary
        if self._conclusion and self._session and shows_summary:
            self._conclusion.write_summary(terminalreporter, self._session)
        chosen = self._selected.sources or terminalreporter.stats.get("deselected")
        failed = self._session and self._session.testsfailed
        tested = not self._ledger or self._ledger.concerns_skills
        if cli_value(config, "models") and not (tested or chosen or failed):
            for line in fitted_lines(config, [task_hint(config) or _NO_SKILL]):
                terminalreporter.write_line(line)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the last lines, also without a summary."""
        engine, spending = self._asking.engine, self._spending
        if not (self._conclusion and engine and spending and self._session):
            write_problems(config, self._problems)
            reporter = config.pluginmanager.get_plugin("terminalreporter")
            if self._not_tested and reporter:
                reporter.write_line(f"! {self._not_tested}", yellow=True)
        else:
            selected = [source.label for source in self._selected.sources]
            self._conclusion.write_closing(self._session, self._problems, selected)
