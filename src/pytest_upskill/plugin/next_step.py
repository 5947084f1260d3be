"""The command on the last line of a run: the first step that applies."""

import os
from dataclasses import dataclass
from typing import Final

from .._util.keys import shown_command
from .._util.texts import plain
from ..engine import Engine
from ..results.run import RunResults
from ..trials.answer import NoAnswer
from .hooks import call_for
from .ledger import Ledger
from .next_command import (
    listing,
    only_failures,
    recording,
    same_command,
)
from .planning import ALL_SKIPPED, why_none_played
from .pytest_options import FLAGS
from .run import NextStep, Run
from .untested import NO_CASES, command_for_cases

_FIX: Final = "fix the errors, then the same command asks only what is missing"
_FIX_FIRST: Final = "fix the errors, then run the same command again"


def find_next_step(run: Run) -> NextStep:
    """Hooks come first, so that a feature may have a better one."""
    steps = _steps_of(run)
    if not steps:
        return NextStep([])
    hook = run.config.hook.pytest_upskill_next_step
    return (
        call_for(NextStep, hook, config=run.config, results=steps.results)
        or steps.repair()
        or steps.write_cases()
        or steps.select_tests()
        or steps.write_page()
    )


def is_settled(run: Run) -> bool:
    """Whether every answer is there, and no test failed."""
    steps = _steps_of(run)
    return bool(steps and not steps.repair())


@dataclass(frozen=True)
class _Steps:
    """What can be done after a run; None if that does not apply."""

    run: Run
    results: RunResults
    ledger: Ledger
    engine: Engine

    def repair(self) -> NextStep | None:
        """After errors and failures."""
        return (
            self._start_over()
            or self._go_on()
            or self._ask_missing()
            or self._show_failures()
        )

    def _start_over(self) -> NextStep | None:
        if not self.run.stopped or self.ledger.has_plan:
            return None
        return self._repeat(_FIX_FIRST if self.run.session.testsfailed else "")

    def _go_on(self) -> NextStep | None:
        """After Ctrl-C."""
        if not self.results.interrupted or self.run.session.shouldfail:
            return None
        is_kept = self._keeps_answers and not self.engine.not_kept
        if self.run.settings.replay_file or not is_kept:
            return self._repeat()
        return self._repeat("all answers so far are kept: the same command continues")

    def _ask_missing(self) -> NextStep | None:
        """The same command again, with what it needs to get further."""
        withheld = self.results.withheld
        if self.run.session.shouldfail or not (self._lacks_answers or withheld):
            return None

        if self.engine.budget.refused:
            return self._raise_budget()
        if file := self.run.settings.replay_file:
            hint = "the recording lacks answers; with a key, record them:"
            if withheld:
                hint = "answers of one day need another recording:"
            return NextStep(recording(self.run.config, file), hint)

        for _, reply in self.engine.progress.settled():
            if isinstance(reply, NoAnswer) and reply.timed_out:
                return self._allow_more_time()
        return self._repeat(_FIX if self._keeps_answers else _FIX_FIRST)

    def _allow_more_time(self) -> NextStep:
        subjects = self.run.subjects
        limits = []
        for name in subjects.specs:
            limits.append(subjects.models.seconds_for(name, self.run.settings))
        flag = FLAGS["timeout"]
        options = (flag, plain(2 * max(limits)))
        words = same_command(self.run.config, *options, without={flag})
        hint = "with more time (an answer that is late again has failed):"
        return NextStep(words, hint)

    def _raise_budget(self) -> NextStep:
        """After a budget, which counts new calls only."""
        names = ("max_cost", "max_tokens")
        limited = [n for n in names if getattr(self.run.settings, n) is not None]
        flags = " or ".join(FLAGS[name] for name in limited)
        spent = self.run.spending.total() if self.run.spending else None
        again = "the same command asks only what is missing"
        if spent and spent.calls and not self.engine.not_kept:
            return self._repeat(
                f"{again}, with the same budget again; or raise {flags}:"
            )
        return NextStep([], f"next: raise {flags}; then {again}")

    def _show_failures(self) -> NextStep | None:
        if not self.run.session.testsfailed:
            return None
        return NextStep(only_failures(self.run.config))

    def write_cases(self) -> NextStep | None:
        """Nothing can be tested, which a note explains."""
        if not self.results.untested or self.results.records:
            return None

        reasons = [reason for reason, _ in self.results.untested_by_reason]
        hint = "next: edit the cases, then the same command asks them"
        if NO_CASES in reasons:
            hint = f"next: {shown_command(command_for_cases('SKILL', os.environ))}"
        elif all(reason.startswith(ALL_SKIPPED) for reason in reasons):
            hint = ""  # the reason says what to do
        kind = self.run.subjects.kind_without_model
        if kind and why_none_played(kind) in reasons:
            what = f'give cases a "{kind.name}"'
            hint = f"next: {what}, then the same command tries it"
        return NextStep([], hint)

    def select_tests(self) -> NextStep | None:
        return None if self.results.records else NextStep(listing(self.run.config))

    def write_page(self) -> NextStep:
        if self.run.has_failed:
            # It would fail again, though every test passes: a gate does.
            return NextStep([])
        options = (FLAGS["html_file"], "skills.html")
        words = same_command(self.run.config, *options, without={FLAGS["accept"]})
        return NextStep(words)

    def _repeat(self, hint: str = "") -> NextStep:
        return NextStep(same_command(self.run.config), hint)

    @property
    def _lacks_answers(self) -> bool:
        if self.results.broken or self.results.lost:
            return True
        return any(record.outcome == "errored" for record in self.results.records)

    @property
    def _keeps_answers(self) -> bool:
        specs = self.run.subjects.specs.values()
        return any(spec.provider.identity(spec) for spec in specs)


def _steps_of(run: Run) -> _Steps | None:
    if not run.results or not run.ledger or not run.asking.engine:
        return None
    return _Steps(run, run.results, run.ledger, run.asking.engine)
