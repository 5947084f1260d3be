"""Recorded answers: a file to read, diff and commit, replayed without a key or a network."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .._util.files import reason_of
from ..errors import Setting, SettingsError, shown
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.trial import Question, Trial
from .store import KnownAnswers

_PLACE: Final = ("skill", "case", "model", "arm", "run")


@dataclass(frozen=True)
class Recorded:
    """An answer and where it belongs. Step 0 of a trial is its question; a judge's come after."""

    trial: Trial
    step: int
    key: str
    answer: Answer

    @property
    def place(self) -> tuple[str, str, str, str, int, int]:
        trial = self.trial
        return trial.skill, trial.case, trial.model, trial.arm, trial.run, self.step


def recorded_lines(answers: Iterable[Recorded], before: str = "") -> str:
    """One line per answer, sorted so that diffs stay small.

    Lines of ``before`` are kept unless there is a new answer in their place.
    """
    lines = {recorded.place: json.dumps(_line(recorded)) for recorded in answers}
    for line in filter(str.strip, before.split("\n")):
        data = json.loads(line)
        place = (*(data[key] for key in _PLACE), data.get("step", 0))
        lines.setdefault(place, line)
    return "".join(f"{lines[place]}\n" for place in sorted(lines))


def _line(recorded: Recorded) -> dict[str, Any]:
    trial, answer = recorded.trial, recorded.answer
    return {
        "skill": trial.skill,
        "case": trial.case,
        "model": trial.model,
        "arm": trial.arm,
        "run": trial.run,
        "step": recorded.step,
        "key": recorded.key,
        **answer.to_json(),
        "seconds": round(answer.seconds, 3),
    }


def load_recording(file: Path, setting: str = "replay_file") -> dict[str, Answer]:
    """The answers of a recording, by the key of their question."""
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        problem, hint = reason_of(error), "Check the path."
        raise SettingsError(setting, problem, hint, value=shown(file)) from None
    except UnicodeDecodeError as error:
        problem, hint = f"not UTF-8 (byte {error.start})", "Check the path."
        raise SettingsError(setting, problem, hint, value=shown(file)) from None
    answers = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            answers[str(data["key"])] = Answer.from_json(data, stored=True)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SettingsError(
                setting,
                f"not a recorded answer ({type(error).__name__}: {error})",
                ("Write the file again with ", Setting("record_file"), "."),
                value=f"{shown(file)}:{number}",
            ) from None
    return answers


class ReplayedAnswers(KnownAnswers):
    """The answers of a recording and nothing else: a question that it lacks is an error."""

    def __init__(self, answers: Mapping[str, Answer], file: str, how_to_record: str) -> None:
        self._answers = answers
        self._missing = NoAnswer(f"this question is not in {file}. Record it: {how_to_record}")

    def get(self, question: Question) -> Reply | None:
        return self._answers.get(question.key, self._missing)
