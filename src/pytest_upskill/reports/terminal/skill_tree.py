"""Skills as a tree, for ``pytest-upskill list``."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..._util.texts import counted, harmless, one_line, percent
from ...results.arm_comparison import unit_of
from ...results.overview import LastResult, ListedFile, SkillOverview, SkillTokens
from ...skills.case import Case
from ...skills.folder import SKILL_NAMES
from ...skills.search import SkippedFolder, left_out_lines
from .layout import Marks, TerminalLook, cut, distinct_names

_FILES_SHOWN: Final = 12
_BODY_LINES: Final = 12
_CASES_SHOWN: Final = 5
_MODELS_SHOWN: Final = 3
_SHORTEST_NAME: Final = 8
_DAY: Final = len("2026-11-15")
_NARROWEST: Final = 30
_NO_BRANCH: Final = "    "
_LEGEND: Final = (
    "Tokens, estimated: always in context (name and description) + when the skill is used "
    "(SKILL.md) + on demand (text files that it refers to)."
)


@dataclass(frozen=True)
class _Node:
    """A skill, or a folder of skills."""

    lines: list[str]
    inside: list["_Node"]


def tree_lines(
    root: Path, title: str, skills: Sequence[SkillOverview], look: TerminalLook
) -> list[str]:
    """A folder and its skills, grouped by subfolder; -v shows more of each."""
    width = max(look.width, _NARROWEST)
    nodes: list[_Node] = []
    by_folder: dict[Path, _Node] = {}
    for skill in skills:
        above = skill.folder.parent
        depth = 1 if above == root or not above.is_relative_to(root) else 2
        node = _Node(list(_skill_lines(skill, look, width - 4 * depth)), [])
        if depth == 1:
            nodes.append(node)
            continue
        if above not in by_folder:
            by_folder[above] = _Node([_name(f"{above.relative_to(root).as_posix()}/")], [])
            nodes.append(by_folder[above])
        by_folder[above].inside.append(node)
    return [look.paint(_name(title), bold=True), *_drawn(nodes, look.marks)]


def total_lines(
    skills: Sequence[SkillOverview], left_out: Sequence[SkippedFolder], look: TerminalLook
) -> list[str]:
    """Totals, a legend, and the skills that are not listed."""
    broken, cases = sum(bool(skill.errors) for skill in skills), sum(len(s.cases) for s in skills)
    tokens = SkillTokens(*map(sum, zip(*(skill.tokens for skill in skills), strict=True)))
    line = f"{counted(len(skills), 'skill')}, about {tokens}, {counted(cases, 'case')}"
    width = max(look.width, _NARROWEST)
    return [
        line + (f", {broken} broken" if broken else ""),
        *_wrapped(_LEGEND, width, look),
        *(part for note in left_out_lines(left_out) for part in _wrapped(note, width, look)),
    ]


def _drawn(nodes: Sequence[_Node], marks: Marks) -> Iterator[str]:
    for node in nodes:
        is_last = node is nodes[-1]
        yield (marks.last if is_last else marks.fork) + node.lines[0]
        side = _NO_BRANCH if is_last else marks.through
        yield from ((side + line).rstrip() for line in node.lines[1:])
        yield from ((side + line).rstrip() for line in _drawn(node.inside, marks))
        if not is_last:
            yield side.rstrip()


def _skill_lines(overview: SkillOverview, look: TerminalLook, width: int) -> Iterator[str]:
    skill, paint = overview.skill, look.paint
    name = paint(_name(overview.name), bold=True)
    yield f"{name}  {paint(str(overview.tokens), light=True)}" if skill else name
    if skill:
        yield from _wrapped(skill.description, width, look, most=2)
        yield from _file_lines(overview.files, look, width)
        yield _cases_line(overview, look)
    yield from _result_lines(overview.results, look, width)
    for error in overview.errors:
        text = f"error: {error.where}: {error.problem}"
        yield from (paint(line, red=True) for line in _wrapped(text, width, look))
    if look.verbosity > 0 and skill:
        yield from ("", *_body_lines(skill.body, look, width))
        if overview.cases:
            yield from ("", *_case_lines(overview.cases, look, width))


def _file_lines(files: Sequence[ListedFile], look: TerminalLook, width: int) -> Iterator[str]:
    listed = files if look.verbosity > 0 else files[:_FILES_SHOWN]
    sizes = [_size(file) for file in listed]
    width_left = width - 2 - max(map(len, sizes), default=0)
    names = distinct_names(
        [file.path for file in listed], max(width_left, _SHORTEST_NAME), look.marks.cut
    )
    widest = max(map(len, names.values()), default=0)
    for file, size in zip(listed, sizes, strict=True):
        yield f"{names[file.path]:<{widest}}  {look.paint(size, light=True)}"
    hidden = files[len(listed) :]
    if hidden:
        tokens = sum(file.tokens or 0 for file in hidden if _is_read(file))
        size = f", {counted(tokens, 'token')}" if tokens else ""
        yield f"{look.marks.cut} and {counted(len(hidden), 'file')} more{size}"


def _size(file: ListedFile) -> str:
    return counted(file.tokens or 0, "token") if _is_read(file) else counted(file.size, "byte")


def _is_read(file: ListedFile) -> bool:
    """Whether an agent reads it; other files only have a size."""
    return file.on_demand or file.path in SKILL_NAMES


def _cases_line(overview: SkillOverview, look: TerminalLook) -> str:
    if overview.cases_file is None:
        return look.paint("no cases", yellow=True)
    file = overview.cases_file.relative_to(overview.folder).as_posix()
    return f"{counted(len(overview.cases), 'case')} in {file}" if overview.cases else file


def _result_lines(results: Sequence[LastResult], look: TerminalLook, width: int) -> Iterator[str]:
    """A line for each model, whose name is cut to fit."""
    listed = results if look.verbosity > 0 else results[:_MODELS_SHOWN]
    models = [result.model for result in listed]
    # Without room for the time of day, the date alone.
    for dates in ([result.date for result in listed], [result.date[:_DAY] for result in listed]):
        texts = [result_text(*both) for both in zip(listed, dates, strict=True)]
        width_left = width - max((len(kind) + len(end) for kind, end in texts), default=0)
        if width_left >= _SHORTEST_NAME:
            break
    names = distinct_names(models, max(width_left, _SHORTEST_NAME), look.marks.cut)
    for result, (kind, end) in zip(listed, texts, strict=True):
        yield from _wrapped(f"{kind}{names[result.model]}{end}", width, look)
    if len(results) > len(listed):
        yield f"and {len(results) - len(listed):,} more (-v shows them)"


def result_text(result: LastResult, date: str) -> tuple[str, str]:
    """The text before the name of the model, and the text after it."""
    rate, baseline, of = result.rate, result.baseline_rate, ""
    if result.score == "checks" and result.checks is not None:
        rate, baseline, of = result.checks, result.baseline_checks, unit_of("checks")
    without = "" if baseline is None else f", {percent(baseline)} without"
    subset = [f"{result.cases} of {result.of} cases"] if result.cases < result.of else []
    edited = ["edited since"] if result.edited_since else []
    about = ", ".join([*subset, one_line(date, 40), *edited])
    return f"{result.kind} ", f" {percent(rate)}{of}{without} ({about})"


def _body_lines(body: str, look: TerminalLook, width: int) -> Iterator[str]:
    lines = harmless(body).split("\n")
    for line in lines[:_BODY_LINES]:
        yield look.paint(cut(line.expandtabs(4).rstrip(), width, look.marks.cut), light=True)
    if len(lines) > _BODY_LINES:
        yield f"{look.marks.cut} {counted(len(lines) - _BODY_LINES, 'line')} more"


def _case_lines(cases: Sequence[Case], look: TerminalLook, width: int) -> Iterator[str]:
    for case in cases[:_CASES_SHOWN]:
        question = one_line(case.input.strip().partition("\n")[0], 500)
        yield cut(f"{_name(case.id)}: {question}", width, look.marks.cut)
    if len(cases) > _CASES_SHOWN:
        yield f"{look.marks.cut} {counted(len(cases) - _CASES_SHOWN, 'case')} more"


def _wrapped(text: str, width: int, look: TerminalLook, most: int | None = None) -> list[str]:
    flat, end = one_line(text, 2000), f" {look.marks.cut}"
    return textwrap.wrap(flat, width, max_lines=most, placeholder=end, break_on_hyphens=False)


def _name(text: str) -> str:
    return one_line(text, 200)
