"""The results of a run: judged and written after the last answer, then shown."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from .._util.keys import shown_command, shown_words
from .._util.texts import harmless, printed
from ..engine import Engine
from ..errors import InputError, shown
from ..models import ModelSpec
from ..models.local import LABEL, LocalProvider
from ..reports.markdown import markdown_summary
from ..reports.terminal.closing_lines import Ending, closing_lines
from ..reports.terminal.layout import TerminalLook
from ..reports.terminal.summary_text import results_lines
from ..reports.writers import (
    Finished,
    report_paths,
    report_writers,
    write_all,
    written_line,
)
from ..results.causes import cause_lines
from ..results.run import NOTHING_TESTED, RunResults, first_names
from ..results.run_notes import untested_notes
from ..settings import Gates, Settings
from ..trials.answer import NoAnswer
from ..trials.plan import SkillInfo
from .accepting import (
    acceptance_notes,
    acceptance_writer,
    is_better,
    something_to_accept,
    worse_notes,
)
from .artifacts import (
    add_to_suite,
    keep_in_history,
    recording_writer,
    run_before,
    with_history,
    write_job_summary,
)
from .display import fitted_lines, screen_of
from .hooks import call_finished
from .items import link_to
from .ledger import Ledger
from .next_command import (
    accepting,
    listing,
    only_failures,
    opener,
    recording,
    rerun_of,
    same_command,
    with_more_time,
    with_page,
)
from .paths import NO_CASES, command_for_cases
from .planning import ALL_SKIPPED, NO_REFERENCE
from .pytest_options import FLAGS, cli_gates, message_of
from .run_subjects import RunSubjects
from .spending import Spending

RESULTS: Final = pytest.StashKey[RunResults]()  # of a run, once it is judged

_KEPT: Final = "all answers so far are kept: the same command continues"
_FIX: Final = "fix the errors, then the same command asks only what is missing"
_NOT_KEPT: Final = (
    "the same command starts over: answers of scripted models are not kept"
)
_MORE_TIME: Final = "with more time (an answer that is late again has failed):"
_FIX_FIRST: Final = "fix the errors, then run the same command again"
_RECORD_AGAIN: Final = "answers of one day need another recording:"
_RECORD_MORE: Final = "the recording lacks answers; with a key, record them:"
_HELPS: Final = "to have later runs fail if it gets worse, accept these results:"


class Conclusion:
    """The results of a run, None until ``draw``, and notes on them."""

    def __init__(
        self,
        config: pytest.Config,
        subjects: RunSubjects,
        ledger: Ledger,
        engine: Engine,
        spending: Spending,
    ) -> None:
        self.results: RunResults | None = None
        self._config = config
        self._subjects = subjects
        self._ledger = ledger
        self._engine = engine
        self._spending = spending
        self._stopped: str | None = None  # why the run ended early
        self._problems: list[str] = []
        self._accepted: list[str] = []
        self._lines: list[str] = []  # of finished hooks, and of a damaged history
        self._written: list[Path] = []

    @property
    def _settings(self) -> Settings:
        return self._subjects.settings

    def draw(self, session: pytest.Session, stopped: str | None) -> bool:
        """Judge and write the results; whether the run may pass."""
        settings, ledger, root = self._settings, self._ledger, self._config.rootpath
        self._stopped = stopped
        try:
            self.results = results = self._final_results(session)
            self._config.stash[RESULTS] = results
        except InputError as error:
            self._problems.append(message_of(error, self._config))
            return False
        writes = [
            write_all(acceptance_writer(settings, ledger, results, self._accepted))
        ]

        @cache
        def text() -> str:
            return markdown_summary(
                results, self._acceptance(results), session.testsfailed
            )

        notes_of_run = self._notes(results, self._acceptance(results))
        earlier, damaged = run_before(settings, results, root)
        self._lines += damaged
        run = Finished(results, text, [*notes_of_run, *damaged], earlier)
        writes.append(write_all(report_writers(run, report_paths(settings))))
        writes.append(write_all(recording_writer(settings, ledger, self._engine, root)))
        self._written = [path for write in writes for path in write.paths]
        problems = [problem for write in writes for problem in write.problems]
        self._problems += [message_of(problem, self._config) for problem in problems]
        if results.rows or results.triggers:
            self._problems += write_job_summary(text)
        kept, not_kept = keep_in_history(settings, results, root)
        self._problems += not_kept
        add_to_suite(results, settings, kept, self._config)
        good = not (
            problems or results.gate.reasons or results.lost or self._engine.not_kept
        )
        if not ledger.has_plan:
            return good
        lines, errors = call_finished(self._config, results)
        self._lines += lines
        self._problems += errors
        return good and not errors

    def _final_results(self, session: pytest.Session) -> RunResults:
        settings, ledger = self._settings, self._ledger
        if not ledger.concerns_skills and not cli_gates(self._config):
            # Those of an ini file are for its skills
            settings = replace(settings, gates=Gates())
        stop = ledger.lost and (session.shouldfail or session.shouldstop)
        interrupted = self._stopped or (str(stop) if stop else None)
        results = ledger.results(settings, self._config.rootpath, interrupted)
        roster = self._subjects.models.roster
        by_agent = {name: roster.agent(name).bundled for name in self._subjects.agents}
        results = with_history(settings, results, self._config.rootpath)
        return replace(
            results,
            bundled={name: skills for name, skills in by_agent.items() if skills},
            logins=settings.logins,
            rerun=rerun_of(self._config),
            prompt_cache_saved=self._spending.saved,
        )

    # Notes.

    def _acceptance(self, results: RunResults) -> list[str]:
        """The results beside the accepted ones, and how to accept them."""
        notes = acceptance_notes(results)
        if command := self._accept_command(results):
            notes.append(f"To accept: {shown_command(command)}")
        return [*notes, *self._accepted]

    def _accept_command(self, results: RunResults) -> list[str]:
        """Empty if there is nothing to accept."""
        if not something_to_accept(results):
            return []
        may_ask = not self._settings.replay_file
        return accepting(self._config, fresh=may_ask and is_better(results))

    def _notes(self, results: RunResults, acceptance: Sequence[str]) -> list[str]:
        """Notes below the summary."""
        settings, ledger = self._settings, self._ledger
        return [
            *acceptance,
            *([] if settings.replay_file else ledger.stored_notes()),
            *ledger.judge_notes(settings.judge, self._engine),
            *ledger.user_notes(),
            *_new_skill_notes(ledger.skills, settings.against),
            *self._trouble(results),
            *_small_model_notes(self._subjects.specs.values()),
        ]

    def _trouble(self, results: RunResults) -> Iterator[str]:
        """Possible problems."""
        yield from cause_lines(results.causes)
        yield from self._spending.notes()
        yield from [self._engine.agents_note] if self._engine.agents_note else []
        yield from self._lines

    # The summary.

    def write_summary(
        self, reporter: pytest.TerminalReporter, session: pytest.Session
    ) -> None:
        """Tables, notes, and which files were written."""
        results = self.results
        if not results:
            return
        # How to accept is the next command, unless something failed or is missing.
        unsettled = session.testsfailed or self._ledger.has_errors
        shorter = [*acceptance_notes(results), *self._accepted]
        notes = self._notes(
            results, self._acceptance(results) if unsettled else shorter
        )
        # Pytest has just shown them, as errors.
        causes = cause_lines(results.causes)
        notes = [note for note in notes if note not in causes]
        if results.rows or results.triggers:
            reporter.write_sep("=", "skills")
            for line in results_lines(results, self._look, notes):
                reporter.write_line(printed(line))
        else:  # nothing was asked
            for line in self._accepted:
                reporter.write_line(line)
        files = [path for path in self._written if path != self._settings.html_file]
        if files:  # the page comes at the very end
            for line in fitted_lines(self._config, [f"upskill: {written_line(files)}"]):
                reporter.write_line(line)

    @property
    def _look(self) -> TerminalLook:
        screen, writer = screen_of(self._config), self._config.get_terminal_writer()
        verbosity = self._config.get_verbosity()
        return TerminalLook(screen.width, screen.marks, writer.markup, verbosity)

    # The end, after pytest's own last line.

    def write_closing(
        self, session: pytest.Session, problems: Sequence[str], selected: Sequence[str]
    ) -> None:
        """Write the last lines; ``problems`` are earlier ones,
        ``selected`` the names of skills.
        """
        problems = [*problems, *self._problems]
        gate = self.results.gate.reasons if self.results else ()
        stopped_early = self._stopped and selected
        concerned = self._ledger.concerns_skills or gate or problems or stopped_early
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if not reporter or not concerned:
            return
        ending = self._ending(session, problems, selected)
        for line in closing_lines(self.results, ending, self._look):
            reporter.write_line(printed(line))

    def _ending(
        self, session: pytest.Session, problems: Sequence[str], selected: Sequence[str]
    ) -> Ending:
        results, config = self.results, self._config
        failed = session.exitstatus not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        if self._stopped and not self._ledger.has_plan:
            problems = [*problems, f"nothing was asked: {self._stopped}"]
        quiet = bool(config.get_verbosity() < 0 or config.option.no_summary)
        notes = list[str]()
        if results and not results.rows and not results.triggers and not failed:
            if results.records:
                notes += untested_notes(results) or [NOTHING_TESTED]
            else:
                problems = [*problems, *_nothing_tested(results)]
        if results and quiet:
            notes += [
                *worse_notes(results.comparisons),
                *self._accepted,
                *self._trouble(results),
            ]
        hint, command = self._next(session, failed=failed)
        if config.pluginmanager.hasplugin("upskill-try"):  # which ends with its own
            hint, command = "", []
        known = failed and results and self._could_be_known(session, results)
        return Ending(
            failed=failed,
            problems=problems,
            not_reached=self._not_reached(selected),
            notes=notes,
            page=self._page(failed=failed),
            spent=self._spending.total(),
            before_next=hint,
            next=shown_words(command) if command else (),
            accept=shown_words(accepting(config)) if known and command else (),
        )

    def _could_be_known(self, session: pytest.Session, results: RunResults) -> bool:
        """Whether the skills help, and cases that fail regardless
        are all that fails the run.
        """
        counts = results.outcome_counts
        others = session.testsfailed - counts.get("failed", 0)
        settled = not (
            results.gate.reasons or results.unfinished or results.subsets or others
        )
        helps = bool(results.verdicts) and all(
            v.verdict == "helps" for v in results.verdicts
        )
        return settled and helps and not results.broken and not self._problems

    def _not_reached(self, selected: Sequence[str]) -> list[str]:
        """Skills of an interrupted run that have no answer."""
        results = self.results
        if not results or not results.interrupted or not self._ledger.has_plan:
            return []
        names = dict.fromkeys([*selected, *(skill.name for skill in results.skills)])
        reached = {record.skill for record in results.records}
        planned = {test.skill for test in results.tests}
        return [name for name in names if name in planned and name not in reached]

    def _page(self, *, failed: bool) -> str:
        """Where the HTML page is: at the first failed case, if there is one."""
        file = self._settings.html_file
        if not file or file not in self._written:
            return ""
        tests = self.results.failed if self.results else []
        if first := next(iter(tests), None):
            return link_to(first, self._settings)
        return "" if not failed and opener(os.environ) else shown(file)

    def _next(self, session: pytest.Session, *, failed: bool) -> tuple[str, list[str]]:
        """A hint about the next command, and its words."""
        config, settings = self._config, self._settings
        results, ledger = self.results, self._ledger
        specs = self._subjects.specs.values()
        stored = any(spec.provider.identity(spec) for spec in specs)
        if self._stopped and not ledger.has_plan:
            return _FIX_FIRST if session.testsfailed else "", same_command(config)
        if results and results.interrupted and not session.shouldfail:
            return self._interrupted_hint(stored=stored), same_command(config)
        if ledger.only_missing:
            return "", listing(config)
        withheld = results and results.withheld
        if (ledger.has_errors or withheld) and not session.shouldfail:
            return self._after_errors(stored=stored, withheld=bool(withheld))
        if session.testsfailed:
            return "", only_failures(config)
        if results and (command := self._accept_command(results)):
            return "", command
        if results and results.untested and not results.records:
            return _write_cases(results), []
        if not results or not results.records:
            return "", listing(config)
        if settings.html_file and settings.html_file in self._written:
            browser = opener(os.environ)
            return "", [browser, shown(settings.html_file)] if browser else []
        should_accept = not failed and _worth_accepting(results, settings)
        if should_accept and not _small_model_notes(specs):
            return _HELPS, accepting(config)
        # It would fail again, though every test passes: a gate does.
        return "", [] if failed else with_page(config)

    def _interrupted_hint(self, *, stored: bool) -> str:
        if self._settings.replay_file:
            return ""
        if not stored:
            return _NOT_KEPT
        return "" if self._engine.not_kept else _KEPT

    def _after_errors(self, *, stored: bool, withheld: bool) -> tuple[str, list[str]]:
        """The same command again, with what it needs to get further."""
        if self._engine.budget.refused:
            return self._within_budget(stored=stored)
        if file := self._settings.replay_file:
            hint = _RECORD_AGAIN if withheld else _RECORD_MORE
            return hint, recording(self._config, file)

        hint = _FIX if stored else _FIX_FIRST
        late = []
        for _, reply in self._engine.settled():
            if isinstance(reply, NoAnswer):
                late.append(reply.timed_out)
        if not any(late):
            return hint, same_command(self._config)

        seconds_for = self._subjects.models.seconds_for
        longest = max(
            seconds_for(name, self._settings) for name in self._subjects.specs
        )
        command = with_more_time(self._config, longest)
        return _MORE_TIME if all(late) else hint, command

    def _within_budget(self, *, stored: bool) -> tuple[str, list[str]]:
        """How to go on after a budget, which counts new calls only."""
        settings, spent = self._settings, self._spending.total()
        limits = {"max_cost": settings.max_cost, "max_tokens": settings.max_tokens}
        flags = " or ".join(
            FLAGS[name] for name, limit in limits.items() if limit is not None
        )
        if stored and spent and spent.calls and not self._engine.not_kept:
            hint = (
                "asks only what is missing, with the same budget again; or raise"
                f" {flags}:"
            )
            return f"the same command {hint}", same_command(self._config)
        outcome = "asks only what is missing" if stored else "starts over"
        return f"next: raise {flags}; then the same command {outcome}", []


def _nothing_tested(results: RunResults) -> list[str]:
    """Why a run that does not fail has no answer: it must not look like a success."""
    reasons = results.untested_by_reason
    return [f"{NOTHING_TESTED} of {names}: {reason}" for reason, names in reasons] or [
        NOTHING_TESTED
    ]


def _write_cases(results: RunResults) -> str:
    """What to do if nothing can be tested, which a note explains."""
    if any(reason == NO_CASES for reason, _ in results.untested_by_reason):
        return f"next: {shown_command(command_for_cases('SKILL', os.environ))}"
    if any(reason == NO_REFERENCE for reason, _ in results.untested_by_reason):
        return 'next: give cases a "reference", then the same command tries it'
    if all(why.startswith(ALL_SKIPPED) for why, _ in results.untested_by_reason):
        return ""  # the reason says what to do
    return "next: edit the cases, then the same command asks them"


def _worth_accepting(results: RunResults, settings: Settings) -> bool:
    """Whether every skill helps, and nothing has been accepted yet."""
    is_first = not results.subsets and not results.comparisons and not settings.accept
    return (
        is_first
        and bool(results.verdicts)
        and all(v.verdict == "helps" for v in results.verdicts)
    )


def _new_skill_notes(skills: Sequence[SkillInfo], against: str | None) -> list[str]:
    new = [skill.name for skill in skills if against and not skill.against]
    verb = "is" if len(new) == 1 else "are"
    note = (
        f"{first_names(new)} {verb} new since {harmless(against or '')}: nothing to"
        " compare."
    )
    return [note] if new else []


def _small_model_notes(specs: Iterable[ModelSpec]) -> list[str]:
    """A warning that the numbers of the embedded model mean little."""
    return [
        f"{spec.name} is {LABEL}, a small model for trying things out; don't judge a"
        " skill by it."
        for spec in specs
        if isinstance(spec.provider, LocalProvider) and not spec.file
    ]


# Runs without results.


def write_problems(config: pytest.Config, problems: Iterable[str]) -> None:
    """All problems of a run that asks nothing: nothing else shows them."""
    if reporter := config.pluginmanager.getplugin("terminalreporter"):
        for problem in problems:
            for line in fitted_lines(config, [f"upskill: {harmless(problem)}"]):
                reporter.write_line(line, red=True)
