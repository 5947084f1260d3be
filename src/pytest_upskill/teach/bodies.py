"""Whole versions of a skill, each written by what fails with the best one:
generate and refine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from .._util.texts import counted, one_line, shortened
from ..results.comparison import unit_of
from ..results.contrasts import points_words
from ..results.row import Row
from ..results.run import RunResults
from ..trials.arm import BASELINE
from .drafts import Draft, DraftSpec, draft_request
from .failures import report_for_teacher
from .improvement import Improvement, lifts_of, mean_lift, why_good_enough
from .outcome import HELD_OUT, NEW_CASES, OLD_CASES, Attempt, AttemptChange, Taught
from .prompts import ALSO_TRIED, fenced, for_agents
from .replies import Request

_MOST_TRIED: Final = 8_000  # characters of an earlier version that the teacher is shown
_LARGE: Final = 0.2  # a lift on learning cases that should show on other cases too
# Of the learning lift: with less on held-out cases, it is overfitted
_SMALL_SHARE: Final = 0.25


@dataclass
class Bodies(Improvement):
    """The best has the highest lift; held-out cases only stop one
    that is worse than before.

    With a skill ``before``, its ``new_cases`` are about the change that was asked for.
    """

    spec: DraftSpec = field(kw_only=True)
    new_cases: frozenset[str] = field(default=frozenset(), kw_only=True)  # their ids

    def request(self) -> tuple[str, Request[Draft]]:
        """By what fails with the best version."""
        best, most, agents = (
            self.best,
            self.spec.most_tokens,
            self.run.models.with_agents,
        )
        assert best.learning, "the best version is a measured one"
        draft = best.draft
        too_long = (
            f"The body is too long: about {draft.tokens:,} tokens, and {most:,} are"
            " allowed. Write a shorter one that says the same: leave out what every"
            " model knows."
        )
        wish, kept = "A skill was written for this task", "Keep what works."
        if self.before:
            wish = "A skill was changed as this asks"
            kept += (
                " Keep the change that was asked for, also where no question is"
                " about it."
            )
        parts = [
            f"{wish}:\n{fenced('task', self.run.settings.task)}",
            self.run.material.text,
            f"This is the body of the skill:\n{fenced('skill', draft.body)}",
            *(for_agents(draft.description, draft.files) if agents else []),
            (
                "Students were asked questions with it."
                f" {report_for_teacher(best.learning)}"
            ),
            *(
                f"{ALSO_TRIED}:\n{fenced('version', _tried_text(tried))}"
                for tried in self.later
            ),
            too_long if draft.tokens > most else "",
            (
                "Find out why answers fail, if some do, and write a better version."
                " Fix the cause, for all questions of this kind: a skill that only"
                " knows these questions is worth nothing, and others will be asked."
                f" {kept} Change names and formats only where they are wrong."
            ),
        ]
        return "rewrites the skill", draft_request(parts, self.spec, agents=agents)

    @property
    def most_tokens(self) -> int:
        return self.spec.most_tokens

    def is_different(self, draft: Draft) -> bool:
        return not any(self._is_same(draft, attempt.draft) for attempt in self.attempts)

    def _is_same(self, draft: Draft, other: Draft) -> bool:
        """Whether students can't tell them apart: only agents see a description."""
        if self.run.models.with_agents and draft.description != other.description:
            return False
        return (draft.body, draft.files) == (other.body, other.files)

    def merit(self, attempt: Attempt) -> tuple[float, ...]:
        """It helps and is not too long; lift; fewer tokens; being first.

        Of a change, the first of equals is the one that was written for it: a shorter
        one may lack what no case asks about.
        """
        lift, tokens = mean_lift(attempt), 0 if self.before else attempt.draft.tokens
        return lift > 0 and not attempt.too_long, lift, -tokens, -attempt.number

    def why_enough(self) -> str | None:
        return why_good_enough(self.best, self.run.settings.target)

    def candidates(self) -> list[Attempt]:
        return [self.best]

    def decide(self, taught: Taught) -> Taught:
        """The best on the learning cases, unless the held-out
        ones show that it got worse.

        A change that was asked for stays, and is compared with the skill before.
        """
        best, current = self.best, self.current
        if self.before:
            return self._decide_change(taught)
        change = self.compared(best, HELD_OUT) if best.is_new else None
        if change and change.lift and change.lift.high < 0 and current:
            taught = replace(taught, chosen=current.number)
        changes = (*lifts_of(taught.best), *([change] if change else []))
        succeeded = taught.helps if best.learning else not best.problem
        taught = replace(taught, changes=changes, succeeded=succeeded)
        return replace(taught, sentences=tuple(body_sentences(taught)))

    def _decide_change(self, taught: Taught) -> Taught:
        parts = (self.compared(self.best, part) for part in (NEW_CASES, OLD_CASES))
        changes = [change for change in parts if change and change.lift]
        succeeded = taught.helps and is_better(changes)
        taught = replace(
            taught, changes=(*lifts_of(taught.best), *changes), succeeded=succeeded
        )
        sentences = [*body_sentences(taught)]
        if changes and self.new_cases.issuperset(taught.cases):
            sentences.append(
                "What the skill did before was not tested: it had no cases."
            )
        return replace(taught, sentences=tuple(sentences))

    def results(self, attempt: Attempt | None, part: str) -> RunResults | None:
        """With the new and the old cases as parts, learning and held-out ones
        together.
        """
        results = attempt.all_cases if attempt else None
        if part not in (NEW_CASES, OLD_CASES) or not results:
            return super().results(attempt, part)

        def is_part(case: str) -> bool:
            return (case in self.new_cases) == (part == NEW_CASES)

        return replace(
            results,
            tests=tuple(test for test in results.tests if is_part(test.case)),
            records=tuple(record for record in results.records if is_part(record.case)),
        )


