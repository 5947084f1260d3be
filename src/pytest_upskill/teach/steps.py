"""The steps that generate, refine and cases have in common."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from .._util.texts import counted, one_line
from ..errors import BudgetError, Setting, TeachError
from ..reports.terminal.progress_screen import cells_of
from .bodies import Bodies, body_sentences
from .case_file import split_cases
from .case_writing import (
    LEARN,
    Author,
    Authored,
    CaseAuthor,
    Rejected,
    UsableCase,
    adversarial_cases,
)
from .drafts import Draft, DraftSpec, draft_request, valid_name
from .improvement import measure, parts_of
from .outcome import CURRENT, Attempt, Taught
from .prompts import ADVERSARY, AUTHOR, fenced
from .replies import ask_for
from .shorter import Shorter
from .teach_run import TeachRun
from .teach_settings import DEFAULT_SKILL_TOKENS
from .trace_comparison import compared_with_trace

_NOT_TELLING: Final = (
    "every student passes it without the skill: ask about something only the skill"
    " explains"
)


@dataclass(frozen=True)
class Steps:
    """What a run does one after the other, by its settings."""

    run: TeachRun

    def draft(self) -> Draft:
        """The first version."""
        settings, models, screen = self.run.settings, self.run.models, self.run.screen
        start, trace = self.run.material.start, self.run.material.trace
        if trace:
            left_out = f"; {trace.left_out}" if trace.left_out else ""
            screen.text(f"Trace of {counted(trace.tokens, 'token')}{left_out}")
        screen.begin(f"Generating skill with {models.teacher}…")
        wish = (
            "Improve the skill below, as this asks"
            if start
            else "Write a skill for this task"
        )
        parts = [f"{wish}:\n{fenced('task', settings.task)}", self.run.material.text]
        spec = self.spec(settings.name or (start.folder_name if start else None))
        request = draft_request(parts, spec, agents=models.with_agents)
        draft = ask_for(models, models.teacher, request)
        limit = spec.most_tokens
        over = f" (limit {limit:,})" if draft.tokens > limit else ""
        screen.done(f"SKILL.md  {counted(draft.tokens, 'token')}{over}")
        return draft

    def write_cases(
        self, draft: Draft, old: Sequence[UsableCase], number: int, fewest: int
    ) -> tuple[list[UsableCase], tuple[str, ...]]:
        """New cases, and the ids of those that show nothing:
        every student passes them anyway.

        TeachError if fewer than ``fewest`` are usable.
        """
        models, screen = self.run.models, self.run.screen
        screen.begin("Generating cases…")
        author = self._author(models.author, AUTHOR, draft)
        written = author.write(number, old)
        no_signal: set[str] = set()
        if models.students and written.usable:
            # The attempts will report it, and the cases are usable
            with suppress(BudgetError):
                no_signal = self._with_signal(author, draft, written, old)
        cases = written.usable
        screen.done(written.counts(number))
        if len(cases) < fewest:
            problem = (
                f"{models.author}: only {len(cases)} of {counted(number, 'case')}"
                f" usable. Rejected: {written.reasons}\n  Try a stronger model with "
            )
            raise TeachError(
                (problem, Setting("author"), ", or describe the task more precisely.")
            )
        return cases, tuple(sorted(no_signal))

    def write_adversarial_cases(
        self, draft: Draft, old: Sequence[UsableCase]
    ) -> list[UsableCase]:
        """Usable cases by the adversary; the teacher learns from them."""
        adversary = self.run.models.adversary
        if not adversary:
            return []
        self.run.screen.begin(f"Generating adversarial cases with {adversary}…")
        number = adversarial_cases(self.run.settings)
        written = self._author(adversary, ADVERSARY, draft).write(number, old)
        cases = [_with_tags(usable, "adversary", LEARN) for usable in written.usable]
        self.run.screen.done(f"{len(cases)} kept")
        return cases

    def improve(
        self,
        draft: Draft,
        cases: Sequence[UsableCase],
        *,
        new: Sequence[UsableCase],
        no_signal: tuple[str, ...],
    ) -> Taught:
        """The best of several versions, measured with the students."""
        start = self.run.material.start
        learning, held_out = split_cases(cases, self.run.settings.holdout)
        loop = Bodies(
            self.run,
            learning,
            held_out,
            self.before(start, learning) if start else None,
            spec=self.spec(draft.name),
            new_cases=frozenset(usable.case.id for usable in new),
        )
        taught = loop.taught(draft, is_new=True, no_signal=no_signal)
        return compared_with_trace(self.run, taught, cases)

    def refine(self, start: Draft, cases: Sequence[UsableCase]) -> Taught:
        """A better version of a skill, or a shorter one."""
        settings = self.run.settings
        learning, held_out = split_cases(cases, settings.holdout)
        limit = settings.max_skill_tokens
        loop: Bodies | Shorter
        if limit is None:
            spec = self.spec(start.folder_name)
            loop = Bodies(self.run, learning, held_out, spec=spec)
        else:
            loop = Shorter(self.run, learning, held_out, limit=limit)
        return loop.taught(start, is_new=False)

    def leave_unmeasured(
        self, attempt: Attempt, cases: Sequence[UsableCase], no_signal: tuple[str, ...]
    ) -> Taught:
        """A version as it is, which no student was asked with."""
        parts = parts_of(*split_cases(cases, self.run.settings.holdout))
        name = attempt.draft.name
        taught = Taught(name, (attempt,), 1, parts, no_signal=no_signal)
        return replace(taught, sentences=tuple(body_sentences(taught)))

    def before(self, start: Draft, learning: Sequence[UsableCase]) -> Attempt:
        """The skill to improve, as it was."""
        try:
            results = measure(self.run, start, learning)
        except BudgetError as error:  # the first attempt reports it
            return Attempt(0, start, problem=str(error), is_new=False)
        self.run.screen.row(CURRENT, cells_of(results))
        return Attempt(0, start, results, is_new=False)

    def _with_signal(
        self, author: Author, draft: Draft, written: Authored, old: Sequence[UsableCase]
    ) -> set[str]:
        """Replace, once, the cases that every student passes without the skill.

        Return the ids of those for which there is no better one.
        """
        cases = written.usable
        passed = self._passed_without(draft, cases)
        easy = [usable for usable in cases if usable.case.id in passed]
        rejected = [
            Rejected(one_line(usable.case.input, 300), _NOT_TELLING) for usable in easy
        ]
        new = author.replace(rejected, [*old, *cases]) if easy else []
        still_passed = self._passed_without(draft, new)
        better = [usable for usable in new if usable.case.id not in still_passed]
        telling = [usable for usable in cases if usable.case.id not in passed]
        written.usable = [*telling, *better, *easy[len(better) :]]
        written.rejected += rejected[: len(better)]
        return {usable.case.id for usable in easy[len(better) :]}

    def _passed_without(self, draft: Draft, cases: Sequence[UsableCase]) -> set[str]:
        """The cases that every student passes in every run without the skill."""
        if not cases:
            return set()
        results = measure(self.run, draft, cases, screening=True)
        failed = {
            record.case for record in results.records if record.outcome != "passed"
        }
        return {usable.case.id for usable in cases} - failed

    def spec(self, name: str | None) -> DraftSpec:
        settings, start = self.run.settings, self.run.material.start
        limit = settings.max_skill_tokens or DEFAULT_SKILL_TOKENS
        if settings.max_skill_tokens is None and start:
            changed = self.run.changed_skill
            limit = limit + start.tokens if changed else max(limit, start.tokens)
        return DraftSpec(limit, valid_name(settings.task), start, name)

    def _author(self, model: str, system: str, draft: Draft) -> Author:
        return CaseAuthor(self.run, model, system, draft.body)


def _with_tags(usable: UsableCase, *added: str) -> UsableCase:
    tags = [*usable.data["tags"], *added]
    case = replace(usable.case, tags=tuple(tags))
    return replace(usable, data={**usable.data, "tags": tags}, case=case)
