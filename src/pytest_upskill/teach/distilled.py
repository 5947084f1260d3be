"""The result of distill: plain data, sentences for people, JSON for scripts."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._util.texts import counted, dollars, one_line, points
from ..errors import shown
from ..reports.terminal.layout import Look
from ..reports.terminal.study_lines import curve_lines
from ..results.losses import loss_words, standing_of
from ..results.parts import Parts, Version
from ..results.run import RunResults
from ..stats import Lift
from .drafts import Draft
from .shortening import Short


@dataclass(frozen=True)
class Distilled:
    """The versions of a skill, and the one that was chosen, if any."""

    whole: Draft
    limit: int  # tokens
    margin: float
    before: RunResults | None = None  # the whole skill, on the learning cases
    versions: tuple[Short, ...] = ()
    stop: str = ""  # why there are no more
    results: RunResults | None = None  # parts and versions, by student, on the held-out cases
    measured: tuple[Short, ...] = ()  # the versions of each `Parts`, in their order
    chosen: Short | None = None
    problem: str = ""  # why none was looked for, or decided
    folder: Path | None = None  # where it was saved
    unsaved: str = ""  # why it could not be
    state: Path | None = None  # where all versions are kept
    cost: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def short_enough(self) -> bool:
        """Whether there was nothing to do."""
        return self.whole.tokens <= self.limit

    @property
    def parts(self) -> tuple[Parts, ...]:
        return self.results.parts if self.results else ()

    @property
    def status(self) -> int:
        """0 if the skill is now within the limit, and not shown to be worse."""
        if self.short_enough:
            return 0
        tokens = self.chosen.draft.tokens if self.chosen and self.chosen.draft else None
        return 0 if self.folder and tokens is not None and tokens <= self.limit else 1


def with_folder(found: Distilled, folder: Path) -> Distilled:
    """With the folder that the chosen version was saved to, for reports too."""
    found = replace(found, folder=folder)
    if not found.results or not found.chosen:
        return found
    place = found.measured.index(found.chosen)
    parts = [
        replace(
            one,
            versions=tuple(
                replace(version, folder=shown(folder)) if number == place else version
                for number, version in enumerate(one.versions)
            ),
        )
        for one in found.parts
    ]
    return replace(found, results=replace(found.results, parts=tuple(parts)))


def with_conclusion(found: Distilled) -> Distilled:
    """With what became of it as a note, for reports."""
    if not found.results:
        return found
    end = f"Saved to {shown(found.folder)}" if found.folder else "The skill is unchanged"
    notes = (*(sentence.rstrip(".") for sentence in _conclusion(found)), end)
    parts = tuple(replace(one, notes=notes) for one in found.parts)
    return replace(found, results=replace(found.results, parts=parts))


def report_lines(found: Distilled, width: int) -> list[str]:
    """A table for each student, then the sentences."""
    lines = list[str]()
    for one in found.parts:
        lines += ["", *curve_lines(one, Look(width))]
    lines += [""] if lines else []
    for sentence in sentences(found):
        lines += textwrap.wrap(sentence, min(width, 100), break_long_words=False)
    return lines


def sentences(found: Distilled) -> list[str]:
    """What to know, the conclusion last."""
    if found.short_enough:
        size = counted(found.whole.tokens, "token")
        return [f"{found.whole.name} has about {size}, and {found.limit:,} are allowed."]
    told = [f"Stopped: {found.stop}."] if found.stop else []
    told += [*_missing(found), *_conclusion(found)]
    return [*told, *(f"{note[0].upper()}{note[1:]}." for note in found.notes)]


def _missing(found: Distilled) -> Iterator[str]:
    """Sizes that the teacher did not reach."""
    reached = {one.size for one in found.versions if one.draft}
    for size in sorted({one.size for one in found.versions} - reached, reverse=True):
        yield f"The teacher wrote no usable version of at most {counted(size, 'token')}."


def _conclusion(found: Distilled) -> Iterator[str]:
    if found.problem:
        yield f"{found.problem[0].upper()}{found.problem[1:]}."
        return
    margin = points(found.margin).lstrip("+")
    chosen = found.chosen
    if chosen and chosen.draft:
        now, before = chosen.draft.tokens, found.whole.tokens
        yield from _of_students(found, chosen)
        yield (
            f"Version {chosen.number} has {now:,} tokens instead of {before:,} "
            f"({1 - now / before:.0%} fewer), and a loss of {margin} points or more is ruled out."
        )
        if now > found.limit:
            yield (
                f"That is above the limit of {found.limit:,}: of no shorter version this is shown."
            )
        return
    if found.measured:
        yield from _of_students(found, found.measured[-1])
    yield f"No version is shown to lose less than {margin} points."
    if found.state and any(one.draft for one in found.versions):
        yield f"All versions are kept in {shown(found.state)}, as attempt-1 and so on."


def _of_students(found: Distilled, short: Short) -> Iterator[str]:
    """What a version loses with each student."""
    place = found.measured.index(short)
    for one in found.parts:
        version = one.versions[place]
        words = loss_words(version.change, one.margin, version.cases_needed)
        cases = counted(version.cases, "held-out case")
        yield f"{one.model} with {counted(version.tokens, 'token')}, on {cases}: {words}."


def result_line(found: Distilled) -> str:
    """What became of the skill."""
    cost = f"   (cost {dollars(found.cost)})" if found.cost else ""
    if found.unsaved:
        return f"{found.unsaved}{cost}"
    if found.folder:
        path = shown(found.folder.absolute())
        return f"Saved to {path if path.startswith('/') else f'./{path}'}{cost}"
    why = " Nobody was asked." if found.short_enough else ""
    return f"The skill is unchanged.{why}{cost}"


def distilled_data(found: Distilled) -> dict[str, Any]:
    """The result as JSON: lifts are -1 to 1, costs in USD, unknown values null."""
    chosen = found.chosen
    return {
        "schema": 1,
        "name": found.whole.name,
        "folder": str(found.folder) if found.folder else None,
        "unsaved": found.unsaved or None,
        "tokens": found.whole.tokens,
        "max_skill_tokens": found.limit,
        "margin": found.margin,
        "chosen": chosen.number if chosen else None,
        "chosen_tokens": chosen.draft.tokens if chosen and chosen.draft else None,
        "stop": found.stop or None,
        "problem": found.problem or None,
        "versions": [
            {
                "number": one.number,
                "max_tokens": one.size,
                "tokens": one.draft.tokens if one.draft else None,
                "problem": one.problem or None,
                "learning": _learning(one.results),
                "held_out": _held_out(found, one),
            }
            for one in found.versions
        ],
        "before": {
            "learning": _learning(found.before),
            "held_out": {one.model: _lift(one.held_out) for one in found.parts},
        },
        "cost": found.cost,
        "sentences": sentences(found),
    }


def _learning(results: RunResults | None) -> dict[str, float | None] | None:
    """The lift of each student."""
    return {row.model: row.lift for row in results.summaries} if results else None


def _held_out(found: Distilled, short: Short) -> dict[str, Any] | None:
    if short not in found.measured:
        return None
    place = found.measured.index(short)
    return {one.model: _version(one.versions[place], one.margin) for one in found.parts}


def _version(version: Version, margin: float) -> dict[str, Any]:
    return {
        "cases": version.cases,
        "lift": _lift(version.lift),
        "change": _lift(version.change),
        "standing": standing_of(version.change, margin),
        "cases_needed": version.cases_needed,
    }


def _lift(lift: Lift | None) -> dict[str, float] | None:
    return lift and {"lift": lift.lift, "low": lift.low, "high": lift.high}


def short_text(short: Short) -> str:
    """A version as the report.txt that is kept with it."""
    size = short.draft.tokens if short.draft else 0
    lines = [f"{short.label}: {counted(size, 'token')} (limit {short.size:,})"]
    if short.results:
        lines += [f"{v.summary.model}: {v.word}: {v.sentence}" for v in short.results.verdicts]
    else:
        lines.append(one_line(short.problem, 500) or "not measured")
    return "\n".join(lines)
