"""Rules for cases: are they valid, and do they measure anything?"""

import ast
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, TypeAdapter

from .._util.files import read_file
from .._util.json_forms import FormError, Location, json_path, line_of
from .._util.texts import counted, guess
from ..checks import (
    KINDS,
    TAKEN,
    AnyCheck,
    Check,
    CheckedCase,
    Kind,
    checks_of,
    grade,
    rubric_of,
    walk,
)
from ..checks.check import CheckContext, Result, Text, quoted
from ..checks.languages import BrokenError, parse_python
from ..checks.parse import RESERVED, kinds_of_skill, with_checks
from ..checks.python_checks import place_of_function
from ..errors import CasesError, CheckError, NoCasesError, Setting, shown
from ..errors import Text as Message
from ..skills.case import EDIT_ME, Case
from ..skills.case_loading import load_cases
from ..skills.folder import read_skill_file
from ..skills.loaded import LoadedCases
from ..stats.power import cases_for_lift
from ..trials.answer import Answer, Usage
from ..trials.trial import sample_of, user_text
from .agent_rules import Asked, agent_findings
from .finding import Finding, Level, finding_of

_MAX_DEPTH: Final = 10  # the parser rejects deeper nesting
_ALIKE: Final = 0.9  # share of words that near-duplicates have in common, in order
_SHARED: Final = 0.8  # so they share at least this much of their combined vocabulary
_WORDS_COMPARED: Final = 2000  # comparing takes quadratic time
_WORDS: Final = re.compile(r"\w+|[^\w\s]")
_WHOLE_WORDS_BELOW: Final = 4  # "know" contains "no" by chance
_TEXT_CHECKS: Final = ("contains", "contains_any", "words", "equals", "starts_with", "ends_with")
_NONSENSE: Final = (
    "I do not know.",
    "Yes",
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut "
    "labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco "
    "laboris nisi ut aliquip ex ea commodo consequat.",
)


@dataclass(frozen=True)
class Written:
    """A check as written in the file, with its path; ``wanted`` is False inside ``not``."""

    place: Location
    name: str
    argument: Any
    case_sensitive: bool = False
    required: bool = True
    wanted: bool = True


class _File:
    """A JSON file of cases; turns paths in it into findings."""

    def __init__(self, file: Path) -> None:
        self._name = shown(file)
        self._text = read_file(file).decode("utf-8-sig")

    def finding(
        self, level: Level, code: str, place: Location, message: str, hint: Message = ""
    ) -> Finding:
        return Finding(self._name, line_of(self._text, place), level, code, message, hint)

    def invalid(self, place: Location, problem: str) -> Finding:
        return self.finding("error", "cases-invalid", place, f"{json_path(place)}: {problem}")


def lint_cases(file: Path, folder: Path, *, judge: bool, lift: float) -> Iterator[Finding]:
    """``folder`` is the skill's, ``judge`` whether one is set, ``lift`` what should be shown."""
    try:
        loaded = load_cases(file, folder)
    except NoCasesError as error:
        yield replace(finding_of(error, "no-cases"), level="warning")
        return
    except CasesError as error:
        if not error.problems:
            yield finding_of(error, "cases-invalid")
        else:
            source = _File(file)
            yield from (source.invalid(*problem) for problem in error.problems)
        return
    source = _File(file)
    for broken in loaded.broken:
        yield from (source.invalid(*problem) for problem in broken.error.problems)
    for line, message in loaded.warnings:
        yield Finding(shown(file), line, "warning", "cases-warning", message)
    yield from dict.fromkeys(_of_checks(source, loaded.cases, folder, judge))
    yield from _of_questions(source, loaded.cases, lift)


def runnable_cases(file: Path, folder: Path) -> LoadedCases[CheckedCase]:
    """The cases of a file; those are broken that can't run, whatever a conftest.py registers."""

    def parsed(case: Case) -> tuple[AnyCheck, ...]:
        unknown = [name for name, _ in _unregistered(case, list(written_checks(case.expected)))]
        return _parsed(case, unknown, folder)

    return with_checks(load_cases(file, folder), parsed)


