"""Cases to look at, each folded: what was asked, what was answered, and why that does not pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..._util.texts import counted, shortened
from ...results.accepted import case_result
from ...results.run import AskedCase, RunResults
from ...trials.records import Record
from .text import escaped, fenced, in_html

_QUESTION_LIMIT: Final = 1500
_ANSWER_LIMIT: Final = 3000
_MOST_REASONS: Final = 10


@dataclass(frozen=True)
class ToLookAt:
    """A case on a model, and what is to be said of it in a few words."""

    test: AskedCase
    told: str


def regressions(results: RunResults) -> Iterator[ToLookAt]:
    """What got worse than was accepted, by itself or together with others."""
    tests = {test.nodeid: test for test in results.tests}
    for comparison in results.comparisons:
        for case in comparison.to_run_again:
            test, now = tests[case.nodeid], case.result.count
            known = case.expected
            was = f"accepted {known.was} on {known.date}, " if known else ""
            yield ToLookAt(test, f"{was}now {now}")


def failed_cases(results: RunResults) -> Iterator[ToLookAt]:
    """The others that do not pass, or were not answered, though nobody expected it."""
    worse = {case.nodeid for found in results.comparisons for case in found.to_run_again}
    for test in results.failed:
        if test.nodeid not in worse:
            result = case_result(results.records_of(test), test.info.digest)
            told = f"passed {result.count}" if result else "not answered, or not graded"
            yield ToLookAt(test, told)


def folded(results: RunResults, case: ToLookAt) -> str:
    test = case.test
    records = results.records_of(test)
    skill = f"{test.skill}: " if len(results.skills) > 1 else ""
    title = f"{skill}{test.case} on {test.model}"
    blocks = [
        f"<details><summary>{in_html(title, 200)}: {in_html(case.told, 200)}</summary>",
        *_without(records),
        "Question:",
        fenced(shortened(results.questions.get((test.skill, test.case), ""), _QUESTION_LIMIT)),
        *_answer(records),
        "</details>",
    ]
    return "\n\n".join(blocks)


def _without(records: list[Record]) -> Iterator[str]:
    """Whether it passes without the skill: what fails only with it is the skill's doing."""
    own = [r for r in records if r.arm == "baseline" and r.outcome != "errored"]
    if own:
        passed = sum(record.outcome == "passed" for record in own)
        yield f"Without the skill: passed {passed} of {counted(len(own), 'run')}."


def _answer(records: list[Record]) -> Iterator[str]:
    """Of the first trial that has no answer, else of the first run with the skill that failed."""
    wrong = [record for record in records if record.outcome != "passed"]
    wrong.sort(key=lambda record: (record.outcome != "errored", record.arm != "skill"))
    if not wrong:
        return
    first = wrong[0]
    arm = {"skill": "with the skill", "baseline": "without the skill"}.get(first.arm, "before")
    if first.output is not None:
        yield f"Answer {arm}, run {first.run}:"
        yield fenced(shortened(first.output, _ANSWER_LIMIT))
    told = [first.error] if first.error else []
    told += [f"{grade.check}: {grade.reason}" for grade in first.checks if not grade.passed]
    if told:
        more = len(told) - _MOST_REASONS
        shown = [f"- {escaped(reason, 300)}" for reason in told[:_MOST_REASONS]]
        yield "\n".join([*shown, *([f"- and {more} more"] if more > 0 else [])])
