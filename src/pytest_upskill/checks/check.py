"""The checks of a case, and how an answer is held to them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from .._util.texts import one_line
from ..errors import CheckError
from ..skills.cases import Case
from ..trials.answer import Answer
from ..trials.records import Grade
from .found import merged
from .kind import NO_CASE, Given, Kind, Said, Span

_WHY: Final = {
    "length": " (it was cut off by --skill-max-output)",
    "refusal": " (the model refused to answer)",
}
_SAYS_WHY: Final = ("refused", "stop")
_LONGEST_REASON: Final = 200


@dataclass(frozen=True)
class Check:
    """One check of a case, with its argument."""

    kind: Kind
    argument: Any
    case_sensitive: bool = False
    weight: float = 1.0
    required: bool = True
    written: Any = None  # the argument before it was read

    @property
    def name(self) -> str:
        return self.kind.name

    def asks(self, number: int) -> list[str]:
        """What it looks for, for each of so many things that it says of an answer."""
        single = not isinstance(self.written, list) or len(self.written) != number
        return [_as_text(part) for part in ([self.written] * number if single else self.written)]

    def said(self, answer: Answer, given: Given) -> Iterator[Said]:
        """CheckError if the check breaks: then the answer is neither right nor wrong."""
        given = replace(given, case_sensitive=self.case_sensitive)
        try:
            for passed, reason in self.kind.hold(answer, self.argument, given):
                why = "" if passed or self.name in _SAYS_WHY else _WHY.get(answer.stop, "")
                yield passed, f"{reason}{why}"
        except CheckError:
            raise
        except Exception as error:
            raise CheckError(f"check {self.name} raised {one_line(repr(error), 200)}") from error


@dataclass(frozen=True)
class Combined:
    """Groups of checks that are one check together."""

    name: Literal["any_of", "not"]
    groups: tuple[tuple["AnyCheck", ...], ...]
    weight: float = 1.0
    required: bool = True

    def asks(self, number: int) -> list[str]:
        groups = [
            "; ".join(f"{check.name}: {text}" for check in group for text in check.asks(1))
            for group in self.groups
        ]
        return [one_line(" | ".join(groups), _LONGEST_REASON)] * number

    def said(self, answer: Answer, given: Given) -> Iterator[Said]:
        groups = [
            [said for check in group for said in check.said(answer, given)] for group in self.groups
        ]
        yield _any_of(groups) if self.name == "any_of" else _not(groups[0])


AnyCheck = Check | Combined


def grade(
    checks: Sequence[AnyCheck],
    answer: Answer,
    rulings: Mapping[str, Said] | None = None,
    case: Case = NO_CASE,
) -> tuple[Grade, ...]:
    """Hold an answer to every check of its case; ``rulings`` are the judge's."""
    grades, given = [], Given(case, rulings=rulings or {})
    for check in checks:
        said = list(check.said(answer, given))
        for (passed, reason), asks in zip(said, check.asks(len(said)), strict=True):
            how = (check.weight, check.required, asks)
            grades.append(Grade(check.name, passed is True, reason, *how))
    return tuple(grades)


def walk(checks: Iterable[AnyCheck]) -> Iterator[Check]:
    """Every check that is not made of others, also inside of those that are."""
    for check in checks:
        if isinstance(check, Check):
            yield check
        else:
            for group in check.groups:
                yield from walk(group)


def spans(checks: Iterable[AnyCheck], text: str) -> list[Span]:
    """Where in an answer these checks found what they look for, wanted there or not."""
    return merged(
        span
        for check in walk(checks)
        if check.kind.find
        for span in check.kind.find(text, check.argument, check.case_sensitive)
    )


def _any_of(groups: Sequence[Sequence[Said]]) -> Said:
    missed = []
    for number, group in enumerate(groups, start=1):
        wrong = [reason for passed, reason in group if not passed]
        if not wrong:
            reasons = "; ".join(reason for _, reason in group)
            return True, _shortened(f"choice {number} of {len(groups)} passed: {reasons}")
        missed.append(f"({number}) {wrong[0]}")
    return False, _shortened(f"none of {len(groups)} choices passed: {'; '.join(missed)}")


def _not(group: Sequence[Said]) -> Said:
    wrong = [reason for passed, reason in group if passed is False]
    if wrong:
        return True, _shortened(f"as it should be: {wrong[0]}")
    unsaid = [reason for passed, reason in group if passed is None]
    if unsaid:
        return None, _shortened(unsaid[0])
    return False, _shortened(f"this should not be: {'; '.join(reason for _, reason in group)}")


def _as_text(written: Any) -> str:
    if written is None:
        return ""
    text = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
    return one_line(text, _LONGEST_REASON)


def _shortened(reason: str) -> str:
    return one_line(reason, _LONGEST_REASON)
