"""The cases of a skill: whether they are read at all, and whether they measure anything."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from .._util.forms import FormError, Location, json_path
from .._util.places import line_of
from .._util.texts import counted, guess
from ..checks import KINDS, TAKEN, AnyCheck, Check, Kind, checks_of, grade, rubric_of, walk
from ..checks.kind import Given, Said, Text, quoted
from ..checks.parsers import BrokenError, parse_python
from ..checks.python import place_of_function
from ..errors import CasesError, CheckError, shown
from ..skills.cases import Case, load_cases
from ..skills.files import read_skill_file
from ..trials.records import Answer, Usage
from ..trials.trial import user_text
from .finding import Finding, Level, finding_of
from .questions import asked, cases_needed, near_duplicates
from .written import Written, written_checks

_WHOLE_WORDS_BELOW: Final = 4  # "no" is in "know" by chance
_TEXT_CHECKS: Final = ("contains", "contains_any", "words", "equals", "starts_with", "ends_with")
_NONSENSE: Final = (
    "I do not know.",
    "Yes",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut "
    "labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco "
    "laboris nisi ut aliquip ex ea commodo consequat.",
)


class _File:
    """A file of cases that is JSON: makes findings of places in it."""

    def __init__(self, file: Path) -> None:
        self._name = shown(file)
        self._text = file.read_bytes().decode("utf-8-sig")

    def finding(
        self, level: Level, code: str, place: Location, message: str, hint: str = ""
    ) -> Finding:
        return Finding(self._name, line_of(self._text, place), level, code, message, hint)

    def invalid(self, place: Location, problem: str) -> Finding:
        return self.finding("error", "cases-invalid", place, f"{json_path(place)}: {problem}")


def lint_cases(file: Path, folder: Path, *, judge: bool, lift: float) -> Iterator[Finding]:
    """``folder`` is the skill's; ``judge`` says whether there is one; ``lift`` is wished for."""
    try:
        cases = load_cases(file, folder)
    except CasesError as error:
        if not error.problems:
            yield finding_of(error, "cases-invalid")
        else:
            source = _File(file)
            yield from (source.invalid(*problem) for problem in error.problems)
        return
    source = _File(file)
    yield from dict.fromkeys(_of_checks(source, cases, folder, judge))
    yield from _of_questions(source, cases, lift)


def _of_checks(
    source: _File, cases: Sequence[Case], folder: Path, judge: bool
) -> Iterator[Finding]:
    """What the defaults are wrong in is wrong in each case: the same finding, many times."""
    judged, unknown = list[Case](), set[str]()
    for case in cases:
        written = list(written_checks(case.expected))
        for name, place in _unregistered(case, written):
            if name not in unknown:
                unknown.add(name)
                message = f"unknown check {quoted(name)}{guess(name, TAKEN)}"
                hint = "It is fine if a conftest.py registers it, which is not looked at here."
                yield source.finding("warning", "check-unknown", place, message, hint)
        try:
            checks = _parsed(case, unknown, folder)
        except FormError as error:
            for loc, what in error.problems:
                yield source.invalid(case.place_of(*loc), what)
            continue
        yield from _leaks(source, case, written)
        if _any_answer_passes(checks):
            message = f"{case.id}: every answer passes, even one that says nothing"
            hint = 'Add a check of what the answer must say, as "contains".'
            yield source.finding("warning", "any-answer", case.place, message, hint)
        if rubric_of(checks).texts:
            judged.append(case)
    if judged and not judge:
        message = f"only a judge can grade {counted(len(judged), 'case')}, and there is none"
        hint = "Set skill_judge in pytest's ini file, or give --judge MODEL here."
        yield source.finding("warning", "no-judge", judged[0].place, message, hint)


def _unregistered(case: Case, written: Sequence[Written]) -> Iterator[tuple[str, Location]]:
    for check in written:
        if check.name not in TAKEN:
            yield check.name, case.place_of(*check.place)
    if case.validator and case.validator[0] not in TAKEN:
        yield case.validator[0], case.place_of("validator")


