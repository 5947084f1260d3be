"""The run, as one object registered with pytest: it has the settings, the engine, the ledger.

In the controller of an xdist run it owns the engine and offers the link; in a worker it is a
client of that link; without xdist it is both ends at once.
"""

import gc
import os
import textwrap
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import pytest

from ..engine import Engine, LinkClient, LinkServer
from ..errors import InputError, SettingsError
from ..models import ModelSpec, model_id_of
from ..models.prices import Price, parse_prices, price_of
from ..records import NoAnswer, Reply
from ..reports.terminal import marks_for, summary_lines
from ..settings import Settings
from ..skills import find_skills
from ..texts import counted, harmless, one_line
from ..trials import Plan, PlannedItem, Question
from . import paths, prepare
from .collect import CaseItem, SkillFile, SkillFolder, SkillSource, sources_of
from .ledger import Ledger
from .local_weights import small_model_notes
from .options import as_written, read_settings
from .progress import ProgressLine, Tally

_LINK = "upskill_link"
_COLLECTION_FAILED = "not asked: collection failed. Mend it, or --continue-on-collection-errors"
_NO_ENGINE = "not asked: this xdist worker has no connection to the run's engine"


class UpskillRun:
    """Everything of one pytest run that has to do with skills."""

    settings: Settings
    model_ids: dict[str, str]
    asks: bool

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: pytest.Session | None = None
        self._sources: dict[Path, SkillSource] = {}
        self._guarded: paths.Guarded = {}
        self._specs: dict[str, ModelSpec] = {}  # the models under test
        self._judges: dict[str, ModelSpec] = {}
        self.model_ids = {}
        self._price_overrides: dict[str, Price] = {}
        self._engine: Engine | None = None
        self._link: LinkServer | None = None
        self._client: LinkClient | None = None
        self._ledger: Ledger | None = None
        self._progress: ProgressLine | None = None
        self._refusal: str | None = None
        self._may_freeze = False
        self._trouble: list[str] = []

    # Beginning.

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None]:
        self._session = session
        option = self._config.option
        self.asks = not (option.collectonly or option.setuponly or option.setupplan)
        try:
            self.settings = read_settings(self._config)
            self._find_skills()
            if self._sources:
                self._name_models()
                if not hasattr(self._config, "workerinput"):
                    self._prepare_models()
        except InputError as error:
            raise pytest.UsageError(as_written(error, self._config)) from None
        return (yield)

    def _find_skills(self) -> None:
        wanted = paths.wanted_by_args(self._config, self.settings.skill_paths)
        found = [file for path in wanted for file in find_skills(path)]
        tests_file = self.settings.tests_file
        if tests_file and not tests_file.is_file():
            what = "this is a folder" if tests_file.is_dir() else "there is no such file"
            raise SettingsError(f"--skill-tests {tests_file}", what, "Name a file of cases.")
        sources = sources_of(list(dict.fromkeys(found)), tests_file, self._config.rootpath)
        self._guarded = paths.add_to_args(self._config, sources)
        # Who runs one test file of a project with skill_paths needs no model and no key.
        reached = paths.reached_by_args(self._config, sources)
        self._sources = {source.file: source for source in reached}

    def _name_models(self) -> None:
        names = self.settings.models or ("local",)
        self._specs = prepare.resolve_models(names, self.settings)
        self.model_ids = {name: model_id_of(spec) for name, spec in self._specs.items()}

    def _prepare_models(self) -> None:
        settings = self.settings
        self._judges = prepare.resolve_judge(settings)
        self._price_overrides = parse_prices(settings.prices)
        if not self.asks:
            return
        asked = {**self._specs, **self._judges}
        prepare.require_all(asked, settings, self._config)
        prepare.require_prices(asked, settings, self._price_of)
        self._engine = prepare.make_engine(
            asked, settings, self._config, self._price_of, self._trouble.append
        )
        self._ledger = Ledger(self.model_ids, self._price_of)
        if self._config.pluginmanager.hasplugin("dsession"):
            self._link = LinkServer(self._engine, self._begin)

    def _price_of(self, name: str) -> Price | None:
        return price_of({**self._specs, **self._judges}[name], self._price_overrides)

    def pytest_report_header(self) -> list[str] | None:
        if not self._sources:
            return None
        names = [
            name if model_id in name else f"{name} ({model_id})"
            for name, model_id in self.model_ids.items()
        ]
        default = "" if self.settings.models else ", the default as no --model is given"
        skills = ", ".join(source.label for source in self._sources.values())
        lines = [f"upskill: {one_line(skills, 100)} on {', '.join(names)}{default}"]
        for name, judge in self._judges.items():
            same = [
                model
                for model, spec in self._specs.items()
                if model_id_of(spec) == model_id_of(judge)
            ]
            warned = (
                f". It is also under test ({same[0]}) and may favour its own answers"
                if same
                else ""
            )
            lines.append(f"upskill: rubrics are judged by {name}{warned}")
        return lines

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        if self._link:
            node.workerinput[_LINK] = self._link.address  # type: ignore[attr-defined]

    # Collecting.

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        source = self._sources.get(file_path)
        return SkillFile.make(parent, source, self) if source else None

    def pytest_collect_directory(
        self, path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        sources = self._guarded.get(path)
        return SkillFolder.make(parent, path, sources, self) if sources else None

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        # pytest passes by hidden folders, and that is where agents keep their skills.
        hidden = collection_path.name.startswith(".")
        inside = hidden and any(file.is_relative_to(collection_path) for file in self._sources)
        return False if inside else None

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> str | None:
        own = _asked(items)
        if not own:
            return None
        calls = sum(len(item.trials) for item in own)
        runs = sorted({item.trials[-1].run for item in own})
        runs_text = f"{runs[0]}" + (f" to {runs[-1]}" if len(runs) > 1 else "")
        arms = "with and without the skill" if self.settings.baseline else "with the skill"
        # At most: what has a stored answer is not asked.
        sizes = f"{counted(calls, 'call')} at most: {counted(len(own), 'test')}"
        text = f"{sizes}, {arms}, runs: {runs_text}"
        return f"upskill: {text}" if self.asks else f"upskill: a run would make {text}"

    # Asking.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        broken = session.testsfailed and not self._config.option.continue_on_collection_errors
        if broken:  # pytest stops here by itself, but xdist runs what was collected
            self._refusal = _COLLECTION_FAILED
        elif self.asks:
            items = _asked(session.items)
            if address := worker_link(self._config):
                self._client = LinkClient(address)
            if items:
                self._may_freeze = len(items) == len(session.items)
                self._begin(_plan_of(items))
        with self._telling():
            return (yield)

    def _begin(self, plan: Plan) -> None:
        if self._client:
            self._client.start(plan)
        elif self._engine and self._ledger:
            self._ledger.set_plan(plan)
            self._engine.start(plan)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell how far the run has come, in the process that knows."""
        if not self._engine:
            yield
            return
        self._progress = ProgressLine(
            self._config, Tally(self._engine, cache(self._price_of)), os.environ
        )
        try:
            # xdist's controller does nothing but wait; else it is `ask` that does.
            with self._progress.waiting() if self._link else nullcontext():
                yield
        finally:
            self._progress.close()

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        asker = self._client or self._engine
        if self._refusal or asker is None:
            return [NoAnswer(self._refusal or _NO_ENGINE)] * len(questions)
        shown = self._progress and self._engine and not self._engine.has_settled(questions)
        with self._progress.waiting() if self._progress and shown else nullcontext():
            replies = asker.ask(questions)
        if self._may_freeze:
            # All that there is now, an SDK included, stays to the end. The garbage collector would
            # look through it again and again (pytest alone has it do so five times at the end),
            # some 0.3 s in all. Not where other tests run: they may look for garbage themselves.
            gc.freeze()
            self._may_freeze = False
        return replies

    # Ending.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._ledger:
            self._ledger.add_report(report)
        if (
            self._engine
            and self._session
            and (self._session.shouldfail or self._session.shouldstop)
        ):
            self._engine.stop()

    @pytest.hookimpl(tryfirst=True)  # before xdist ends its workers, which may wait for a reply
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._client:
            self._client.close()
        if self._engine:
            self._engine.close()
        if self._link:
            self._link.close()
        if self._ledger and self._engine:
            try:
                self._ledger.write_files(self.settings, self._engine)
            except OSError as error:
                self._trouble.append(f"a report could not be written: {error}")
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        for problem in self._trouble:  # also where nobody wants a summary
            terminalreporter.write_line(f"upskill: {problem}", red=True)
        summaries = self._ledger.summaries() if self._ledger else []
        if not self._ledger or not summaries or config.option.no_summary:
            return
        writer = config.get_terminal_writer()
        lines = summary_lines(
            self._ledger.skills,
            summaries,
            width=writer.fullwidth,
            marks=marks_for(getattr(writer._file, "encoding", None) or "ascii"),
            paint=writer.markup,
        )
        notes = [
            *([] if self.settings.replay_file else self._ledger.stored_notes()),
            *self._retry_notes(),
            *small_model_notes(self._specs.values()),
        ]
        for note in notes:
            lines += textwrap.wrap(note, writer.fullwidth)
        terminalreporter.write_sep("=", "skills")
        for line in lines:
            terminalreporter.write_line(line)

    def _retry_notes(self) -> list[str]:
        retries = self._engine.retries() if self._engine else {}
        return [
            f"{harmless(model)}: {counted(number, 'call')} made again after a limit or a fault."
            for model, number in retries.items()
            if number
        ]


def worker_link(config: pytest.Config) -> tuple[object, str] | None:
    """The address of the engine, in an xdist worker."""
    return getattr(config, "workerinput", {}).get(_LINK)


def _asked(items: Sequence[pytest.Item]) -> list[CaseItem]:
    return [item for item in items if isinstance(item, CaseItem) and not item.is_passed_by]


def _plan_of(items: Sequence[CaseItem]) -> Plan:
    skills = dict.fromkeys(item.parent.info for item in items)
    planned = tuple(PlannedItem(item.nodeid, tuple(item.trials)) for item in items)
    return Plan(tuple(skills), planned)
