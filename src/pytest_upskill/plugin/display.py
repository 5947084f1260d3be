"""What a run shows on the terminal, from the header to the last line."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from .._util.texts import counted, harmless, one_line
from ..errors import shown
from ..models import ModelSpec
from ..models.local import LABEL, LocalProvider
from ..models.port import Download, Progress
from ..reports.terminal.layout import (
    ASCII_MARKS,
    UNICODE_MARKS,
    Look,
    Marks,
    marks_for,
    text_width,
)
from ..reports.terminal.live import item_numbers
from ..reports.terminal.summary_text import summary_lines
from ..results.regressions import AcceptedComparison
from ..results.run import RunResults
from ..settings import Settings
from ..trials.plan import SkillInfo
from ..trials.records import load_records
from .outcomes import RECORDS_PROPERTY

_KEY: Final = "upskill_screen"
_WIDTH: Final = 80  # where nobody looks
_PERCENT: Final = len(" [100%]")
_INDENT: Final = "    "
_BAR: Final = 30
_MB: Final = 1_000_000.0

Specs = Mapping[str, ModelSpec]
Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


@dataclass(frozen=True)
class Screen:
    width: int
    marks: Marks


_SCREEN: Final = pytest.StashKey[Screen]()


def screen_of(config: pytest.Config) -> Screen:
    """The terminal of the run: in a worker, that of the controller.

    It is looked at once, before the first test: while output is captured it can't be seen.
    """
    if told := getattr(config, "workerinput", {}).get(_KEY):
        width, drawn = told
        return Screen(width, UNICODE_MARKS if drawn else ASCII_MARKS)
    if not config.pluginmanager.hasplugin("terminalreporter"):
        return Screen(_WIDTH, UNICODE_MARKS)
    if _SCREEN not in config.stash:
        writer = config.get_terminal_writer()
        encoding = getattr(writer._file, "encoding", None) or "ascii"
        config.stash[_SCREEN] = Screen(writer.fullwidth, marks_for(encoding))
    return config.stash[_SCREEN]


def tell_worker(config: pytest.Config, node: object) -> None:
    screen = screen_of(config)
    told = (screen.width, screen.marks == UNICODE_MARKS)
    node.workerinput[_KEY] = told  # type: ignore[attr-defined]


def download_bar(config: pytest.Config) -> Download:
    """Say what is downloaded and, on a terminal, how far it is."""

    def begin(what: str) -> Progress:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            reporter.write_line(f"upskill: fetching {what}")
        if not reporter or not reporter.isatty:
            return lambda _done, _total: None
        writer = config.get_terminal_writer()

        def show(done: int, total: int) -> None:
            full = _BAR * done // total
            bar = "#" * full + "." * (_BAR - full)
            end = "\n" if done == total else ""
            writer.write(f"\r[{bar}] {done / _MB:.0f} of {total / _MB:.0f} MB{end}", flush=True)

        return show

    return begin


def header_lines(
    labels: Sequence[str], specs: Specs, judges: Specs, settings: Settings
) -> list[str]:
    names = [
        name if (model_id := spec.model_id) in name else f"{name} ({model_id})"
        for name, spec in specs.items()
    ]
    default = "" if settings.models else ", the default as no --model is given"
    if settings.models_file:
        default = f", from {shown(settings.models_file)}"
    lines = [f"upskill: {one_line(', '.join(labels), 100)} on {', '.join(names)}{default}"]
    tested = {spec.model_id for spec in specs.values()}
    for name, spec in judges.items():
        own = ", which is under test itself and may favour its own answers"
        lines.append(
            f"upskill: rubrics are judged by {name}{own if spec.model_id in tested else ''}"
        )
    return lines


class ItemLines:
    """A plugin of the process that has the terminal."""

    def __init__(self, config: pytest.Config, against: str | None) -> None:
        self._config = config
        self._against = against
        self._shown = config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: Any) -> Generator[None, Status, Status]:
        """The word stays first, whoever chose it, so that people and programs find it."""
        category, letter, word = yield
        numbers = self._numbers(report) if self._shown else None
        if not numbers or not word:
            return category, letter, word
        if isinstance(word, tuple):
            return category, letter, (self._joined(word[0], numbers, report), word[1])
        return category, letter, self._joined(word, numbers, report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """The short summary asks for the words once more, and has no room for numbers."""
        self._shown = False

    def _numbers(self, report: Any) -> str | None:
        if getattr(report, "when", None) != "call":
            return None
        dumped = dict(report.user_properties).get(RECORDS_PROPERTY)
        if dumped is None:
            return None
        records, marks = load_records(str(dumped)), screen_of(self._config).marks
        return item_numbers(records, marks, self._against)

    def _joined(self, word: str, numbers: str, report: Any) -> str:
        """On a terminal too narrow for both, the numbers get a line of their own.

        Not in a log, whose lines have no end; nor under xdist, where the test's name comes last.
        """
        line = f"{word} {numbers}"
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or hasattr(report, "node"):
            return line
        writer = self._config.get_terminal_writer()
        fits = writer.width_of_current_line + text_width(line) + _PERCENT < writer.fullwidth
        return line if fits else f"{word}\n{_INDENT}{numbers}"


def write_regressions(
    reporter: pytest.TerminalReporter, compared: Sequence[AcceptedComparison]
) -> None:
    """What only all cases together show was no failure by itself: it is shown here."""
    worse = {case.test.nodeid for comparison in compared for case in comparison.to_run_again}
    for report in reporter.stats.get("xfailed", ()):
        if report.nodeid in worse and report.longrepr:
            reporter.write_sep("_", f"regression: {report.nodeid}", red=True)
            report.toterminal(reporter._tw)


def write_summary(
    reporter: pytest.TerminalReporter,
    config: pytest.Config,
    results: RunResults,
    notes: Sequence[str],
) -> None:
    verbosity = config.get_verbosity()
    if not results.verdicts or verbosity < -1:  # with -qq pytest itself says nothing here either
        return
    writer = config.get_terminal_writer()
    screen = screen_of(config)
    look = Look(screen.width, screen.marks, writer.markup, verbosity)
    lines = summary_lines(results.skills, results.verdicts, look, notes, results.subsets)
    # With -q the few lines stand right below the dots, unless there is something between.
    if verbosity >= 0 or any(reporter.stats.get(kind) for kind in ("failed", "error", "warnings")):
        reporter.write_sep("=", "skills")
    for line in lines:
        reporter.write_line(line)


def write_end(
    config: pytest.Config,
    annotations: Sequence[str],
    trouble: Sequence[str],
    gate: Sequence[str],
) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter:
        for line in annotations:
            reporter.write_line(line)
        for problem in trouble:
            reporter.write_line(f"upskill: {harmless(problem)}", red=True)
        for reason in gate:
            reporter.write_line(f"upskill: gate: {harmless(reason)}", red=True)


def new_skill_notes(skills: Sequence[SkillInfo], against: str | None) -> list[str]:
    return [
        f"{harmless(skill.name)} is new since {harmless(against)}: there is nothing to compare."
        for skill in skills
        if against and not skill.against
    ]


def retry_notes(retries: Mapping[str, int]) -> list[str]:
    return [
        f"{harmless(model)}: {counted(number, 'call')} made again after a limit or a fault."
        for model, number in retries.items()
        if number
    ]


def small_model_notes(specs: Iterable[ModelSpec]) -> list[str]:
    """A small model is for trying things out, and whoever reads its numbers must know."""
    return [
        f"{spec.name} is {LABEL}: a small model to try things out with, no measure of a skill."
        for spec in specs
        if isinstance(spec.provider, LocalProvider) and not spec.file
    ]