def _parsed(case: Case, unknown: Iterable[str], folder: Path) -> tuple[AnyCheck, ...]:
    """Unknown checks may have any argument; those in Python are looked at and not loaded."""
    own = {name: Kind(name, TypeAdapter(Any), _not_held) for name in unknown}
    return checks_of(case, {**KINDS, **own, "python": _python_kind(folder)}, own)


def _not_held(_: Answer, __: Any, ___: Given) -> Iterator[Said]:
    yield None, "this check is not made by the linter"


def _python_kind(folder: Path) -> Kind:
    def looked_at(written: str) -> str:
        file, function = place_of_function(folder, written)
        source = read_skill_file(folder, written.rpartition(":")[0])
        try:
            names = set(_names_of(parse_python(source)))
        except BrokenError as error:
            raise ValueError(f"{quoted(file.name)}: {error}") from None
        if function not in names and "*" not in names:
            raise ValueError(f"{quoted(file.name)} has no function {function!r}")
        return written

    return Kind("python", TypeAdapter(Annotated[Text, AfterValidator(looked_at)]), _not_held)


def _names_of(module: ast.Module) -> Iterator[str]:
    """What a module names by itself, not inside of its functions and classes."""
    nodes: list[ast.AST] = [module]
    while nodes:
        match node := nodes.pop():
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.alias():
                yield node.asname or node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case _:
                nodes.extend(ast.iter_child_nodes(node))


def leaked_texts(
    case: Case, written: Iterable[Written] | None = None
) -> list[tuple[str, Location]]:
    """Expected texts that a model reads in the question, each with its place in the case."""
    seen = "\n".join([case.system or "", *(text for _, text in case.earlier), user_text(case)])
    found: list[tuple[str, Location]] = []
    for check in written_checks(case.expected) if written is None else written:
        if check.name not in _TEXT_CHECKS or not (check.required and check.wanted):
            continue
        texts = check.argument if isinstance(check.argument, list) else [check.argument]
        for number, text in enumerate(texts):
            if _stands_in(seen, text, check.case_sensitive):
                inside = (number,) if isinstance(check.argument, list) else ()
                found.append((text, (*check.place, *inside)))
    return found


def _leaks(source: _File, case: Case, written: Sequence[Written]) -> Iterator[Finding]:
    """Without the skill such a case passes too."""
    for text, place in leaked_texts(case, written):
        message = f"{case.id}: {quoted(text)} already stands in the question"
        hint = "Ask without it, or expect what only the skill tells."
        yield source.finding("warning", "leak", case.place_of(*place), message, hint)


def _stands_in(seen: str, text: str, case_sensitive: bool) -> bool:
    kind = KINDS["words" if len(text.strip()) < _WHOLE_WORDS_BELOW else "contains"]
    (grading,) = grade([Check(kind, [text.strip()], case_sensitive)], Answer(seen))
    return grading.passed


def _any_answer_passes(checks: Sequence[AnyCheck]) -> bool:
    """Whether answers that say nothing pass; not known where a judge or a function decides."""
    required = [check for check in checks if check.required]
    known = set(KINDS.values()) - {KINDS["judge"]}
    if any(check.kind not in known for check in walk(required)):
        return False
    try:
        return all(
            one.passed
            for text in _NONSENSE
            for one in grade(required, Answer(text, Usage(1, len(text.split()), 0), seconds=1.0))
        )
    except CheckError:
        return False


def _of_questions(source: _File, cases: Sequence[Case], lift: float) -> Iterator[Finding]:
    for first, second in near_duplicates(cases):
        message = f"{second.id}: nearly the same question as {first.id}, on line {first.line}"
        hint = "Ask something else, so that it counts."
        yield source.finding("warning", "near-duplicate", second.place, message, hint)
    number, (best, worst) = asked(cases), cases_needed(lift)
    if number < best:
        wished = f"a lift of {100 * lift:.3g} points"
        message = f"{counted(number, 'case')}: too few to show {wished}"
        hint = f"That takes {best:,}, and {worst:,} if the skill makes some cases worse (--lift)."
        yield source.finding("warning", "few-cases", (), message, hint)
