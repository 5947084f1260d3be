"""A kept run on the terminal, and two runs compared."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..._util import grouped
from ..._util.texts import counted, first_few, one_line, points, seconds, span
from ...results.outcomes import OutcomeWord
from ...results.run import RunResults
from ...results.run_comparison import NOTHING_SHARED, PairComparison, RunComparison
from ...results.run_notes import agent_lines, run_notes
from ..columns import Column, write_rates
from ..history_rows import short_commit
from .closing_lines import answer_lines
from .layout import TerminalLook, cut, distinct_names, wrapped
from .summary_text import results_lines
from .tables import table_lines

_MAX_CASES: Final = 50
_MAX_NAMES: Final = 10
_LONGEST_NAME: Final = 60
_LONGEST_RUN: Final = 16
_HEADINGS: Final[dict[OutcomeWord, str]] = {
    "failed": "Failed with the skill:",
    "accepted": "Accepted failures:",
    "error": "Not answered:",
}
_STYLES: Final = {"better": {"green": True}, "worse": {"red": True}}


def run_lines(name: str, results: RunResults, look: TerminalLook) -> list[str]:
    """Tables and verdicts of a run, its failures with their reasons, and its gates."""
    title = look.paint(one_line(name, _LONGEST_NAME), bold=True)
    lines = [f"{title} · {_moment(results)} · {seconds(results.seconds)} s"]
    if results.commit:
        dirty = ", with uncommitted changes" if results.commit.dirty else ""
        lines.append(f"commit {one_line(results.commit.id, 64)}{dirty}")
    versions = [f"{key} {value}" for key, value in results.versions.items()]
    if versions:
        lines.append(one_line(", ".join(versions), look.width))
    lines += [one_line(line, look.width) for line in agent_lines(results)]
    lines += ["", *results_lines(results, look, run_notes(results)), ""]

    for outcome, heading in _HEADINGS.items():
        ended = list(_find_ended(results, outcome))
        if ended:
            if hidden := len(ended[_MAX_CASES:]):
                ended = [*ended[:_MAX_CASES], f"and {hidden:,} more"]
            lines += [heading, *_indent(ended, look), ""]

    lines += answer_lines(results, look)
    problems = results.problems or results.withheld
    if not problems:
        lines.append(look.paint("Passed.", green=True))
    else:
        lines.append(look.paint(f"{results.outcome().capitalize()}:", red=True))
        lines += _indent([one_line(problem, 400) for problem in problems], look)

    return [look.show(line) for line in lines]


def _moment(results: RunResults) -> str:
    return results.started.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _find_ended(results: RunResults, outcome: OutcomeWord) -> Iterator[str]:
    """The tests that ended so, and why."""
    for test in results.tests:
        ended = results.outcome_of(test)
        if ended.outcome == outcome:
            case = one_line(test.case, _LONGEST_NAME)
            yield f"{one_line(str(test.pair), 120)}: {case}: {ended.reason}"


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
        dict.fromkeys(name for name, _ in both), _LONGEST_RUN, look.marks.cut
    )
    names = [short[name] for name, _ in both]
    lines = []
    for name, (_, run) in zip(names, both, strict=True):
        facts = [name, _moment(run)[:-3], short_commit(run.commit)]
        facts.append(counted(len(run.tests), "test"))
        lines.append(cut("  ".join(facts), look.width, look.marks.cut))

    if not comparison.pairs:
        lines += ["", f"Nothing to compare: {NOTHING_SHARED}."]
    for skill, pairs in grouped(comparison.pairs, lambda pair: pair.skill).items():
        lines += ["", *_skill(skill, pairs, names, look)]
    if comparison.differences:
        lines += ["", "Not the same in both:", *_indent(comparison.differences, look)]
    only = (comparison.only_before, comparison.only_after)
    for name, only_there in zip(names, only, strict=True):
        if only_there:
            pairs_there = ", ".join(one_line(str(pair), 120) for pair in only_there)
            text = f"Only in {name}: {pairs_there}."
            lines += ["", *look.wrap(text)]

    return [look.show(line) for line in lines]


def _skill(
    skill: str,
    pairs: Sequence[PairComparison],
    names: Sequence[str],
    look: TerminalLook,
) -> list[str]:
    what = "the same skill in both" if pairs[0].same_skill else "the skill was edited"
    title = look.paint(one_line(skill, look.width - len(f": {what}")), bold=True)
    columns = [
        Column("model", is_name=True),
        Column("cases", right=True, priority=30),
        Column(f"{names[0]} → {names[1]}"),
        Column("lift" if any(pair.of_lift for pair in pairs) else "change", right=True),
        Column("interval", right=True, priority=80),
        Column("tokens", right=True, priority=40),
        Column(""),
    ]
    rows = [[pair.title, *_cells(pair, look)] for pair in pairs]
    lines = [f"{title}: {what}", "", *table_lines(columns, rows, look)]
    for pair in pairs:
        notes = _indent(_notes(pair, names), look)
        if notes:
            lines += ["", f"{one_line(pair.title, look.width - 1)}:", *notes]

    return lines


def _cells(pair: PairComparison, look: TerminalLook) -> list[str]:
    change = pair.change
    if change is None or pair.before is None or pair.after is None:
        return ["0", "-", "-", "-", "-", f"no {pair.noun} in common"]

    tokens = f"{change.tokens.change:+.0%}" if change.tokens else "-"
    return [
        str(pair.cases),
        write_rates(pair.before, pair.after),
        points(change.lift.lift),
        span(change.lift.low, change.lift.high),
        tokens,
        look.paint(change.word, **_STYLES.get(change.word, {})),
    ]


def _notes(pair: PairComparison, names: Sequence[str]) -> Iterator[str]:
    if pair.change and pair.change.fallen:
        yield f"worse: {pair.change.fallen.words}"
    for word, cases in (("fell", pair.fell), ("rose", pair.rose)):
        texts = []
        for case in cases:
            rates = write_rates(case.before, case.after)
            texts.append(f"{one_line(case.case, _LONGEST_NAME)} ({rates})")
        if texts:
            yield f"{len(texts)} {word}: {first_few(texts, _MAX_NAMES)}"

    left_out = {
        f"only in {names[0]}": pair.left_out.only_before,
        f"only in {names[1]}": pair.left_out.only_after,
        "edited in between": pair.left_out.edited,
        "not answered in both": pair.left_out.unanswered,
    }
    for reason, number in left_out.items():
        if number:
            yield f"left out: {counted(number, pair.noun)} {reason}"
    yield from pair.differences


def _indent(lines: Iterable[str], look: TerminalLook) -> list[str]:
    parts = []
    for line in lines:
        parts += wrapped(line, look.width, first="  ", rest="    ")

    return parts
