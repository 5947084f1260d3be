"""Answers in a file that can be read, compared and committed: written by one run, replayed by
another that has no key and no network.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import SettingsError, shown
from ..trials.answer import Answer
from ..trials.trial import Trial

_PLACE: Final = ("skill", "case", "model", "arm", "run")


@dataclass(frozen=True)
class Recorded:
    """An answer and what it was for: a step of a trial, the first of which is its question."""

    trial: Trial
    step: int
    key: str
    answer: Answer

    @property
    def place(self) -> tuple[str, str, str, str, int, int]:
        trial = self.trial
        return trial.skill, trial.case, trial.model, trial.arm, trial.run, self.step


def recorded_lines(answers: Iterable[Recorded], before: str = "") -> str:
    """One line for each answer, sorted, so that a diff shows what changed and nothing else.

    Of the lines of before those are kept whose place has no answer now.
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


def load_recording(file: Path, flag: str = "--skill-replay") -> dict[str, Answer]:
    """The answers of a recorded file, by the key of their question."""
    where = f"{flag} {shown(file)}"
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(where, f"this can't be read: {error}", "Check the path.") from None
    answers = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            answers[str(data["key"])] = Answer.from_json(data, stored=True)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SettingsError(
                f"{where}:{number}",
                f"this line is not a recorded answer ({type(error).__name__}: {error})",
                "Write the file anew with --skill-record.",
            ) from None
    return answers
