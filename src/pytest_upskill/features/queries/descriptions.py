"""Descriptions of a skill, measured by when it is opened: ``describe``.

All versions differ in the description alone. A version's score is the share of
queries that are decided right, where those that should open the skill weigh as much
as those that should not.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from ..._util.secrets import masked
from ..._util.texts import message_line, one_line, shortened, visible
from ...errors import InputError, shown
from ...reports.terminal.progress_screen import Cell
from ...results.run import RunResults
from ...skills.case import Case
from ...skills.frontmatter import with_description
from ...skills.skill import LONGEST_DESCRIPTION
from ...stats import holm_lifts, paired_lift
from ...teach.drafts import Draft, new_errors
from ...teach.failures import MOST_BODY
from ...teach.improvement import Improvement, change_of, sample_scores
from ...teach.outcome import CURRENT, HELD_OUT, LEARNING, Attempt, AttemptChange, Taught
from ...teach.prompts import ALSO_TRIED, DATA, fenced, fenced_part, joined
from ...teach.replies import Loose, NotUsable, Request, read_reply, schema_like

_MOST_NEIGHBOURS: Final = 20_000  # characters
_MOST_QUERY: Final = 400  # characters that the teacher is shown

_DESCRIBER: Final = (
    "You write descriptions of Agent Skills. An agent sees the names and the"
    " descriptions of many skills, and nothing else of them, and opens the one that a"
    " user's query needs. A good description makes it open this skill when it is"
    " needed, and only then: it says what the skill does and when to use it, in the"
    f" words of those who ask.\n\n{DATA}"
)
_SCHEMA: Final = json.dumps(schema_like({"description": ""}))


@dataclass
class Descriptions(Improvement):
    """The best on the held-out queries, of those that are better on the learning
    ones.
    """

    def request(self) -> tuple[str, Request[Draft]]:
        """By what students did with the learning queries."""
        best = self.best
        current = self.attempts[0].draft
        assert best.learning, "the best version is a measured one"
        body = shortened(best.draft.body, MOST_BODY)
        report = query_report(best.learning, [usable.case for usable in self.learning])
        parts = [
            (
                f"The skill is called {best.draft.name}. This is its text, which the"
                f" agent sees only after it opened the skill:\n{fenced('skill', body)}"
            ),
            f"This is its description {self._tried(best, 'description')}",
            fenced_part(
                "Skills that are installed beside it", "others", self._neighbours
            ),
            f"What happened with some queries:\n\n{fenced('queries', report)}",
            *(
                f"{ALSO_TRIED} {self._tried(attempt, 'version')}"
                for attempt in self.later
            ),
            (
                "Write a better description. Find out what the queries have in common"
                " that are decided wrong, and describe that kind of task, or say what"
                " the skill is not for. Do not list these queries or their details:"
                " others will be asked, and a description that only knows these is"
                " worth nothing. Promise nothing that the skill does not do."
            ),
            (
                'Reply with JSON only: {"description": "…"}. It has at most'
                f" {LONGEST_DESCRIPTION:,} characters, on one line, without markup;"
                " half of that is often enough."
            ),
        ]

        def read(text: str) -> Draft:
            return read_description(text, current)

        request = Request(_DESCRIBER, joined(parts), _SCHEMA, read)
        return "rewrites the description", request

    @property
    def _neighbours(self) -> str:
        """The skills that are installed beside it, as a list for the teacher."""
        skill = self.attempts[0].draft.base
        assert skill, "a skill in a folder"
        lines = []
        for entry in self.run.models.neighbours(skill):
            lines.append(f"- {entry.name}: {one_line(entry.description, 300)}")
        return masked("\n".join(lines)[:_MOST_NEIGHBOURS])

    def _tried(self, attempt: Attempt, label: str) -> str:
        """A version as its teacher sees it: what it gets right, and what it says."""
        if attempt.learning is None:
            problem = (
                f"(it could not be used: {message_line(attempt.problem or '', 300)})"
            )
            return f"(attempt {attempt.number}):\n{fenced(label, problem)}"
        right = f"{self.right(attempt.learning):.0%} of the queries below decided right"
        return f"({right}):\n{fenced(label, attempt.draft.description)}"

    def is_different(self, draft: Draft) -> bool:
        earlier = {
            attempt.draft.description for attempt in self.attempts if attempt.learning
        }
        return draft.description not in earlier

    def merit(self, attempt: Attempt) -> tuple[float, ...]:
        right = self.right(attempt.learning) if attempt.learning else -1.0
        return right, -len(attempt.draft.description), -attempt.number

    def why_enough(self) -> str | None:
        best, target = self.best, self.run.settings.target
        if best.learning is None:
            return "the current description could not be measured"
        if (
            min(self.right(best.learning, [name]) for name in best.learning.model_ids)
            < target
        ):
            return None
        current = "" if best.is_new else " with the current description"
        return (
            f"every student decides {target:.0%} of the learning queries right{current}"
        )

    def size(self, attempt: Attempt) -> str:
        return f"{len(attempt.draft.description):,} characters"

    def cells(self, results: RunResults) -> list[Cell]:
        return [
            (name, f"{self.right(results, [name]):>4.0%} right")
            for name in results.model_ids
        ]

    def candidates(self) -> list[Attempt]:
        """Those that beat the current one on the learning queries."""
        before = self.merit(self.attempts[0])[0]
        return [
            attempt for attempt in self.attempts[1:] if self.merit(attempt)[0] > before
        ]

    def decide(self, taught: Taught) -> Taught:
        """The best on the held-out queries, if it is shown to be better there,
        or ``anyway``.
        """
        changes = self._changes(self.candidates())
        best = max(changes, key=self._by_lift, default=None)
        if best is None or best.lift is None or best.lift.lift <= 0:
            return self._unchanged(taught, compared=bool(changes))

        winner = self.attempts[best.attempt - 1]
        is_better = best.lift.low > 0
        saved = is_better or self.run.settings.anyway
        by_student = []
        for part in (LEARNING, HELD_OUT):
            for student in winner.learning.model_ids if winner.learning else ():
                if change := self.compared(winner, part, student):
                    by_student.append(change)
        won = f"Attempt {winner.number} is the best on the held-out queries."
        sentences = [f"{won} Stopped: {taught.stop}."]
        sentences += self._of_winner(winner, best, len(changes))
        if not saved:
            sentences += self._of_unsaved(winner)
        return replace(
            taught,
            chosen=winner.number if saved else 1,
            changes=(*by_student, best),
            succeeded=is_better,
            sentences=tuple(sentences),
        )

    def _changes(self, candidates: Sequence[Attempt]) -> list[AttemptChange]:
        """The candidates less the current description; none if they were not all asked.

        Which versions are compared does not depend on the held-out queries.
        """
        before = self.attempts[0].held_out
        measured = [attempt.held_out for attempt in candidates if attempt.held_out]
        if not before or len(measured) < len(candidates):
            return []
        students = list(before.model_ids)
        # The best of several is too good by chance.
        lifts = holm_lifts(
            [
                paired_lift(self.differences(before, after, students))
                for after in measured
            ]
        )
        return [
            change_of(
                attempt,
                CURRENT,
                part=HELD_OUT,
                student="",
                lift=lift,
                cases=len(self.held_out),
            )
            for attempt, lift in zip(candidates, lifts, strict=True)
        ]

    def _by_lift(self, change: AttemptChange) -> tuple[float, ...]:
        lift = change.lift.lift if change.lift else 0.0
        return lift, *self.merit(self.attempts[change.attempt - 1])

    def _unchanged(self, taught: Taught, *, compared: bool) -> Taught:
        if not self.written:
            is_good = (
                self.attempts[0].learning is not None and self.why_enough() is not None
            )
            reason = f"No new version was written: {taught.stop}."
            return replace(taught, chosen=1, succeeded=is_good, sentences=(reason,))
        reason = "No version was compared on the held-out queries"
        if compared or not self.candidates():
            better = "No version is better than the current description"
            reason = f"{better} on both the learning and the held-out queries"
        sentence = f"{reason}. Stopped: {taught.stop}."
        return replace(taught, chosen=1, succeeded=False, sentences=(sentence,))

    def _of_unsaved(self, winner: Attempt) -> list[str]:
        folder = shown(self.run.versions.folder_of(winner))
        anyway = self.run.models.spell("anyway")
        return [
            f"Attempt {winner.number} is kept in {folder}.",
            f"Write it all the same with {anyway}, or get more queries first.",
        ]

    def _of_winner(
        self, winner: Attempt, change: AttemptChange, compared: int
    ) -> list[str]:
        before, after = self.attempts[0].held_out, winner.held_out
        assert before, "the winner was compared with the current one"
        assert after
        assert change.lift
        adjusted = (
            f", adjusted for the {compared} versions compared" if compared > 1 else ""
        )
        verdict = (
            "shown to be better" if change.lift.low > 0 else "not shown to be better"
        )
        opened = {
            kind: f"{self.opened(before, kind):.0%} → {self.opened(after, kind):.0%}"
            for kind in (True, False)
        }
        return [
            (
                f"On the {len(self.held_out)} held-out queries {self.right(before):.0%}"
                f" → {self.right(after):.0%} right, {change.words}{adjusted}:"
                f" {verdict}."
            ),
            (
                f"Opened where it should: {opened[True]}; where it should not:"
                f" {opened[False]}."
            ),
        ]

    # Right decisions.

    @property
    def _should_open(self) -> Mapping[str, bool]:
        cases = (*self.learning, *self.held_out)
        return {usable.case.id: usable.case.should_open for usable in cases}

    def right(self, results: RunResults, students: Sequence[str] = ()) -> float:
        """Right decisions: 0.5 for a skill that is always opened, or never."""
        return balanced(
            sample_scores(results, students or list(results.model_ids)),
            self._should_open,
        )

    def opened(self, results: RunResults, should_open: bool) -> float:
        """How often queries of a kind open the skill: recall, or false alarms."""
        scores = sample_scores(results, list(results.model_ids))
        right = fmean(
            scores[query] for query in scores if self._should_open[query] == should_open
        )
        return right if should_open else 1 - right

    def differences(
        self, before: RunResults, after: RunResults, students: Sequence[str]
    ) -> list[float]:
        old = sample_scores(before, students)
        new = sample_scores(after, students)
        return weighted_differences(old, new, self._should_open)


def balanced(scores: Mapping[str, float], should_open: Mapping[str, bool]) -> float:
    """The mean of both kinds, so that a set with few of one kind does not hide them."""
    kinds = {should_open[query] for query in scores}
    return fmean(
        fmean(score for query, score in scores.items() if should_open[query] == kind)
        for kind in kinds
    )


def weighted_differences(
    before: Mapping[str, float],
    after: Mapping[str, float],
    should_open: Mapping[str, bool],
) -> list[float]:
    """How the score of each query changes, with the same weight for both kinds."""
    kinds = Counter(should_open[query] for query in before)
    differences = []
    for query, score in before.items():
        weight = len(before) / (len(kinds) * kinds[should_open[query]])
        differences.append(weight * (after[query] - score))
    return differences


class DescriptionForm(Loose):
    description: str


def require_changeable(draft: Draft) -> None:
    """InputError if the description can't be changed."""
    if draft.base and with_description(draft.source, "Do something else.") is None:
        raise InputError(
            draft.base.file,
            "the description can't be changed without changing more",
            "Fix what pytest-upskill lint finds in the frontmatter first.",
        )


