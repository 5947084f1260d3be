"""Cases with their checks: ``expected`` as written becomes checks.

An object in ``expected`` is a group: its keys are checks, all of which must pass, and
settings (``case_sensitive``, ``weight``, ``required``). Groups may stand inside
``any_of``, ``all_of`` and ``not``, and in a list.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from .._util.json_forms import FormError, Location, Problem, read_form
from .._util.texts import guess
from ..skills.case import Case
from ..skills.kinds import CASE, OPENING, SKILL_ALONE, CaseKind
from ..skills.loaded_cases import BrokenCase, LoadedCases, broken_case
from ..skills.suites.json_suites import load_cases
from ..skills.suites.suite import Suite
from ..trials.subject import CHAT
from ..trials.trial import Rubric
from .check import (
    AnyCheck,
    Check,
    CheckKind,
    Combined,
    asked_checks,
    quoted,
    walk,
)
from .group import RESERVED, WITH_SKILL, GroupForm
from .judging import JUDGE, rubric_of
from .matching import folded
from .python_checks import python_kind
from .text_checks import KINDS as TEXT_KINDS

_PLAIN_KINDS: Final = {kind.name: kind for kind in (*TEXT_KINDS, JUDGE)}
_DEEPEST: Final = 10
_NO_CHECK: Final = (
    'no checks, so every answer would pass; add one, such as "contains": ["text"]'
)
_OF_JUDGE: Final = {
    "judge_votes": "to vote on",
    "judge_files": "to show files to",
    "judge_context": "to tell it to",
}
_NONE_REQUIRED: Final = (
    "no check is required, so every answer would pass; "
    'remove "required": false from one'
)


_GROUP: Final = TypeAdapter(GroupForm)
CheckedCase = tuple[Case, tuple[AnyCheck, ...]]


def why_agent(case: Case, checks: Sequence[AnyCheck]) -> str:
    """Why a case can't be asked in a plain completion; empty if it can."""
    if case.kind.until_opened:  # a model chooses a skill without an agent, too
        return ""
    if case.user:
        return "its user answers an agent"
    asked = asked_checks(checks, CHAT) or checks
    name = next((check.name for check in walk(asked) if check.kind.needs_agent), "")
    return case.needs_agent or (f'"{name}" looks at what an agent does' if name else "")


def load_checked_cases(
    file: Path, *, folder: Path | None = None, allow_code: bool = False
) -> LoadedCases[CheckedCase]:
    """The cases of a JSON file with their checks; CasesError if it
    can't be read as a whole.
    """
    suite = Suite(file, folder or file.parent, (load_cases(file, folder),))
    return checked_suite(suite, allow_code=allow_code)[0]


def checked_suite(
    suite: Suite,
    registered: Mapping[str, CheckKind] | None = None,
    *,
    allow_code: bool = False,
    allowed_by: str = "allow_code",
) -> list[LoadedCases[CheckedCase]]:
    """The cases of a suite with their checks, by file;
    CasesError if it can't be read as a whole.

    ``registered`` are the kinds of a hook.
    """
    registered_kinds = registered or {}

    def checked(of_file: LoadedCases[Case]) -> LoadedCases[CheckedCase]:
        folder = of_file.folder or suite.folder

        def parse(case: Case) -> tuple[AnyCheck, ...]:
            try:
                kinds = {**_PLAIN_KINDS, **registered_kinds}
                return checks_of(case, kinds, registered_kinds)
            except FormError:
                # Imported only where they are needed, which takes time.
                from .kinds import KINDS, kinds_of_skill

                kinds = {**KINDS, **kinds_of_skill(folder), **registered_kinds}
                kinds["python"] = python_kind(
                    folder, allowed=allow_code, allowed_by=allowed_by
                )
                return checks_of(case, kinds, registered_kinds)

        return with_checks(of_file, parse)

    return [checked(of_file) for of_file in suite.require().files]


def runnable_in(suite: Suite) -> list[CheckedCase]:
    """All cases of a suite with their checks; CasesError if one can't be run."""
    return [case for of_file in checked_suite(suite) for case in of_file.require_all()]


