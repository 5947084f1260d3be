"""The terminal of a run, and what its header says."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from .._util.texts import counted, harmless, one_line
from ..agents.roster import Roster
from ..errors import shown, without_commands
from ..models import ModelSpec
from ..models.model import Download, Progress
from ..reports.terminal.layout import (
    ASCII_MARKS,
    UNICODE_MARKS,
    Marks,
    marks_for,
    wrapped,
)
from ..results.comparison import SCORE_WORDS
from ..settings import Score, Settings
from ..skills.bundle import parts_besides_skills
from ..skills.search import left_out_lines
from ..trials.subject import CHAT, ORACLE, takes_plugins
from .paths import Selected, SkillSource, command_for_cases, unread_names

_KEY: Final = "upskill_screen"
_WIDTH: Final = 80  # without a terminal
_NAMES: Final = 48  # characters of names in a line of the header
_BAR: Final = 30
_MB: Final = 1_000_000.0
_CLEAR_LINE: Final = "\r\x1b[K"
_NO_SANDBOX: Final = (
    "upskill: WARNING: no sandbox: agents can read, change and send all that you can"
)
_OTHER_SCORE: Final = "or --skill-score pass"

Specs = Mapping[str, ModelSpec]


@dataclass(frozen=True)
class Screen:
    width: int
    marks: Marks


_SCREEN: Final = pytest.StashKey[Screen]()


def screen_of(config: pytest.Config) -> Screen:
    """The terminal of the run: in a worker, that of the controller.

    Read once, before the first test: later, pytest captures the output.
    """
    if sent := getattr(config, "workerinput", {}).get(_KEY):
        width, unicode = sent
        return Screen(width, UNICODE_MARKS if unicode else ASCII_MARKS)
    if not config.pluginmanager.hasplugin("terminalreporter"):
        return Screen(_WIDTH, UNICODE_MARKS)
    if _SCREEN not in config.stash:
        writer = config.get_terminal_writer()
        encoding = getattr(writer._file, "encoding", None) or "ascii"
        config.stash[_SCREEN] = Screen(writer.fullwidth, marks_for(encoding))
    return config.stash[_SCREEN]


def fitted_lines(config: pytest.Config, lines: Iterable[str]) -> list[str]:
    """Wrapped, so that no line is wider than the terminal;
    none begins with a log command.
    """
    width = screen_of(config).width
    parts = (part for line in lines for part in wrapped(line, width, rest="  "))
    return [*map(without_commands, parts)]


def send_screen(config: pytest.Config, node: object) -> None:
    """Send the controller's terminal to an xdist worker."""
    screen = screen_of(config)
    sent = (screen.width, screen.marks == UNICODE_MARKS)
    node.workerinput[_KEY] = sent  # type: ignore[attr-defined]


def download_bar(config: pytest.Config) -> Download:
    """Announce a download and, on a terminal, show its progress."""

    def begin(name: str) -> Progress:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            for line in fitted_lines(config, [f"upskill: downloading {name}"]):
                reporter.write_line(line)
        if not reporter or not reporter.isatty:
            return lambda _bytes, _total: None
        writer = config.get_terminal_writer()

        def show(loaded: int, total: int) -> None:
            if loaded == total:
                writer.write(_CLEAR_LINE, flush=True)
                return

            full = _BAR * loaded // total
            bar = "#" * full + "." * (_BAR - full)
            sizes = f"{loaded / _MB:.0f} of {total / _MB:.0f} MB"
            writer.write(f"\r[{bar}] {sizes}", flush=True)

        return show

    return begin


def header_lines(
    selected: Selected,
    specs: Specs,
    judges: Specs,
    settings: Settings,
    *,
    verbose: bool,
) -> list[str]:
    """The skills and models of the run, and the skills that it can't test."""
    lines = []
    if selected.sources:
        skills = _skills(selected, verbose)
        asked = f"{skills} on {_models(specs, settings)}"
        if set(specs) == {ORACLE}:
            asked = f"references of {skills}: the oracle asks no model"
        lines.append(f"upskill: {asked}")
        tested = {spec.model_id for spec in specs.values()}
        for name, spec in judges.items():
            note = " (also under test: it may favor its own answers)"
            note = note if spec.model_id in tested else ""
            lines.append(f"upskill: rubrics judged by {name}{note}")
    if without := [source.label for source in selected.without_cases]:
        names = _first_names(without, verbose=verbose)
        total = len(selected.all)
        lines.append(
            f"upskill: {total:,} found, {len(without):,} without cases: {names}"
        )
        lines.append(
            "upskill: to write some:"
            f" {' '.join(command_for_cases('SKILL', os.environ))}"
        )
    unread = unread_names(selected.all, every=verbose)
    notes = [*selected.notes, *([f"not read: {unread}"] if unread else [])]
    notes += left_out_lines(selected.left_out)
    return [*lines, *(f"upskill: {note}" for note in notes)]


