"""The steps of a run in order: draft, cases, split, attempts, held-out cases."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from .._util.texts import counted, one_line, slug
from ..errors import BudgetError, TeachError
from .attempts import Attempt, Loop, best_of, measure, passed_by_all
from .case_file import CaseFile, held_out, split_of
from .case_writing import Author, FallenCase, GoodCase
from .classroom import Classroom
from .drafts import Draft, Wanted, ask_for_draft
from .outcome import Taught, attempt_text
from .progress_lines import Screen, cells_of
from .prompts import ADVERSARY, AUTHOR, draft_prompt
from .sources import Material
from .state import Workspace
from .teach_settings import FEWEST_CASES, TeachSettings


@dataclass
class Course:
    """A settings on its way."""

    settings: TeachSettings
    room: Classroom
    material: Material
    workspace: Workspace
    screen: Screen

    def draft(self, free_name: Callable[[str], str]) -> Draft:
        """The first version; its name may have to give way to one that is taken."""
        settings, start, trace = self.settings, self.material.start, self.material.trace
        if trace:
            self.screen.line(f"Trace of {counted(trace.tokens, 'token')}. {trace.left_out}")
        self.screen.begin(f"Generating skill with {self.room.teacher}…")
        prompt = draft_prompt(
            settings.task, self.material.text, settings.max_skill_tokens, improves=start is not None
        )
        name = settings.name or (start.name if start else None)
        draft = ask_for_draft(self.room, prompt, self._wanted(name), self.workspace.session)
        draft = replace(draft, name=free_name(draft.name))
        over = "" if draft.tokens <= settings.max_skill_tokens else ", more than wished for"
        self.screen.done(f"SKILL.md  {counted(draft.tokens, 'token')}{over}")
        self.workspace.rename(draft.name)
        return draft

    def write_cases(
        self, draft: Draft, known: Sequence[GoodCase], number: int, fewest: int = 0
    ) -> tuple[list[GoodCase], tuple[str, ...]]:
        """New cases that hold, and which of all give no signal: every student passes them.

        TeachError if fewer than ``fewest`` hold, or too few with those that are known.
        """
        if number <= 0:
            return [], ()
        self.screen.begin("Generating cases…")
        author = self._author(self.room.author, AUTHOR, draft)
        made = author.write(number, known)
        good, replaced = made.good[:number], made.replaced
        silent: set[str] = set()
        if self.room.students and good:
            with suppress(BudgetError):  # the loop will tell, and these cases hold all the same
                good, silent, others = self._with_signal(author, draft, good, known)
                replaced += others
        told = f"{len(good)} kept" + (f", {replaced} replaced" if replaced else "")
        if len(good) < number:
            told += f", {number - len(good)} given up"
        self.screen.done(told)
        if len(good) < max(fewest, FEWEST_CASES - len(known)):
            fell = "; ".join(f"{one.question!r}: {one.why}" for one in made.fallen[-3:])
            raise TeachError(
                f"{self.room.author}: {counted(len(good), 'case')} of {number} hold, too few to go "
                f"on with. Of those that fell: {one_line(fell, 400)}\n  Try a stronger author "
                "(--test-model), or word the task more exactly."
            )
        return good, tuple(sorted(silent))

    def _with_signal(
        self, author: Author, draft: Draft, good: list[GoodCase], known: Sequence[GoodCase]
    ) -> tuple[list[GoodCase], set[str], int]:
        """Replace, once, what every student can do without the skill."""
        silent = self._passed_without(draft, good)
        if not silent:
            return good, silent, 0
        telling = [one for one in good if one.case.id not in silent]
        dull = [one for one in good if one.case.id in silent]
        why = "every student passes it without the skill: ask for what only the skill tells"
        fallen = [FallenCase(one_line(one.case.input, 300), why) for one in dull]
        new = author.replace(fallen, [*known, *good])
        still = self._passed_without(draft, new)
        better = [one for one in new if one.case.id not in still]
        kept = dull[len(better) :]
        return [*telling, *better, *kept], {one.case.id for one in kept}, len(better)

    def _passed_without(self, draft: Draft, cases: Sequence[GoodCase]) -> set[str]:
        if not cases:
            return set()
        room, scratch = self.room, self.workspace.folder
        results = measure(room, draft, cases, room.students, scratch, arms=("baseline",))
        return passed_by_all(results)

    def attack(self, draft: Draft, known: Sequence[GoodCase]) -> list[GoodCase]:
        """Cases of an adversary that hold; they join the learning part."""
        if not self.room.adversary:
            return []
        self.screen.begin(f"Cases against it by {self.room.adversary}…")
        author = self._author(self.room.adversary, ADVERSARY, draft)
        number = max(2, round(self.settings.cases / 4))
        made = author.write(number, known)
        good = [_tagged(one, "adversary") for one in made.good[:number]]
        self.screen.done(f"{len(good)} kept")
        return good

    def split(self, cases: Sequence[GoodCase]) -> frozenset[str]:
        """The ids that are held out: as the file says, else by their share."""
        learn, held = split_of(cases)
        others = [(one.case.id, one.case.tags) for one in cases if one.case.id not in learn | held]
        return frozenset(held | held_out(others, self.settings.holdout))

    def teach(
        self,
        draft: Draft,
        cases: Sequence[GoodCase],
        held: frozenset[str],
        no_signal: tuple[str, ...] = (),
        before: Draft | None = None,
    ) -> Taught:
        """The loop on the learning part, then what decides: held-out cases, and the teacher."""
        learn = [one for one in cases if one.case.id not in held]
        rest = [one for one in cases if one.case.id in held]
        room, scratch = self.room, self.workspace.folder
        self.workspace.save(cases=[_kept(one, held) for one in cases])
        taught = Taught((), tuple(cases), held, "", trace=self.material.trace)
        if before:
            was = measure(room, before, learn, room.students, scratch)
            self.screen.row("before", cells_of(was))
            taught = replace(taught, before=was)
        loop = Loop(
            room,
            self.settings,
            self.material.text,
            self._wanted(draft.name),
            learn,
            self.workspace.session,
            self.screen,
            self._keep,
        )
        attempts, stop = loop.run(draft)
        self.workspace.save(stop=stop, best=best_of(attempts).number)
        taught = replace(taught, attempts=tuple(attempts), stop=stop, no_signal=no_signal)
        return self._decided(taught, rest) if taught.learning else taught

    def _decided(self, taught: Taught, rest: Sequence[GoodCase]) -> Taught:
        room, scratch, best = self.room, self.workspace.folder, taught.best
        try:
            if rest:
                self.screen.begin("held out…")
                results = measure(room, best.draft, rest, room.students, scratch)
                self.screen.row("held out", cells_of(results))
                taught = replace(taught, held_out=results)
            if taught.trace:
                self.screen.begin(f"{room.teacher} without anything, with the trace, with it…")
                results = measure(
                    room,
                    best.draft,
                    taught.cases,
                    {room.teacher: room.teacher_id},
                    scratch,
                    trace=taught.trace.text,
                )
                self.screen.drop()
                taught = replace(taught, teacher=results)
        except BudgetError:
            self.screen.drop()
            note = f"not all was asked at the end, since that {room.past_budget()}"
            return replace(taught, notes=(*taught.notes, note))
        return taught

    def _keep(self, attempt: Attempt, attempts: list[Attempt]) -> None:
        self.workspace.keep_attempt(
            attempt.number, attempt.draft, attempt.results, attempt_text(attempt)
        )
        self.workspace.save(attempts=[_summed_up(one) for one in attempts])

    def _wanted(self, name: str | None) -> Wanted:
        fallback = slug(self.settings.task, 64) or "my-skill"
        settings, start = self.settings, self.material.start
        return Wanted(settings.max_skill_tokens, self.workspace.folder, fallback, start, name)

    def _author(self, model: str, system: str, draft: Draft) -> Author:
        return Author(
            self.room,
            model,
            system,
            self.settings.task,
            self.material.text,
            draft.body,
            self.workspace.folder,
            self.workspace.session,
        )


def all_cases(known: CaseFile, new: Sequence[GoodCase]) -> list[GoodCase]:
    return [*(one for one in known.cases if not one.case.skip), *new]


def _tagged(case: GoodCase, tag: str) -> GoodCase:
    """With a tag that makes it one to learn from."""
    tags = [*case.data["tags"], tag, "learn"]
    own = replace(case.case, tags=tuple(tags))
    return replace(case, data={**case.data, "tags": tags}, case=own)


def _kept(one: GoodCase, held: frozenset[str]) -> dict[str, Any]:
    part = "holdout" if one.case.id in held else "learn"
    return {"id": one.case.id, "part": part, "case": one.data, "reference": one.reference}


def _summed_up(attempt: Attempt) -> Mapping[str, Any]:
    return {
        "number": attempt.number,
        "tokens": attempt.draft.tokens,
        "lift": attempt.lift if attempt.results else None,
        "problem": attempt.problem,
    }
