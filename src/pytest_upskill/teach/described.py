"""The result of describe: versions of a description, and whether the best one is better."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._util.texts import counted, one_line
from ..results.contrasts import points_words
from ..skills.case import Case
from ..stats import Lift
from .progress_lines import as_sentence, wrapped
from .wordings import Scores, Wording


@dataclass(frozen=True)
class MeasuredWording:
    """A version of the description, measured on queries; or why it could not be."""

    number: int  # the current one is 1
    wording: Wording
    learning: Scores | None = None
    held_out: Scores | None = None
    problem: str | None = None

    @property
    def label(self) -> str:
        return f"version {self.number}" if self.number > 1 else "current"

    @property
    def merit(self) -> tuple[float, int, int]:
        """What makes it the best to go on from: right on learning queries; short; being first."""
        right = self.learning.right if self.learning else -1.0
        return right, -len(self.wording.description), -self.number


@dataclass(frozen=True)
class Described:
    """The result of describe."""

    name: str
    versions: tuple[MeasuredWording, ...]
    learn: tuple[Case, ...]
    held: tuple[Case, ...]  # no teacher saw them
    stop: str  # why no more versions were written
    compared: int = 0  # versions that were tested on the held-out queries against the current one
    winner: MeasuredWording | None = None  # None: no version is better in both parts
    change: Lift | None = None  # of the winner on the held-out queries, adjusted
    folder: Path | None = None  # the skill, if its description was changed
    version_folder: Path | None = None  # where the winner is kept
    kept: Path | None = None  # a copy of the previous skill
    unsaved: str | None = None
    notes: tuple[str, ...] = ()
    cost: float | None = None

    @property
    def current(self) -> MeasuredWording:
        return self.versions[0]

    @property
    def shown(self) -> bool:
        """Whether the winner is shown to be better than the current description."""
        return self.change is not None and self.change.low > 0

    @property
    def needless(self) -> bool:
        """Whether the current description is good enough, so that no other was written."""
        return len(self.versions) == 1 and self.current.learning is not None and not self.notes


def table_lines(described: Described) -> list[str]:
    """A line for each version: both numbers, and its length."""
    heads = [
        f"learning ({len(described.learn)})",
        f"held out ({len(described.held)})",
        "characters",
    ]
    rows = [("", heads, "")]
    for version in described.versions:
        if version.problem:
            rows.append((version.label, [one_line(version.problem, 60)], ""))
            continue
        length = f"{len(version.wording.description):,}"
        cells = [_right(version.learning), _right(version.held_out), length]
        rows.append((version.label, cells, "best" if version is described.winner else ""))
    sizes = [len(head) + 3 for head in heads]
    return [
        (
            f"{label:<12}"
            + "".join(f"{cell:<{size}}" for cell, size in zip(cells, sizes, strict=False))
            + mark
        ).rstrip()
        for label, cells, mark in rows
    ]


def _right(scores: Scores | None) -> str:
    return "not measured" if scores is None else f"{scores.right:.0%}"


def described_lines(described: Described, width: int) -> list[str]:
    head = "Right decisions, both kinds of queries weighing the same:"
    return [head, *table_lines(described), *wrapped(sentences(described), width)]


def sentences(described: Described) -> list[str]:
    """What to know before the description is used."""
    return [*_of_winner(described), *map(as_sentence, described.notes)]


def _of_winner(described: Described) -> Iterator[str]:
    winner, change, stop = described.winner, described.change, f"Stopped: {described.stop}."
    if winner is None or change is None or winner.held_out is None:
        if described.needless:
            yield f"No new version was written: {described.stop}."
        elif described.compared or described.current.held_out:
            yield f"No version is better than the current description in both parts. {stop}"
        else:
            yield f"No version was compared on the held-out queries. {stop}"
        return
    before = described.current.held_out
    assert before, "the winner was compared with the current one"
    yield f"Version {winner.number} is the best on the held-out queries. {stop}"
    adjusted = ""
    if described.compared > 1:
        adjusted = f", adjusted for the {described.compared} versions compared"
    verdict = "shown to be better" if described.shown else "not shown to be better"
    yield (
        f"On the {len(described.held)} held-out queries {before.right:.0%} → "
        f"{winner.held_out.right:.0%} right, {points_words(change)}{adjusted}: {verdict}."
    )
    yield (
        f"Opened where it should: {before.opened(True):.0%} → {winner.held_out.opened(True):.0%}; "
        f"where it should not: {before.opened(False):.0%} → {winner.held_out.opened(False):.0%}."
    )
    students = list(before.by_student)
    for student in students if len(students) > 1 else ():
        old, new = before.right_of(student), winner.held_out.right_of(student)
        worse = ": worse" if new < old else ""
        yield f"On {student}: {old:.0%} → {new:.0%} right{worse}."


def status_of(described: Described) -> int:
    """0 if the description was shown to be better and saved, or needs no change."""
    if described.unsaved:
        return 1
    saved = described.folder is not None and described.shown
    return 0 if saved or described.needless else 1


def described_data(described: Described) -> dict[str, Any]:
    """The result as JSON: rates are 0–1, costs in USD, unknown values null."""
    change = described.change
    return {
        "schema": 1,
        "name": described.name,
        "folder": str(described.folder) if described.folder else None,
        "unsaved": described.unsaved,
        "kept": str(described.kept) if described.kept else None,
        "best": described.winner.number if described.winner else None,
        "shown": described.shown,
        "stop": described.stop,
        "versions": [_version_data(version) for version in described.versions],
        "change": change and change._asdict(),
        "versions_compared": described.compared,
        "queries": [*_queries(described.learn, "learn"), *_queries(described.held, "holdout")],
        "cost": described.cost,
        "sentences": sentences(described),
    }


def _queries(triggers: Sequence[Case], part: str) -> Iterator[dict[str, Any]]:
    for trigger in triggers:
        yield {"query": trigger.input, "should_trigger": trigger.should_open, "part": part}


def _version_data(version: MeasuredWording) -> dict[str, Any]:
    return {
        "number": version.number,
        "description": None if version.problem else version.wording.description,
        "characters": None if version.problem else len(version.wording.description),
        "learning": _scores_data(version.learning),
        "held_out": _scores_data(version.held_out),
        "problem": version.problem,
    }


def _scores_data(scores: Scores | None) -> dict[str, Any] | None:
    if scores is None:
        return None
    return {
        "right": scores.right,
        "recall": scores.opened(True),
        "false_alarms": scores.opened(False),
        "students": {name: scores.right_of(name) for name in scores.by_student},
    }


def version_text(version: MeasuredWording) -> str:
    """The report.txt that is kept with a version."""
    length = counted(len(version.wording.description), "character")
    lines = [f"{version.label}: a description of {length}"]
    for part, scores in (("learning", version.learning), ("held out", version.held_out)):
        if scores:
            lines.append(f"{part}: {scores.right:.0%} right")
            lines += [
                f"  {name}: {'should' if rate.should_open else 'should not'}, "
                f"opened {rate.opened} of {rate.runs}: {one_line(rate.query, 200)}"
                for name, rates in scores.by_student.items()
                for rate in rates
            ]
    return "\n".join(lines)