def read_description(text: str, current: Draft) -> Draft:
    """The description of a reply, never shortened; NotUsable
    says what is wrong with it.
    """
    description = " ".join(read_reply(text, DescriptionForm).description.split())
    if not description:
        raise NotUsable(["the description is empty"])
    if (length := len(description)) > LONGEST_DESCRIPTION:
        problem = (
            f"the description has {length:,} characters (limit {LONGEST_DESCRIPTION:,})"
        )
        raise NotUsable([f"{problem}: say it in fewer words"])
    if visible(description) != description or "<" in description or ">" in description:
        raise NotUsable(
            ["the description has markup, or characters that can't be seen"]
        )
    if masked(description) != description:
        raise NotUsable(
            ["the description has something that looks like a secret or an address"]
        )
    draft = replace(current, description=description)
    if problems := new_errors(draft, current):
        raise NotUsable(problems)
    return draft


def query_report(results: RunResults, queries: Iterable[Case]) -> str:
    """What students did with each query, the worst first: part of a prompt."""
    scores = sample_scores(results, list(results.model_ids))
    skill = results.skills[0].name
    rows = []
    for query in queries:
        records = [record for record in results.records if record.case == query.id]
        opened = 0
        instead = Counter[str]()
        for record in records:
            activity = record.activity
            if activity and activity.activated:
                opened += 1
            elif activity:
                instead.update(name for name in activity.opened if name != skill)

        line = f"- {'should' if query.should_open else 'should not'} open the skill;"
        line += f" opened in {opened} of {len(records)}"
        for name, number in instead.items():
            line += f"; {name} was opened instead {number}x"
        line += f": {one_line(query.input, _MOST_QUERY)}"
        rows.append((scores[query.id], line))
    rows.sort(key=lambda row: row[0])
    return "\n".join(line for _, line in rows)