def is_better(changes: Sequence[AttemptChange]) -> bool:
    """Whether the new cases show that a skill got better, and the old ones no loss."""
    lifts = {change.part: change.lift for change in changes}
    new, old = lifts.get(NEW_CASES), lifts.get(OLD_CASES)
    return new is not None and new.low > 0 and (old is None or old.high >= 0)


def _tried_text(attempt: Attempt) -> str:
    """A version that was no better, or why there was none."""
    if attempt.learning:
        return shortened(attempt.draft.body, _MOST_TRIED)
    return f"(attempt {attempt.number} could not be used: {attempt.problem})"


def body_sentences(taught: Taught) -> Iterator[str]:
    """What to know before using the skill."""
    yield from _of_attempts(taught)
    best = taught.best
    if best.learning and best.all_cases:
        for number, row in enumerate(best.all_cases.rows):
            held = best.held_out.rows[number] if best.held_out else None
            yield from _of_student(row, best.learning.rows[number], held)
    yield from _of_current(taught)
    if taught.no_signal:
        names = ", ".join(taught.no_signal)
        yield f"Every student passes these cases even without the skill: {names}."


def _of_attempts(taught: Taught) -> Iterator[str]:
    best = taught.best
    if not best.learning:
        if best.problem:
            yield f"The skill was not measured: {one_line(best.problem, 200)}."
        return
    if len(taught.attempts) > 1:
        winner = f"Attempt {best.number} is the best"
        beaten = winner if best.is_new else "No version beats the current skill"
        yield f"{beaten}. Stopped: {taught.stop}."
    elif taught.stop:
        end = (
            "Stopped after one attempt" if best.is_new else "No new version was written"
        )
        yield f"{end}: {taught.stop}."
    if best.too_long:
        tokens = counted(best.draft.tokens, "token")
        yield f"The skill is still too long: {tokens} (limit {best.most_tokens:,})."


def _of_student(total: Row, learning: Row, held: Row | None) -> Iterator[str]:
    name = total.label
    if total.verdict == "not needed":
        yield (
            f"{name} does not need the skill: it passes"
            f" {total.scored(BASELINE):.0%}{unit_of(total.score)} without it."
        )
    elif total.verdict in ("no effect", "hurts") and (total.lift or 0.0) <= 0:
        yield f"The skill does not help {name}: {total.sentence}."
    elif total.sentence:
        word = total.verdict or "too few cases for a verdict"
        yield f"{name} on all cases: {word}, {total.sentence}."
    if held is not None:
        yield from _of_overfitting(name, learning, held)


def _of_overfitting(name: str, learning: Row, held: Row) -> Iterator[str]:
    """A large lift on the learning cases, and hardly any on the held-out ones.

    With few held-out cases that happens by chance too, so it counts as overfitted only
    if the two intervals do not overlap.
    """
    over_learning = learning.over(BASELINE)
    over_held = held.over(BASELINE)
    if over_learning is None or over_held is None:
        return
    learned = over_learning.lift
    unseen = over_held.lift
    if learned.lift < _LARGE:
        return
    if unseen.lift > _SMALL_SHARE * learned.lift:
        return
    cases = counted(len(held.by_case), "held-out case")
    unit = unit_of(held.score)
    if unseen.high < learned.low:
        yield (
            f"On {name}, the skill overfits: {points_words(learned, unit)} on the"
            f" learning cases, {points_words(unseen, unit)} on the {cases}."
        )
    else:
        yield (
            f"On {name}, no lift on the {cases}, too few to tell whether the skill"
            " overfits."
        )


def _of_current(taught: Taught) -> Iterator[str]:
    """The best version against the skill before it, on the held-out,
    the new and the old cases.
    """
    for change in taught.changes:
        if change.student or not change.lift:
            continue
        word = "no change shown"
        if change.lift.high < 0:
            word = (
                "worse" if taught.best.is_new else "worse, so the current skill stays"
            )
        elif change.lift.low > 0:
            word = "better"
        elif change.part == NEW_CASES:
            word = "no better" if change.lift.lift <= 0 else "not shown to be better"
        if change.part == HELD_OUT:
            held = counted(change.contrast.cases, "held-out case")
            against = (
                f"Attempt {change.attempt} on the {held}, against the current skill"
            )
        else:
            against = f"On the {counted(change.contrast.cases, f'{change.part} case')}"
            word += "" if word == "no change shown" else " than before"
        yield f"{against}: {word}, {change.words}."
