"""Every answer that a run used, including the judge's, for a recording."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...checks.judging import all_questions
from ...engine import Engine
from ...engine.recording import Recorded, write_recording
from ...plugin.ledger import Ledger
from ...plugin.paths import relative
from ...trials.answer import Answer
from ...trials.trial import Trial


def record_answers(file: Path, ledger: Ledger, engine: Engine, root: Path) -> None:
    """Add the answers to a file; SettingsError or OSError if that fails."""
    write_recording(file, _find_answers(ledger, engine, root))


def _find_answers(ledger: Ledger, engine: Engine, root: Path) -> Iterator[Recorded]:
    for test in ledger.planned:
        folder = relative(Path(test.folder), root)
        for trial in test.all_trials:
            keys: Iterable[str] = ledger.open_keys(test.nodeid, trial)
            if not trial.is_open:
                keys = _find_keys(trial, engine)
            for step, key in enumerate(keys):
                reply = engine.known_reply(key)
                if isinstance(reply, Answer):
                    yield Recorded(trial, step, key, reply, folder)


def _find_keys(trial: Trial, engine: Engine) -> Iterator[str]:
    """The keys of a trial's question and of those to the judge."""
    yield trial.question.key
    answer = engine.known_reply(trial.question.key)
    if trial.rubric and isinstance(answer, Answer):
        for question in all_questions(
            trial.rubric, trial.question, answer, engine.known_reply
        ):
            yield question.key
