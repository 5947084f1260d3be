"""Shorter versions of a skill: ``refine --max-tokens``.

Only the body of SKILL.md is rewritten. Its name, its description and the files beside
it stay. The versions go from long to short; one is only said to lose little if the same
holds for all longer ones, so no interval is widened for their number.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from .._util.secrets import masked
from .._util.texts import counted, message_line, one_line, unsigned_points
from ..results.arm_contrasts import share_error
from ..results.contrasts import is_within
from ..results.run import RunResults
from ..skills.context import FilesOnDisk
from ..skills.references import Folder, paths_in, references_in
from ..stats import ROUNDING, Lift, worst_loss
from ..trials.arm import SKILL
from .drafts import Draft, form_of, new_errors
from .failures import report_for_teacher
from .improvement import Improvement, mean_lift
from .outcome import HELD_OUT, LEARNING, Attempt, AttemptChange, Taught
from .prompts import fenced, for_agents, joined, teacher_role
from .replies import VERSION_SCHEMA, NotUsable, Request

MOST_SIZES: Final = 3
_NEAR: Final = 1.15  # sizes with a smaller ratio are the same
_REPAIRS: Final = 2
_OWN_FILE: Final = re.compile(r"(?:\./)?(?:references?|scripts|assets)/\S*\w\.\w{1,10}")
_MOST_MISSING: Final = 5


@dataclass
class Shorter(Improvement):
    """Versions of smaller and smaller sizes, then better ones of the smallest."""

    limit: int = field(kw_only=True)  # tokens

    @property
    def _whole(self) -> Attempt:
        return self.attempts[0]

    @property
    def _shorter(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.is_new]

    @property
    def most_tokens(self) -> int | None:
        """The next size that was neither tried nor reached yet;
        the limit if there is none.
        """
        if not self.attempts:
            return None
        return next(iter(self._next_sizes), self.limit)

    @property
    def _next_sizes(self) -> list[int]:
        steps = min(MOST_SIZES, self.run.settings.attempts)
        tried = {attempt.most_tokens for attempt in self._shorter}
        reached = [
            attempt.draft.tokens for attempt in self._shorter if attempt.learning
        ]
        return [
            size
            for size in sizes_toward(self.limit, self._whole.draft.tokens, steps)
            if size not in tried and size < min(reached, default=size + 1)
        ]

    def request(self) -> tuple[str, Request[Draft]]:
        """By how students do with the whole skill, and with the last shorter
        version.
        """
        whole = self._whole
        agents = self.run.models.with_agents
        original, most = whole.draft, self.most_tokens or self.limit
        assert whole.learning, "versions are only written of a skill that was measured"
        also = (
            "and of its files, which stay as they are" if agents else "and nothing else"
        )
        parts = [
            (
                "A skill was written for this"
                f" task:\n{fenced('task', self.run.settings.task)}"
            ),
            (
                f"This is the body of the skill, about {original.tokens:,} tokens:\n"
                f"{fenced('skill', original.body)}"
            ),
            *(for_agents(original.description, ()) if agents else []),
            (
                "Students were asked questions with the whole skill. "
                f"{report_for_teacher(whole.learning)}"
            ),
            *map(_tried_text, self._shorter[-1:]),
            (
                f"Write a shorter body: at most {most:,} tokens, counted as bytes"
                f" divided by 4, so at most {4 * most:,} bytes. A longer one is not"
                " taken. Keep what answers need: exact names, commands, values,"
                " formats, and the rules to choose between them. Leave out first what"
                " no answer needs, then what every model knows. Keep rules that hold"
                " for all questions of this kind, not just for those that were asked:"
                " others will be. Do not change what is right. The student sees the"
                f" body {also}; name no file that is not there, and add none."
            ),
            (
                'Reply with JSON only: {"body": "the shorter text of the skill in'
                ' Markdown, without frontmatter"}.'
            ),
        ]

        # One that is too long is asked for again, never cut
        def read(text: str) -> Draft:
            return read_version(text, original, most)

        role = teacher_role(agents=agents)
        request = Request(role, joined(parts), VERSION_SCHEMA, read, _REPAIRS)
        return f"writes {most:,} tokens at most", request

    def is_different(self, draft: Draft) -> bool:
        return all(draft.body != attempt.draft.body for attempt in self.attempts)

    def merit(self, attempt: Attempt) -> tuple[float, ...]:
        return mean_lift(attempt), -attempt.draft.tokens, -attempt.number

    def why_enough(self) -> str | None:
        whole = self._whole.learning
        if whole is None:
            return "the whole skill is not measured"
        if all((row.lift or 0.0) <= 0 for row in whole.rows):
            return (
                "the skill helps no student on the learning cases, so nothing can be"
                " lost"
            )
        fitting = [
            short.learning
            for short in self._shorter
            if short.draft.tokens <= self.limit
        ]
        if any(results and within(whole, results, 0.0) for results in fitting):
            return "nothing is lost on the learning cases"
        return None

    def why_stuck(self) -> str | None:
        return None  # a smaller size is expected to be no better

    def size(self, attempt: Attempt) -> str:
        of = f" of {attempt.most_tokens:,}" if attempt.most_tokens else ""
        return f"{attempt.draft.tokens:,}{of} tokens"

    def candidates(self) -> list[Attempt]:
        """The best of each size that loses little on the learning cases;
        all of them if none.
        """
        whole, margin = self._whole.learning, self._margin
        best = best_of_sizes(self._shorter)
        good = [
            short
            for short in best
            if whole and short.learning and within(whole, short.learning, margin)
        ]
        return good or best

    def decide(self, taught: Taught) -> Taught:
        """The shortest one that no student was shown to lose the margin with."""
        whole, margin = self._whole, self._margin
        tested = [attempt for attempt in self.candidates() if attempt.held_out]
        students = [student.label for student in self.run.models.students]
        changes = {
            attempt.number: [
                self._loss(attempt, student, len(tested)) for student in students
            ]
            for attempt in tested
        }
        shown = whole.all_cases.rows if whole.held_out and whole.all_cases else ()
        helps = any(row.verdict == "helps" for row in shown)
        lifts = [
            [change.lift for change in changes[attempt.number]] for attempt in tested
        ]
        place = shortest_within(lifts, margin) if helps else None
        chosen = whole if place is None else tested[place]
        named = chosen if place is not None else tested[-1] if tested else whole
        learned = [
            self.compared(named, LEARNING, name) for name in students if named.is_new
        ]
        taught = replace(
            taught,
            chosen=chosen.number,
            changes=(*filter(None, learned), *changes.get(named.number, ())),
            succeeded=chosen.is_new and chosen.draft.tokens <= self.limit,
        )
        lines = [f"Stopped: {taught.stop}.", *self._unreached()]
        if tested and not helps:
            lines.append(
                "The whole skill is not shown to help a student: no loss can be shown"
                " either."
            )
        elif tested:
            lines += self._conclusion(named, changes[named.number], chosen)
        return replace(taught, sentences=tuple(lines))

    def _loss(self, attempt: Attempt, student: str, tested: int) -> AttemptChange:
        """Against the whole skill; the two ends of the interval serve two claims.

        That a version loses something (the upper end) may be said of each, so all share
        the error. That it loses little (the lower end) is said of one only if it holds
        for the longer ones, so each has the whole level. Which versions are tested does
        not depend on these cases.
        """
        shared = self.compared(attempt, HELD_OUT, student, share_error(tested))
        alone = self.compared(attempt, HELD_OUT, student)
        assert shared, "both were measured on the held-out cases"
        assert alone
        if (
            not shared.lift
            or not alone.lift
            or not self._whole.held_out
            or not attempt.held_out
        ):
            return shared
        differences = self.differences(
            self._whole.held_out, attempt.held_out, [student]
        )
        low = min(alone.lift.low, -worst_loss(differences))
        lift = shared.lift._replace(low=low)
        contrast = replace(shared.contrast, lift=lift, margin=self._margin)
        return replace(shared, contrast=contrast)

    @property
    def _margin(self) -> float:
        return self.run.settings.margin

    def _unreached(self) -> Iterator[str]:
        """Sizes that the teacher did not reach."""
        sizes = {attempt.most_tokens or 0 for attempt in self._shorter}
        reached = {attempt.most_tokens for attempt in self._shorter if attempt.learning}
        for size in sorted(sizes - reached, reverse=True):
            yield (
                "The teacher wrote no usable version of at most"
                f" {counted(size, 'token')}."
            )

    def _conclusion(
        self, attempt: Attempt, changes: Sequence[AttemptChange], chosen: Attempt
    ) -> Iterator[str]:
        margin, tokens = unsigned_points(self._margin), attempt.draft.tokens
        for change in changes:
            held = counted(change.contrast.cases, "held-out case")
            size = counted(tokens, "token")
            yield f"{change.student} with {size}, on {held}: {change.contrast.words}."
        if not chosen.is_new:
            yield f"No version is shown to lose less than {margin} points."
            return
        before = self._whole.draft.tokens
        yield (
            f"Attempt {chosen.number} has {tokens:,} tokens instead of {before:,}"
            f" ({1 - tokens / before:.0%} fewer), and a loss of {margin} points or more"
            " is ruled out."
        )
        if tokens > self.limit:
            yield (
                f"That is above the limit of {self.limit:,}: no shorter version was"
                " shown to be as good."
            )


def sizes_toward(limit: int, tokens: int, most: int = MOST_SIZES) -> list[int]:
    """The sizes to try, from long to short: equal steps of the ratio,
    and the limit itself.
    """
    number = max(1, most)
    steps = [
        round(tokens * (limit / tokens) ** (step / number)) for step in range(1, number)
    ]
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
        better = size not in best or mean_lift(attempt) > mean_lift(best[size])
        if attempt.learning and better:
            best[size] = attempt
    texts = {attempt.draft.body: attempt for attempt in reversed(best.values())}
    return sorted(
        texts.values(), key=lambda attempt: (-attempt.draft.tokens, attempt.number)
    )


def shortest_within(
    changes: Sequence[Sequence[Lift | None]], margin: float
) -> int | None:
    """The place of the shortest version that no student was
    shown to lose the margin with.

    ``changes``: of each version, from long to short, by student. They are looked at up
    to the first that is not shown to lose so little: tests in a fixed order, each only
    if the one before it held, err no more often than one test.
    """
    chosen = None
    for place, by_student in enumerate(changes):
        if not all(is_within(change, margin) for change in by_student):
            break
        chosen = place
    return chosen


def within(whole: RunResults, short: RunResults, margin: float) -> bool:
    """Whether no student loses more than a margin; chance is not considered."""
    pairs = zip(whole.rows, short.rows, strict=True)
    losses = [
        (was.scored(SKILL) or 0.0) - (now.scored(SKILL) or 0.0) for was, now in pairs
    ]
    return max(losses, default=0.0) <= margin + ROUNDING


def read_version(text: str, original: Draft, most: int) -> Draft:
    """The body of a reply in place of that of the whole skill;
    NotUsable says what is wrong.
    """
    form = form_of(text)
    draft = replace(original, body=masked(form.body.strip()), files=())
    problems = list[str]()
    if not draft.body:
        raise NotUsable(["the body is empty"])
    if draft.tokens > most:
        problems.append(
            f"the body has about {counted(draft.tokens, 'token')},"
            f" {draft.tokens - most:,} too many: at most {most:,} are allowed,"
            f" {4 * most:,} bytes. Drop what is missed least"
        )
    else:
        problems += new_errors(draft, original)
    if form.files:
        problems.append('no new files: all that the student needs must be in "body"')
    if missing := missing_files(draft.body, original):
        names = ", ".join(repr(one_line(name, 80)) for name in missing[:_MOST_MISSING])
        problems.append(f"the body names files that are not there: {names}")
    if problems:
        raise NotUsable(problems)
    return draft


def missing_files(body: str, original: Draft) -> list[str]:
    """Files of the skill that a body names and that are not there,
    nor named by the whole skill.
    """
    named = _own_files(body) - _own_files(original.body)
    if original.base_folder is None:
        return sorted(named)
    lookup = Folder(FilesOnDisk(original.base_folder))
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
    if not attempt.learning:
        problem = message_line(attempt.problem or "", 500)
        return f"Attempt {attempt.number} could not be used: {problem}"
    body = fenced("version", attempt.draft.body)
    tokens, report = (
        counted(attempt.draft.tokens, "token"),
        report_for_teacher(attempt.learning),
    )
    return (
        f"This shorter version, about {tokens}, was tried:\n{body}\nWith it: {report}"
    )
