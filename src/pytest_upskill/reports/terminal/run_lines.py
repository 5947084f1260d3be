"""A kept run on the terminal, and two runs compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..._util.texts import counted, first_few, one_line, percent, seconds
from ...results.accepted import case_result
from ...results.arm_comparison import SCORE_WORDS, CaseChange
from ...results.contrasts import span_words
from ...results.outcomes import OutcomeWord
from ...results.run import RunResults
from ...results.run_comparison import NOTHING_SHARED, PairComparison, RunComparison
from ...results.run_notes import agent_lines, run_notes
from ...stats import Change
from ...trials.plan import PlannedCase
from ...trials.subject import SkillOnSubject
from ..history_rows import short_commit
from ..numbers import growth
from .layout import TerminalLook, cut, distinct_names, wrapped
from .summary_text import results_lines
from .tables import Cell, Column, Table, fitted

_MOST_CASES: Final = 50
_MOST_NAMES: Final = 10
_LONGEST_NAME: Final = 16  # of a run
_NAMES: Final = (40, 32, 24, 20, 16, 12, 8)  # lengths of names, tried from the longest
_HEADINGS: Final[Mapping[str, OutcomeWord]] = {
    "Failed with the skill:": "failed",
    "Accepted failures:": "accepted",
    "Not answered:": "error",
}
_STOPPED: Final = "interrupted: "
_STYLES: Final = {"better": {"green": True}, "worse": {"red": True}}


def run_lines(name: str, results: RunResults, look: TerminalLook) -> list[str]:
    """Tables and verdicts of a run, its failures with their reasons, and its gates."""
    versions = [f"{key} {value}" for key, value in results.versions.items()]
    title = look.paint(one_line(name, 60), bold=True)
    facts = [title, _moment(results), f"{seconds(results.seconds)} s"]
    lines = [
        f" {look.marks.dot} ".join(facts),
        _commit(results),
        *([one_line(", ".join(versions), look.width)] if versions else []),
        *(one_line(line, look.width) for line in agent_lines(results)),
        "",
        *results_lines(results, look, run_notes(results)),
        "",
    ]
    for heading, outcome in _HEADINGS.items():
        if tests := list(_ended(results, outcome)):
            hidden = (
                [f"and {len(tests) - _MOST_CASES} more"]
                if len(tests) > _MOST_CASES
                else []
            )
            lines += [heading, *_indented([*tests[:_MOST_CASES], *hidden], look), ""]
    problems = results.problems or results.withheld
    if not problems:
        return [*lines, look.paint("Passed.", green=True)]
    title = results.outcome().capitalize()
    if len(problems) == 1:
        reason = f"{title}: {one_line(problems[0], 400).removeprefix(_STOPPED)}."
        parts = wrapped(reason, look.width, rest="  ")
        return [*lines, *(look.paint(part, red=True) for part in parts)]
    reasons = _indented([one_line(reason, 400) for reason in problems], look)
    return [*lines, look.paint(f"{title}:", red=True), *reasons]


def _moment(results: RunResults) -> str:
    return results.started.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _commit(results: RunResults) -> str:
    if not results.commit:
        return "no commit"
    dirty = ", with uncommitted changes" if results.commit.dirty else ""
    return f"commit {one_line(results.commit.id, 64)}{dirty}"


def _ended(results: RunResults, outcome: OutcomeWord) -> Iterator[str]:
    """The tests that ended so, and why."""
    for test in results.tests:
        ended = results.outcome_of(test)
        if ended.outcome == outcome:
            result = case_result(results.records_of(test), test.digest)
            runs = f" ({result.count} runs)" if result and result.runs > 1 else ""
            yield f"{_test(test)}{runs}: {ended.reason}"


def _test(test: PlannedCase) -> str:
    return (
        f"{one_line(test.skill, 60)}: {one_line(test.case, 60)} on"
        f" {one_line(test.label, 60)}"
    )


# Two runs.


def comparison_lines(
    both: Sequence[tuple[str, RunResults]],
    comparison: RunComparison,
    look: TerminalLook,
) -> list[str]:
    """The two runs, then for each skill a table and the cases that changed.

    Both are named everywhere; where they have one name, it is the same run twice.
    """
    short = distinct_names(
        dict.fromkeys(name for name, _ in both), _LONGEST_NAME, look.marks.cut
    )
    names = [short[name] for name, _ in both]
    rows = [
        [name, _moment(run)[:-3], short_commit(run.commit), _size(run)]
        for name, (_, run) in zip(names, both, strict=True)
    ]
    head = Table([Column()] * 4, [[Cell(text) for text in row] for row in rows])
    lines = [cut(line, look.width, look.marks.cut) for line in head.body(look.paint)]
    if not comparison.pairs:
        lines += ["", f"Nothing to compare: {NOTHING_SHARED}."]
    for skill in dict.fromkeys(pair.skill for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if pair.skill == skill]
        lines += ["", *_skill(skill, pairs, names, look)]
    if comparison.differences:
        lines += ["", "Not the same in both:", *_indented(comparison.differences, look)]
    for name, only in zip(
        names, (comparison.only_before, comparison.only_after), strict=True
    ):
        text = f"Only in {name}: {_pairs(only)}."
        lines += ["", *wrapped(text, look.width, rest="  ")] if only else []
    return lines


def _size(run: RunResults) -> str:
    """``2 skills, 3 models, 36 tests``."""
    parts = (
        (run.skills, "skill"),
        ({test.label for test in run.tests}, "model"),
        (run.tests, "test"),
    )
    return ", ".join(counted(len(values), noun) for values, noun in parts)


def _skill(
    skill: str,
    pairs: Sequence[PairComparison],
    names: Sequence[str],
    look: TerminalLook,
) -> list[str]:
    same = "the same skill in both" if pairs[0].same_skill else "the skill was edited"
    table = fitted(
        (_table(pairs, names, longest, look) for longest in _NAMES), look.width
    )
    title = f"{look.paint(one_line(skill, 60), bold=True)}: {same}"
    title += f", {SCORE_WORDS[pairs[0].score]}" if pairs[0].score != "pass" else ""
    header, rule, *body = table.lines(look)
    lines = [title, "", header, rule[: look.width], *body]
    for pair in pairs:
        notes = _indented(_notes(pair, names, look), look)
        lines += ["", f"{one_line(pair.title, 80)}:", *notes] if notes else []
    return lines


def _table(
    pairs: Sequence[PairComparison],
    names: Sequence[str],
    longest: int,
    look: TerminalLook,
) -> Table:
    models = distinct_names([pair.title for pair in pairs], longest, look.marks.cut)
    numbers = [
        Column(header, right=True) for header in ("cases", *names, "change", "tokens")
    ]
    rows = [[Cell(models[pair.title]), *_cells(pair, look)] for pair in pairs]
    return Table([Column("model"), *numbers, Column()], rows)


def _cells(pair: PairComparison, look: TerminalLook) -> list[Cell]:
    if pair.change is None or pair.before is None or pair.after is None:
        return [Cell(text) for text in ("0", *"----", f"no {pair.noun} in common")]
    texts = [
        str(pair.cases),
        percent(pair.before),
        percent(pair.after),
        span_words(pair.change.lift),
        _token_change(pair.change.tokens, look),
    ]
    word = pair.change.word
    return [*(Cell(text) for text in texts), Cell(word, _STYLES.get(word, {}))]


def _token_change(change: Change | None, look: TerminalLook) -> str:
    if change is None:
        return "-"
    return (
        growth(change.change, look.marks.times) if round(100 * change.change) else "0%"
    )


def _notes(
    pair: PairComparison, names: Sequence[str], look: TerminalLook
) -> Iterator[str]:
    if pair.change and pair.change.worse:
        yield f"worse: {pair.change.worse}"
    for word, cases in (("fell", pair.fell), ("rose", pair.rose)):
        if cases:
            yield f"{len(cases)} {word}: {_changes(cases, look)}"
    if reasons := _left_out(pair, names):
        yield f"left out: {reasons}"
    if pair.change and (other_lift := pair.change.other_words):
        yield other_lift
    yield from pair.differences


def _changes(cases: Sequence[CaseChange], look: TerminalLook) -> str:
    texts = [
        f"{one_line(case.case, 60)} ({percent(case.before)} {look.marks.arrow} "
        f"{percent(case.after)})"
        for case in cases
    ]
    return first_few(texts, _MOST_NAMES)


def _left_out(pair: PairComparison, names: Sequence[str]) -> str:
    counts = pair.left_out
    numbers = {
        f"only in {names[0]}": counts.only_before,
        f"only in {names[1]}": counts.only_after,
        "edited in between": counts.edited,
        "not answered in both": counts.unanswered,
    }
    return ", ".join(
        f"{counted(number, pair.noun)} {reason}"
        for reason, number in numbers.items()
        if number
    )


def _pairs(pairs: Sequence[SkillOnSubject]) -> str:
    return ", ".join(one_line(str(pair), 120) for pair in pairs)


def _indented(lines: Iterable[str], look: TerminalLook) -> list[str]:
    return [
        part
        for line in lines
        for part in wrapped(line, look.width, first="  ", rest="    ")
    ]
