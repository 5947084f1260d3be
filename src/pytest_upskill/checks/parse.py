"""``expected`` as it is written → checks that an answer can be held to.

An object of ``expected`` is a group: its keys are checks, all of which must pass, and a few
settings of the group (``case_sensitive``, ``weight``, ``required``). Groups stand inside
``any_of``, ``all_of`` and ``not``, and may be given as a list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from ..forms import FormError, Location, Strict, read_form
from ..records import Answer, Grade
from ..texts import guess
from .kind import Given, Kind, Said


class GroupForm(Strict):
    """The settings of a group."""

    case_sensitive: bool | None = None


_GROUP: Final = TypeAdapter(GroupForm)


@dataclass(frozen=True)
class Check:
    """One check of a case, with its argument."""

    kind: Kind
    argument: Any
    case_sensitive: bool = False

    def grades(self, answer: Answer, rulings: Mapping[str, Said]) -> Iterator[Grade]:
        given = Given(self.case_sensitive, rulings)
        for passed, reason in self.kind.hold(answer, self.argument, given):
            if answer.stop == "length" and not passed:
                reason += ", which was cut off by --skill-max-output"
            yield Grade(self.kind.name, passed, reason)


def parse_checks(expected: Any, kinds: Mapping[str, Kind], loc: Location) -> tuple[Check, ...]:
    """The checks of a case; FormError if one is unknown or has a wrong argument."""
    if not isinstance(expected, dict):
        raise FormError([(loc, "this is not an object")])
    settings = {key: value for key, value in expected.items() if key in GroupForm.model_fields}
    group: GroupForm = read_form(_GROUP, settings, loc)
    problems, checks = [], []
    for name, argument in expected.items():
        if name in settings or argument is None:  # null is how some programs write "not there"
            continue
        if name not in kinds:
            hint = guess(name, [*kinds, *GroupForm.model_fields])
            problems.append(((*loc, name), f"unknown check{hint}"))
            continue
        try:
            value = read_form(kinds[name].argument, argument, (*loc, name))
        except FormError as error:
            problems += error.problems
        else:
            checks.append(Check(kinds[name], value, bool(group.case_sensitive)))
    if problems:
        raise FormError(problems)
    if not checks:
        raise FormError(
            [
                (
                    loc,
                    "no check, so every answer would pass; add one, for example "
                    '"contains": ["text"]',
                )
            ]
        )
    return tuple(checks)
