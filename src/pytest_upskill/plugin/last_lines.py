"""The end of a run on the terminal, after pytest's own last line."""

import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import pytest

from .._util.credentials import shown_words
from .._util.texts import harmless, one_line, printed
from ..engine import Engine
from ..engine.batches import Waiting
from ..engine.lane import GOES_ON, STOPPED
from ..errors import shown
from ..models.prices import FREE, PriceOf, cost, saved_by_cache
from ..reports.terminal.closing_lines import Ending, Spent, closing_lines, spent_words
from ..reports.terminal.layout import TerminalLook, wrapped
from ..results.run import NOTHING_TESTED, RunResults
from ..results.run_notes import untested_notes
from ..settings import Gates, Settings
from ..trials.answer import Answer, NoAnswer, Usage
from ..trials.plan import PlannedCase
from .asked_items import link_to
from .display import screen_of
from .ledger import Ledger
from .pytest_options import FLAGS, OPTIONS
from .status_line import batches_of

_KEPT: Final = "all answers so far are kept: the same command continues"
_IN_BATCH: Final = "the batch goes on at the provider: the same command collects its answers"
_IN_ANOTHER: Final = "the same command submits again what failed in its batch"
_FIX: Final = "fix the errors, then the same command asks only what is missing"
_NOT_KEPT: Final = "the same command starts over: answers of scripted models are not kept"
_FIX_FIRST: Final = "fix the errors, then the same command starts"
TRY_LATER: Final = 75  # the exit status of a run whose batches have not ended: EX_TEMPFAIL
_MOST_REASONS: Final = 3
_HELPS: Final = "to have later runs fail if it gets worse, accept these results:"
_WITH_VALUE: Final = {option.flag for option in OPTIONS.values() if option.kind.constant is None}
_WRITING: Final = (
    *("json_file", "html_file", "csv_file", "markdown_file", "benchmark_folder"),
    *("transcripts_folder", "record_file"),
)
# Dropped when only failed tests run again: these would overwrite reports of all tests, decide gates
# by a few cases, or spend much more.
_OF_ALL: Final = (
    *(field.name for field in fields(Gates)),
    *("accept", "fresh"),
    *_WRITING,
)
_LF: Final = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first")
_OTHER_VALUES: Final = ("--junitxml", "--junit-xml", "-k", "-m")
_PAGE: Final = "skills.html"


@dataclass(frozen=True)
class Ended:
    """What is known of a run when pytest has written its last line."""

    config: pytest.Config
    session: pytest.Session
    settings: Settings
    results: RunResults | None
    ledger: Ledger
    engine: Engine
    stopped: str | None  # why it ended early
    problems: Sequence[str]
    notes: Sequence[str]
    written: Sequence[Path]
    selected: Sequence[str]  # the names of skills
    accept: bool  # whether there is something to accept
    telling: bool  # False for the small embedded model
    stored: bool  # whether answers are kept for the next run
    price_of: PriceOf

    @property
    def failed(self) -> bool:
        fine = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        return self.session.exitstatus not in fine

    @property
    def concerns_skills(self) -> bool:
        gate = self.results.gate.reasons if self.results else ()
        concerned = self.ledger.concerns_skills or gate or self.problems
        return bool(concerned or (self.stopped and self.selected))


def write_closing(ended: Ended) -> None:
    """Write the last lines of a run that tests skills."""
    if not ended.concerns_skills:
        write_problems(ended.config, ended.problems)
        return
    reporter = ended.config.pluginmanager.getplugin("terminalreporter")
    if not reporter:
        return
    screen, writer = screen_of(ended.config), ended.config.get_terminal_writer()
    look = TerminalLook(screen.width, screen.marks, writer.markup)
    for line in closing_lines(ended.results, _ending(ended), look):
        reporter.write_line(printed(line))


def write_problems(config: pytest.Config, problems: Sequence[str]) -> None:
    """All problems of a run that asks nothing: nothing else shows them."""
    if reporter := config.pluginmanager.getplugin("terminalreporter"):
        for problem in problems:
            reporter.write_line(f"upskill: {harmless(problem)}", red=True)


def _ending(ended: Ended) -> Ending:
    config = ended.config
    quiet = config.get_verbosity() < 0 or config.option.no_summary
    before, command = _next(ended)
    return Ending(
        failed=ended.failed,
        problems=[*ended.problems, *_unasked(ended)],
        not_reached=_not_reached(ended),
        notes=[*_untested(ended), *(ended.notes if quiet else ())],
        page=_page(ended),
        spent=spent_of(ended.engine, ended.price_of, ended.settings),
        before_next=before,
        next=shown_words(command) if command else (),
    )


