"""What a run says on the terminal: before the first call, and at its end."""

from collections.abc import Mapping, Sequence

import pytest

from .._util.texts import counted, harmless, one_line
from ..errors import shown
from ..models import ModelSpec, model_id_of
from ..reports.terminal.summary_text import summary_lines
from ..results.regressions import AcceptedComparison
from ..results.run import RunResults
from ..settings import Settings
from ..trials.trial import PlannedItem, SkillInfo
from .ci import annotation_lines
from .collect import SkillSource
from .screen import screen_of

Specs = Mapping[str, ModelSpec]


def header_lines(
    sources: Sequence[SkillSource], specs: Specs, judges: Specs, settings: Settings
) -> list[str]:
    names = [
        name if (model_id := model_id_of(spec)) in name else f"{name} ({model_id})"
        for name, spec in specs.items()
    ]
    default = "" if settings.models else ", the default as no --model is given"
    if settings.models_file:
        default = f", from {shown(settings.models_file)}"
    skills = ", ".join(source.label for source in sources)
    lines = [f"upskill: {one_line(skills, 100)} on {', '.join(names)}{default}"]
    tested = {model_id_of(spec) for spec in specs.values()}
    for name, spec in judges.items():
        own = ", which is under test itself and may favour its own answers"
        lines.append(
            f"upskill: rubrics are judged by {name}{own if model_id_of(spec) in tested else ''}"
        )
    return lines


def collected_line(items: Sequence[PlannedItem], settings: Settings, *, asks: bool) -> str | None:
    """How much is going to be asked, before it is."""
    if not items:
        return None
    trials = [trial for item in items for trial in item.trials]
    # A judge is asked once about each answer for every vote; a reply to be repaired comes on top.
    rulings = sum(trial.rubric.votes for trial in trials if trial.rubric)
    calls = sum(not trial.is_open for trial in trials) + rulings
    first = {max(trial.run for trial in item.trials if not trial.later) for item in items}
    runs = sorted(first | {item.trials[-1].run for item in items})
    runs_text = f"{runs[0]}" + (f" to {runs[-1]}" if len(runs) > 1 else "")
    arms = "with and without the skill" if settings.baseline else "with the skill"
    if settings.against:
        arms += f", and as it is at {settings.against}"
    # At most: what has a stored answer is not asked.
    asked = [f"{counted(calls, 'call')} at most"] if calls else []
    asked += ["the calls of tests in Python"] if any(trial.is_open for trial in trials) else []
    sizes = f"{' and '.join(asked)}: {counted(len(items), 'test')}"
    text = f"{sizes}, {arms}, runs: {runs_text}"
    return f"upskill: {text}" if asks else f"upskill: a run would make {text}"


def write_regressions(
    reporter: pytest.TerminalReporter, compared: Sequence[AcceptedComparison]
) -> None:
    """What only all cases together show was no failure by itself: it is shown here."""
    worse = {case.nodeid for comparison in compared for case in comparison.to_run_again}
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
    lines = summary_lines(
        results.skills,
        results.verdicts,
        width=screen.width,
        marks=screen.marks,
        paint=writer.markup,
        notes=notes,
        verbosity=verbosity,
        subsets=results.subsets,
    )
    # With -q the few lines stand right below the dots, unless there is something between.
    if verbosity >= 0 or any(reporter.stats.get(kind) for kind in ("failed", "error", "warnings")):
        reporter.write_sep("=", "skills")
    for line in lines:
        reporter.write_line(line)


def write_end(
    config: pytest.Config,
    trouble: Sequence[str],
    compared: Sequence[AcceptedComparison],
    gate: Sequence[str],
) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter:
        for line in annotation_lines(compared, gate, config.rootpath):
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
