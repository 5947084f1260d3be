"""Shorter versions of a skill: the sizes to try, what a teacher is asked, what it may write.

Only the body of SKILL.md is rewritten. Its name, its description and the files beside it stay.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .._util.texts import counted, one_line
from ..results.contrasts import is_within
from ..results.run import RunResults
from ..skills.context import FilesOnDisk
from ..skills.references import Folder, paths_in, references_in
from ..stats import Lift
from .attempts import Attempt, attempt_text, measure, report_for_teacher, show_attempt
from .case_writing import UsableCase
from .drafts import Draft, form_of, lint_draft
from .improvement import Improvement
from .prompts import TEACHER, TEACHER_OF_AGENTS, SkillText, fenced, shorten_prompt
from .replies import VERSION_SCHEMA, NotUsable, TeachRequest, ask_for
from .secrets import masked

MOST_SIZES: Final = 3
_NEAR: Final = 1.15  # sizes with a smaller ratio are the same
_REPAIRS: Final = 2
_ROUNDING: Final = 1e-9
_OWN_FILE: Final = re.compile(r"(?:\./)?(?:references?|scripts|assets)/\S*\w\.\w{1,10}")
_MOST_MISSING: Final = 5


@dataclass
class Shortening(Improvement[Draft, Attempt]):
    """Versions of smaller and smaller sizes, then better ones of the smallest."""

    original: Draft
    before: RunResults  # the whole skill, on the learning cases
    cases: Sequence[UsableCase]  # only the learning ones

    noun = "version"

    @property
    def _limit(self) -> int:
        return self.run.settings.max_skill_tokens

    @property
    def _next_sizes(self) -> list[int]:
        """The sizes that were neither tried nor reached yet."""
        steps = min(MOST_SIZES, self.run.settings.attempts)
        tried = {attempt.most_tokens for attempt in self.attempts}
        shortest = min((one.draft.tokens for one in self.attempts if one.results), default=None)
        return [
            size
            for size in sizes_toward(self._limit, self.original.tokens, steps)
            if size not in tried and (shortest is None or size < shortest)
        ]

    def propose(self) -> Draft:
        models, number = self.run.models, len(self.attempts) + 1
        size = next(iter(self._next_sizes), self._limit)
        writes = f"{models.teacher} writes {size:,} tokens at most"
        self.run.screen.begin(f"version {number}: {writes}…")
        prompt = shorten_prompt(
            self.run.settings.task,
            SkillText(self.original.description, self.original.body),
            report_for_teacher(self.before),
            [_tried_text(attempt) for attempt in self.attempts[-1:]],
            size,
            agents=models.with_agents,
        )
        system = TEACHER_OF_AGENTS if models.with_agents else TEACHER
        session, scratch = self.run.state.session, self.run.state.folder
        request = TeachRequest(models.teacher, system, prompt, VERSION_SCHEMA, session)

        def read(text: str) -> Draft:
            return read_version(text, self.original, size, scratch)

        return ask_for(models, request, read, _REPAIRS)  # asked for again if too long, never cut

    def measure(self, number: int, version: Draft) -> Attempt:
        attempt, models = self.unmeasured(number, "", version), self.run.models
        self.run.screen.begin(f"{attempt.label}…")
        scratch = self.run.state.folder
        results = measure(models, version, self.cases, models.students, scratch)
        return replace(attempt, results=results, problem=None)

    def unmeasured(self, number: int, problem: str, version: Draft | None) -> Attempt:
        size = next(iter(self._next_sizes), self._limit)
        draft = version or self.original
        return Attempt(number, draft, None, problem, most_tokens=size, noun=self.noun)

    def is_new(self, version: Draft) -> bool:
        return all(version.body != attempt.draft.body for attempt in self.attempts)

    def why_stop(self) -> str | None:
        if len(self.attempts) >= self.run.settings.attempts:
            return f"limit of {counted(self.run.settings.attempts, self.noun)} reached"
        return None if self._next_sizes else self.why_enough()

    def why_enough(self) -> str | None:
        fitting = [one.results for one in self.attempts if one.draft.tokens <= self._limit]
        if any(results and within(self.before, results, 0.0) for results in fitting):
            return "nothing is lost on the learning cases"
        return None

    def show(self, attempt: Attempt) -> None:
        size = f"{attempt.draft.tokens:,} of {counted(attempt.most_tokens or 0, 'token')}"
        show_attempt(self.run, attempt, size)

    def keep(self, attempt: Attempt) -> None:
        self.run.state.keep_attempt(
            attempt.number, attempt.draft, attempt.results, attempt_text(attempt)
        )


def sizes_toward(limit: int, tokens: int, most: int = MOST_SIZES) -> list[int]:
    """The sizes to try, from long to short: equal steps of the ratio, and the limit itself."""
    number = max(1, most)
    steps = [round(tokens * (limit / tokens) ** (step / number)) for step in range(1, number)]
    sizes = [limit]
    for size in reversed(steps):
        if size > sizes[0] * _NEAR and tokens > size * _NEAR:
            sizes.insert(0, size)
    return sizes


def best_of_sizes(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The best measured version of each size, from long to short, each text once."""
    best = dict[int | None, Attempt]()
    for attempt in attempts:
        size = attempt.most_tokens
        if attempt.results and (size not in best or attempt.merit > best[size].merit):
            best[size] = attempt
    texts = {attempt.draft.body: attempt for attempt in reversed(best.values())}
    return sorted(texts.values(), key=lambda attempt: (-attempt.draft.tokens, attempt.number))


