"""The head of a comment: what changed, in one line."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from .._util import grouped
from .._util.texts import counted, first_few, one_line
from ..results.oracle_results import oracle_counts
from ..results.outcomes import BAD, count_outcomes, count_words
from ..results.run import RunResults
from ..results.summary_row import row_of
from .numbers import LIFT

_MOST_CHANGES: Final = 5
_MOST_SKILLS: Final = 2


class _Change(NamedTuple):
    """A skill on a model that got worse, from one rate to another."""

    skill: str
    label: str
    before: float
    now: float
    cases: int = 0  # that fell

    def __str__(self) -> str:
        before, now = round(100 * self.before), round(100 * self.now)
        return (
            counted(self.cases, "case")
            if self.cases and now >= before
            else f"{before}→{now}"
        )


def headline(results: RunResults, reasons: Sequence[str]) -> str:
    """What fell; else why the run fails; else what it shows."""
    if fallen := _fallen(results) or _worse_than_at_ref(results):
        return fallen
    if reasons:
        return _failed(results) or reasons[0]
    if not results.records:
        return "Nothing was tested"
    counts = count_words(results.outcome_counts, every=True)
    if results.comparisons:
        return f"No skill fell: {counts}"
    words = Counter(verdict.word for verdict in results.verdicts if verdict.word)
    if len(results.verdicts) == 1 and words:
        row = row_of(results.verdicts[0])
        return (
            f"{_name(row.skill)} on {_name(row.label)}: {row.verdict},"
            f" {LIFT.full_text(row)}"
        )
    if len(results.verdicts) == 1 and results.verdicts[0].is_of_oracle:
        oracle = results.verdicts[0].summary
        return f"{_name(oracle.skill)}: {oracle_counts(oracle)}"
    verdicts = ", ".join(f"{word} {number}" for word, number in words.most_common())
    return f"{counts}; {verdicts}" if verdicts else counts


def _failed(results: RunResults) -> str:
    """``wick: 2 failed, 1 error of 12 tests``, of the skills with most failures."""
    by_skill = grouped(results.tests, lambda test: test.skill)
    outcomes = {
        skill: [*map(results.outcome_of, tests)] for skill, tests in by_skill.items()
    }
    counts = {skill: count_outcomes(of_skill) for skill, of_skill in outcomes.items()}
    failed = {
        skill: sum(count.get(word, 0) for word in BAD)
        for skill, count in counts.items()
    }
    texts = [
        f"{_name(skill)}: {count_words(counts[skill])} of"
        f" {counted(len(outcomes[skill]), 'test')}"
        for skill in sorted(failed, key=lambda skill: -failed[skill])
        if failed[skill]
    ]
    return first_few(texts, _MOST_SKILLS, "; ")


def _fallen(results: RunResults) -> str:
    """``warehouse-sql fell on 2 of 3 models: 67→17, 100→61``; empty if nothing fell."""
    fallen = [run for run in results.comparisons if run.regressed]
    changes = [
        _Change(run.skill, run.label, since.rate, since.now, len(run.regressed))
        for run in fallen
        if (since := run.since)
    ]
    drifted = bool(fallen) and all(run.drift for run in fallen)
    return _first_skill(results, "fell", changes) + "; the model got worse" * drifted


def _worse_than_at_ref(results: RunResults) -> str:
    worse = [verdict.summary for verdict in results.verdicts if verdict.worse_since]
    changes = [
        _Change(
            row.skill,
            row.label,
            row.scored("previous") or 0.0,
            row.scored("skill") or 0.0,
        )
        for row in worse
    ]
    refs = ", ".join(dict.fromkeys(_name(row.against or "") for row in worse))
    return _first_skill(results, f"fell since {refs}", changes)


def _first_skill(results: RunResults, verb: str, changes: Iterable[_Change]) -> str:
    """The skill that fell most, on which models, and how many others did."""
    changes = sorted(changes, key=lambda change: change.now - change.before)
    by_skill = grouped(changes, lambda change: change.skill)
    if not by_skill:
        return ""
    skill, *others = by_skill
    on = {change.label for change in by_skill[skill]}
    labels = {test.label for test in results.tests if test.skill == skill}
    where = (
        f"{len(on)} of {counted(len(labels), 'model')}"
        if len(labels) > 1
        else _name(on.pop())
    )
    falls = first_few([str(change) for change in by_skill[skill]], _MOST_CHANGES)
    more = f"; {counted(len(others), 'more skill')} fell" if others else ""
    return f"{_name(skill)} {verb} on {where}: {falls}{more}"


def _name(text: str) -> str:
    return one_line(text, 60)