def with_checks(
    loaded: LoadedCases[Case], parse: Callable[[Case], tuple[AnyCheck, ...]]
) -> LoadedCases[CheckedCase]:
    """Cases with their checks; one whose checks are wrong can't be run."""
    cases, broken = list[CheckedCase](), list[BrokenCase]()
    for case in loaded.cases:
        try:
            checks = parse(case)
            cases.append((replace(case, kind=_find_kind(case, checks)), checks))
        except FormError as error:
            problems = [
                (case.place_of(*loc), problem) for loc, problem in error.problems
            ]
            broken.append(broken_case(loaded.file, case, problems))
    return loaded.only(cases, broken)


def _find_kind(case: Case, checks: Sequence[AnyCheck]) -> CaseKind:
    """The kind of a case, as its checks show it."""
    if case.kind != CASE or not all(check.with_skill for check in checks):
        return case.kind
    if all(check.kind.of_opening for check in walk(checks)):
        return OPENING
    return SKILL_ALONE


def checks_of(
    case: Case, kinds: Mapping[str, CheckKind], registered: Mapping[str, CheckKind]
) -> tuple[AnyCheck, ...]:
    """The checks of a case; a FormError's paths start at the case.

    Parts of the case add their own.
    """
    checks = _written_checks(case, kinds, registered)
    return (*checks, *chain.from_iterable(part.checks for part in case.parts))


def _written_checks(
    case: Case, kinds: Mapping[str, CheckKind], registered: Mapping[str, CheckKind]
) -> tuple[AnyCheck, ...]:
    place = ("expected",)
    if case.validator is None:
        return parse_checks(case.expected, kinds, place)
    name, value = case.validator
    if name not in registered:
        names = ", ".join(registered) or "none (register them in a conftest.py)"
        raise FormError(
            [(("validator",), f"unknown check {name!r}; registered: {names}")]
        )
    written = () if case.expected is None else parse_checks(case.expected, kinds, place)
    if any(check.name == name for check in written):
        return written
    kind = registered[name]
    if isinstance(value, dict) and isinstance(value.get("output_file"), str):
        from .file_checks import of_output_file

        kind = of_output_file(kind, value["output_file"])
    return (*written, Check(kind, value, written=value))


@dataclass(frozen=True)
class _Around:
    """The known kinds, and the settings of the groups around a group."""

    kinds: Mapping[str, CheckKind]
    case_sensitive: bool = False
    weight: float = 1.0
    required: bool = True
    judge_votes: int = 1
    judge_files: Sequence[str] = ()
    judge_context: str = ""
    inside: Literal["any_of", "not"] | None = None
    with_skill: bool = False
    depth: int = 0

    @property
    def of_combined(self) -> tuple[float, bool, bool]:
        return self.weight, self.required, self.with_skill


def parse_checks(
    expected: Any, kinds: Mapping[str, CheckKind], loc: Location
) -> tuple[AnyCheck, ...]:
    """The checks in ``expected``; FormError if one is unknown
    or has an invalid argument.
    """
    checks = _groups(expected, _Around(kinds), loc)
    common = [check for check in checks if not check.with_skill]
    if not any(check.required for check in common or checks):
        raise FormError([(loc, _NONE_REQUIRED)])
    if isinstance(expected, dict) and not rubric_of(checks).texts:
        for setting, purpose in _OF_JUDGE.items():
            if setting in expected:
                raise FormError(
                    [((*loc, setting), f'there is no "judge" check {purpose}')]
                )
    return checks


def _groups(written: Any, around: _Around, loc: Location) -> tuple[AnyCheck, ...]:
    """The checks of a group, or of each group in a list."""
    if isinstance(written, dict):
        return _group(written, around, loc)
    if not isinstance(written, list):
        problem = "missing" if written is None else "must be an object or a list"
        raise FormError([(loc, problem)])
    return tuple(check for group in _each(written, around, loc) for check in group)


