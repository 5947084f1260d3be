"""Whether each skill helps, and which tests failed, in a line: for the end of a run,
the comment and what is published.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from .._util.texts import counted, one_line
from ..results.outcomes import reaches
from ..results.row import Word
from ..results.run import RunResults
from ..results.verdict import Verdict
from ..trials.arm import BASELINE

_MAX_NAME_LENGTH: Final = 100
_MISSING: Final = ("incomplete", "nothing measured")
# The worst first.
WORD_ORDER: Final[tuple[Word | None, ...]] = (
    "hurts",
    "incomplete",
    "nothing measured",
    "unclear",
    None,
    "no effect",
    "not needed",
    "cheaper",
    "helps",
)
# Of one skill, and of several.
_COUNT_WORDS: Final[dict[Word | None, tuple[str, str]]] = {
    "helps": ("helps", "help"),
    "hurts": ("hurts", "hurt"),
    "unclear": ("is unclear", "are unclear"),
    "cheaper": ("is cheaper", "are cheaper"),
    "no effect": ("has no effect", "have no effect"),
    "not needed": ("is not needed", "are not needed"),
    "incomplete": ("is incomplete", "are incomplete"),
    "nothing measured": ("was not measured", "were not measured"),
    None: ("has no verdict", "have no verdict"),
}
# What stands between the name of a skill and its sentence.
_VERBS: Final[dict[Word | None, str]] = {
    "helps": " ",
    "hurts": " ",
    "no effect": " has ",
    "cheaper": " is ",
    "not needed": " is ",
    "unclear": " is ",
    "incomplete": " is ",
}


def answer_words(verdict: Verdict) -> str:
    """``wick helps: +34 points over 3 models (+16 to +53); unclear alone on 2``."""
    name = one_line(verdict.skill, _MAX_NAME_LENGTH)
    text = name + _VERBS.get(verdict.verdict, ": ") + verdict.sentence
    if verdict.verdict is None or verdict.models < 2:
        return text

    alone: dict[Word, list[str]] = {}
    for label, word in verdict.by_model.items():
        if word and word != verdict.verdict and word not in _MISSING:
            alone.setdefault(word, []).append(one_line(label, _MAX_NAME_LENGTH))
    for word, labels in alone.items():
        on = labels[0] if len(labels) == 1 else f"{len(labels)}"
        text += f"; {word} alone on {on}"

    return text


def badness(verdict: Verdict) -> tuple[int, float]:
    return WORD_ORDER.index(verdict.verdict), verdict.lift or 0.0


def count_words(verdicts: Sequence[Verdict]) -> str:
    """``53 of 100 skills help, none hurts, 45 are unclear, 2 have no effect``."""
    total = len(verdicts)
    counts = Counter(verdict.verdict for verdict in verdicts)
    parts = []
    for word, (one, several) in _COUNT_WORDS.items():
        number = f"{counts[word]:,}" if counts[word] else "none"
        if word == "helps":
            number += f" of {total:,} skills"
        if counts[word] or word in ("helps", "hurts"):
            parts.append(f"{number} {one if counts[word] < 2 else several}")

    return ", ".join(parts)


# Tests.


def words_of_tests(results: RunResults) -> str:
    """``6 of 30 tests failed; all 6 fail without the skill, too``; empty if none
    did.
    """
    counts = results.outcome_counts
    failed = counts.get("failed", 0)
    errors = counts.get("error", 0)
    if not failed and not errors:
        return ""

    tests = counted(sum(counts.values()), "test")
    if not failed:
        return f"{counted(errors, 'error')} in {tests}"

    words = f"{failed:,} of {tests} failed"
    if errors:
        words += f", {counted(errors, 'error')}"
    without = Counter(find_failures_without(results).values())
    too = without[True]
    only = without[False]
    if too and only:
        return (
            f"{words}: {_fail(too)} without the skill, too; {_fail(only)} only with it"
        )
    if not too and not only:
        return words

    how = "without the skill, too" if too else "only with the skill"
    if failed == 1:
        return f"{words}; it fails {how}"

    fail = _fail(too + only)
    if too + only == failed:
        fail = "both fail" if failed == 2 else f"all {fail}"
    return f"{words}; {fail} {how}"


def _fail(number: int) -> str:
    return f"{number:,} fails" if number == 1 else f"{number:,} fail"


def find_failures_without(results: RunResults) -> dict[str, bool]:
    """Whether each failed test fails without the skill, too, by node id."""
    counts = {}
    for row in results.summary:
        for case in row.by_case:
            if BASELINE in case.arms:
                counts[row.pair, case.case] = case.arm(BASELINE).count

    failures = {}
    for test in results.failed:
        count = counts.get((test.pair, test.case))
        if count and results.outcome_of(test).outcome == "failed":
            failures[test.nodeid] = not reaches(count, test.threshold)

    return failures
