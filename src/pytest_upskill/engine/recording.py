"""Recorded answers: a file to read, diff and commit,
replayed without a key or a network.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._util.files import read_file, reason_of, replace_file
from .._util.json_forms import (
    FormError,
    form_of,
    json_values,
    parse_limited,
    read_form,
    whole_number,
)
from .._util.texts import one_line
from ..errors import Setting, SettingsError, shown
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.trial import Question, Trial
from .store import KnownAnswers

Place = tuple[str, str, str, str, int, int, str]


@dataclass(frozen=True)
class Recorded:
    """An answer and where it belongs. Step 0 of a trial is its question;
    the judge's follow.

    ``folder`` distinguishes skills of the same name, which different runs may record.
    """

    trial: Trial
    step: int
    key: str
    answer: Answer
    folder: str = ""


def write_recording(file: Path, answers: Iterable[Recorded]) -> None:
    """Add answers to a recording; SettingsError or OSError if that fails."""
    before = _read(file, "record_file") if file.is_file() else ()
    replace_file(file, recorded_lines(answers, (line for _, _, line in before)))


def recorded_lines(answers: Iterable[Recorded], before: Iterable[str] = ()) -> str:
    """One line per answer, sorted so that diffs stay small.

    Lines of ``before`` are kept unless there is a new answer in their place.
    """
    lines: dict[Place, str] = {}
    for line in before:
        lines[_place(json.loads(line))] = line
    for recorded in answers:
        values = _values(recorded)
        lines[_place(values)] = json.dumps(values)
    return "".join(f"{lines[place]}\n" for place in sorted(lines))


def _place(values: dict[str, Any]) -> Place:
    skill, case, model, arm, folder = (
        str(values.get(key, "")) for key in ("skill", "case", "model", "arm", "folder")
    )
    run, step = (whole_number(values.get(key)) or 0 for key in ("run", "step"))
    return skill, case, model, arm, run, step, folder


def _values(recorded: Recorded) -> dict[str, Any]:
    trial, answer = recorded.trial, recorded.answer
    rounded = None if answer.seconds is None else round(answer.seconds, 3)
    return {
        "skill": trial.skill,
        "folder": recorded.folder,
        "case": trial.case,
        "model": trial.label,
        "arm": trial.arm,
        "run": trial.run,
        "step": recorded.step,
        "key": recorded.key,
        **json_values(replace(answer, seconds=rounded), brief=True),
    }


def load_recording(file: Path, setting: str = "replay_file") -> dict[str, Answer]:
    """The answers of a recording, by the key of their question."""
    return {key: answer for key, answer, _ in _read(file, setting)}


def _read(file: Path, setting: str) -> Iterator[tuple[str, Answer, str]]:
    """The key, the answer and the text of each line."""
    try:
        text = read_file(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = reason_of(error) if isinstance(error, OSError) else "not UTF-8"
        hint = "Check the path."
        raise SettingsError(setting, problem, hint, value=shown(file)) from None

    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            data = parse_limited(line)
            answer: Answer = read_form(form_of(Answer), data)
            if "key" not in data:
                raise FormError([(("key",), "missing")])
            yield str(data["key"]), replace(answer, stored=True), line.strip()
        except (FormError, ValueError, RecursionError) as error:
            raise SettingsError(
                setting,
                f"not a recorded answer ({one_line(str(error), 200)})",
                ("Write the file again with ", Setting("record_file"), "."),
                value=f"{shown(file)}:{number}",
            ) from None


def recorded_versions(answers: Iterable[Answer]) -> list[tuple[str, str]]:
    """The agents of recorded answers and their versions, in order."""
    versions = dict[tuple[str, str], None]()
    for answer in answers:
        if answer.activity:
            versions |= dict.fromkeys(answer.activity.agents)
    return list(versions)


class ReplayedAnswers(KnownAnswers):
    """The answers of a recording and nothing else: a question
    that it lacks is an error.

    They may be of several versions of an agent, if some were recorded again.
    """

    def __init__(
        self, answers: Mapping[str, Answer], file: str, how_to_record: str
    ) -> None:
        self._answers = answers
        self._versions = recorded_versions(answers.values())
        self._missing = NoAnswer(
            f"this question is not in {file}. Record it: {how_to_record}"
        )

    def get(self, question: Question) -> Reply | None:
        answer = self._answers.get(question.key)
        task = question.task
        for agent, version in self._versions:
            if answer is None and task and task.agent == agent:
                other = replace(question, task=replace(task, version=version))
                answer = self._answers.get(other.key)
        return answer or self._missing
