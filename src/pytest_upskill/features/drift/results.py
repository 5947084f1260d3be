"""Skills on an old model and on a new one: which still help, which can go,
and what got worse.

Not to be confused with `ModelDrift`, which is about one model whose answers changed
since they were accepted: here two models are compared, and both are named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import computed_field

from ..._util.json_forms import Amount, Share, Time, Whole
from ..._util.texts import counted, dollars, first_few, one_line, percent
from ...results.comparison import (
    CaseChange,
    CasePair,
    Cases,
    Fallen,
    compare,
    find_fallen,
    find_risen,
    lift_results,
)
from ...results.contrasts import LiftValue
from ...results.row import Row, Word
from ...results.sections import Section
from ...results.verdict import PASSES_ALREADY
from ...settings import Gates, Score
from ...stats import (
    RELEVANT_LIFT,
    ROUNDING,
    Lift,
    cases_to_rule_out,
    holm_lifts,
)
from ...trials.arm import BASELINE, SKILL
from ...trials.records import Record
from ...trials.subject import Subject

# "now", "no longer", "fell" and "rose" claim a change, so the change itself is shown.
# The others are the verdict on the new model; "still helps" is that of both.
ChangeWord = Literal[
    "still helps",
    "helps now",
    "helps",
    "no longer needed",
    "not needed",
    "no longer helps",
    "no effect",
    "cheaper",
    "hurts now",
    "hurts",
    "lift fell",
    "lift rose",
    "unclear",
    "incomplete",
    # Of tasks without skills, by their scores.
    "better",
    "worse",
    "no change shown",
]
CAN_GO: Final[tuple[ChangeWord, ...]] = ("no longer needed", "not needed")
HURTS: Final[tuple[ChangeWord, ...]] = ("hurts now", "hurts", "worse")
HELPS: Final[tuple[ChangeWord, ...]] = ("still helps", "helps now", "helps")
_MOST_NAMES: Final = 8


@dataclass(frozen=True)
class SkillOnModel:
    """A skill on one of the two models: scores are means over cases,
    the word is its verdict.
    """

    word: Word | None
    sentence: str
    baseline_score: Share | None = None
    skill_score: Share | None = None
    # Adjusted for both models; None while it is incomplete
    lift: LiftValue | None = None

    @classmethod
    def of(cls, row: Row) -> "SkillOnModel":
        over = row.over(BASELINE)
        return cls(
            word=row.verdict,
            sentence=row.sentence,
            baseline_score=row.scored(BASELINE),
            skill_score=row.scored(SKILL),
            lift=over.lift if over else None,
        )


@dataclass(frozen=True)
class SkillChange:
    """A skill on both models, over the same cases."""

    skill: str
    cases: Whole
    runs: Whole
    score: Score
    old: SkillOnModel
    new: SkillOnModel
    # The lift on the new model less that on the old one, a mean over cases,
    # adjusted for all skills; of scores where there is no baseline; None while one
    # of the two is incomplete.
    change: LiftValue | None
    # Cases shown to pass less often with the skill: by themselves, or, if the others
    # are shown to do so together, all that fell. These may be chance: the fallen ones.
    broken: tuple[CaseChange, ...] = ()
    fallen: tuple[CaseChange, ...] = ()
    mended: tuple[str, ...] = ()  # cases shown to pass more often

    @computed_field
    @property
    def word(self) -> ChangeWord:
        old, new, change = self.old.word, self.new.word, self.change
        missing = ("incomplete", "nothing measured")
        if change is None or old in missing or new in missing:
            return "incomplete"
        rose, fell = change.low > 0, change.high < 0
        if new is None:
            return "better" if rose else "worse" if fell else "no change shown"
        match new:
            case "helps":
                return (
                    "still helps"
                    if old == "helps"
                    else "helps now"
                    if rose
                    else "helps"
                )
            case "hurts":
                return "hurts now" if fell and old != "hurts" else "hurts"
            case "not needed":
                return "no longer needed" if fell and old == "helps" else "not needed"
            case "cheaper":
                return "cheaper"
            case "no effect":
                return "no longer helps" if fell and old == "helps" else "no effect"
        return "lift fell" if fell else "lift rose" if rose else "unclear"


@dataclass(frozen=True)
class ModelAnswers:
    """The answers of one of the two models: how many were stored, and since when."""

    model: str
    model_id: str
    trials: Whole
    stored: Whole = 0
    errored: Whole = 0
    cost: Amount | None = None  # of new answers
    stored_first: Time | None = None  # when the oldest of the stored ones was given
    stored_last: Time | None = None

    @classmethod
    def of(cls, model: str, model_id: str, records: Sequence[Record]) -> "ModelAnswers":
        errored = sum(record.outcome == "errored" for record in records)
        stored = [
            record
            for record in records
            if record.stored and record.outcome != "errored"
        ]
        times = [record.asked_at for record in stored if record.asked_at is not None]
        costs = [record.cost for record in records if not record.stored]
        return cls(
            model,
            model_id,
            len(records),
            len(stored),
            errored,
            None if None in costs else sum((usd or 0.0 for usd in costs), 0.0),
            min(times, default=None),
            max(times, default=None),
        )

    @property
    def bought(self) -> int:
        return self.trials - self.stored - self.errored

    @property
    def words(self) -> str:
        """``haiku: 24 of 30 answers were stored (2026-10-03), 6 bought ($0.02)``."""
        days = [
            f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"
            for time in (self.stored_first, self.stored_last)
            if time is not None
        ]
        dates = f" ({' to '.join(dict.fromkeys(days))})" if days else ""
        parts = [f"{self.stored:,} of {counted(self.trials, 'answer')} stored{dates}"]
        cost = f" ({dollars(self.cost)})" if self.cost else ""
        parts += [f"{self.bought:,} new{cost}"] if self.bought else []
        parts += [f"{self.errored:,} missing"] if self.errored else []
        return f"{one_line(self.model, 60)}: {', '.join(parts)}"


@dataclass(frozen=True, kw_only=True)
class ModelChange(Section):
    """Skills on an old model and on a new one, for an agent."""

    decides = frozenset({"no_worse"})
    feature: Literal["drift"] = "drift"
    agent: str
    old: ModelAnswers
    new: ModelAnswers
    skills: tuple[SkillChange, ...]
    cases: Whole  # that each model is asked, of all skills
    missing: tuple[str, ...] = ()  # why answers are, in sentences
    notes: tuple[str, ...] = ()  # what was left out, in sentences

    @property
    def title(self) -> str:
        return f"From {one_line(self.old.model, 60)} to {one_line(self.new.model, 60)}"

    @property
    def label(self) -> str:
        """The agent on the new model."""
        return Subject(self.agent, self.new.model).label

    @property
    def trials(self) -> int:
        return self.old.trials + self.new.trials

    @property
    def cost(self) -> float | None:
        """Of new answers."""
        costs = (self.old.cost, self.new.cost)
        return None if None in costs else sum(usd or 0.0 for usd in costs)

    def problem(self, gates: Gates) -> str:  # noqa: ARG002
        """``haiku: 2 answers missing, 1 skill incomplete``; empty if nothing is."""
        missing = [
            f"{Subject(self.agent, side.model).label}:"
            f" {counted(side.errored, 'answer')} missing"
            for side in (self.old, self.new)
            if side.errored
        ]
        incomplete = self._of("incomplete")
        words = (
            [f"{counted(len(incomplete), 'skill')} incomplete"] if incomplete else []
        )
        words += [] if self.skills else ["nothing was measured"]
        if words and not missing:
            return f"{self.label}: {', '.join(words)}"
        return ", ".join([*missing, *words])

    def gate_reasons(self, gates: Gates) -> list[str]:
        """Why a run fails that allows nothing to get worse, one line for each skill."""
        if not gates.no_worse:
            return []

        lines = list[str]()
        for skill in self.skills:
            reasons = [f"{skill.word}"] if skill.word in HURTS else []
            reasons += (
                [f"{counted(len(skill.broken), 'case')} broke"] if skill.broken else []
            )
            if reasons:
                name = f"{one_line(skill.skill, 60)} on {self.label}"
                lines.append(f"{name}: {'; '.join(reasons)}")
        return lines

    @computed_field
    @property
    def conclusions(self) -> tuple[str, ...]:
        """Sentences; the last one is what to do."""
        lines = [*self.notes, self.old.words, self.new.words]
        lines += [line.removesuffix(".") for line in self.missing]
        for skill in self.skills:
            lines += _sentences(
                skill, one_line(self.old.model, 60), one_line(self.new.model, 60)
            )
        return (*lines, self._outcome)

    @property
    def _outcome(self) -> str:
        """``On sonnet-5: can go: wick; broke: yard (1 case); helps: yard, gate``."""
        broken = [
            f"{one_line(skill.skill, 60)} ({counted(len(skill.broken), 'case')})"
            for skill in self.skills
            if skill.broken
        ]
        named = {
            "can go": self._of(*CAN_GO),
            "broke": broken,
            "hurts": self._of("hurts now", "hurts"),
            "worse": self._of("worse"),
            "incomplete": self._of("incomplete"),
            "helps": self._of(*HELPS),
            "better": self._of("better"),
            "no effect": self._of("no effect", "no longer helps"),
            "no change shown": self._of("no change shown"),
            "lift fell": self._of("lift fell"),
            "lift rose": self._of("lift rose"),
            "cheaper": self._of("cheaper"),
            "unclear": self._of("unclear"),
        }
        parts = [
            f"{words}: {first_few(names, _MOST_NAMES)}"
            for words, names in named.items()
            if names
        ]
        return (
            f"On {one_line(self.new.model, 60)}:"
            f" {'; '.join(parts) or 'nothing was measured'}"
        )

    def _of(self, *words: ChangeWord) -> list[str]:
        return [
            one_line(skill.skill, 60) for skill in self.skills if skill.word in words
        ]


def _sentences(skill: SkillChange, old_model: str, model: str) -> Iterable[str]:
    name = one_line(skill.skill, 60)
    for side, side_model in ((skill.old, old_model), (skill.new, model)):
        if side.word == "incomplete":
            yield f"{name}: incomplete on {side_model}: {side.sentence}"
    if skill.broken:
        yield f"{name} broke on {model}: {_case_words(skill.broken)}"
    if skill.fallen:
        yield (
            f"{name} fell on {model}, which may be chance: {_case_words(skill.fallen)}"
        )
    passes, needed = skill.new.baseline_score or 0.0, cases_to_rule_out(RELEVANT_LIFT)
    is_open = skill.new.word == "unclear"
    if is_open and passes >= PASSES_ALREADY and skill.cases < needed:
        yield (
            f"{name}: {percent(passes)} pass on {model} without it, but {skill.cases:,}"
            f" cases can't show that it is not needed: that takes {needed:,}"
        )


def _case_words(cases: Sequence[CaseChange]) -> str:
    """``close (100% → 33%), lock (67% → 0%)``, the largest falls first."""
    words = [
        f"{one_line(case.case, 60)} ({percent(case.before)} → {percent(case.after)})"
        for case in sorted(cases, key=lambda case: case.after - case.before)
    ]
    return first_few(words, _MOST_NAMES)


def skill_changes(
    rows: Sequence[Row], old: Subject, new: Subject
) -> tuple[SkillChange, ...]:
    """A row for each skill that was asked on both models, in their order."""
    on_new = {row.skill: row for row in rows if row.subject == new}
    pairs = {
        row.skill: (row, on_new[row.skill])
        for row in rows
        if row.subject == old and row.skill in on_new
    }
    lifts = _compare_lifts(pairs)
    passes = {
        name: _pair_passes(before, after) for name, (before, after) in pairs.items()
    }
    fallen = find_fallen(passes)
    risen = find_risen(passes)
    changes = []
    for name, (before, after) in pairs.items():
        fell = [
            CaseChange(pair.case, pair.before.share, pair.now.share)
            for pair in passes[name]
            if pair.now.share < pair.before.share - ROUNDING
        ]
        broken = _names(fallen[name])
        changes.append(
            SkillChange(
                skill=name,
                cases=len(passes[name]),
                runs=max(before.runs, after.runs),
                score=after.score,
                old=SkillOnModel.of(before),
                new=SkillOnModel.of(after),
                change=lifts.get(name),
                broken=tuple(case for case in fell if case.case in broken),
                fallen=tuple(case for case in fell if case.case not in broken),
                mended=_names(risen[name]),
            )
        )
    return tuple(changes)


def _names(fallen: Fallen | None) -> tuple[str, ...]:
    return fallen.names if fallen else ()


def _pair_passes(before: Row, after: Row) -> list[CasePair]:
    """How often each case passes with the skill, on the old model and the new one."""
    old = {case.case: case.arm(SKILL).count for case in before.by_case}
    return [
        CasePair(case.case, old[case.case], case.arm(SKILL).count, case.question)
        for case in after.by_case
        if case.case in old
    ]


def _compare_lifts(pairs: Mapping[str, tuple[Row, Row]]) -> dict[str, Lift]:
    """How much more lift each skill has on the new model, judged together."""
    lifts: dict[str, Lift] = {}
    for name, (old, new) in pairs.items():
        if old.incomplete or new.incomplete:
            continue

        reach = 2.0 if BASELINE in new.arms else 1.0
        change = compare([_lift_results(old)], [_lift_results(new)], reach=reach)
        if change:
            lifts[name] = change.lift
    return dict(zip(lifts, holm_lifts(list(lifts.values())), strict=True))


def _lift_results(row: Row) -> Cases:
    """The lift of each case, or its score where there is no baseline."""
    if BASELINE not in row.arms:
        return row.case_results(SKILL)
    return lift_results(row.case_results(SKILL), row.case_results(BASELINE))
