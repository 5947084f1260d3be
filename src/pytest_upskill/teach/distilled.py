"""The result of distill: plain data, sentences for people, JSON for scripts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._util.texts import counted, dollars, unsigned_points
from ..errors import shown
from ..reports.terminal.layout import TerminalLook
from ..reports.terminal.study_lines import curve_lines
from ..results.effects import loss_standing, loss_words
from ..results.part_effects import Parts, ShorterVersion
from ..results.run import RunResults
from ..stats import Lift
from .attempts import Attempt
from .drafts import Draft
from .progress_lines import as_sentence, wrapped


@dataclass(frozen=True)
class Distilled:
    """The versions of a skill, and the one that was chosen, if any."""

    original: Draft
    limit: int  # tokens
    margin: float
    before: RunResults | None = None  # the whole skill, on the learning cases
    versions: tuple[Attempt, ...] = ()
    stop: str = ""  # why no more were written
    results: RunResults | None = None  # parts and versions, by student, on the held-out cases
    measured: tuple[Attempt, ...] = ()  # the versions of each `Parts`, in their order
    chosen: Attempt | None = None
    problem: str = ""  # why none was looked for, or decided
    folder: Path | None = None  # where it was saved
    unsaved: str = ""  # why it could not be
    state: Path | None = None  # where all versions are kept
    cost: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def short_enough(self) -> bool:
        """Whether there was nothing to do."""
        return self.original.tokens <= self.limit

    @property
    def parts(self) -> tuple[Parts, ...]:
        return self.results.parts if self.results else ()

    @property
    def status(self) -> int:
        """0 if the skill is now within the limit, and not shown to be worse."""
        if self.short_enough:
            return 0
        fits = self.chosen is not None and self.chosen.draft.tokens <= self.limit
        return 0 if self.folder and fits else 1


def with_folder(distilled: Distilled, folder: Path) -> Distilled:
    """With the folder that the chosen version was saved to, for reports too."""
    distilled = replace(distilled, folder=folder)
    if not distilled.results or not distilled.chosen:
        return distilled
    place, by_student = distilled.measured.index(distilled.chosen), list[Parts]()
    for parts in distilled.parts:
        versions = list(parts.versions)
        versions[place] = replace(versions[place], folder=shown(folder))
        by_student.append(replace(parts, versions=tuple(versions)))
    return replace(distilled, results=replace(distilled.results, parts=tuple(by_student)))


def with_conclusion(distilled: Distilled) -> Distilled:
    """With the conclusion as notes, for reports."""
    if not distilled.results:
        return distilled
    end = f"Saved to {shown(distilled.folder)}" if distilled.folder else "The skill is unchanged"
    notes = (*(sentence.rstrip(".") for sentence in _conclusion(distilled)), end)
    by_student = tuple(replace(parts, notes=notes) for parts in distilled.parts)
    return replace(distilled, results=replace(distilled.results, parts=by_student))


def report_lines(distilled: Distilled, width: int) -> list[str]:
    """A table for each student, then the sentences."""
    lines = list[str]()
    for parts in distilled.parts:
        lines += ["", *curve_lines(parts, TerminalLook(width))]
    lines += [""] if lines else []
    return lines + wrapped(sentences(distilled), width)


def sentences(distilled: Distilled) -> list[str]:
    """What to know, the conclusion last."""
    if distilled.short_enough:
        size = counted(distilled.original.tokens, "token")
        return [f"{distilled.original.name} has about {size}, and {distilled.limit:,} are allowed."]
    stop = [f"Stopped: {distilled.stop}."] if distilled.stop else []
    return [
        *stop,
        *_unreached(distilled),
        *_conclusion(distilled),
        *map(as_sentence, distilled.notes),
    ]


def _unreached(distilled: Distilled) -> Iterator[str]:
    """Sizes that the teacher did not reach."""
    sizes = {version.most_tokens or 0 for version in distilled.versions}
    reached = {version.most_tokens for version in distilled.versions if version.results}
    for size in sorted(sizes - reached, reverse=True):
        yield f"The teacher wrote no usable version of at most {counted(size, 'token')}."


def _conclusion(distilled: Distilled) -> Iterator[str]:
    if distilled.problem:
        yield as_sentence(distilled.problem)
        return
    margin = unsigned_points(distilled.margin)
    chosen = distilled.chosen
    if chosen:
        now, before = chosen.draft.tokens, distilled.original.tokens
        yield from _of_students(distilled, chosen)
        yield (
            f"Version {chosen.number} has {now:,} tokens instead of {before:,} "
            f"({1 - now / before:.0%} fewer), and a loss of {margin} points or more is ruled out."
        )
        if now > distilled.limit:
            yield (
                f"That is above the limit of {distilled.limit:,}: no shorter version was shown to "
                "be as good."
            )
        return
    if distilled.measured:
        yield from _of_students(distilled, distilled.measured[-1])
    yield f"No version is shown to lose less than {margin} points."
    if distilled.state and distilled.measured:
        yield f"All versions are kept in {shown(distilled.state)}, as attempt-1 and so on."


def _of_students(distilled: Distilled, attempt: Attempt) -> Iterator[str]:
    """What a version loses with each student."""
    place = distilled.measured.index(attempt)
    for parts in distilled.parts:
        version = parts.versions[place]
        words = loss_words(version.change, parts.margin, version.cases_needed)
        cases = counted(version.cases, "held-out case")
        yield f"{parts.label} with {counted(version.tokens, 'token')}, on {cases}: {words}."


def result_line(distilled: Distilled) -> str:
    """Whether the skill was saved, and where."""
    cost = f"   (cost {dollars(distilled.cost)})" if distilled.cost else ""
    if distilled.unsaved:
        return f"{distilled.unsaved}{cost}"
    if distilled.folder:
        path = shown(distilled.folder.absolute())
        return f"Saved to {path if path.startswith('/') else f'./{path}'}{cost}"
    unasked = " No model was asked." if distilled.short_enough else ""
    return f"The skill is unchanged.{unasked}{cost}"


def distilled_data(distilled: Distilled) -> dict[str, Any]:
    """The result as JSON: lifts are -1 to 1, costs in USD, unknown values null."""
    chosen = distilled.chosen
    return {
        "schema": 1,
        "name": distilled.original.name,
        "folder": str(distilled.folder) if distilled.folder else None,
        "unsaved": distilled.unsaved or None,
        "tokens": distilled.original.tokens,
        "max_skill_tokens": distilled.limit,
        "margin": distilled.margin,
        "chosen": chosen.number if chosen else None,
        "chosen_tokens": chosen.draft.tokens if chosen else None,
        "stop": distilled.stop or None,
        "problem": distilled.problem or None,
        "versions": [
            {
                "number": version.number,
                "max_tokens": version.most_tokens,
                "tokens": version.draft.tokens if version.results else None,
                "problem": version.problem,
                "learning": _learning(version.results),
                "held_out": _held_out(distilled, version),
            }
            for version in distilled.versions
        ],
        "before": {
            "learning": _learning(distilled.before),
            "held_out": {parts.label: _lift(parts.held_out) for parts in distilled.parts},
        },
        "cost": distilled.cost,
        "sentences": sentences(distilled),
    }


def _learning(results: RunResults | None) -> dict[str, float | None] | None:
    """The lift of each student."""
    return {row.label: row.lift for row in results.summaries} if results else None


def _held_out(distilled: Distilled, attempt: Attempt) -> dict[str, Any] | None:
    if attempt not in distilled.measured:
        return None
    place = distilled.measured.index(attempt)
    return {parts.label: _version(parts.versions[place], parts.margin) for parts in distilled.parts}


def _version(version: ShorterVersion, margin: float) -> dict[str, Any]:
    return {
        "cases": version.cases,
        "lift": _lift(version.lift),
        "change": _lift(version.change),
        "standing": loss_standing(version.change, margin),
        "cases_needed": version.cases_needed,
    }


def _lift(lift: Lift | None) -> dict[str, float] | None:
    return lift and lift._asdict()
