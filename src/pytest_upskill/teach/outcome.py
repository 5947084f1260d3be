"""What came of a run: plain data, sentences for people, JSON for scripts."""

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from .._util.texts import counted, one_line
from ..results.run import RunResults
from ..results.summary import points_words
from ..results.to_json import results_text
from ..results.verdict import Verdict
from ..trials.trial import Arm
from .attempts import Attempt, best_of
from .case_writing import GoodCase
from .progress_lines import cell_text, cells_of
from .sources import TraceText


@dataclass(frozen=True)
class Taught:
    """The attempts, the cases and how they were split, and what decided."""

    attempts: tuple[Attempt, ...]
    cases: tuple[GoodCase, ...]
    held: frozenset[str]  # the ids of the cases that no teacher saw failing
    stop: str  # why there was no further attempt
    held_out: RunResults | None = None
    before: RunResults | None = None  # the skill as it was, on the learning part
    teacher: RunResults | None = None  # in three arms, where there was a trace
    trace: TraceText | None = None
    no_signal: tuple[str, ...] = ()  # cases that every student passes without the skill
    notes: tuple[str, ...] = ()
    folder: Path | None = None  # where it was saved
    unsaved: str | None = None  # why it could not be saved, and where the best version is
    cost: float | None = None
    kept: Path | None = None  # where the skill is that was there before

    @property
    def best(self) -> Attempt:
        return best_of(self.attempts)

    @property
    def name(self) -> str:
        return self.best.draft.name

    @property
    def learning(self) -> RunResults | None:
        """The best attempt on the learning part."""
        return self.best.results

    @property
    def helps(self) -> bool:
        """Whether it is shown for any student that it is better with it, by all cases."""
        whole = self.together
        return whole is not None and any(verdict.word == "helps" for verdict in whole.verdicts)

    @property
    def together(self) -> RunResults | None:
        """The best attempt on all cases, learning and held out."""
        learning, held = self.learning, self.held_out
        if not learning or not held:
            return learning
        return replace(
            learning,
            tests=(*learning.tests, *held.tests),
            records=(*learning.records, *held.records),
            questions={**learning.questions, **held.questions},
        )


_LARGE: Final = 0.2  # a learning lift that must show on other cases too
_SMALL_SHARE: Final = 0.25  # of the learning lift: that much on held-out cases is nearly nothing
_AS_GOOD: Final = 0.05
_MORE_TOKENS: Final = 0.02


def attempt_text(attempt: Attempt) -> str:
    """An attempt for the workspace."""
    lines = [f"attempt {attempt.number}: SKILL.md of {counted(attempt.draft.tokens, 'token')}"]
    if attempt.results:
        lines += [cell_text(cell).rstrip() for cell in cells_of(attempt.results)]
        lines += [f"{v.summary.model}: {v.word}: {v.sentence}" for v in attempt.results.verdicts]
    else:
        lines.append(attempt.problem or "not measured")
    return "\n".join(lines)


def report_lines(taught: Taught, width: int) -> list[str]:
    """The lifts side by side, then the sentences."""
    lines = _lifts(taught, width)
    for sentence in sentences(taught):
        lines += textwrap.wrap(sentence, min(width, 100), break_long_words=False)
    return lines


def _lifts(taught: Taught, width: int) -> list[str]:
    parts = {"learning": taught.learning, "held out": taught.held_out}
    known = {name: results for name, results in parts.items() if results}
    if not known:
        return []
    rows = {
        verdict.summary.model: list[str]()
        for results in known.values()
        for verdict in results.verdicts
    }
    heads = []
    for name, results in known.items():
        cases = len({test.case for test in results.tests})
        heads.append(f"{name} ({counted(cases, 'case')})")
        for verdict in results.verdicts:
            told = points_words(verdict.lift) if verdict.lift else "not known"
            rows[verdict.summary.model].append(told)
    columns = [
        max(len(head), *(len(cells[number]) for cells in rows.values())) + 3
        for number, head in enumerate(heads)
    ]
    longest = max(len(model) for model in rows) + 2
    left = max(11, min(longest, width - sum(columns) + 3))
    table = [("", heads), *((one_line(model, left - 2), cells) for model, cells in rows.items())]
    return [
        f"{name:<{left}}"
        + "".join(f"{cell:<{size}}" for cell, size in zip(cells, columns, strict=True)).rstrip()
        for name, cells in table
    ]


def sentences(taught: Taught) -> list[str]:
    """What a person must know before the skill is used."""
    found = [*_of_attempts(taught)]
    whole = taught.together
    if whole and taught.learning:
        for number, verdict in enumerate(whole.verdicts):
            held = taught.held_out.verdicts[number] if taught.held_out else None
            found += _of_student(verdict, taught.learning.verdicts[number], held)
    found += _of_before(taught)
    found += _of_teacher(taught)
    if taught.no_signal:
        names = ", ".join(taught.no_signal)
        found.append(f"No signal, since every student passes them without the skill: {names}.")
    found += [f"{note[0].upper()}{note[1:]}." for note in taught.notes]
    return found


