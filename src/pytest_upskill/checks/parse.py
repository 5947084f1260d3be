"""``expected`` as it is written → checks that an answer can be held to.

An object of ``expected`` is a group: its keys are checks, all of which must pass, and a few
settings of the group (``case_sensitive``, ``weight``, ``required``). Groups stand inside
``any_of``, ``all_of`` and ``not``, and may be given as a list.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter

from .._util.json_forms import FormError, Location, Problem, Strict, read_form
from .._util.texts import guess
from ..settings import MOST_RUNS
from .check import AnyCheck, Check, Combined
from .judged import JUDGE, ToJudge, rubric_of
from .kind import Kind

_DEEPEST: Final = 10
_COMBINING: Final = ("all_of", "any_of", "not")
_NO_CHECK: Final = 'no check, so every answer would pass; add one, for example "contains": ["text"]'
_NONE_REQUIRED: Final = (
    'no check is required, so every answer would pass; leave "required": false out of one'
)


class GroupForm(Strict):
    """The settings of a group."""

    case_sensitive: bool | None = None
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    required: bool | None = None
    judge_votes: Annotated[int, Field(ge=1, le=MOST_RUNS)] | None = None


_GROUP: Final = TypeAdapter(GroupForm)
RESERVED: Final = (*_COMBINING, *GroupForm.model_fields)  # names of groups that are no kinds


@dataclass(frozen=True)
class _Around:
    """What holds for a group: the kinds there are, and the settings of the groups around it."""

    kinds: Mapping[str, Kind]
    case_sensitive: bool = False
    weight: float = 1.0
    required: bool = True
    judge_votes: int = 1
    inside: Literal["any_of", "not"] | None = None
    depth: int = 0


def parse_checks(expected: Any, kinds: Mapping[str, Kind], loc: Location) -> tuple[AnyCheck, ...]:
    """The checks of a case; FormError if one is unknown or has a wrong argument."""
    checks = _groups(expected, _Around(kinds), loc)
    if not any(check.required for check in checks):
        raise FormError([(loc, _NONE_REQUIRED)])
    if isinstance(expected, dict) and "judge_votes" in expected and not rubric_of(checks).texts:
        raise FormError([((*loc, "judge_votes"), 'there is no "judge" that votes on anything')])
    return checks


def _groups(written: Any, around: _Around, loc: Location) -> tuple[AnyCheck, ...]:
    """All that a group asks for, or each group of a list."""
    if isinstance(written, dict):
        return _group(written, around, loc)
    if not isinstance(written, list):
        what = "missing" if written is None else "this is neither an object nor a list"
        raise FormError([(loc, what)])
    return tuple(check for group in _each(written, around, loc) for check in group)


def _each(written: Any, around: _Around, loc: Location) -> tuple[tuple[AnyCheck, ...], ...]:
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
        raise FormError([(loc, f"groups are nested deeper than {_DEEPEST}")])
    around = _with_settings(written, around, loc)
    problems, checks = list[Problem](), list[AnyCheck]()
    for name, argument in written.items():
        if name in GroupForm.model_fields or argument is None:
            continue  # null is how some programs write "not there"
        try:
            checks += _named(name, argument, around, (*loc, name))
        except FormError as error:
            problems += error.problems
    if problems:
        raise FormError(problems)
    if not checks:
        raise FormError([(loc, _NO_CHECK)])
    return tuple(checks)


def _with_settings(written: dict[str, Any], around: _Around, loc: Location) -> _Around:
    settings = {key: value for key, value in written.items() if key in GroupForm.model_fields}
    group: GroupForm = read_form(_GROUP, settings, loc)
    for key in ("weight", "required"):
        if around.inside and settings.get(key) is not None:
            what = f'this says nothing inside of "{around.inside}", which is one check as a whole'
            raise FormError([((*loc, key), what)])
    own = {key: value for key in settings if (value := getattr(group, key)) is not None}
    own["required"] = around.required and group.required is not False
    return replace(around, **own, depth=around.depth + 1)


def _named(name: str, argument: Any, around: _Around, loc: Location) -> tuple[AnyCheck, ...]:
    """The checks that one key of a group makes."""
    match name:
        case "all_of":
            return _groups(argument, around, loc)
        case "any_of":
            groups = _each(argument, replace(around, inside="any_of"), loc)
            return (Combined("any_of", groups, around.weight, around.required),)
        case "not":
            group = _groups(argument, replace(around, inside="not"), loc)
            return (Combined("not", (group,), around.weight, around.required),)
    if name not in around.kinds:
        hint = guess(name, [*around.kinds, *RESERVED])
        own = "; if it is one of yours, the hook pytest_upskill_checks registers it"
        raise FormError([(loc, f"unknown check{hint or own}")])
    kind = around.kinds[name]
    value = read_form(kind.argument, argument, loc)
    if kind is JUDGE:
        value = ToJudge(tuple(value), around.judge_votes)
    settings = (around.case_sensitive, around.weight, around.required)
    return (Check(kind, value, *settings, written=argument),)
