"""A kept run on the terminal, and two of them side by side."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tabulate import tabulate

from ..._util.texts import counted, one_line
from ...results.accepted import case_result
from ...results.regressions import reaches
from ...results.run import Pair, RunResults
from ...results.run_comparison import CaseChange, LeftOut, PairComparison, RunComparison
from ...results.summary import points_words
from ...stats import Change
from ...trials.plan import PlannedCase
from ..terminal.layout import told_apart
from ..terminal.summary_text import Paint, summary_lines
from ..terminal.tables import growth
from .entries import percent, short_commit
from .trend import Look, unpainted

_MOST_CASES: Final = 50
_MOST_NAMES: Final = 10
_NAMES: Final = (40, 32, 24, 20, 16, 12, 8)  # how long names may be, tried from the longest
_COLOURS: Final = {"better": "green", "worse": "red"}
_NOTHING: Final = "The runs have no skill and model in common: there is nothing to compare."


def run_lines(name: str, results: RunResults, look: Look) -> list[str]:
    """What came of a run: its tables and verdicts, what failed and why, its gate."""
    versions = [f"{key} {value}" for key, value in results.versions.items()]
    title = look.paint(one_line(name, 60), bold=True)
    lines = [
        f" {look.marks.dot} ".join([title, _moment(results, look), f"{results.seconds:,.1f} s"]),
        _commit(results),
        *([one_line(", ".join(versions), look.width)] if versions else []),
        "",
        *_summary(results, look),
        "",
    ]
    failed, lost = list(_failed(results)), list(_lost(results))
    for title, told in (("Failed with the skill:", failed), ("Not answered:", lost)):
        if told:
            more = [f"and {len(told) - _MOST_CASES} more"] if len(told) > _MOST_CASES else []
            lines += [title, *_wrapped([*told[:_MOST_CASES], *more], look), ""]
    if not results.problems:
        return [*lines, look.paint("Passed.", green=True)]
    if len(results.problems) == 1:
        reason = f"Not passed: {one_line(results.problems[0], 400)}."
        parts = textwrap.wrap(reason, look.width, subsequent_indent="  ")
        return [*lines, *(look.paint(part, red=True) for part in parts)]
    reasons = _wrapped([one_line(reason, 400) for reason in results.problems], look)
    return [*lines, look.paint("Not passed:", red=True), *reasons]


def _summary(results: RunResults, look: Look) -> list[str]:
    return summary_lines(
        results.skills,
        results.verdicts,
        width=look.width,
        marks=look.marks,
        paint=look.paint,
        notes=results.subset_notes,
    )


def _moment(results: RunResults, look: Look) -> str:
    return results.started.astimezone(look.now.tzinfo).strftime("%Y-%m-%d %H:%M:%S")


def _commit(results: RunResults) -> str:
    if not results.commit:
        return "no commit"
    dirty = ", with changes that are not committed" if results.commit.dirty else ""
    return f"commit {one_line(results.commit.id, 64)}{dirty}"


def _failed(results: RunResults) -> Iterator[str]:
    for test in results.tests:
        records = results.records_of(test)
        result = case_result(records, test.digest)
        if result and not reaches(result.count, test.threshold):
            grades = [
                grade for record in records if record.arm == "skill" for grade in record.checks
            ]
            reasons = [grade.reason for grade in grades if grade.required and not grade.passed]
            runs = f" ({result.count} runs)" if result.runs > 1 else ""
            yield f"{_test(test)}{runs}: {one_line('; '.join(dict.fromkeys(reasons)), 300)}"


def _lost(results: RunResults) -> Iterator[str]:
    for test in results.tests:
        errors = [record.error or "" for record in results.records_of(test) if record.error]
        if errors:
            yield f"{_test(test)}: {one_line('; '.join(dict.fromkeys(errors)), 300)}"


def _test(test: PlannedCase) -> str:
    return f"{one_line(test.skill, 60)}: {one_line(test.case, 60)} on {one_line(test.model, 60)}"


def comparison_lines(
    both: Sequence[tuple[str, RunResults]], found: RunComparison, look: Look
) -> list[str]:
    """The two runs, then a table and the cases that changed for each skill."""
    rows = [
        [letter, one_line(name, 40), _moment(run, look)[:-3], short_commit(run.commit)]
        for letter, (name, run) in zip("AB", both, strict=True)
    ]
    head = tabulate(rows, tablefmt="plain", disable_numparse=True).splitlines()
    lines = [line.rstrip()[: look.width] for line in head]
    if not found.pairs:
        lines += ["", _NOTHING]
    for skill in dict.fromkeys(pair.skill for pair in found.pairs):
        pairs = [pair for pair in found.pairs if pair.skill == skill]
        lines += ["", *_skill(skill, pairs, look)]
    for letter, only in (("A", found.only_before), ("B", found.only_after)):
        told = f"Only in {letter}: {_pairs(only)}."
        lines += ["", *textwrap.wrap(told, look.width, subsequent_indent="  ")] if only else []
    return lines


def _skill(skill: str, pairs: Sequence[PairComparison], look: Look) -> list[str]:
    same = "the same skill in both" if pairs[0].same_skill else "the skill was edited"
    for longest in _NAMES:
        table = _table(pairs, longest, look, unpainted)
        broad = max(map(len, table))
        if broad <= look.width:
            break
    header, *body = _table(pairs, longest, look, look.paint)
    title = f"{look.paint(one_line(skill, 60), bold=True)}: {same}"
    lines = [title, "", header, look.marks.rule * min(look.width, broad), *body]
    for pair in pairs:
        told = _wrapped(_told(pair, look), look)
        lines += ["", f"{one_line(pair.model, 60)}:", *told] if told else []
    return lines


def _table(pairs: Sequence[PairComparison], longest: int, look: Look, paint: Paint) -> list[str]:
    headers = ["model", "cases", "A", "B", "change", "p", "tokens", ""]
    models = told_apart([pair.model for pair in pairs], longest, look.marks.cut)
    rows = [[models[pair.model], *_cells(pair, look, paint)] for pair in pairs]
    align = ("left", "right", "right", "right", "right", "right", "right", "left")
    text = tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=align)
    return [line.rstrip() for line in text.splitlines()]


def _cells(pair: PairComparison, look: Look, paint: Paint) -> list[str]:
    if pair.change is None or pair.before is None or pair.after is None:
        return ["0", "-", "-", "-", "-", "-", "no case in common"]
    word = pair.change.word
    colour = {_COLOURS[word]: True} if word in _COLOURS else {}
    return [
        str(pair.cases),
        percent(pair.before),
        percent(pair.after),
        points_words(pair.change.lift).replace(" points", ""),
        "<0.001" if pair.change.p_value < 0.001 else f"{pair.change.p_value:.2g}",
        _token_change(pair.change.tokens, look),
        paint(word, **colour),
    ]


def _token_change(change: Change | None, look: Look) -> str:
    if change is None:
        return "-"
    return growth(change.change, look.marks) if round(100 * change.change) else "0%"


def _told(pair: PairComparison, look: Look) -> Iterator[str]:
    for what, cases in (("fell", pair.fell), ("rose", pair.rose)):
        if cases:
            yield f"{len(cases)} {what}: {_changes(cases, look)}"
    if reasons := _left_out(pair.left_out):
        yield f"left out: {reasons}"
    before, after = pair.model_ids
    if before != after:
        yield f"the model was {one_line(before, 60)}, and is {one_line(after, 60)}"


def _changes(cases: Sequence[CaseChange], look: Look) -> str:
    shown = [
        f"{one_line(case.case, 60)} ({percent(case.before)} {look.marks.arrow} "
        f"{percent(case.after)})"
        for case in cases[:_MOST_NAMES]
    ]
    more = [f"and {len(cases) - _MOST_NAMES} more"] if len(cases) > _MOST_NAMES else []
    return ", ".join([*shown, *more])


def _left_out(left: LeftOut) -> str:
    numbers = {
        "only in A": left.only_before,
        "only in B": left.only_after,
        "edited, so no longer the same": left.edited,
        "not answered in both": left.unanswered,
    }
    return ", ".join(
        f"{counted(number, 'case')} {why}" for why, number in numbers.items() if number
    )


def _pairs(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{one_line(skill, 60)} on {one_line(model, 60)}" for skill, model in pairs)


def _wrapped(lines: Iterable[str], look: Look) -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, look.width, initial_indent="  ", subsequent_indent="    ")
    ]
