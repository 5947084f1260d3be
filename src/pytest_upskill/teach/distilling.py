"""Distill a skill: shorter and shorter versions by a teacher, measured on the learning cases.

The teacher sees what each part of the skill was shown to earn, what fails, and the size to reach.
What a version loses is decided on the held-out cases, of which neither the teacher nor the choice
of versions knows anything.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from .._util.texts import counted, one_line, points
from ..errors import BudgetError, UnusableError
from ..measure.study import Studied, Study, Variant, differences
from ..results.losses import is_within, standing_of
from ..results.parts import Parts, Version
from ..results.run import RunResults
from ..skills.skill import Skill
from ..stats import LEVEL, Differences, Lift, cases_needed, cases_within, guarded
from ..trials.plan import score_of
from ..trials.subject import Subject
from .attempts import checked, mean_lift, measure_skill, require_answers
from .case_writing import UsableCase
from .drafts import Draft, loaded
from .failures import report_for_teacher
from .progress_lines import Screen, cells_of
from .prompts import Version as Shown
from .prompts import fenced, shorten_prompt
from .shortening import MOST_SIZES, ask_for_version, sizes_toward
from .teach_models import TeachModels
from .teach_settings import TeachSettings

_WHOLE: Final = "whole"
_BASELINE: Final = "baseline"
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class Short:
    """A version of at most ``size`` tokens on the learning cases, or why there is none."""

    number: int
    size: int
    draft: Draft | None = None
    results: RunResults | None = None
    problem: str = ""

    @property
    def label(self) -> str:
        return f"version {self.number}"

    @property
    def made(self) -> Draft:
        assert self.draft, "only versions that were written are measured"
        return self.draft

    @property
    def merit(self) -> tuple[float, int, int]:
        """What makes it the best of its size: lift; fewer tokens; being first."""
        lift = mean_lift(self.results) if self.results else float("-inf")
        return lift, -(self.draft.tokens if self.draft else 0), -self.number


@dataclass(frozen=True)
class Shortening:
    """What all versions share."""

    models: TeachModels
    settings: TeachSettings
    whole: Draft
    before: RunResults  # the whole skill, on the learning cases
    parts: Sequence[Parts]  # what each part earns there, by student
    cases: Sequence[UsableCase]  # only the learning ones
    scratch: Path
    session: int
    screen: Screen
    keep: Callable[[Short], None]

    def run(self) -> tuple[list[Short], str]:
        """All versions, and why there are no more: down to the limit, then better ones there."""
        limit, most = self.settings.max_skill_tokens, self.settings.attempts
        sizes = sizes_toward(limit, self.whole.tokens, min(MOST_SIZES, most))
        found = list[Short]()
        while len(found) < most:
            reached = min((one.made.tokens for one in found if one.draft), default=None)
            tried = {one.size for one in found}
            left = [one for one in sizes if one not in tried and (not reached or one < reached)]
            if not left and (stop := self._why_enough(found)):
                return found, stop
            try:
                short = self._version(left[0] if left else limit, found)
            except BudgetError:
                self.screen.drop()
                return found, f"another version {self.models.past_budget()}"
            found.append(short)
            self._show(short)
            self.keep(short)
        return found, f"limit of {counted(most, 'version')} reached"

    def _why_enough(self, found: Sequence[Short]) -> str:
        """Why no other version of the smallest size is tried, if so."""
        limit = self.settings.max_skill_tokens
        short = [one for one in found if one.results and one.made.tokens <= limit]
        if any(one.results and within(self.before, one.results, 0.0) for one in short):
            return "nothing is lost on the learning cases"
        bodies = [one.made.body for one in found if one.draft]
        return "the teacher wrote nothing new" if len(set(bodies)) < len(bodies) else ""

    def _version(self, size: int, found: Sequence[Short]) -> Short:
        short = Short(len(found) + 1, size)
        self.screen.begin(f"{short.label}: {self.models.teacher} writes {size:,} tokens at most…")
        prompt = shorten_prompt(
            self.settings.task,
            Shown(self.whole.description, self.whole.body),
            parts_for_teacher(self.parts),
            report_for_teacher(self.before),
            [_tried(one) for one in found[-1:]],
            size,
            agents=self.models.with_agents,
        )
        where = self.scratch, self.session
        try:
            draft = ask_for_version(self.models, prompt, self.whole, size, *where)
        except UnusableError as error:
            return replace(short, problem=str(error))
        self.screen.begin(f"{short.label}…")
        with loaded(draft, self.scratch) as skill:
            results = measure_skill(self.models, skill, self.cases, self.models.students)
        return replace(short, draft=draft, results=results)

    def _show(self, short: Short) -> None:
        if not short.results or not short.draft:
            self.screen.line(f"{short.label:<11}{one_line(short.problem, 120)}")
            return
        size = f"{short.draft.tokens:,} of {counted(short.size, 'token')}"
        self.screen.row(short.label, cells_of(short.results), size)


def _tried(short: Short) -> str:
    """A version and what fails with it, or why there was none."""
    if not short.draft or not short.results:
        return f"Version {short.number} could not be used: {one_line(short.problem, 500)}"
    body = fenced("version", short.draft.body)
    told = report_for_teacher(short.results)
    tokens = counted(short.draft.tokens, "token")
    return f"This shorter version, about {tokens}, was tried:\n{body}\nWith it: {told}"


def parts_for_teacher(found: Sequence[Parts]) -> str:
    """What leaving out each part does, for each student: a line per part."""
    lines = list[str]()
    for one in found:
        lines.append(f"{one.model}, in points of what it gets right, with the 95 % interval:")
        for part in one.parts:
            lift = part.effect.lift
            told = "not known"
            if lift:
                told = f"{points(lift.lift)} ({points(lift.low)} to {points(lift.high)})"
            size = f" ({counted(part.tokens, 'token')})" if part.tokens else ""
            lines.append(f"- {part.name}{size}: without it {told}")
    return "\n".join(lines)


def best_of_sizes(found: Sequence[Short]) -> list[Short]:
    """The best measured version of each size, from long to short, each text once."""
    best = dict[int, Short]()
    for one in found:
        if one.results and (one.size not in best or one.merit > best[one.size].merit):
            best[one.size] = one
    texts = {one.made.body: one for one in reversed(best.values())}
    return sorted(texts.values(), key=lambda short: (-short.made.tokens, short.number))


def within(whole: RunResults, short: RunResults, margin: float) -> bool:
    """Whether no student loses more than a margin, whatever the chance of it."""
    rows = zip(whole.summaries, short.summaries, strict=True)
    lost = [(one.scored("skill") or 0.0) - (two.scored("skill") or 0.0) for one, two in rows]
    return max(lost, default=0.0) <= margin + _ROUNDING


# The held-out cases.


@dataclass(frozen=True)
class HeldOut:
    """The versions that are measured on the held-out cases, and those that are tested there."""

    models: TeachModels
    skill: Skill  # the whole one
    versions: Sequence[Short]  # from long to short
    tested: frozenset[int]  # their numbers
    cases: Sequence[UsableCase]
    margin: float
    scratch: Path

    def measure(self, subject: Subject, about: Parts) -> Parts:
        """What is known of the parts, with the lift of the whole skill and of all versions."""
        cases = tuple(checked(self.cases))
        score = score_of(self.models.settings.score, [case for case, _ in cases])
        with ExitStack() as stack:
            skills = {_WHOLE: self.skill}
            for one in self.versions:
                skills[one.label] = stack.enter_context(loaded(one.made, self.scratch))
            variants = [Variant(_BASELINE, self.skill, cases, "baseline", score=score)]
            variants += [Variant(name, own, cases, score=score) for name, own in skills.items()]
            studied = self.models.lab.run(Study(subject, tuple(variants), (), lambda _: about))
        require_answers(self.models, chain.from_iterable(studied.records.values()))
        return replace(
            about,
            versions=tuple(self._version(one, studied) for one in self.versions),
            held_out=studied.lift(_WHOLE, _BASELINE),
            margin=self.margin,
        )

    def _version(self, short: Short, studied: Studied) -> Version:
        change = self._change(short, studied)
        found = self._differences(short, studied)
        pairs = [(0.0, value) for value in found.values] if found else []
        needed = None
        if pairs and standing_of(change, self.margin) == "not known":
            needed = cases_within(pairs, self.margin) or cases_needed(pairs, self._shared)
            needed = needed and max(needed, len(pairs) + 1)  # so many did not tell
        return Version(
            short.made.tokens,
            studied.lift(short.label, _BASELINE),
            change,
            cases=len(pairs),
            cases_needed=needed,
        )

    def _differences(self, short: Short, studied: Studied) -> Differences | None:
        scores = studied.scores
        return differences([scores[short.label]], [scores[_WHOLE]], self.models.settings.runs)

    @property
    def _shared(self) -> float:
        """The level of each claim if all versions may be said to lose something."""
        return 1 - (1 - LEVEL) / len(self.versions)

    def _change(self, short: Short, studied: Studied) -> Lift | None:
        """Against the whole skill; the two ends serve two claims.

        That a version loses something (the upper end) may be said of each, so all share the error.
        That it loses little (the lower end) is said of one only if it holds for the longer ones,
        so each has the whole level; see `choose`. Which versions are tested does not depend on
        these cases.
        """
        shared = studied.lift(short.label, _WHOLE, self._shared)
        alone = studied.lift(short.label, _WHOLE)
        if shared is None or alone is None or short.number not in self.tested:
            return shared
        found = self._differences(short, studied)
        values = found.values if found else ()
        return shared._replace(low=guarded(alone, values).low)


def choose(
    found: Sequence[Parts], versions: Sequence[Short], tested: frozenset[int]
) -> Short | None:
    """The shortest version that every student was shown to lose no more than the margin with.

    They are looked at from long to short, up to the first one of which it is not shown: tests in
    a fixed order, each only if the one before it held, err no more often than a single one.
    """
    chosen = None
    for place, short in enumerate(versions):
        if short.number not in tested:
            continue
        if not all(is_within(one.versions[place].change, one.margin) for one in found):
            break
        chosen = short
    return chosen
