"""The state of a run, as one object registered with pytest: its hooks in the order of calls."""

import linecache
import warnings
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from .._util.texts import one_line
from ..agents.names import AGENTS, Roster, subjects_of
from ..engine import Engine
from ..engine.batches import Waiting
from ..errors import InputError
from ..measure.assembly import DEFAULT_MODEL, Assembly, Specs
from ..measure.lab import Lab
from ..measure.outfits import Outfits
from ..models.names import PROVIDERS
from ..models.prices import parse_prices
from ..reports.markdown import markdown_summary
from ..reports.writers import (
    Finished,
    report_paths,
    report_writers,
    write_all,
    written_line,
)
from ..results.causes import cause_lines
from ..results.regressions import AcceptedComparison, Standing
from ..results.run import RunResults
from ..settings import Gates, Settings
from ..skills.at_ref import require_ref
from ..skills.case import Case
from ..skills.folder import skill_file
from ..skills.labels import labels_of
from ..skills.skill import Skill
from ..trials.answer import Reply
from ..trials.choice import Choice
from ..trials.outfit import Outfit
from ..trials.plan import Plan, Unmatched
from ..trials.subject import CHAT, Subject
from ..trials.trial import Question
from . import accepting, artifacts, closing, display, hooks, paths
from .announcing import Announcement, keep_usage
from .asking import Asking
from .batch_lines import TRY_LATER, batch_lines, write_submitted
from .calls import lacking_lines, plan_of, untested
from .case_items import CaseItem
from .flags import flags_of_agents, message_of, spell
from .functions import MarkedTests
from .groups import Groups, looks_of
from .items import BrokenCaseItem, ItemOfFile, Unrunnable
from .ledger import Ledger
from .nodes import SkillFile, SkillWarning
from .options import MODEL, gates_given
from .otel import OtelExport
from .outcomes import NotAnswered
from .paths import Selected
from .rerun import rerun_of
from .run_settings import read_settings
from .runnable import require_judge
from .same_errors import SameErrors
from .sandboxing import prepare
from .skill_code import code_kept_out
from .status_line import Tally
from .studies import Studies, require_studies, wanted_studies
from .trigger_items import TriggerItem
from .upskill_settings import with_upskill_config

_NO_SKILL = (
    "upskill: no skill tested: add --skill PATH, or mark a test with @pytest.mark.skill(PATH)"
)
_VERSIONS = "upskill_versions"  # of agents, that xdist workers are told
_LONGEST_LINE = 100  # of a file that a warning is about
_COLLECTION_FAILED = "not asked: collection failed. Fix it, or add --continue-on-collection-errors"


