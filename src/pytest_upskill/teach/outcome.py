"""The result of a run: plain data, sentences for people, JSON for scripts."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from .._util.texts import counted, one_line
from ..results.arm_comparison import unit_of
from ..results.contrasts import points_words
from ..results.run import RunResults
from ..results.verdict import Verdict
from .attempts import Attempt, joined_results
from .case_writing import HOLDOUT, LEARN, UsableCase
from .improvement import best_of
from .progress_lines import as_sentence, wrapped
from .traces import Condensed

_LARGE: Final = 0.2  # a lift on learning cases that should show on other cases too
_SMALL_SHARE: Final = 0.25  # of the learning lift: with less on held-out cases, it is overfitted
_AS_GOOD: Final = 0.05
_MORE_TOKENS: Final = 0.02


@dataclass(frozen=True)
class Taught:
    """The result of generate, refine or cases."""

    attempts: tuple[Attempt, ...]
    cases: tuple[UsableCase, ...]
    held: frozenset[str]  # ids of the held-out cases, which no teacher saw
    stop: str  # why the attempts ended
    held_out: RunResults | None = None
    before: RunResults | None = None  # the previous skill, on the learning cases
    teacher: RunResults | None = None  # on all cases: baseline, trace and skill
    trace: Condensed | None = None
    no_signal: tuple[str, ...] = ()  # cases that every student passes without the skill
    notes: tuple[str, ...] = ()
    folder: Path | None = None  # where it was saved
    unsaved: str | None = None  # why it could not be saved, and where the best version is
    cost: float | None = None
    kept: Path | None = None  # a copy of the previous skill

    @property
    def best(self) -> Attempt:
        return best_of(self.attempts)

    @property
    def name(self) -> str:
        return self.best.draft.name

    @property
    def learning(self) -> RunResults | None:
        """The best attempt on the learning cases."""
        return self.best.results

    @property
    def helps(self) -> bool:
        """Whether all cases together show that it helps at least one student."""
        verdicts = self.together.verdicts if self.together else ()
        return any(verdict.word == "helps" for verdict in verdicts)

    @property
    def together(self) -> RunResults | None:
        """The best attempt on all cases."""
        learning, held_out = self.learning, self.held_out
        return joined_results(learning, held_out) if learning and held_out else learning


def report_lines(taught: Taught, width: int) -> list[str]:
    """The table of lifts, then the sentences."""
    return _lifts(taught, width) + wrapped(sentences(taught), width)


def _lifts(taught: Taught, width: int) -> list[str]:
    parts = {"learning": taught.learning, "held out": taught.held_out}
    measured = {name: results for name, results in parts.items() if results}
    if not measured:
        return []
    rows = {
        verdict.summary.label: list[str]()
        for results in measured.values()
        for verdict in results.verdicts
    }
    heads = []
    for name, results in measured.items():
        cases = len({test.case for test in results.tests})
        heads.append(f"{name} ({counted(cases, 'case')})")
        for verdict in results.verdicts:
            unit = unit_of(verdict.summary.score)
            lift = points_words(verdict.lift, unit) if verdict.lift else "not known"
            rows[verdict.summary.label].append(lift)
    columns = [
        max(len(head), *(len(cells[number]) for cells in rows.values())) + 3
        for number, head in enumerate(heads)
    ]
    longest = max(len(model) for model in rows) + 2
    first = max(11, min(longest, width - sum(columns) + 3))
    table = [("", heads), *((one_line(model, first - 2), cells) for model, cells in rows.items())]
    return [
        f"{name:<{first}}"
        + "".join(f"{cell:<{size}}" for cell, size in zip(cells, columns, strict=True)).rstrip()
        for name, cells in table
    ]


def sentences(taught: Taught) -> list[str]:
    """What to know before using the skill."""
    texts = [*_of_attempts(taught)]
    if taught.together and taught.learning:
        for number, verdict in enumerate(taught.together.verdicts):
            held = taught.held_out.verdicts[number] if taught.held_out else None
            texts += _of_student(verdict, taught.learning.verdicts[number], held)
    texts += [*_of_before(taught), *_of_teacher(taught)]
    if taught.no_signal:
        names = ", ".join(taught.no_signal)
        texts.append(f"Every student passes these cases even without the skill: {names}.")
    return [*texts, *map(as_sentence, taught.notes)]


def _of_attempts(taught: Taught) -> Iterator[str]:
    best = taught.best
    if not taught.learning:
        if best.problem:
            yield f"The skill was not measured: {one_line(best.problem, 200)}."
        return
    if len(taught.attempts) > 1:
        winner = f"Attempt {best.number} is the best"
        beaten = winner if best.written else "No version beats the current skill"
        yield f"{beaten}. Stopped: {taught.stop}."
    elif taught.stop:
        end = "Stopped after one attempt" if best.written else "No new version was written"
        yield f"{end}: {taught.stop}."
    if best.too_long:
        tokens = counted(best.draft.tokens, "token")
        yield f"The skill is still too long: {tokens} (limit {best.most_tokens:,})."


def _of_student(total: Verdict, learning: Verdict, held: Verdict | None) -> Iterator[str]:
    name, lift = total.summary.label, total.summary.lift
    if total.word == "not needed":
        yield (
            f"{name} does not need the skill: it passes {total.summary.scored('baseline'):.0%}"
            f"{unit_of(total.summary.score)} without it."
        )
    elif lift is not None and lift <= 0:
        yield f"The skill does not help {name}: {total.sentence}."
    elif total.word:
        yield f"{name} on all cases: {total.word}, {total.sentence}."
    if held is not None:
        yield from _of_overfitting(name, learning, held)


def _of_overfitting(name: str, learning: Verdict, held: Verdict) -> Iterator[str]:
    """A large lift on the learning cases, and hardly any on the held-out ones.

    With few held-out cases that happens by chance too, so it counts as overfitted only if the two
    intervals do not overlap.
    """
    learned, unseen = learning.lift, held.lift
    if learned is None or unseen is None or learned.lift < _LARGE:
        return
    if unseen.lift > _SMALL_SHARE * learned.lift:
        return
    cases = counted(len(held.summary.by_case), "held-out case")
    unit = unit_of(held.summary.score)
    if unseen.high < learned.low:
        yield (
            f"On {name}, the skill overfits: {points_words(learned, unit)} on the learning cases, "
            f"{points_words(unseen, unit)} on the {cases}."
        )
    else:
        yield f"On {name}, no lift on the {cases}, too few to tell whether the skill overfits."


def _of_before(taught: Taught) -> Iterator[str]:
    if not taught.before or not taught.learning:
        return
    pairs = zip(taught.before.summaries, taught.learning.summaries, strict=True)
    for was, now in pairs:
        before, after = was.scored("skill"), now.scored("skill") or 0.0
        unit = "learning cases" if now.score == "pass" else "checks of the learning cases"
        if before is not None and after < before:
            yield (
                f"On {now.label} it is worse than the previous skill: {after:.0%} instead of "
                f"{before:.0%} of the {unit}."
            )


def _of_teacher(taught: Taught) -> Iterator[str]:
    """A good skill does as well as the trace, in fewer tokens."""
    if not taught.teacher or not taught.trace:
        return
    row = taught.teacher.summaries[0]
    arms: tuple[str, ...] = ("skill", "trace", "baseline")
    skill, trace, bare = (row.scored(arm) or 0.0 for arm in arms)
    word = "as good as"
    if abs(skill - trace) > _AS_GOOD:
        word = "better than" if skill > trace else "not as good as"
    yield (
        f"With {row.label} the skill is {word} the trace: {skill:.0%} with the skill "
        f"({counted(taught.best.draft.tokens, 'token')}), {trace:.0%} with the trace "
        f"({counted(taught.trace.tokens, 'token')})."
    )
    if word == "not as good as":
        yield "The skill does not cover the whole task yet."
    if skill <= bare + _AS_GOOD and (row.token_change or 0.0) > _MORE_TOKENS:
        yield (
            f"Do not use it with {row.label}: {skill:.0%} with the skill, {bare:.0%} without, for "
            f"{row.token_change:.0%} more tokens."
        )


def taught_data(taught: Taught) -> dict[str, Any]:
    """The result as JSON: rates are 0–1, costs in USD, unknown values null."""
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
            {"id": usable.case.id, "part": HOLDOUT if usable.case.id in taught.held else LEARN}
            for usable in taught.cases
        ],
        "no_signal": list(taught.no_signal),
        "cost": taught.cost,
        "sentences": sentences(taught),
    }


def _summary(results: RunResults | None) -> list[dict[str, Any]] | None:
    return [asdict(row) for row in results.summary] if results else None