def shortest_within(changes: Sequence[Sequence[Lift | None]], margin: float) -> int | None:
    """The place of the shortest version that no student was shown to lose the margin with.

    ``changes``: of each version, from long to short, by student. They are looked at up to the first
    that is not shown to lose so little: tests in a fixed order, each only if the one before it
    held, err no more often than one test.
    """
    chosen = None
    for place, by_student in enumerate(changes):
        if not all(is_within(change, margin) for change in by_student):
            break
        chosen = place
    return chosen


def within(original: RunResults, short: RunResults, margin: float) -> bool:
    """Whether no student loses more than a margin; chance is not considered."""
    pairs = zip(original.summaries, short.summaries, strict=True)
    losses = [(was.scored("skill") or 0.0) - (now.scored("skill") or 0.0) for was, now in pairs]
    return max(losses, default=0.0) <= margin + _ROUNDING


def read_version(text: str, original: Draft, most: int, scratch: Path) -> Draft:
    """The body of a reply in place of that of the whole skill; NotUsable says what is wrong."""
    form = form_of(text)
    version = replace(original, body=masked(form.body.strip()), files=())
    problems = list[str]()
    if not version.body:
        raise NotUsable(["the body is empty"])
    if version.tokens > most:
        problems.append(
            f"the body has about {counted(version.tokens, 'token')}, {version.tokens - most:,} too "
            f"many: at most {most:,} are allowed, {4 * most:,} bytes. Drop what is missed least"
        )
    else:
        earlier, _ = lint_draft(original, scratch)
        problems += [error for error in lint_draft(version, scratch)[0] if error not in earlier]
    if form.files:
        problems.append('no new files: all that the student needs must be in "body"')
    if missing := missing_files(version.body, original):
        names = ", ".join(repr(one_line(name, 80)) for name in missing[:_MOST_MISSING])
        problems.append(f"the body names files that are not there: {names}")
    if problems:
        raise NotUsable(problems)
    return version


def missing_files(body: str, original: Draft) -> list[str]:
    """Files of the skill that a body names and that are not there, nor named by the whole skill."""
    named = _own_files(body) - _own_files(original.body)
    if original.base is None:
        return sorted(named)
    lookup = Folder(FilesOnDisk(original.base))
    return sorted(name for name in named if not lookup.find(name))


def _own_files(body: str) -> set[str]:
    """Paths that mean a file of the skill: below its usual folders."""
    return {
        word
        for reference in references_in(body.split("\n"))
        for word in paths_in(reference)
        if _OWN_FILE.fullmatch(word)
    }


def _tried_text(attempt: Attempt) -> str:
    """A version and what fails with it, or why there was none."""
    if not attempt.results:
        problem = one_line(attempt.problem or "", 500)
        return f"Version {attempt.number} could not be used: {problem}"
    body = fenced("version", attempt.draft.body)
    tokens, report = counted(attempt.draft.tokens, "token"), report_for_teacher(attempt.results)
    return f"This shorter version, about {tokens}, was tried:\n{body}\nWith it: {report}"
