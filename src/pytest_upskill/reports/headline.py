"""The first line of a comment: what fell, else why the run fails, else the verdict."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .._util.texts import counted, first_few, one_line
from ..results.comparison import CasePair
from ..results.outcomes import count_words as count_outcomes
from ..results.row import Word
from ..results.run import RunResults
from ..results.verdict import Verdict, passes_since
from ..trials.arm import PREVIOUS, SKILL
from .answers import answer_words, count_words, words_of_tests

GOOD: Final = "✅"
BAD: Final = "❌"
WARNING: Final = "⚠️"
NEUTRAL: Final = "⚪"
# No word fails a run, and jobs take a cross for a run that fails.
_MARKS: Final[dict[Word | None, str]] = {
    "hurts": WARNING,
    "nothing measured": WARNING,
    "incomplete": WARNING,
    "helps": GOOD,
    "cheaper": GOOD,
}
_MAX_FALLS: Final = 5
_MAX_CASES: Final = 4


class Headline(NamedTuple):
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.mark} {self.text}"


class Fall(NamedTuple):
    """A skill on a model that got worse since it was accepted, or since a git ref."""

    skill: str
    label: str
    before: float
    now: float
    cases: Sequence[CasePair]
    ref: str = ""
    reasons: Sequence[str] = ()  # of all cases together

    @property
    def change(self) -> str:
        """``88 → 62``; or ``2 cases``, if others rose as much."""
        before = round(100 * self.before)
        now = round(100 * self.now)
        return f"{before} → {now}" if now < before else counted(len(self.cases), "case")

    @property
    def words(self) -> str:
        """``wick fell on haiku: dry-run (5 of 5 → 1 of 5) and 3 more``."""
        cases = []
        for pair in self.cases:
            cases.append(f"{one_line(pair.case, 60)} ({pair.before} → {pair.now})")
        return f"{self.skill} fell on {self.label}: {first_few(cases, _MAX_CASES)}"


def find_falls(results: RunResults) -> list[Fall]:
    """What got worse, the deepest fall first."""
    falls = []
    for run in results.comparisons:
        if run.since and run.regressed:
            fall = Fall(
                run.skill,
                run.label,
                before=run.since.rate,
                now=run.since.now,
                cases=run.regressed,
                reasons=run.group_reasons,
            )
            falls.append(fall)

    for row in results.rows:
        since = row.over(PREVIOUS)
        if since and since.fallen:
            names = since.fallen.names
            pairs = passes_since(row, PREVIOUS)
            fall = Fall(
                row.skill,
                row.label,
                before=row.scored(PREVIOUS) or 0.0,
                now=row.scored(SKILL) or 0.0,
                cases=[pair for pair in pairs if pair.case in names],
                ref=one_line(row.against or "", 60),
            )
            falls.append(fall)
    return sorted(falls, key=lambda fall: fall.now - fall.before)


def headline(results: RunResults, problems: Sequence[str]) -> Headline:
    """``problems`` say why the run fails, besides tests that failed."""
    if falls := find_falls(results):
        return Headline(BAD, _fall_words(results, falls))
    if problems:
        return Headline(BAD, problems[0])
    if results.withheld:
        return Headline(WARNING, results.withheld[0])
    if not results.records:
        return Headline(BAD, "Nothing was tested")
    if _is_unchanged(results):
        return Headline(NEUTRAL, "No skill changed")

    has_verdict = any(verdict.verdict for verdict in results.verdicts)
    failed = words_of_tests(results)
    if failed and not has_verdict:
        return Headline(BAD, failed)
    if has_verdict or any(verdict.lift is not None for verdict in results.verdicts):
        return _verdict_words(results.verdicts)
    return Headline(GOOD, count_outcomes(results.outcome_counts, every=True))


def _fall_words(results: RunResults, falls: Sequence[Fall]) -> str:
    """``warehouse-sql fell on 2 of 3 models: 67 → 17, 100 → 61 %``."""
    first = falls[0]
    of_skill = [fall for fall in falls if fall.skill == first.skill]
    labels = {test.label for test in results.tests if test.skill == first.skill}
    where = one_line(first.label, 60)
    if len(of_skill) > 1:
        where = f"{len(of_skill)} of {counted(len(labels), 'model')}"
    since = f" since {first.ref}" if first.ref else ""

    changes = first_few([fall.change for fall in of_skill], _MAX_FALLS)
    unit = " %" if "→" in of_skill[-1].change else ""
    words = f"{one_line(first.skill, 60)} fell{since} on {where}: {changes}{unit}"
    others = {fall.skill for fall in falls} - {first.skill}
    return f"{words}; {counted(len(others), 'more skill')} fell" if others else words


def _is_unchanged(results: RunResults) -> bool:
    """Whether all skills are as they were at the git ref of --skill-against."""
    return all(
        skill.against and skill.previous_text == skill.text for skill in results.skills
    )


def _verdict_words(verdicts: Sequence[Verdict]) -> Headline:
    words = {verdict.verdict for verdict in verdicts}
    mark = next((mark for word, mark in _MARKS.items() if word in words), NEUTRAL)
    if len(verdicts) == 1:
        return Headline(mark, answer_words(verdicts[0]))
    return Headline(mark, count_words(verdicts))