def _of_checks(
    source: _File, cases: Sequence[Case], folder: Path, judge: bool
) -> Iterator[Finding]:
    """A mistake in the defaults is found in every case; the caller drops the repeats."""
    judged, unknown = list[Case](), set[str]()
    for case in cases:
        written = list(written_checks(case.expected))
        for name, place in _unregistered(case, written):
            if name not in unknown:
                unknown.add(name)
                message = f"unknown check {quoted(name)}{guess(name, TAKEN)}"
                hint = "Ignore this if a conftest.py registers it; lint does not read conftest.py."
                yield source.finding("warning", "check-unknown", place, message, hint)
        try:
            checks = _parsed(case, unknown, folder)
        except FormError as error:
            for loc, what in error.problems:
                yield source.invalid(case.place_of(*loc), what)
            continue
        yield from _leaks(source, case, written)
        asked = [Asked(one.place, one.name, one.argument, one.wanted) for one in written]
        for level, code, place, message, hint in agent_findings(case, checks, asked, folder):
            yield source.finding(level, code, case.place_of(*place), message, hint)
        if _any_answer_passes(checks):
            message = f"{case.id}: any answer passes, even nonsense"
            hint = 'Check for something the answer must say, for example with "contains".'
            yield source.finding("warning", "any-answer", case.place, message, hint)
        if rubric_of(checks).texts:
            judged.append(case)
    if judged and not judge:
        message = f"{counted(len(judged), 'case')} with a rubric, but no judge is set"
        how = ("Name a judge: skill_judge in pytest's ini file, or ", Setting("judge"), " MODEL.")
        yield source.finding("warning", "no-judge", judged[0].place, message, how)


def _unregistered(case: Case, written: Sequence[Written]) -> Iterator[tuple[str, Location]]:
    for check in written:
        if check.name not in TAKEN:
            yield check.name, case.place_of(*check.place)
    if case.validator and case.validator[0] not in TAKEN:
        yield case.validator[0], case.place_of("validator")


def _parsed(case: Case, unknown: Iterable[str], folder: Path) -> tuple[AnyCheck, ...]:
    """Unknown checks take any argument; Python checks are parsed, not loaded."""
    own = {name: Kind(name, TypeAdapter(Any), _not_run) for name in unknown}
    kinds = {**KINDS, **kinds_of_skill(folder), **own, "python": _python_kind(folder)}
    return checks_of(case, kinds, own)


def _not_run(_: CheckContext) -> Iterator[Result]:
    yield None, "not run by lint"


def _python_kind(folder: Path) -> Kind:
    def inspected(written: str) -> str:
        file, function = place_of_function(folder, written)
        source = read_skill_file(folder, written.rpartition(":")[0])
        try:
            names = set(_names_of(parse_python(source)))
        except BrokenError as error:
            raise ValueError(f"{quoted(file.name)}: {error}") from None
        if function not in names and "*" not in names:
            raise ValueError(f"{quoted(file.name)} has no function {function!r}")
        return written

    return Kind("python", TypeAdapter(Annotated[Text, AfterValidator(inspected)]), _not_run)


def _names_of(module: ast.Module) -> Iterator[str]:
    """Names bound at module level."""
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
    """Expected texts that already appear in the question, each with its path in the case."""
    seen = "\n".join([case.system or "", *(text for _, text in case.earlier), user_text(case)])
    found: list[tuple[str, Location]] = []
    for check in written_checks(case.expected) if written is None else written:
        if check.name not in _TEXT_CHECKS or not (check.required and check.wanted):
            continue
        texts = check.argument if isinstance(check.argument, list) else [check.argument]
        for number, text in enumerate(texts):
            if _appears_in(seen, text, check.case_sensitive):
                inside = (number,) if isinstance(check.argument, list) else ()
                found.append((text, (*check.place, *inside)))
    return found


def _leaks(source: _File, case: Case, written: Sequence[Written]) -> Iterator[Finding]:
    """Such a case can pass without the skill."""
    for text, place in leaked_texts(case, written):
        message = f"{case.id}: the question already contains {quoted(text)}"
        hint = "Reword the question, or expect something that only the skill says."
        yield source.finding("warning", "leak", case.place_of(*place), message, hint)


