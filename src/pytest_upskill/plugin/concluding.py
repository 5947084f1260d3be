"""The results of a run: judged, written and shown after the last answer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from .._util.texts import counted, dollars, harmless, printed
from ..engine import Engine
from ..engine.budget import UnansweredCall
from ..errors import InputError
from ..models import ModelSpec
from ..models.local import LABEL, LocalProvider
from ..models.prices import PriceOf, cost
from ..reports.markdown import markdown_summary
from ..reports.terminal.layout import TerminalLook
from ..reports.terminal.summary_text import results_lines
from ..reports.writers import Finished, report_paths, report_writers, write_all, written_line
from ..results.causes import cause_lines
from ..results.run import RunResults
from ..settings import Gates, Settings
from ..trials.plan import SkillInfo
from .accepting import acceptance_notes, acceptance_writer, how_to_accept, worse_notes
from .artifacts import (
    add_to_suite,
    keep_in_history,
    recording_writer,
    run_before,
    write_job_summary,
)
from .display import screen_of
from .hooks import call_finished
from .last_lines import Ended, is_unsettled, saved_by_caches, write_closing
from .ledger import Ledger
from .pytest_options import cli_gates, message_of
from .run_settings import rerun_of
from .run_subjects import RunSubjects


class Conclusion:
    """The results of a run, None until ``draw``, and notes on them."""

    results: RunResults | None

    def __init__(
        self,
        config: pytest.Config,
        subjects: RunSubjects,
        ledger: Ledger,
        engine: Engine,
    ) -> None:
        self._config = config
        self._subjects = subjects
        self._ledger = ledger
        self._engine = engine
        self.results = None
        self.problems: list[str] = []
        self._accepted: list[str] = []
        self._lines: list[str] = []  # of finished hooks, and of a damaged history
        self._written: list[Path] = []

    @property
    def _settings(self) -> Settings:
        return self._subjects.settings

    def draw(self, session: pytest.Session, stopped: str | None) -> bool:
        """Judge and write the results; whether the run may pass."""
        settings, ledger, root = self._settings, self._ledger, self._config.rootpath
        try:
            self.results = results = self._final_results(session, stopped)
            add_to_suite(results, self._config)
        except InputError as error:
            self.problems.append(message_of(error, self._config))
            return False
        writes = [write_all(acceptance_writer(settings, ledger, self._accepted))]

        @cache
        def text() -> str:
            notes = [*acceptance_notes(results, self._config), *self._accepted]
            return markdown_summary(results, notes, session.testsfailed)

        notes_of_run = self._notes(results)
        earlier, damaged = run_before(settings, results, root)
        self._lines += damaged
        workspaces = ledger.workspaces(self._engine)
        run = Finished(results, text, [*notes_of_run, *damaged], workspaces, earlier)
        writes.append(write_all(report_writers(run, report_paths(settings))))
        writes.append(write_all(recording_writer(settings, ledger, self._engine, root)))
        self._written = [path for write in writes for path in write.paths]
        problems = [problem for write in writes for problem in write.problems]
        self.problems += [message_of(problem, self._config) for problem in problems]
        if results.verdicts or results.triggers:
            self.problems += write_job_summary(text)
        if problem := keep_in_history(settings, results, root):
            self.problems.append(problem)
        good = not (problems or results.gate.reasons or results.lost)
        if not ledger.has_plan:
            return good
        lines, errors = call_finished(self._config, results)
        self._lines += lines
        self.problems += errors
        return good and not errors

    def _final_results(self, session: pytest.Session, stopped: str | None) -> RunResults:
        settings, ledger = self._settings, self._ledger
        if not ledger.concerns_skills and not cli_gates(self._config):
            settings = replace(settings, gates=Gates())  # those of an ini file are for its skills
        stop = ledger.lost and (session.shouldfail or session.shouldstop)
        interrupted = stopped or (str(stop) if stop else None)
        results = ledger.results(settings, self._config.rootpath, interrupted)
        models = self._subjects.models
        by_agent = {name: models.roster.agent(name).bundled for name in self._subjects.agents}
        return replace(
            results,
            bundled={name: skills for name, skills in by_agent.items() if skills},
            rerun=rerun_of(self._config),
            prompt_cache_saved=saved_by_caches(self._engine, cache(models.price_of)),
        )

    def _notes(self, results: RunResults, *, brief: bool = False) -> list[str]:
        """Notes below the summary; only possible problems if ``brief``."""
        settings, ledger, engine = self._settings, self._ledger, self._engine
        price_of = self._subjects.models.price_of
        trouble = [
            *cause_lines(results.causes),
            *_retry_notes(engine.retries()),
            *([engine.agents_note] if engine.agents_note else []),
            *_unanswered_notes(engine.budget.unanswered, price_of),
            *self._lines,
        ]
        if brief:
            return [*worse_notes(results.comparisons), *self._accepted, *trouble]
        return [
            *acceptance_notes(results, self._config),
            *self._accepted,
            *([] if settings.replay_file else ledger.stored_notes()),
            *ledger.judge_notes(settings.judge, engine),
            *_new_skill_notes(ledger.skills, settings.against),
            *trouble,
            *_small_model_notes(self._subjects.specs.values()),
        ]

    def write_summary(self, reporter: pytest.TerminalReporter, session: pytest.Session) -> None:
        """Tables, notes, and which files were written."""
        results = self.results
        if not results:
            return
        notes = self._notes(results)
        if not is_unsettled(session, self._ledger):
            acceptance = how_to_accept(results, self._config)
            notes = [note for note in notes if note not in acceptance]  # it is the next command
        _write_tables(reporter, self._config, results, notes)
        if not results.verdicts and not results.triggers:  # nothing was asked
            for line in self._accepted:
                reporter.write_line(line)
        files = [path for path in self._written if path != self._settings.html_file]
        if files:  # the page comes at the very end
            reporter.write_line(f"upskill: {written_line(files)}")

    def write_closing(
        self,
        session: pytest.Session,
        stopped: str | None,
        problems: Sequence[str],
        selected: Sequence[str],
    ) -> None:
        """The last lines; ``problems`` are earlier ones, ``selected`` the names of skills."""
        results, specs = self.results, self._subjects.specs
        write_closing(
            Ended(
                config=self._config,
                session=session,
                settings=self._settings,
                results=results,
                ledger=self._ledger,
                engine=self._engine,
                stopped=stopped,
                problems=[*problems, *self.problems],
                notes=self._notes(results, brief=True) if results else [],
                written=self._written,
                selected=selected,
                accept=bool(results and how_to_accept(results, self._config)),
                telling=not _small_model_notes(specs.values()),
                stored=any(spec.provider.identity(spec) for spec in specs.values()),
                price_of=cache(self._subjects.models.price_of),
            )
        )


def _write_tables(
    reporter: pytest.TerminalReporter,
    config: pytest.Config,
    results: RunResults,
    notes: Sequence[str],
) -> None:
    """The tables of a run; with -q there are none."""
    if not results.verdicts and not results.triggers:
        return
    writer = config.get_terminal_writer()
    screen = screen_of(config)
    look = TerminalLook(screen.width, screen.marks, writer.markup, config.get_verbosity())
    reporter.write_sep("=", "skills")
    for line in results_lines(results, look, notes):
        reporter.write_line(printed(line))


def _new_skill_notes(skills: Sequence[SkillInfo], against: str | None) -> list[str]:
    return [
        f"{harmless(skill.name)} is new since {harmless(against)}: nothing to compare."
        for skill in skills
        if against and not skill.against
    ]


def _retry_notes(retries: Mapping[str, int]) -> list[str]:
    return [
        f"{harmless(model)}: {number:,} {'retry' if number == 1 else 'retries'} after rate limits "
        "or errors."
        for model, number in retries.items()
        if number
    ]


def _unanswered_notes(unanswered: Sequence[UnansweredCall], price_of: PriceOf) -> list[str]:
    """The cost of calls without an answer."""
    notes = []
    for model in dict.fromkeys(call.model for call in unanswered):
        calls = [call for call in unanswered if call.model == model]
        tokens = sum((call.usage.input or 0) + (call.usage.output or 0) for call in calls)
        usd = sum(cost(price_of(model), call.usage) or 0.0 for call in calls)
        about = "" if all(call.counted for call in calls) else "about "
        price = f" ({dollars(usd)})" if usd else ""
        notes.append(
            f"{harmless(model)}: {counted(len(calls), 'call')} without an answer used {about}"
            f"{counted(tokens, 'token')}{price}; not in the table."
        )
    return notes


def _small_model_notes(specs: Iterable[ModelSpec]) -> list[str]:
    """A warning that the numbers of the embedded model mean little."""
    return [
        f"{spec.name} is {LABEL}, a small model for trying things out; don't judge a skill by it."
        for spec in specs
        if isinstance(spec.provider, LocalProvider) and not spec.file
    ]