def _unasked(ended: Ended) -> Iterator[str]:
    """Why nothing was asked at all, such as errors of collection."""
    if ended.stopped and not ended.ledger.has_plan:
        yield f"nothing was asked: {ended.stopped}"


def _untested(ended: Ended) -> Iterator[str]:
    results = ended.results
    if results and not results.verdicts and not results.triggers and not ended.failed:
        yield from untested_notes(results) or [NOTHING_TESTED]


def _not_reached(ended: Ended) -> list[str]:
    """Skills of an interrupted run that have no answer."""
    results = ended.results
    if not results or not results.interrupted or not ended.ledger.has_plan:
        return []
    names = dict.fromkeys([*ended.selected, *(skill.name for skill in results.skills)])
    reached = {record.skill for record in results.all_records}
    planned = {test.skill for test in results.all_tests}
    return [name for name in names if name in planned and name not in reached]


def _page(ended: Ended) -> str:
    """Where the HTML page is: at the first failed case, if there is one."""
    if ended.settings.html_file not in ended.written or not ended.settings.html_file:
        return ""
    failed: Sequence[PlannedCase] = ended.results.failed if ended.results else ()
    first = [test for test in failed if test.should_trigger is None][:1]
    if first:
        return link_to(first[0], ended.settings)
    return "" if ended.failed is False and opener(os.environ) else shown(ended.settings.html_file)


def is_unsettled(session: pytest.Session, ledger: Ledger) -> bool:
    """Whether something failed or is missing: then the results are not to be accepted."""
    return bool(session.testsfailed or ledger.has_errors)


def _next(ended: Ended) -> tuple[str, list[str]]:
    """A hint about the next command, and its words."""
    config, session, results, ledger = ended.config, ended.session, ended.results, ended.ledger
    if ended.stopped and not ledger.has_plan:
        return _FIX_FIRST if session.testsfailed else "", _same_command(config)
    if results and results.interrupted and not session.shouldfail:
        hint = _KEPT if ended.stored else _NOT_KEPT
        if ended.engine.waiting:
            hint = _IN_BATCH
        return "" if ended.settings.replay_file else hint, _same_command(config)
    if ledger.has_errors and not session.shouldfail:
        if ended.engine.budget.refused:
            return _raise(ended), []
        missing = [reply for _, reply in ended.engine.settled() if isinstance(reply, NoAnswer)]
        if missing and len(missing) == ended.engine.failed_in_batches:
            return _IN_ANOTHER, _same_command(config)
        return _FIX if ended.stored else _FIX_FIRST, _same_command(config)
    if session.testsfailed:
        cached = config.pluginmanager.hasplugin("lfplugin")
        return "", _only_failures(config) if cached else _same_command(config, "-vv")
    if ended.accept:
        return "", _accepting(config)
    if not results or not results.all_records:
        return "", _listing(config)
    file = ended.settings.html_file
    if file and file in ended.written:
        command = opener(os.environ)
        return "", [command, shown(file)] if command else []
    if not ended.failed and ended.telling and _worth_accepting(results, ended.settings):
        return _HELPS, _accepting(config)
    return "", _with_page(config)


def _raise(ended: Ended) -> str:
    """How to go on when the budget is used up: the same command would stop again."""
    limits = {"max_cost": ended.settings.max_cost, "max_tokens": ended.settings.max_tokens}
    flags = " or ".join(FLAGS[name] for name, limit in limits.items() if limit is not None)
    outcome = "asks only what is missing" if ended.stored else "starts over"
    return f"next: raise {flags}; then the same command {outcome}"


def _worth_accepting(results: RunResults, settings: Settings) -> bool:
    """Whether every skill helps, and nothing has been accepted yet."""
    is_first = not results.subsets and not results.comparisons and not settings.accept
    return is_first and bool(results.verdicts) and all(v.word == "helps" for v in results.verdicts)


def opener(environ: Mapping[str, str]) -> str:
    """The command that opens a file in a browser; empty if there is none, as in CI."""
    if environ.get("CI"):
        return ""
    if sys.platform in ("darwin", "win32"):
        return "open" if sys.platform == "darwin" else "start"
    shows = environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    return "xdg-open" if shows and shutil.which("xdg-open") else ""


