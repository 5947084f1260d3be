"""What the header of a run says: skills, models, agents, and what has no effect."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from .._util.texts import counted, first_few, harmless, one_line, plural
from ..errors import InputError, shown
from ..measure.models_of_run import login_line
from ..measure.open_run import OpenRun
from ..registry import part_readers
from ..skills.bundle import parts_besides_skills
from ..skills.search import left_out_lines
from ..trials.subject import CHAT, takes_plugins
from .paths import Selected
from .pytest_options import FLAGS, cli_agent_flags, cli_value
from .run import Run
from .run_subjects import has_other_skills
from .skill_code import code_kept_out
from .untested import command_for_cases, unread_names

_MAX_NAMES_LENGTH: Final = 100
_MAX_NAME_LENGTH: Final = 48
_MAX_NAMES: Final = 4
_MAX_BUNDLED_LENGTH: Final = 200
_NO_SANDBOX: Final = (
    "WARNING: no sandbox: agents can read, change and send all that you can"
)


def header_lines(run: Run) -> list[str]:
    lines = [f"upskill: {line}" for line in _skill_lines(run)]
    lines += [f"upskill: {line}" for line in _idle_option_lines(run)]
    lines += [f"upskill: {line}" for line in _subject_lines(run)]
    lines += [f"upskill: {line}" for line in _plugin_lines(run)]
    lines += [f"upskill: {line}" for line in _score_lines(run)]
    if code := code_kept_out(run.config):
        lines += code.header_lines(source.folder for source in run.selected.all)
    return lines


def _skill_lines(run: Run) -> Iterator[str]:
    """The skills and models of the run, and the skills that it can't test."""
    selected = run.selected
    verbose = run.config.get_verbosity() > 0
    if selected.sources:
        skills = _name_skills(selected, verbose=verbose)
        if kind := run.subjects.kind_without_model:
            yield f"{plural(kind.name)} of {skills}: the {kind.agent} asks no model"
        else:
            yield f"{skills} on {_name_models(run)}"
        tested = {spec.model_id for spec in run.subjects.specs.values()}
        if judge := run.settings.judge:
            note = ""
            if run.subjects.models.specs[judge].model_id in tested:
                note = " (also under test: it may favor its own answers)"
            yield f"rubrics judged by {judge}{note}"

    if without := [source.label for source in selected.without_cases]:
        names = _first_names(without, verbose=verbose)
        yield f"{len(selected.all):,} found, {len(without):,} without cases: {names}"
        command = " ".join(command_for_cases("SKILL", os.environ))
        yield f"to write some: {command}"
    yield from selected.notes
    if unread := unread_names(selected.all, every=verbose):
        yield f"not read: {unread}"
    yield from left_out_lines(selected.left_out)


def _name_skills(selected: Selected, *, verbose: bool) -> str:
    labels = [source.label for source in selected.sources]
    names = _first_names(labels, verbose=verbose)
    return names if len(labels) == 1 else f"{counted(len(labels), 'skill')} ({names})"


def _name_models(run: Run) -> str:
    names = []
    for name, spec in run.subjects.specs.items():
        has_id = spec.model_id in name
        names.append(name if has_id else f"{name} ({spec.model_id})")
    text = ", ".join(names)
    if run.settings.models_file:
        return f"{text} (from {shown(run.settings.models_file)})"
    return text if run.settings.models else f"{text} (default; choose with --model)"


def _subject_lines(run: Run) -> Iterator[str]:
    """Who carries out the cases, where, and with which other skills."""
    subjects = run.subjects
    if subjects.agents:
        yield from _agent_lines(subjects)
        if subjects.remote:
            yield from subjects.remote.lines
        if subjects.unfit:
            labels = [subject.label for subject in subjects.unfit]
            names = _first_names(labels, verbose=run.config.get_verbosity() > 0)
            yield f"left out, as they don't fit: {names}"
        yield from _mock_lines(run)
    if line := login_line(subjects.models, run.settings.logins):
        yield line
    if has_other_skills(subjects, run.selected):
        if others := subjects.arm_maker.others:
            yield f"with other skills: {', '.join(others)}"
        if noise := run.settings.noise:
            yield f"with {counted(noise, 'unrelated skill')} besides (--skill-noise)"


def _mock_lines(run: Run) -> list[str]:
    """What is left out of that which stands around trials."""
    notes = set[str]()
    for source in run.selected.sources:
        with suppress(InputError):  # which collection reports
            for reader in part_readers():
                notes.update(reader(source.case_folder or source.folder).notes())
    return sorted(notes)


def _agent_lines(subjects: OpenRun) -> Iterator[str]:
    place = f", sandbox: {subjects.sandbox}" if subjects.sandbox else ""
    agents = dict.fromkeys(subject.agent for subject in subjects.by_label.values())
    if kind := subjects.kind_without_model:
        if place:
            yield f"{plural(kind.name)} are carried out{place}"
        return

    names = []
    for agent in agents:
        version = subjects.roster.versions.get(agent, "")
        names.append(harmless(f"{agent} {version}".rstrip()))
    yield f"carried out by {', '.join(names)}{place}"
    for agent in agents:
        if agent != CHAT and (bundled := subjects.roster.agent(agent).bundled):
            skills = one_line(", ".join(bundled), _MAX_BUNDLED_LENGTH)
            yield f"{agent} has skills of its own everywhere: {skills}"
    if subjects.sandbox == "none":
        yield _NO_SANDBOX


def _idle_option_lines(run: Run) -> Iterator[str]:
    """Options that change nothing in this run."""
    sources = run.selected.sources
    has_triggers = any(source.suites.has_triggers for source in sources)
    unused = cli_agent_flags(run.config, has_triggers=has_triggers)
    if sources and unused and not run.subjects.has_agents:
        yield f"{', '.join(unused)}: only for agents (--skill-agent loop)"
    kind = run.subjects.kind_without_model
    if kind and cli_value(run.config, "models"):
        yield f"{FLAGS['models']} has no effect: the {kind.agent} asks no model"


def _plugin_lines(run: Run) -> Iterator[str]:
    """What agents don't have of plugins that are tested as one."""
    agents = dict.fromkeys(subject.agent for subject in run.subjects.by_label.values())
    without = [agent for agent in agents if not takes_plugins(agent)]
    others = one_line(", ".join(without), _MAX_NAMES_LENGTH)
    for source in run.selected.sources:
        words = parts_besides_skills(source.skill_file)
        if words and others:
            parts = " and ".join(words)
            yield f"{source.label}: only claude has its {parts}, not {others}"


def _score_lines(run: Run) -> Iterator[str]:
    """The score of the verdicts, unless it is the pass rate by default."""
    sources = run.selected.sources
    evals = [source for source in sources if source.are_evals]
    if run.subjects.kind_without_model or not (
        (sources and run.settings.score) or evals
    ):
        return

    from ..results.comparison import SCORE_WORDS

    if run.settings.score:
        yield f"verdict on the {SCORE_WORDS[run.settings.score]}"
    else:
        where = ""
        if len(evals) < len(sources):
            names = ", ".join(source.label for source in evals)
            where = f" for {one_line(names, _MAX_NAMES_LENGTH)}"
        are_tasks = all(source.task_files for source in evals)
        why = "rewards of tasks" if are_tasks else "evals.json"
        words = SCORE_WORDS["checks"]
        yield f"verdict on the {words}{where} ({why}; or --skill-score pass)"


def _first_names(names: Sequence[str], *, verbose: bool) -> str:
    """The first names; all of them with -v."""
    short = [one_line(name, _MAX_NAME_LENGTH) for name in names]
    return first_few(short, len(short) if verbose else _MAX_NAMES)