def _of_attempts(taught: Taught) -> Iterator[str]:
    best = taught.best
    if not taught.learning:
        if best.problem:
            yield f"The skill was not measured: {one_line(best.problem, 200)}."
        return
    if len(taught.attempts) > 1:
        known = f"Attempt {best.number} is the best"
        made = known if best.written else "No version does better than the skill as it is"
        yield f"{made}; there were no more since {taught.stop}."
    elif taught.stop:
        made = "There was one attempt" if best.written else "No version was written"
        yield f"{made}, since {taught.stop}."
    if best.too_long:
        yield (
            f"It is still too long: {counted(best.draft.tokens, 'token')}, and "
            f"{best.most_tokens:,} are allowed (--max-skill-tokens)."
        )


def _of_student(whole: Verdict, learning: Verdict, held: Verdict | None) -> Iterator[str]:
    name, lift = whole.summary.model, whole.summary.lift
    if whole.word == "not needed":
        yield (
            f"{name} does not need the skill: it passes {whole.summary.arm('baseline').rate:.0%} "
            "without it."
        )
    elif lift is not None and lift <= 0:
        yield f"The skill does not help {name}: {whole.sentence}."
    elif whole.word:
        yield f"{name}, all cases together: {whole.word}, {whole.sentence}."
    if held is not None:
        yield from _of_memory(name, learning, held)


def _of_memory(name: str, learning: Verdict, held: Verdict) -> Iterator[str]:
    """Whether it only learnt its cases: said where held-out cases show it, and else left open.

    It did so if it does much on the learning part and nearly nothing on the other. With few
    held-out cases that happens by chance too, so the two intervals must lie apart.
    """
    learnt, kept = learning.lift, held.lift
    if learnt is None or kept is None or learnt.lift < _LARGE:
        return
    if kept.lift > _SMALL_SHARE * learnt.lift:
        return
    cases = counted(len(held.summary.by_case), "held-out case")
    if kept.high < learnt.low:
        yield (
            f"On {name} the skill only learnt its cases: {points_words(learnt)} on those that the "
            f"teacher saw, {points_words(kept)} on {cases}."
        )
    else:
        yield (
            f"On {name} the lift is not there on {cases}, but whether the skill only learnt its "
            "cases can't be told from so few."
        )


def _of_before(taught: Taught) -> Iterator[str]:
    if not taught.before or not taught.learning:
        return
    pairs = zip(taught.before.summaries, taught.learning.summaries, strict=True)
    for was, now in pairs:
        before, after = was.arm("skill").rate, now.arm("skill").rate or 0.0
        if before is not None and after < before:
            yield (
                f"On {now.model} it does worse than the skill as it was: {after:.0%} "
                f"instead of {before:.0%} of the learning cases."
            )


def _of_teacher(taught: Taught) -> Iterator[str]:
    """The skill has captured the task if it does as well as the trace, in fewer tokens."""
    if not taught.teacher or not taught.trace:
        return
    row = taught.teacher.summaries[0]
    arms: tuple[Arm, ...] = ("skill", "trace", "baseline")
    skill, trace, bare = (row.arm(arm).rate or 0.0 for arm in arms)
    word = "as good as"
    if abs(skill - trace) > _AS_GOOD:
        word = "better than" if skill > trace else "not as good as"
    yield (
        f"With {row.model}, {word} the trace: {skill:.0%} with the skill "
        f"({counted(taught.best.draft.tokens, 'token')}), {trace:.0%} with the trace "
        f"({taught.trace.tokens:,})."
    )
    if word == "not as good as":
        yield "Something of the task is not in the skill yet."
    if skill <= bare + _AS_GOOD and (row.token_change or 0.0) > _MORE_TOKENS:
        yield (
            f"It should not be used with {row.model} itself: {skill:.0%} with it and {bare:.0%} "
            f"without, for {row.token_change:.0%} more tokens."
        )


def taught_data(taught: Taught) -> dict[str, Any]:
    """Rates are 0–1, costs in USD; what is not known is null."""
    return {
        "schema": 1,
        "name": taught.name,
        "folder": str(taught.folder) if taught.folder else None,
        "unsaved": taught.unsaved,
        "kept": str(taught.kept) if taught.kept else None,
        "tokens": taught.best.draft.tokens,
        "best": taught.best.number,
        "stop": taught.stop or None,
        "attempts": [
            {
                "number": attempt.number,
                "tokens": attempt.draft.tokens,
                "lift": attempt.lift if attempt.results else None,
                "problem": attempt.problem,
                "summary": _summary(attempt.results),
            }
            for attempt in taught.attempts
        ],
        "held_out": _summary(taught.held_out),
        "before": _summary(taught.before),
        "teacher": _summary(taught.teacher),
        "trace_tokens": taught.trace.tokens if taught.trace else None,
        "cases": [
            {"id": one.case.id, "part": "holdout" if one.case.id in taught.held else "learn"}
            for one in taught.cases
        ],
        "no_signal": list(taught.no_signal),
        "cost": taught.cost,
        "sentences": sentences(taught),
    }


def _summary(results: RunResults | None) -> list[dict[str, Any]] | None:
    if results is None:
        return None
    found: list[dict[str, Any]] = json.loads(results_text(results))["summary"]
    return found