def spent_of(engine: Engine, price_of: PriceOf, settings: Settings) -> Spent | None:
    """The cost of all calls of a run, including those without an answer."""
    if not engine.questions:
        return None
    replies = engine.settled()
    answers = [(model, reply) for model, reply in replies if isinstance(reply, Answer)]
    usages = [(model, reply.usage) for model, reply in answers if not reply.stored]
    unanswered = [(call.model, call.usage) for call in engine.budget.unanswered]
    tokens = unpriced = 0
    usd: float | None = None
    for model, usage in (*usages, *unanswered):
        price, number = price_of(model), _tokens(usage)
        tokens += number
        if price is None:
            unpriced += number
        elif price != FREE:
            usd = (usd or 0.0) + (cost(price, usage) or 0.0)
    return Spent(
        usd,
        tokens,
        unpriced,
        calls=len(usages),
        stored=len(answers) - len(usages),
        unanswered=len(unanswered),
        saved=saved_by_caches(engine, price_of),
        most_usd=settings.max_cost,
        most_tokens=settings.max_tokens,
        counts="call" if settings.agents == Settings.agents else "answer",
        source=shown(settings.replay_file) if settings.replay_file else "cache",
    )


def saved_by_caches(engine: Engine, price_of: PriceOf) -> float:
    """USD that the providers' caches saved in all calls of a run."""
    usages = (
        (model, reply.usage)
        for model, reply in engine.settled()
        if isinstance(reply, Answer) and not reply.stored
    )
    used = ((model, usage) for model, usage in usages if usage.cached or usage.written)
    return round(sum(saved_by_cache(price_of(model), usage) for model, usage in used), 6)


def _tokens(usage: Usage) -> int:
    return (usage.input or 0) + (usage.output or 0)


def write_submitted(
    config: pytest.Config,
    waiting: Waiting,
    engine: Engine,
    spent: Spent | None,
    problems: Sequence[str],
) -> None:
    """The last lines of a run that only submits: there is nothing to report yet."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if not reporter:
        return
    replies = [reply for _, reply in engine.settled() if isinstance(reply, NoAnswer)]
    failed = (reply.reason for reply in replies if reply.reason not in (STOPPED, GOES_ON))
    reasons = dict.fromkeys(failed)
    for reason in [*problems, *list(reasons)[:_MOST_REASONS]]:
        reporter.write_line(f"upskill: {one_line(harmless(reason), 500)}", red=True)
    if spent and spent.calls:
        reporter.write_line(spent_words(spent))
    text = f"upskill: {batches_of(waiting)}: nothing is tested yet, and the same command collects "
    text += f"the answers (exit status {TRY_LATER})"
    for line in wrapped(harmless(text), screen_of(config).width, rest="  "):
        reporter.write_line(line)


# Commands to paste.


def _same_command(config: pytest.Config, *options: str) -> list[str]:
    """The same command, which finds the answers of this run in the cache."""
    return ["pytest", *_without(_args(config), {FLAGS["fresh"]}), *options]


def _only_failures(config: pytest.Config) -> list[str]:
    """Run the failed tests again, with more of their answers."""
    dropped = {*_LF, *(FLAGS[setting] for setting in _OF_ALL), "--no-summary", "--junitxml"}
    words = _without(_args(config), {*dropped, "--junit-xml"})
    verbose = [word for word in words if word == "--verbose" or _is_short(word, "v")]
    words = [word for word in words if word not in verbose and not _is_quiet(word)]
    return ["pytest", "--lf", "-vv" if verbose else "-v", *words]


def _with_page(config: pytest.Config) -> list[str]:
    """Write the same as a page, without accepting again."""
    return [*_without(_same_command(config), {FLAGS["accept"]}), FLAGS["html_file"], _PAGE]


def _listing(config: pytest.Config) -> list[str]:
    """List what can be selected, if nothing was."""
    return [*_without(_same_command(config), {"-k", "-m"}), "--collect-only", "-q"]


def _accepting(config: pytest.Config) -> list[str]:
    return _same_command(config, FLAGS["accept"])


def _args(config: pytest.Config) -> list[str]:
    return [str(word) for word in config.invocation_params.args]


def _without(args: Iterable[str], flags: Collection[str]) -> list[str]:
    return [word for flag, words in _grouped(args) if flag not in flags for word in words]


def _grouped(args: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each option with its value, by its flag; other words by themselves."""
    words = iter(args)
    for word in words:
        flag, equals, _ = word.partition("=")
        takes = flag in _WITH_VALUE or flag in _OTHER_VALUES
        if takes and not equals and (following := next(words, None)) is not None:
            yield flag, (word, following)
        else:
            yield flag, (word,)


def _is_quiet(word: str) -> bool:
    return word == "--quiet" or _is_short(word, "q")


def _is_short(word: str, letter: str) -> bool:
    return word.startswith("-") and set(word[1:]) == {letter}