def _appears_in(seen: str, text: str, case_sensitive: bool) -> bool:
    kind = KINDS["words" if len(text.strip()) < _WHOLE_WORDS_BELOW else "contains"]
    (grading,) = grade([Check(kind, [text.strip()], case_sensitive)], Answer(seen))
    return grading.passed


def _any_answer_passes(checks: Sequence[AnyCheck]) -> bool:
    """Whether nonsense passes; False if a judge or a function decides."""
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
        message = f"{second.id}: almost the same question as {first.id} (line {first.line})"
        hint = "Ask something different: repeats add no evidence."
        yield source.finding("warning", "near-duplicate", second.place, message, hint)
    for case in cases:
        if EDIT_ME in case.tags:
            message = f"{case.id}: an example, which says nothing about the skill"
            hint = f'Ask what users ask, then remove the tag "{EDIT_ME}".'
            yield source.finding("warning", "example", case.place, message, hint)
    asked = [case for case in cases if case.skip is None]
    number, (best, worst) = len({sample_of(case) for case in asked}), cases_for_lift(lift)
    if cases and number < best:
        what = counted(number, "case" if number == len(asked) else "different question")
        message = f"{what}: too few to show a lift of {100 * lift:.3g} points"
        total = f"Have at least {best:,} cases in total"
        hint = f"{total}; up to {worst:,} if the skill makes some worse."
        yield source.finding("warning", "few-cases", (), message, hint)


def written_checks(expected: Any, around: Written | None = None) -> Iterator[Written]:
    """Every check of ``expected``, including those inside ``all_of``, ``any_of`` and ``not``.

    Skips whatever is not a group; the parser reports that.
    """
    around = around or Written(("expected",), "", None)
    if len(around.place) > 2 * _MAX_DEPTH:
        return
    if isinstance(expected, list):
        for number, group in enumerate(expected):
            yield from written_checks(group, _inside(around, number))
    elif isinstance(expected, dict):
        around = _with_settings(expected, around)
        for name, argument in expected.items():
            if name in ("all_of", "any_of", "not"):
                yield from written_checks(argument, _inside(around, name))
            elif name not in RESERVED and argument is not None:
                yield _inside(around, name, argument)


def _inside(around: Written, step: str | int, argument: Any = None) -> Written:
    return Written(
        (*around.place, step),
        str(step),
        argument,
        around.case_sensitive,
        around.required,
        around.wanted and step != "not",
    )


def _with_settings(group: dict[str, Any], around: Written) -> Written:
    case_sensitive = group.get("case_sensitive")
    return Written(
        around.place,
        around.name,
        None,
        around.case_sensitive if case_sensitive is None else case_sensitive is True,
        around.required and group.get("required") is not False,
        around.wanted,
    )


def near_duplicates(cases: Sequence[Case]) -> Iterator[tuple[Case, Case]]:
    """Pairs of an earlier case and one that is almost the same.

    The same question about other files or in another conversation is a different one.
    """
    words = [_WORDS.findall(case.input.casefold())[:_WORDS_COMPARED] for case in cases]
    sets = [frozenset(one) for one in words]
    frequency = Counter(word for one in sets for word in one)
    seen: dict[tuple[object, ...], list[int]] = {}
    for number, case in enumerate(cases):
        same_around = (case.system, case.files, case.earlier)
        rare = sorted(sets[number], key=lambda word: (frequency[word], word))
        # Two sets that overlap this much share at least one of their few rarest words, so only
        # cases with such a word in common are compared.
        marks = rare[: len(rare) - math.ceil(_SHARED * len(rare)) + 1]
        before = dict.fromkeys(
            other for mark in marks for other in seen.get((*same_around, mark), ())
        )
        close = (other for other in before if _share_most(sets[other], sets[number]))
        twin = next((other for other in close if _alike(words[other], words[number])), None)
        if twin is not None:
            yield cases[twin], case
            continue  # the first of several stands for all
        for mark in marks:
            seen.setdefault((*same_around, mark), []).append(number)


def _share_most(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= _SHARED * (len(one) + len(other) - shared)


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE
