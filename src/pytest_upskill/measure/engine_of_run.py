"""What asks the models of a run, and what of its trials is stored."""

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from ..engine import AgentPlaces, Engine
from ..engine.agent_jobs import Trials
from ..engine.budget import Budget
from ..engine.recording import ReplayedAnswers, load_recording, recorded_versions
from ..engine.store import FILE_NAME, FOLDER, KnownAnswers, Store, StoredAnswers
from ..errors import Setting, Spell, Text, shown, spelled
from ..options import FOREVER
from ..trials.answer_times import find_outdated
from ..trials.trial import Question, Trial
from .estimate import NOTHING_STORED, Stored, find_stored_answers
from .open_run import OpenRun
from .trials_of_run import facts_of, open_trials

Notify = Callable[[str], None]


def open_engine(
    run: OpenRun,
    root: Path,
    notify: Notify,
    *,
    spell: Spell = str,
    how_to_record: str = "",
    store_hint: str = "",
    budget_hint: Text = "raise it, or ask for less",
    recording: Path | None = None,
) -> Engine:
    """What asks the models; ``notify`` gets warnings about the stored answers.

    Answers of a ``recording`` are used like stored ones.
    """
    settings = run.settings
    models = run.models
    _note_servers(run, notify, spell)

    price_of = cache(models.price_of)
    budget = Budget(settings.max_tokens, settings.max_cost, price_of, budget_hint)
    trials: Callable[[], Trials] = partial(open_trials, settings, models, run.roster)
    if run.remote:
        trials = partial(run.remote.use, budget, spell)
    answers = _open_answers(
        run, root, notify, recording, how_to_record=how_to_record, hint=store_hint
    )
    return Engine(
        facts_of(models, settings),
        concurrency=settings.calls_at_once,
        answers=answers,
        budget=budget,
        agents=AgentPlaces(trials, settings.agents_at_once),
        spell=spell,
        max_age=FOREVER if settings.replay_file else settings.max_age,
    )


def find_stored(
    run: OpenRun,
    root: Path,
    trials: Sequence[Trial],
    notify: Notify,
    recording: Path | None = None,
) -> Stored:
    """What of these trials needs no call, and what is asked again."""
    has_store = (root / FOLDER / FILE_NAME).is_file() and not run.settings.fresh
    if not (has_store or recording):
        return NOTHING_STORED

    answers = _open_answers(run, root, notify, recording)
    try:
        questions = [trial.question for trial in trials]
        outdated = find_outdated(questions, answers.asked_at, run.settings.max_age)
        current = [trial for trial in trials if trial.question.key not in outdated]
        return Stored(find_stored_answers(current, answers.get), outdated)
    finally:
        answers.close()


def _open_answers(
    run: OpenRun,
    root: Path,
    notify: Notify,
    recording: Path | None,
    *,
    how_to_record: str = "",
    hint: str = "",
) -> KnownAnswers:
    if file := run.settings.replay_file:
        recorded = load_recording(file)
        for agent, version in recorded_versions(recorded.values()):
            run.roster.set_versions({agent: version}, shown(file))
        return ReplayedAnswers(recorded, shown(file), how_to_record)

    identities = {}
    for name, spec in run.models.specs.items():
        identities[name] = spec.provider.identity(spec)
    return StoredAnswers(
        lambda: Store(root / FOLDER / FILE_NAME, notify),
        identities.__getitem__,
        fresh=run.settings.fresh,
        hint=hint,
        recorded=load_recording(recording, "recorded") if recording else {},
        seconds_for=partial(_seconds_for, run),
    )


def _seconds_for(run: OpenRun, question: Question) -> float:
    """The time limit of a question."""
    if question.task is None:
        return run.models.seconds_for(question.asked_as, run.settings)
    if question.task.timeout is None:
        return run.settings.agent_timeout
    return question.task.timeout


def _note_servers(run: OpenRun, notify: Notify, spell: Spell) -> None:
    """Tell of settings of servers that are not as they should be."""
    if run.settings.replay_file is not None:
        return

    specs = run.models.specs.values()
    providers = {spec.provider.name: spec.provider for spec in specs}
    for provider in providers.values():
        if note := provider.note(os.environ):
            notify(note)
    url = run.settings.base_url
    if url is not None and url not in {spec.base_url for spec in specs}:
        names = ", ".join(run.models.specs)
        notify(spelled((Setting("base_url"), f" is not used by {names}"), spell))