def _each(
    written: Any, around: _Around, loc: Location
) -> tuple[tuple[AnyCheck, ...], ...]:
    if not isinstance(written, list):
        raise FormError([(loc, "must be a list")])
    if not written:
        raise FormError([(loc, _NO_CHECK)])
    problems, groups = list[Problem](), []
    for number, group in enumerate(written):
        try:
            groups.append(_group(group, around, (*loc, number)))
        except FormError as error:
            problems += error.problems
    if problems:
        raise FormError(problems)
    return tuple(groups)


def _group(written: Any, around: _Around, loc: Location) -> tuple[AnyCheck, ...]:
    if not isinstance(written, dict):
        raise FormError([(loc, "must be an object")])
    if around.depth >= _DEEPEST:
        raise FormError([(loc, f"groups are nested more than {_DEEPEST} deep")])
    around = _with_settings(written, around, loc)
    problems, checks = list[Problem](), list[AnyCheck]()
    for name, argument in written.items():
        if name in GroupForm.model_fields or argument is None:
            continue  # some programs write null for a missing key
        try:
            checks += _named(name, argument, around, (*loc, name))
        except FormError as error:
            problems += error.problems
    if problems:
        raise FormError(problems)
    if not checks:
        raise FormError([(loc, _NO_CHECK)])
    if never := _contradiction(
        {check.name: check for check in checks if isinstance(check, Check)}
    ):
        raise FormError([((*loc, never[0]), f"{never[1]}, so no answer would pass")])
    return tuple(checks)


def _contradiction(checks: Mapping[str, Check]) -> tuple[str, str] | None:
    """The check of a group that contradicts another, and how."""
    pair = [checks[name] for name in ("contains", "not_contains") if name in checks]
    if len(pair) == 2:
        sensitive = pair[0].case_sensitive
        for text in pair[0].argument:
            for part in pair[1].argument:
                if folded(part, sensitive) in folded(text, sensitive):
                    return (
                        "not_contains",
                        f"{quoted(part)} is in {quoted(text)} of contains",
                    )
    fewest, limit = checks.get("min_words"), checks.get("max_words")
    if fewest and limit and fewest.argument > limit.argument:
        return "max_words", f"less than min_words ({fewest.argument:,})"
    return None


def _with_settings(written: dict[str, Any], around: _Around, loc: Location) -> _Around:
    settings = {
        key: value for key, value in written.items() if key in GroupForm.model_fields
    }
    group: GroupForm = read_form(_GROUP, settings, loc)
    for key in ("weight", "required"):
        if around.inside and settings.get(key) is not None:
            problem = (
                f'has no effect inside "{around.inside}", which counts as one check'
            )
            raise FormError([((*loc, key), problem)])
    if around.with_skill and settings.get("weight") is not None:
        raise FormError(
            [((*loc, "weight"), f'has no effect inside "{WITH_SKILL}": no score')]
        )
    group_settings = {
        key: value for key in settings if (value := getattr(group, key)) is not None
    }
    group_settings["required"] = around.required and group.required is not False
    return replace(around, **group_settings, depth=around.depth + 1)


def _named(
    name: str, argument: Any, around: _Around, loc: Location
) -> tuple[AnyCheck, ...]:
    """The checks of one key of a group."""
    match name:
        case "all_of":
            return _groups(argument, around, loc)
        case "any_of":
            groups = _each(argument, replace(around, inside="any_of"), loc)
            return (Combined("any_of", groups, *around.of_combined),)
        case "not":
            group = _groups(argument, replace(around, inside="not"), loc)
            return (Combined("not", (group,), *around.of_combined),)
        case "with_skill":
            if around.inside:
                raise FormError([(loc, f'can\'t be inside "{around.inside}"')])
            return _groups(argument, replace(around, with_skill=True), loc)
    if name not in around.kinds:
        hint = guess(name, [*around.kinds, *RESERVED])
        advice = "; register your own with the hook pytest_upskill_checks"
        raise FormError([(loc, f"unknown check{hint or advice}")])
    kind = around.kinds[name]
    value = read_form(kind.argument, argument, loc)
    if kind is JUDGE:
        files, context = tuple(around.judge_files), around.judge_context
        value = Rubric(tuple(value), around.judge_votes, files=files, context=context)
    settings = (around.case_sensitive, around.weight, around.required)
    return (Check(kind, value, *settings, argument, around.with_skill),)