def agent_lines(agents: Sequence[str], roster: Roster, sandbox: str) -> list[str]:
    """Who carries out the cases, and where."""
    place = f", sandbox: {sandbox}" if sandbox else ""
    if agents == [ORACLE]:
        return [f"upskill: references are carried out{place}"] if place else []
    versions = roster.versions
    named = [
        harmless(f"{agent} {versions.get(agent, '')}".rstrip()) for agent in agents
    ]
    lines = [f"upskill: carried out by {', '.join(named)}{place}"]
    for agent in agents:
        if agent != CHAT and (bundled := roster.agent(agent).bundled):
            names = one_line(", ".join(bundled), 200)
            lines.append(f"upskill: {agent} has skills of its own everywhere: {names}")
    return [*lines, *([_NO_SANDBOX] if sandbox == "none" else [])]


def other_skill_lines(others: Sequence[str], noise: int) -> list[str]:
    """The skills that are installed in all arms; bundled ones by their number."""
    lines = [f"upskill: with other skills: {', '.join(others)}"] if others else []
    unrelated = counted(noise, "unrelated skill")
    return [
        *lines,
        *([f"upskill: with {unrelated} besides (--skill-noise)"] if noise else []),
    ]


def plugin_lines(sources: Iterable[SkillSource], agents: Iterable[str]) -> list[str]:
    """What agents don't have of plugins that are tested as one."""
    others = one_line(
        ", ".join(agent for agent in agents if not takes_plugins(agent)), 100
    )
    parts = {
        source.label: parts_besides_skills(source.skill_file) for source in sources
    }
    return [
        f"upskill: {label}: only claude has its {' and '.join(words)}, not {others}"
        for label, words in parts.items()
        if words and others
    ]


def unfit_lines(pairs: Sequence[str], *, verbose: bool) -> list[str]:
    """The pairs of agents and models that are left out."""
    names = _first_names(pairs, verbose=verbose)
    return [f"upskill: left out, as they don't fit: {names}"] if pairs else []


def _skills(selected: Selected, verbose: bool) -> str:
    labels = [source.label for source in selected.sources]
    names = _first_names(labels, verbose=verbose)
    return names if len(labels) == 1 else f"{counted(len(labels), 'skill')} ({names})"


def _models(specs: Specs, settings: Settings) -> str:
    names = [
        name if (model_id := spec.model_id) in name else f"{name} ({model_id})"
        for name, spec in specs.items()
    ]
    default = "" if settings.models else " (default; choose with --model)"
    if settings.models_file:
        default = f" (from {shown(settings.models_file)})"
    return f"{', '.join(names)}{default}"


def _first_names(names: Sequence[str], *, verbose: bool) -> str:
    """The first names that fit on a line; all of them with -v."""
    free, fitting = _NAMES, list[str]()
    for name in (one_line(name, _NAMES) for name in names):
        free -= len(name) + 2
        if free < 0 and fitting and not verbose:
            return f"{', '.join(fitting)}, …"
        fitting.append(name)
    return ", ".join(fitting)


def score_lines(sources: Collection[SkillSource], chosen: Score | None) -> list[str]:
    """The score of the verdicts, unless it is the pass rate by default."""
    if chosen:
        return [f"upskill: verdict on the {SCORE_WORDS[chosen]}"]
    evals = [source for source in sources if source.are_evals]
    if not evals:
        return []
    names = one_line(", ".join(source.label for source in evals), 100)
    of = f" for {names}" if len(evals) < len(sources) else ""
    why = (
        "rewards of tasks"
        if all(source.task_files for source in evals)
        else "evals.json"
    )
    return [
        f"upskill: verdict on the {SCORE_WORDS['checks']}{of} ({why}; {_OTHER_SCORE})"
    ]
