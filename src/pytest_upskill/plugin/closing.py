"""What is shown of the results of a run: the summary, and the lines below pytest's."""

import pytest

from .._util.keys import shown_words
from .._util.texts import printed
from ..errors import InputError, shown
from ..reports.terminal.closing_lines import Ending, closing_lines
from ..reports.terminal.layout import TerminalLook
from ..reports.terminal.summary_text import results_lines
from ..reports.writers import written_line
from .display import screen_of, write_lines
from .failure_lines import link_to
from .ledger import Ledger
from .next_step import find_next_step
from .notes import collect_notes, collect_problems, explain_nothing_tested
from .run import NextStep, Run
from .spending import Spending


class Closing:
    """Shows the end of a run, in the process that has its engine."""

    def __init__(self, run: Run, ledger: Ledger, spending: Spending) -> None:
        self._run = run
        self._ledger = ledger
        self._spending = spending

    # The summary, above pytest's last line.

    def write_summary(self, reporter: pytest.TerminalReporter) -> None:
        """Tables, notes, and which files were written."""
        run = self._run
        results = run.results
        if not results:
            return

        if results.summary:
            # Pytest has just shown the causes of errors.
            notes = collect_notes(run, results, with_causes=False)
            reporter.write_sep("=", "skills")
            for line in results_lines(results, self._look, notes):
                reporter.write_line(printed(line))
        else:  # nothing was asked
            for note in run.notes:
                reporter.write_line(note)

        # The page comes at the very end.
        files = [path for path in run.written if path != run.settings.html_file]
        if files:
            write_lines(run.config, [f"upskill: {written_line(files)}"])

    # The last lines, below pytest's own.

    def write_last_lines(self, reporter: pytest.TerminalReporter) -> None:
        run = self._run
        gate = run.results.gate.reasons if run.results else ()
        was_stopped = run.stopped and run.selected.sources
        if self._ledger.concerns_skills or gate or run.problems or was_stopped:
            ending = self._describe_ending()
            for line in closing_lines(run.results, ending, self._look):
                reporter.write_line(printed(line))

    def _describe_ending(self) -> Ending:
        run = self._run
        results = run.results
        problems = list(run.problems)
        if run.stopped and not self._ledger.has_plan:
            problems.append(f"nothing was asked: {run.stopped}")

        notes: list[str] = []
        if results and not (results.summary or run.has_failed):
            # It must not look like a success.
            reasons = explain_nothing_tested(results)
            if results.records:
                notes += reasons
            else:
                problems += reasons
        if results and run.is_quiet:
            notes += collect_problems(run, results)

        try:
            step = find_next_step(run)
        except InputError as error:  # of a hook
            problems.append(str(error))
            step = NextStep([])
        return Ending(
            failed=run.has_failed,
            problems=problems,
            notes=notes,
            page=self._find_page(),
            spent=self._spending.total(),
            before_next=step.hint,
            next=shown_words(step.command) if step.command else (),
        )

    def _find_page(self) -> str:
        """Where the HTML page is: at the first failed case, if there is one."""
        run = self._run
        file = run.settings.html_file
        if not file or file not in run.written:
            return ""
        if run.results and run.results.failed:
            return link_to(run.results.failed[0], run.settings)
        return shown(file)

    @property
    def _look(self) -> TerminalLook:
        config = self._run.config
        screen = screen_of(config)
        markup = config.get_terminal_writer().markup
        verbosity = config.get_verbosity()
        return TerminalLook(screen.width, screen.marks, markup, verbosity)