class UpskillRun:
    """One pytest run that tests skills."""

    settings: Settings
    subjects: dict[str, Subject]
    model_ids: dict[str, str]
    usual: Collection[str]
    asks: bool

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: pytest.Session | None = None
        self._code = code_kept_out(config)
        self._selected = Selected()
        self._files: list[SkillFile] = []
        self._unmatched: tuple[Unmatched, ...] = ()  # accepted results
        self._untested: dict[str, str] = {}
        self._stopped: str | None = None  # why the run ended early
        self._with_conftests: set[Path] = set()
        self._models = Assembly()
        self._specs: Specs = {}  # the models under test
        self._judges: Specs = {}
        self.subjects = {}
        self.model_ids = {}
        self.usual = ()
        self._outfits = Outfits(lambda: self.settings, self._version_of)
        self._unfit: list[Subject] = []  # pairs that are left out
        self._sandbox = ""  # its name, if agents will run
        self._asking = Asking(config, None, self._begin)
        self._announcement: Announcement | None = None
        self._ledger: Ledger | None = None
        self._groups: Groups | None = None
        self._studies: Studies | None = None
        self._required = False
        self._waiting: Waiting | None = None  # batches of a run that only submits
        self._problems: list[str] = []
        self._results: RunResults | None = None
        self._compared: list[AcceptedComparison] = []
        self._accepted: list[str] = []
        self._lines: list[str] = []  # of finished hooks, and of a damaged history
        self._gate: list[str] = []
        self._written: list[Path] = []
        config.pluginmanager.register(MarkedTests(self, self._label_of), "upskill-marked")

    # Beginning.

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None]:
        self._session = session
        display.screen_of(self._config)
        # An option is missing if its plugin is disabled.
        looks = ("collectonly", "setuponly", "setupplan")
        self.asks = not any(getattr(self._config.option, look, False) for look in looks)
        try:
            folder = paths.ini_folder(self._config)
            self.settings = with_upskill_config(read_settings(self._config), folder, self._code)
            self._find_skills()
            artifacts.require_apart(self.settings, self._selected.all, self._config)
            if self.asks and not self.settings.judge:
                require_judge(self._selected.sources, self.settings)
            self._name_subjects()
            require_studies(self.settings, self._selected, self.subjects.values())
            if not hasattr(self._config, "workerinput"):
                self._prepare_models()
        except InputError as error:
            raise pytest.UsageError(message_of(error, self._config)) from None
        return (yield)

    def _find_skills(self) -> None:
        self._selected = paths.select_skills(self._config, self.settings)
        if self.settings.against:
            for source in self._selected.sources:
                require_ref(self.settings.against, source.folder.resolve())

    def _name_subjects(self) -> None:
        """Use agents and models of node ids for these alone, and the usual ones for all else."""
        roster = Roster({**AGENTS, **hooks.agents(self._config)})
        agents = dict.fromkeys(map(roster.named, self.settings.agents))
        roster.tell(getattr(self._config, "workerinput", {}).get(_VERSIONS, {}))
        models, selected = self.settings.models, self._selected
        if selected.labels:
            if selected.on_usual_models:
                models = models or (DEFAULT_MODEL,)
            elif not self._config.args:  # there are no tests in Python either
                models = ()
        elif not models:
            models = (DEFAULT_MODEL,)
        usual = subjects_of(agents, models)
        named = [usual.get(label) or roster.subject_of(label) for label in selected.labels]
        self.subjects = {**usual, **{subject.label: subject for subject in named}}
        if selected.labels:
            names = tuple(dict.fromkeys(subject.model for subject in self.subjects.values()))
            file = self.settings.models_file if models else None
            self.settings = replace(self.settings, models=names, models_file=file)
        providers = {**PROVIDERS, **hooks.providers(self._config)}
        self._models = Assembly(parse_prices(self.settings.prices), providers, roster)
        self._specs = self._models.add_models(self.settings)
        fit, self._unfit = roster.pairs(self.subjects.values(), self._specs, named, providers)
        self.subjects = {subject.label: subject for subject in fit}
        usual = {label: subject for label, subject in usual.items() if subject in fit}
        self.model_ids = {
            label: self._specs[subject.model].model_id for label, subject in self.subjects.items()
        }
        self.usual = tuple(usual)
        if self._has_other_skills:
            self._outfits.require_apart(source.skill_file for source in selected.all)

    def _prepare_models(self) -> None:
        settings = self.settings
        self._judges = self._models.add_judge(settings)
        chat = [one.model for one in self.subjects.values() if one.agent == CHAT]
        self._models.require_batches(settings, dict.fromkeys([*chat, *self._judges]))
        self._announcement = Announcement(
            self._config, self._models, settings, self._note, asks=self.asks
        )
        if wanted_studies(settings):
            self._studies = Studies(self, self._selected, self._config, self._lab)
        if not self.asks:
            return
        if self._selected.sources:  # or no model may be needed at all
            self._require_models()
        engine = self._models.engine(
            settings,
            self._config.rootpath,
            self._note,
            spell=spell,
            budget_hint="raise it, or select fewer tests with -k",
            how_to_record=artifacts.command_that_records(self._config, settings.replay_file),
        )
        self._asking = Asking(self._config, engine, self._begin)
        self._ledger = Ledger(self.model_ids, self._models.price_of, looks_of(settings))
        lines = display.ItemLines(self._config, settings.against)
        self._config.pluginmanager.register(lines, "upskill-item-lines")
        ledger = self._ledger
        self._config.pluginmanager.register(self._announcement, "upskill-announcement")
        SameErrors(ledger.records_of).register(self._config.pluginmanager)
        specs = {label: self._specs[subject.model] for label, subject in self.subjects.items()}
        export = OtelExport(specs, lambda: ledger.answers(engine))
        self._config.pluginmanager.register(export, "upskill-otel")

    def _lab(self, looks: tuple[int, ...]) -> Lab:
        """What studies are carried out with."""
        price_of, version_of = self._models.price_of, self._version_of
        return Lab(self.settings, looks, self.ask, version_of, price_of, stop=self._asking.close)

    def _require_models(self) -> None:
        artifacts.require_outputs(self.settings)
        if self.settings.replay_file is None:  # a replay asks nobody, and needs no key
            self._models.require_tools(self.subjects.values())
            subjects = list(self.subjects.values())
            elsewhere = self._models.asked_elsewhere(self.settings, subjects)
            bar = display.download_bar(self._config)
            self._models.require(bar, subjects, elsewhere=elsewhere)
            if self._agents and self.settings.cluster:
                self._tell(f"upskill: looking at the workers of {self.settings.cluster}")
                self._config.add_cleanup(self._models.leave_cluster)
                self._models.join_cluster(self.settings, subjects)
            self._models.roster.find_out(self._agents)
            if self._agents:
                self._sandbox = prepare(self._selected.sources, self.settings, self._tell)
        self._models.require_prices(self.settings.max_cost)
        self._required = True

    def _note(self, problem: str) -> None:
        """Once: stored answers are opened for the estimate, and again to be used."""
        if problem not in self._problems:
            self._problems.append(problem)

    def _tell(self, line: str) -> None:
        if reporter := self._config.pluginmanager.get_plugin("terminalreporter"):
            reporter.write_line(line)

    def _label_of(self, folder: Path) -> str:
        """The label of a skill that a test in Python names: the same as for --skill."""
        others = self._selected.all
        known = [source.label for source in others if source.folder.resolve() == folder]
        own = skill_file(folder)
        return known[0] if known else labels_of([own, *(one.skill_file for one in others)])[own]

    def pytest_report_header(self) -> list[str]:
        verbose, sources = self._config.get_verbosity() > 0, self._selected.sources
        lines = display.header_lines(
            self._selected, self._specs, self._judges, self.settings, verbose=verbose
        )
        lines += batch_lines(self._models, self.settings)
        unused = flags_of_agents(self._config, self.settings)
        if not self._agents and unused and sources:
            lines.append(f"upskill: {', '.join(unused)}: only for agents (--skill-agent loop)")
        if self._agents:
            lines += display.agent_lines(
                list(dict.fromkeys(one.agent for one in self.subjects.values())),
                self._models.roster,
                self._sandbox,
            )
            if cluster := self._models.cluster:
                lines += [f"upskill: {line}" for line in cluster.lines]
            lines += display.unfit_lines([one.label for one in self._unfit], verbose=verbose)
        if self._has_other_skills:
            lines += display.other_skill_lines(self._outfits.others, self.settings.noise)
        if sources:
            if self.settings.triggers != "only":
                lines += display.score_lines(sources, self.settings.score)
            lines += display.reference_lines(sources, self.settings)
        if self._studies and self._session and self._config.pluginmanager.hasplugin("dsession"):
            lines += self._studies.lines(self._session, None)  # xdist's controller collects nothing
        if self._code:
            lines += self._code.header_lines(one.folder for one in self._selected.all)
        return lines

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        self._asking.send_link(node)
        node.workerinput[_VERSIONS] = self._models.roster.versions  # type: ignore[attr-defined]
        display.send_screen(self._config, node)

    # Collecting.

    @pytest.hookimpl(wrapper=True, trylast=True)  # --lf sorts what is collected
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the skills to what pytest collects of its own arguments."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            sources = self._selected.sources
            self._files = [SkillFile.make(collector, source, self) for source in sources]
            report.result = [*report.result, *self._files]
        return report

    def load_conftests(self, folder: Path) -> None:
        """Import the conftest files of a folder and of those above, as pytest does on the way.

        Once: if one is broken, that is an error of the first skill there, and pytest stops.
        """
        if folder not in self._with_conftests:
            self._with_conftests.add(folder)
            self._config.pluginmanager._loadconftestmodules(
                folder,
                self._config.getoption("importmode"),
                rootpath=self._config.rootpath,
                consider_namespace_packages=self._config.getini("consider_namespace_packages"),
            )

    @pytest.hookimpl(tryfirst=True)  # before it is shown, or sent to the controller
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """pytest shows the line of the file, which may be anything, and endless."""
        if issubclass(warning_message.category, SkillWarning):
            line = linecache.getline(warning_message.filename, warning_message.lineno)
            warning_message.line = one_line(line, _LONGEST_LINE)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None]:
        """Like an error of collection, a broken skill can't be deselected by -k or -m."""
        deselected = tuple(config.getoption("deselect", None) or ())
        collected = list(items)
        others = list[pytest.Item]()
        broken = list[pytest.Item]()
        for item in items:
            stays = isinstance(item, Unrunnable) and not item.nodeid.startswith(deselected)
            (broken if stays else others).append(item)
        items[:] = others
        yield
        items += broken
        asked = [
            label
            for label, subject in self.subjects.items()
            if self.settings.asks_triggers(subject.agent)
        ]
        self._unmatched = accepting.unmatched_of(
            items, self._files, self._selected.without_cases, self.model_ids, asked
        )
        reason = f"no {paths.lacking(self.settings)}"
        without = {source.label: reason for source in self._selected.without_cases}
        self._untested = untested(collected, items, self._files, without, self.model_ids)

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        if self._config.get_verbosity() < -1:  # with -qq pytest does not say what it collected
            return []
        plan = plan_of(items)
        lines = self._announcement.lines(plan) if self._announcement else []
        if self._studies and self._session:
            lines += self._studies.lines(self._session, plan.tests)
        chat = any(subject.agent == CHAT for subject in self.subjects.values())
        return [*lines, *lacking_lines(items, self._files if chat else ())]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if self._ledger:
            self._ledger.add_collected(ids)

    # Asking.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        broken = session.testsfailed and not self._config.option.continue_on_collection_errors
        if broken:  # pytest stops here, but xdist runs what was collected
            self._asking.refuse(_COLLECTION_FAILED)
        elif self.asks:
            self._asking.connect()
            plan = replace(
                plan_of(session.items), untested=self._untested, unmatched=self._unmatched
            )
            # Not in the controller, which collects nothing.
            if plan.nodeids or plan.untested or plan.unmatched:
                only_cases = all(isinstance(item, ItemOfFile) for item in session.items)
                self._begin(plan, nothing_else_runs=only_cases)
                if self.settings.batch == "submit":
                    self._waiting = self._asking.step()
        with self._asking.progress_shown(
            lambda engine: Tally(engine, cache(self._models.price_of), self._models.opening)
        ):
            result = yield
            if self._ledger and self._studies:
                self._studies.carry_out(session, self._ledger)
        if self._ledger:
            accepting.fail_late(self._ledger, self._config)
        return result

    def _begin(self, plan: Plan, *, nothing_else_runs: bool = False) -> None:
        if self._ledger:
            self._ledger.add_plan(plan)
            if self._announcement and self._config.pluginmanager.hasplugin("dsession"):
                self._announcement.keep(plan)
            if plan.tests or plan.triggers:
                self._require_late()
        self._asking.start(plan, nothing_else_runs=nothing_else_runs)

    def _require_late(self) -> None:
        """With only tests in Python, check the models now; perhaps on a thread of the link."""
        try:
            if not self._required:
                self._require_models()
        except InputError as error:
            self._asking.stop(f"not asked: {message_of(error, self._config)}")

    def outfit_of(
        self, agent: str, skill: Skill, cases: Sequence[Case] | None = None
    ) -> Outfit | None:
        return self._outfits.of(self._models.roster.named(agent), skill, cases)

    def among(
        self, agent: str, skill: Skill, cases: Sequence[Case] | None = None
    ) -> Outfit | Choice:
        return self._outfits.among(self._models.roster.named(agent), skill, cases)

    def require_fit(self, agent: str, model: str) -> None:
        roster = self._models.roster
        subject = Subject(roster.named(agent), model)
        roster.require_fit(f'ask(agent="{agent}")', subject, self._models.specs[model])

    def _version_of(self, agent: str) -> str:
        """Of an agent; empty if nobody needs to know, as nothing is asked."""
        roster = self._models.roster
        if not self.asks:
            return ""
        try:
            return roster.version(agent)
        except InputError:
            if self.settings.replay_file is None:
                raise
            return ""  # it need not be installed, and the recording has no answer of it

    @property
    def _agents(self) -> list[str]:
        """The agents of the run, without chat, which is none."""
        found = dict.fromkeys(subject.agent for subject in self.subjects.values())
        return [agent for agent in found if agent != CHAT]

    @property
    def _has_other_skills(self) -> bool:
        """Whether other skills play a part: for agents, and where a model chooses one."""
        return bool(self._agents) or self.settings.triggers in ("only", "also")

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        return self._asking.ask(questions)

    def runs_of(self, item: CaseItem) -> int:
        return self._groups_of(item).runs_of(item)

    def regression_of(self, item: CaseItem | TriggerItem) -> Standing | None:
        return self._groups_of(item).regression_of(item)

    def _groups_of(self, item: CaseItem | TriggerItem) -> Groups:
        if self._groups is None:
            self._groups = Groups(self.settings, self.ask, item.session.items)
        return self._groups

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Run no test as long as answers are missing that a batch will bring."""
        return True if self._waiting else None

    # Ending.

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # to have the last word
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """An xfail expects a wrong answer, not a missing one."""
        report = yield
        if isinstance(item, Unrunnable):
            item.shorten(report.longrepr)
        expected = hasattr(report, "wasxfail")
        if expected and call.excinfo and isinstance(call.excinfo.value, NotAnswered):
            report.outcome = "failed"
            del report.wasxfail
        return report

    @pytest.hookimpl(tryfirst=True)  # before JUnit sees the report
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._ledger:
            self._ledger.add_report(report)
            artifacts.add_to_test(report, self._ledger, self._config)
        if self._session and (self._session.shouldfail or self._session.shouldstop):
            self._asking.stop()

    @pytest.hookimpl(tryfirst=True)  # before pytest takes its time to describe the interrupt
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Ctrl-C, pytest.exit, or a stop by pytest or a plugin."""
        self._stopped = str(excinfo.value) or excinfo.typename
        self._asking.stop()

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._stopped = f"internal error: {excinfo.exconly()}"

    @pytest.hookimpl(tryfirst=True)  # before xdist ends its workers, which may wait for a reply
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        engine = self._asking.engine
        if engine and self.settings.batch == "submit" and not self._stopped:
            self._waiting = engine.waiting  # with xdist, only workers know so far
        self._asking.close()
        self._models.leave_cluster()
        if self._waiting:
            session.exitstatus = TRY_LATER
            return
        if self._config.option.collectonly:
            # What a run would report as errors and failures.
            kinds = (Unrunnable, BrokenCaseItem)
            broken = [item.message for item in session.items if isinstance(item, kinds)]
            self._problems += broken
            if broken:
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        if self._ledger and self._asking.engine:
            good = self._conclude(self._ledger, self._asking.engine)
            # A plugin may turn "no tests" into a success, but not a gate without evidence.
            if not good and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            elif not good:
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        display.paint_failures(self._config)
        if self._results and self._ledger:
            root = self._config.rootpath
            found = artifacts.annotation_lines(self._results, self._ledger, root)
            display.write_annotations(self._config, found)

    def _final_results(self, ledger: Ledger, engine: Engine) -> RunResults:
        settings, session = self.settings, self._session
        if not ledger.concerns_skills and not gates_given(self._config):
            settings = replace(settings, gates=Gates())  # those of an ini file are for its skills
        stop = session and ledger.lost and (session.shouldfail or session.shouldstop)
        interrupted = self._stopped or (str(stop) if stop else None)
        results = ledger.results(settings, self._config.rootpath, interrupted)
        known = {name: self._models.roster.agent(name).bundled for name in self._agents}
        bundled = {name: own for name, own in known.items() if own}
        saved = closing.saved_by_caches(engine, cache(self._models.price_of))
        results = replace(results, bundled=bundled, rerun=rerun_of(self._config))
        results = replace(results, prompt_cache_saved=saved)
        return self._studies.added_to(results) if self._studies else results

    def _conclude(self, ledger: Ledger, engine: Engine) -> bool:
        """Judge and write the results; whether the run may pass."""
        try:
            self._results = results = self._final_results(ledger, engine)
            if not self.settings.replay_file:
                keep_usage(ledger, self._models, self._config.rootpath)
            self._compared = results.comparisons
            self._gate = results.gate or []
            artifacts.add_to_suite(results, self._config)
        except InputError as error:
            self._problems.append(message_of(error, self._config))
            return False
        done = [write_all(accepting.writer(self.settings, ledger, self._accepted))]
        notes = [*accepting.notes(results, self._config), *self._accepted]
        failed = self._session.testsfailed if self._session else 0
        text = markdown_summary(results, notes, failed)
        told = self._notes(results, ledger, engine)
        earlier, damaged = artifacts.run_before(self.settings, results, self._config.rootpath)
        self._lines += damaged
        run = Finished(results, text, [*told, *damaged], ledger.workspaces(engine), earlier)
        done.append(write_all(report_writers(run, report_paths(self.settings))))
        done.append(
            write_all(artifacts.recording(self.settings, ledger, engine, self._config.rootpath))
        )
        self._written = [path for one in done for path in one.paths]
        problems = [problem for one in done for problem in one.problems]
        self._problems += [
            *(message_of(problem, self._config) for problem in problems),
            *(artifacts.write_job_summary(text) if results.verdicts or results.triggers else []),
        ]
        if problem := artifacts.keep(self.settings, results, self._config.rootpath):
            self._problems.append(problem)
        if not ledger.has_plan:
            return not (problems or self._gate or results.lost)
        lines, errors = hooks.finish(self._config, results)
        self._lines += lines
        self._problems += errors
        return not (problems or errors or self._gate or results.lost)

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        shown = config.get_verbosity() >= 0 and not config.option.no_summary
        if self._ledger and self._results and self._asking.engine and shown:
            notes = self._notes(self._results, self._ledger, self._asking.engine)
            if not (self._session and closing.is_unsettled(self._session, self._ledger)):
                how = accepting.how_to_accept(self._results, config)
                notes = [note for note in notes if note not in how]  # it is the next command
            display.write_summary(terminalreporter, config, self._results, notes)
            if not self._results.verdicts and not self._results.triggers:  # nothing was asked
                for line in self._accepted:
                    terminalreporter.write_line(line)
            others = [path for path in self._written if path != self.settings.html_file]
            if others:  # the page is told at the very end
                terminalreporter.write_line(f"upskill: {written_line(others)}")
        chosen = self._selected.sources or terminalreporter.stats.get("deselected")
        failed = self._session and self._session.testsfailed
        tested = not self._ledger or self._ledger.concerns_skills
        if MODEL.is_given(config) and not (tested or chosen or failed):
            terminalreporter.write_line(_NO_SKILL)

    def _notes(
        self, results: RunResults, ledger: Ledger, engine: Engine, *, brief: bool = False
    ) -> list[str]:
        """Notes below the summary; if they are brief, only what may be a problem."""
        unanswered = display.unanswered_notes(engine.budget.unanswered, self._models.price_of)
        held_back = [engine.agents_note] if engine.agents_note else []
        notes = [*display.retry_notes(engine.retries()), *held_back]
        studies = self._studies.notes if self._studies else []
        trouble = [*cause_lines(results.causes), *notes, *unanswered, *studies, *self._lines]
        if brief:
            return [*accepting.worse_notes(self._compared), *self._accepted, *trouble]
        return [
            *accepting.notes(results, self._config),
            *self._accepted,
            *([] if self.settings.replay_file else ledger.stored_notes()),
            *ledger.judge_notes(self.settings.judge),
            *display.new_skill_notes(ledger.skills, self.settings.against),
            *trouble,
            *display.small_model_notes(self._specs.values()),
        ]

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """What came of the run is the last thing shown, also without a summary."""
        if not (self._ledger and self._asking.engine and self._session):
            closing.write_problems(config, self._problems)
            return
        if self._waiting:
            price_of = cache(self._models.price_of)
            spent = closing.spent_of(self._asking.engine, price_of, self.settings)
            write_submitted(config, self._waiting, self._asking.engine, spent, self._problems)
            return
        results, ledger, engine = self._results, self._ledger, self._asking.engine
        closing.write_closing(
            closing.Ended(
                config=config,
                session=self._session,
                settings=self.settings,
                results=results,
                ledger=ledger,
                engine=engine,
                stopped=self._stopped,
                problems=self._problems,
                notes=self._notes(results, ledger, engine, brief=True) if results else [],
                written=self._written,
                selected=[source.label for source in self._selected.sources],
                accept=bool(results and accepting.how_to_accept(results, config)),
                telling=not display.small_model_notes(self._specs.values()),
                stored=any(spec.provider.identity(spec) for spec in self._specs.values()),
                price_of=cache(self._models.price_of),
            )
        )
