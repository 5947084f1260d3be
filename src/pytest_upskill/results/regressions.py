"""Present results beside accepted ones: what got worse, what better, what nobody accepted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from .._util.texts import one_line
from ..stats import drop, regressed
from ..trials.plan import Count, Expectation, PlannedCase
from .accepted import CaseResult

Kind = Literal["passed", "failed", "better", "accepted as failing", "perhaps chance", "regressed"]

# Half of the 5 % in which an unchanged skill may raise an alarm: the other half is for the skill
# as a whole, as in stats.regressed.
_LEVEL: Final = 0.025


@dataclass(frozen=True)
class Standing:
    """What the present runs of a case are beside the accepted ones."""

    kind: Kind
    reason: str = ""


def reaches(count: Count, threshold: float | None) -> bool:
    """Whether enough of a case's runs passed."""
    return count.share > 0.5 if threshold is None else count.share >= threshold


def standing_of(now: Count, threshold: float | None, expected: Expectation | None) -> Standing:
    """What one case can say by itself, before the others are known.

    With several runs it is a regression only by Bonferroni's level, the first step of Holm: a
    worker does not know the other cases. The rest is found by ``compare``.
    """
    good = reaches(now, threshold)
    if expected is None:
        return Standing("passed" if good else "failed")
    was, date, among = expected
    was_good = reaches(was, threshold)
    if good:
        return Standing("passed" if was_good else "better")
    if not was_good:
        return Standing("accepted as failing", f"accepted as failing on {date} ({was})")
    told = f"accepted {was} on {date}, now {now}"
    if now.runs == 1 or drop([was], [now]) <= _LEVEL / among:
        return Standing("regressed", f"regression: {told}")
    return Standing("perhaps chance", f"{told}: no evidence by itself")


@dataclass(frozen=True)
class Compared:
    """A case that ran, and what was accepted of it."""

    test: PlannedCase
    result: CaseResult

    @property
    def expected(self) -> Expectation | None:
        return self.test.expected

    @property
    def standing(self) -> Standing:
        return standing_of(self.result.count, self.test.threshold, self.expected)

    @property
    def told(self) -> str:
        """Accepted and present numbers."""
        name, now = one_line(self.test.case, 80), self.result.count
        if self.expected is None:
            return f"{name} {now}"
        return f"{name} accepted {self.expected.was} on {self.expected.date}, now {now}"

    @property
    def dropped(self) -> bool:
        return self.expected is not None and self.result.count.share < self.expected.was.share


@dataclass(frozen=True)
class AcceptedComparison:
    """A skill on a model beside what was accepted of it."""

    skill: str
    model: str
    cases: tuple[Compared, ...]
    worse: tuple[Compared, ...]
    whole: bool  # all together got worse, and not just by those
    p_whole: float

    def of_kind(self, *kinds: Kind) -> tuple[Compared, ...]:
        return tuple(case for case in self._rest if case.standing.kind in kinds)

    @property
    def unknown(self) -> tuple[Compared, ...]:
        """New cases and changed ones: nothing is accepted of them."""
        return tuple(case for case in self.cases if case.expected is None)

    @property
    def to_run_again(self) -> tuple[Compared, ...]:
        """What ``--lf`` is for after a regression."""
        if not self.whole:
            return self.worse
        return tuple(case for case in self.cases if case in self.worse or case.dropped)

    @property
    def reasons(self) -> list[str]:
        """Why the run does not pass."""
        where = f"{self.skill} on {self.model}"
        reasons = [f"{where}: regression: {case.told}" for case in self.worse]
        if self.whole:
            what = "the other cases together" if self.worse else "the skill as a whole"
            was, now = map(_sum, _columns(self._rest))
            told = f"accepted {was} runs, now {now} (p = {self.p_whole:.2g})"
            reasons.append(f"{where}: regression of {what}: {told}")
        return reasons

    @property
    def _rest(self) -> list[Compared]:
        return [case for case in self.cases if case not in self.worse]


def compare(skill: str, model: str, cases: Sequence[Compared]) -> AcceptedComparison:
    """The final word on a skill and a model, when all of its cases have run."""
    known = [case for case in cases if case.expected]
    found = regressed(*_columns(known))
    by_evidence = [known[index] for index in found.cases]
    worse = [case for case in cases if case in by_evidence or case.standing.kind == "regressed"]
    p_rest = drop(*_columns([case for case in known if case not in worse]))
    whole = found.whole and p_rest <= _LEVEL
    return AcceptedComparison(skill, model, tuple(cases), tuple(worse), whole, p_rest)


def _columns(cases: Sequence[Compared]) -> tuple[list[Count], list[Count]]:
    """What was accepted of each case, and what it has now."""
    pairs = [(case.expected.was, case.result.count) for case in cases if case.expected]
    return [was for was, _ in pairs], [now for _, now in pairs]


def _sum(counts: Sequence[Count]) -> Count:
    return Count(sum(count.passes for count in counts), sum(count.runs for count in counts))
