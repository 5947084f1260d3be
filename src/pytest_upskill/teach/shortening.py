"""Shorter versions of a skill: the sizes to try, what a teacher is asked, what it may write.

Only the body of SKILL.md is rewritten. Its name, its description and the files beside it stay.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .._util.texts import counted, one_line, points
from ..errors import BudgetError, UnusableError
from ..results.parts import Parts
from ..results.run import RunResults
from ..skills.context import FilesOnDisk
from ..skills.references import Folder, paths_in, references_in
from .attempts import mean_lift, measure_skill, report_for_teacher
from .case_writing import UsableCase
from .drafts import Draft, form_of, lint_draft, loaded
from .progress_lines import ProgressScreen, cells_of
from .prompts import TEACHER, TEACHER_OF_AGENTS, SkillText, fenced, shorten_prompt
from .replies import VERSION_SCHEMA, NotUsable, TeachRequest, ask_for
from .secrets import masked
from .teach_models import TeachModels
from .teach_settings import TeachSettings

MOST_SIZES: Final = 3
_NEAR: Final = 1.15  # a size this close to the next one tells nothing more
_REPAIRS: Final = 2
_OWN_FILE: Final = re.compile(r"(?:\./)?(?:references?|scripts|assets)/\S*\w\.\w{1,10}")
_MOST_MISSING: Final = 5
_ROUNDING: Final = 1e-9


def sizes_toward(limit: int, tokens: int, most: int = MOST_SIZES) -> list[int]:
    """The sizes to try, from long to short: equal steps of the ratio, and the limit itself."""
    number = max(1, most)
    steps = [round(tokens * (limit / tokens) ** (step / number)) for step in range(1, number)]
    sizes = [limit]
    for size in reversed(steps):
        if size > sizes[0] * _NEAR and tokens > size * _NEAR:
            sizes.insert(0, size)
    return sizes


def ask_for_version(
    models: TeachModels, prompt: str, whole: Draft, most: int, scratch: Path, session: int
) -> Draft:
    """A version of at most so many tokens; a longer one is asked for again, never cut.

    UnusableError if there is none after all.
    """
    system = TEACHER_OF_AGENTS if models.with_agents else TEACHER
    request = TeachRequest(models.teacher, system, masked(prompt), VERSION_SCHEMA, session)
    return ask_for(models, request, lambda text: read_version(text, whole, most, scratch), _REPAIRS)


def read_version(text: str, whole: Draft, most: int, scratch: Path) -> Draft:
    """The body of a reply in place of that of the whole skill; NotUsable says what is wrong."""
    form = form_of(text)
    version = replace(whole, body=masked(form.body.strip()), files=())
    problems = list[str]()
    if not version.body:
        raise NotUsable(["the body is empty"])
    if version.tokens > most:
        problems.append(
            f"the body has about {counted(version.tokens, 'token')}, {version.tokens - most:,} too "
            f"many: at most {most:,} are allowed, {4 * most:,} bytes. Drop what is missed least"
        )
    else:
        had, _ = lint_draft(whole, scratch)
        problems += [error for error in lint_draft(version, scratch)[0] if error not in had]
    if form.files:
        problems.append('no new files: all that the student needs must be in "body"')
    if missing := missing_files(version.body, whole):
        names = ", ".join(repr(one_line(name, 80)) for name in missing[:_MOST_MISSING])
        problems.append(f"the body names files that are not there: {names}")
    if problems:
        raise NotUsable(problems)
    return version


def missing_files(body: str, whole: Draft) -> list[str]:
    """Files of the skill that a body names and that are not there, nor named by the whole skill."""
    named = _own_files(body) - _own_files(whole.body)
    if whole.base is None:
        return sorted(named)
    lookup = Folder(FilesOnDisk(whole.base))
    return sorted(name for name in named if not lookup.find(name))


def _own_files(body: str) -> set[str]:
    """Paths that mean a file of the skill: below its usual folders."""
    return {
        word
        for reference in references_in(body.split("\n"))
        for word in paths_in(reference)
        if _OWN_FILE.fullmatch(word)
    }


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
    screen: ProgressScreen
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
            SkillText(self.whole.description, self.whole.body),
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
