"""The steps of a run in order: draft, cases, split, attempts, held-out cases."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from .._util.texts import counted, one_line, slug
from ..checks import why_agent
from ..errors import BudgetError, Setting, TeachError
from .attempts import Attempt, AttemptLoop, best_of, measure, passed_by_all
from .case_file import CaseFile, ids_held_out
from .case_writing import HOLDOUT, LEARN, Author, RejectedCase, UsableCase
from .drafts import Draft, Wanted, ask_for_draft
from .outcome import Taught, attempt_text
from .progress_lines import Screen, cells_of
from .prompts import ADVERSARY, AUTHOR, draft_prompt
from .sources import Material
from .state import TeachState
from .teach_models import TeachModels
from .teach_settings import FEWEST_CASES, TeachSettings


@dataclass
class Steps:
    """The steps, and what they all need."""

    settings: TeachSettings
    models: TeachModels
    material: Material
    state: TeachState
    screen: Screen

    def draft(self, free_name: Callable[[str], str]) -> Draft:
        """The first version; ``free_name`` gives it another name if its own is taken."""
        settings, start, trace = self.settings, self.material.start, self.material.trace
        if trace:
            left_out = f"; {trace.left_out}" if trace.left_out else ""
            self.screen.line(f"Trace of {counted(trace.tokens, 'token')}{left_out}")
        self.screen.begin(f"Generating skill with {self.models.teacher}…")
        prompt = draft_prompt(
            settings.task,
            self.material.text,
            settings.max_skill_tokens,
            improves=start is not None,
            agents=self.models.with_agents,
        )
        name = settings.name or (start.name if start else None)
        draft = ask_for_draft(self.models, prompt, self._wanted(name), self.state.session)
        draft = replace(draft, name=free_name(draft.name))
        limit = settings.max_skill_tokens
        over = f" (limit {limit:,})" if draft.tokens > limit else ""
        self.screen.done(f"SKILL.md  {counted(draft.tokens, 'token')}{over}")
        self.state.rename(draft.name)
        return draft

    def write_cases(
        self, draft: Draft, known: Sequence[UsableCase], number: int, fewest: int = 0
    ) -> tuple[list[UsableCase], tuple[str, ...]]:
        """New cases, and the ids of those that show nothing: every student passes them anyway.

        TeachError if fewer than ``fewest`` are usable, or too few together with the known ones.
        """
        if number <= 0:
            return [], ()
        self.screen.begin("Generating cases…")
        author = self._author(self.models.author, AUTHOR, draft)
        written = author.write(number, known)
        cases, replaced = written.usable[:number], written.replaced
        no_signal: set[str] = set()
        if self.models.students and cases:
            with suppress(BudgetError):  # the attempts will report it, and the cases are usable
                cases, no_signal, others = self._with_signal(author, draft, cases, known)
                replaced += others
        counts = f"{len(cases)} kept" + (f", {replaced} replaced" if replaced else "")
        if len(cases) < number:
            counts += f", {number - len(cases)} given up"
        self.screen.done(counts)
        if len(cases) < max(fewest, FEWEST_CASES - len(known)):
            reasons = "; ".join(f"{one.question!r}: {one.why}" for one in written.rejected[-3:])
            problem = (
                f"{self.models.author}: only {len(cases)} of {counted(number, 'case')} usable. "
                f"Rejected: {one_line(reasons, 400)}\n  Try a stronger model with "
            )
            raise TeachError((problem, Setting("author"), ", or describe the task more precisely."))
        return cases, tuple(sorted(no_signal))

    def write_adversarial_cases(
        self, draft: Draft, known: Sequence[UsableCase]
    ) -> list[UsableCase]:
        """Usable cases by the adversary; the teacher learns from them."""
        if not self.models.adversary:
            return []
        self.screen.begin(f"Generating adversarial cases with {self.models.adversary}…")
        author = self._author(self.models.adversary, ADVERSARY, draft)
        number = max(2, round(self.settings.cases / 4))
        written = author.write(number, known)
        cases = [_tagged(one, "adversary") for one in written.usable[:number]]
        self.screen.done(f"{len(cases)} kept")
        return cases

    def split(self, cases: Sequence[UsableCase]) -> frozenset[str]:
        """The ids of the held-out cases."""
        return ids_held_out([one.case for one in cases], self.settings.holdout)

    def teach(
        self,
        draft: Draft,
        cases: Sequence[UsableCase],
        held: frozenset[str],
        no_signal: tuple[str, ...] = (),
        before: Draft | None = None,
    ) -> Taught:
        """Attempts on the learning cases, then the best one on the held-out cases."""
        learn = [one for one in cases if one.case.id not in held]
        rest = [one for one in cases if one.case.id in held]
        models, scratch = self.models, self.state.folder
        self.state.save(cases=[_case_data(one, held) for one in cases])
        taught = Taught((), tuple(cases), held, "", trace=self.material.trace)
        if before:
            results = measure(models, before, learn, models.students, scratch)
            self.screen.row("before", cells_of(results))
            taught = replace(taught, before=results)
        loop = AttemptLoop(
            models,
            self.settings,
            self.material.text,
            self._wanted(draft.name),
            learn,
            self.state.session,
            self.screen,
            self._keep,
        )
        attempts, stop = loop.run(draft)
        self.state.save(stop=stop, best=best_of(attempts).number)
        taught = replace(taught, attempts=tuple(attempts), stop=stop, no_signal=no_signal)
        return self._decided(taught, rest) if taught.learning else taught

    def _with_signal(
        self,
        author: Author,
        draft: Draft,
        cases: list[UsableCase],
        known: Sequence[UsableCase],
    ) -> tuple[list[UsableCase], set[str], int]:
        """Replace, once, the cases that every student passes without the skill."""
        passed = self._passed_without(draft, cases)
        if not passed:
            return cases, passed, 0
        telling = [one for one in cases if one.case.id not in passed]
        easy = [one for one in cases if one.case.id in passed]
        why = (
            "every student passes it without the skill: ask about something only the skill explains"
        )
        rejected = [RejectedCase(one_line(one.case.input, 300), why) for one in easy]
        new = author.replace(rejected, [*known, *cases])
        still_passed = self._passed_without(draft, new)
        better = [one for one in new if one.case.id not in still_passed]
        kept = easy[len(better) :]
        return [*telling, *better, *kept], {one.case.id for one in kept}, len(better)

    def _passed_without(self, draft: Draft, cases: Sequence[UsableCase]) -> set[str]:
        if not cases:
            return set()
        models, scratch = self.models, self.state.folder
        results = measure(models, draft, cases, models.students, scratch, arms=("baseline",))
        return passed_by_all(results)

    def _decided(self, taught: Taught, rest: Sequence[UsableCase]) -> Taught:
        models, scratch, best = self.models, self.state.folder, taught.best
        try:
            if rest:
                self.screen.begin("held out…")
                results = measure(models, best.draft, rest, models.students, scratch)
                self.screen.row("held out", cells_of(results))
                taught = replace(taught, held_out=results)
            plain = [one for one in taught.cases if not why_agent(one.case, one.checks)]
            if taught.trace and plain:
                self.screen.begin(f"Comparing the skill with the trace on {models.teacher}…")
                results = measure(
                    models,
                    best.draft,
                    plain,
                    models.as_student,
                    scratch,
                    trace=taught.trace.text,
                )
                self.screen.drop()
                taught = replace(taught, teacher=results)
        except BudgetError:
            self.screen.drop()
            note = f"not all of the last step was measured: it {models.past_budget()}"
            return replace(taught, notes=(*taught.notes, note))
        return taught

    def _keep(self, attempt: Attempt, attempts: list[Attempt]) -> None:
        self.state.keep_attempt(
            attempt.number, attempt.draft, attempt.results, attempt_text(attempt)
        )
        self.state.save(attempts=[_attempt_data(one) for one in attempts])

    def _wanted(self, name: str | None) -> Wanted:
        fallback = slug(self.settings.task, 64) or "my-skill"
        settings, start = self.settings, self.material.start
        return Wanted(settings.max_skill_tokens, self.state.folder, fallback, start, name)

    def _author(self, model: str, system: str, draft: Draft) -> Author:
        return Author(
            self.models,
            model,
            system,
            self.settings.task,
            self.material.text,
            draft.body,
            self.state.folder,
            self.state.session,
            self.settings.only_agents,
        )


def all_cases(known: CaseFile, new: Sequence[UsableCase]) -> list[UsableCase]:
    return [*(one for one in known.cases if not one.case.skip), *new]


def _tagged(case: UsableCase, tag: str) -> UsableCase:
    """The case with a tag, marked for learning."""
    tags = [*case.data["tags"], tag, LEARN]
    own = replace(case.case, tags=tuple(tags))
    return replace(case, data={**case.data, "tags": tags}, case=own)


def _case_data(one: UsableCase, held: frozenset[str]) -> dict[str, Any]:
    part = HOLDOUT if one.case.id in held else LEARN
    return {"id": one.case.id, "part": part, "case": one.data, "reference": one.reference}


def _attempt_data(attempt: Attempt) -> Mapping[str, Any]:
    return {
        "number": attempt.number,
        "tokens": attempt.draft.tokens,
        "lift": attempt.lift if attempt.results else None,
        "problem": attempt.problem,
    }
