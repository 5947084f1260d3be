"""What answers took in earlier runs, kept in a small file: the next run is estimated from it."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Final

from .._util.files import read_file, replace_file
from ..trials.answer import Usage, whole_number
from ..trials.plan import PlannedCase
from ..trials.records import Record
from ..trials.trial import Trial
from .estimate import asked_of

FILE_NAME: Final = "usage.json"
_ENOUGH: Final = 0.5  # of the trials of an earlier run, to be believed alone
_MOST_BYTES: Final = 10_000_000

Place = tuple[str, str, str]  # skill, label of the model, arm, or that of a query of triggers


def place_of(trial: Trial, *, query: bool) -> Place:
    return trial.skill, trial.model, f"{trial.arm} query" if query else trial.arm


def mean_usage(
    counts: tuple[float, float, float, float], number: int, *, batch: bool = False
) -> Usage:
    """Of so many answers that took these tokens together."""
    read, answered, cached, written = (round(count / number) for count in counts)
    return Usage(read, answered, cached, written, batch)


@dataclass
class Tally:
    """Sums over trials; ``asked`` are the tokens of their questions as estimated."""

    trials: int = 0
    asked: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    judged: int = 0  # trials that a judge was asked about
    judge_calls: int = 0
    judge_input: int = 0
    judge_output: int = 0
    judge_cached: int = 0
    judge_written: int = 0
    batched: int = 0  # trials that came by batch

    def __add__(self, other: "Tally") -> "Tally":
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tally(*(one + more for one, more in pairs))

    def usage(self, asked: int, *, whole: bool) -> Usage:
        """Of a trial whose question has ``asked`` tokens; ``whole``: as it took on average."""
        share = 1 if whole else asked * self.trials / max(1, self.asked)
        counts = (self.input * share, self.output, self.cached * share, self.written * share)
        return mean_usage(counts, self.trials, batch=self.batched == self.trials)

    def judge_usage(self) -> Usage:
        """Of a call of the judge."""
        counts = (self.judge_input, self.judge_output, self.judge_cached, self.judge_written)
        return mean_usage(counts, self.judge_calls)


@dataclass
class Experience:
    """Tallies by skill, model and arm."""

    tallies: dict[Place, Tally] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> "Experience":
        """What a file tells; nothing if it is not there, or is no such file."""
        found = cls()
        with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            data = read_file(file)
            for row in json.loads(data) if len(data) <= _MOST_BYTES else ():
                skill, model, arm, *numbers = row
                counts = [whole_number(number) for number in numbers]
                if len(counts) == len(fields(Tally)) and None not in counts and counts[0]:
                    place = (str(skill), str(model), str(arm))
                    found.tallies[place] = Tally(*(count or 0 for count in counts))
        return found

    def write(self, file: Path) -> None:
        """Nobody misses it if that fails."""
        rows = [json.dumps([*place, *astuple(one)]) for place, one in sorted(self.tallies.items())]
        with suppress(OSError):
            replace_file(file, "[\n" + ",\n".join(rows) + "\n]\n")

    def of(self, place: Place) -> Tally | None:
        """Of the same skill, model and arm; for the skill as it was, of the skill as it is."""
        skill, model, arm = place
        instead = (skill, model, "skill" if arm == "previous" else arm)
        return self.tallies.get(place) or self.tallies.get(instead)

    def add(self, new: "Experience") -> None:
        """A run of most trials counts alone: the skill may have changed since."""
        for place, one in new.tallies.items():
            old = self.tallies.get(place)
            alone = old is None or one.trials >= _ENOUGH * old.trials
            self.tallies[place] = one if alone or old is None else old + one


def learned(
    tests: Iterable[PlannedCase],
    records_of: Callable[[str], Iterable[Record]],
    costs: Callable[[PlannedCase], bool],
) -> Experience:
    """What the trials of a run took, of tests that cost something."""
    found = Experience()
    for test in tests:
        if not costs(test):
            continue
        trials = {(one.arm, one.run): one for one in test.trials if not one.is_open}
        for record in records_of(test.nodeid):
            trial = trials.get((record.arm, record.run))
            if not trial or record.input_tokens is None or record.output_tokens is None:
                continue
            usage, judge = record.usage, record.judge_usage
            judged = record.judge_calls if judge.input and judge.output else 0
            one = Tally(
                1,
                asked_of(trial.question),
                usage.input or 0,
                usage.output or 0,
                usage.cached or 0,
                usage.written or 0,
                *((1, judged, judge.input or 0, judge.output or 0) if judged else (0, 0, 0, 0)),
                *((judge.cached or 0, judge.written or 0) if judged else (0, 0)),
                batched=int(usage.batch),
            )
            place = place_of(trial, query=test.should_trigger is not None)
            found.tallies[place] = found.tallies.get(place, Tally()) + one
    return found
