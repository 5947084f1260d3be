"""What a check is: its kind, the form of its argument, and the checks of a case."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
)

from .._util.texts import harmless, one_line
from ..errors import CheckError
from ..skills.case import Case
from ..trials.answer import Answer
from ..trials.records import Grade, Span
from ..trials.subject import CHAT
from .final_workspace import Workspace, relative
from .time_budget import LimitReachedError, not_counted, seconds_left, time_budget

# Passed or not, and the reason. None means undecided: it fails, also inside of a "not".
Result = tuple[bool | None, str]

_WHY: Final = {
    "length": " (cut off by the output limit)",
    "refusal": " (the model refused to answer)",
}
_SAYS_WHY: Final = ("refused", "stop")
_LONGEST_REASON: Final = 200
_LONGEST_QUOTE: Final = 100
_HIGHLIGHTING: Final = 0.5  # seconds
_MOST_PLACES: Final = 500  # in an answer
_NO_AGENT: Final = (
    "only an agent's answer can be checked for this, and this is a plain completion"
)
_NO_SKILL: Final = (
    "no skill to look at in this arm, so it counts as passed: the others decide"
)


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a check looks at. Which arm answered is hidden from it."""

    answer: Answer
    case: Case
    value: Any = None  # the check's value in the case: 3 for ``{"haiku": 3}``
    # Whether upper and lower case differ, as the case says
    case_sensitive: bool = False
    # Of the judge, by text
    rulings: Mapping[str, Result] = field(default_factory=dict, repr=False)
    why_not_gradable: str = ""  # why there is nothing to grade, so that no check passes
    text_name: str = "the answer"  # what reasons call the checked text
    final_workspace: Workspace | None = field(default=None, repr=False, compare=False)

    @property
    def workspace(self) -> Workspace:
        """What the agent left behind."""
        return self.final_workspace or Workspace(self.answer)

    @property
    def has_no_skill(self) -> bool:
        """Whether an agent worked without the skill under test."""
        activity = self.answer.activity
        return activity is not None and activity.activated is None

    def within(self, group: Iterable["AnyCheck"]) -> "CheckContext":
        """Where a group asks for a refusal, one is graded like any other answer."""
        if self.why_not_gradable and self.answer.refused and wants_refusal(group):
            return replace(self, why_not_gradable="")
        return self


class Measured(NamedTuple):
    """What a check found besides whether it passed."""

    share: float | None = None  # of it that was reached
    output: str = ""  # what a program of it printed


Evaluate = Callable[[CheckContext], Iterable[Result]]
Find = Callable[[str, Any, bool], Iterable[Span]]  # answer, value, case_sensitive


@dataclass(frozen=True)
class CheckKind:
    """A kind of check, such as ``contains``.

    ``argument`` validates the value in the case and turns it into what ``evaluate``
    takes, such as a compiled pattern. ``evaluate`` returns one or more results: one for
    each text of a list, say.
    """

    name: str
    argument: TypeAdapter[Any]
    evaluate: Evaluate
    find: Find | None = None  # locates what the check looks for, to highlight it
    calls_code: bool = False  # runs users' Python, which never sees an empty answer
    needs_agent: bool = False  # looks at what only an agent leaves behind
    of_files: bool = False  # looks at the workspace, not at the text of the answer
    # Looks at how the skill was used, so it passes where there is none; else every
    # baseline would fail, and every skill would seem to help.
    of_skill: bool = False
    of_opening: bool = False  # looks only at which skills were opened
    unwanted: bool = False  # what it finds must not be there
    full_texts: Callable[[Any], Sequence[str]] | None = None  # what it asks, uncut
    # Of a check with a single result
    measure: Callable[[CheckContext], Measured] | None = None
    # Also what an agent left that said nothing or was stopped
    grades_anything: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a case, with its argument."""

    kind: CheckKind
    argument: Any
    case_sensitive: bool = False
    weight: float = 1.0
    required: bool = True
    written: Any = None  # the argument as written in the case
    with_skill: bool = False  # only of answers with the skill, so no lift compares it

    @property
    def name(self) -> str:
        return self.kind.name

    def asks(self, number: int) -> list[str]:
        """What it looks for, as text, for each of its ``number`` results."""
        if (
            self.kind.full_texts
            and len(texts := self.kind.full_texts(self.argument)) == number
        ):
            return list(texts)
        single = not isinstance(self.written, list) or len(self.written) != number
        return [
            _as_text(part)
            for part in ([self.written] * number if single else self.written)
        ]

    def measured(self, context: CheckContext) -> Measured:
        if self.kind.measure is None or context.why_not_gradable:
            return Measured()
        return self.kind.measure(replace(context, value=self.argument))

    def results(self, context: CheckContext) -> Iterator[Result]:
        """CheckError if the check breaks: then the answer is neither right nor
        wrong.
        """
        context = replace(
            context, value=self.argument, case_sensitive=self.case_sensitive
        )
        if (
            not context.why_not_gradable
            and self.kind.needs_agent
            and context.answer.activity is None
        ):
            context = replace(context, why_not_gradable=_NO_AGENT)
        if context.why_not_gradable and self.kind.calls_code:
            yield None, context.why_not_gradable
            return
        results = list[Result]()
        try:
            seconds_left()
            with not_counted() if self.kind.calls_code else nullcontext():
                results.extend(self.kind.evaluate(context))
            for passed, reason in results:
                # One result for each, so that the arms have as many
                if context.why_not_gradable:
                    yield None, context.why_not_gradable
                    continue
                if self.kind.of_skill and context.has_no_skill:
                    yield True, _NO_SKILL
                    continue
                explained = passed or self.name in _SAYS_WHY
                yield (
                    passed,
                    reason + ("" if explained else _WHY.get(context.answer.stop, "")),
                )
        except CheckError:
            raise
        except LimitReachedError as error:
            several = isinstance(self.written, list) and len(results) < len(
                self.written
            )
            asks = _as_text(self.written[len(results)] if several else self.written)
            here = f"{self.name} {quoted(asks)}" if asks else self.name
            raise CheckError(f"{error}, and {here} was not done. Simplify it") from None
        except Exception as error:
            raise CheckError(
                f"check {self.name} raised {one_line(repr(error), 200)}"
            ) from error


@dataclass(frozen=True)
class Combined:
    """Groups of checks that count as one check."""

    name: Literal["any_of", "not"]
    groups: tuple[tuple["AnyCheck", ...], ...]
    weight: float = 1.0
    required: bool = True
    with_skill: bool = False

    def measured(self, context: CheckContext) -> Measured:  # noqa: ARG002
        return Measured()

    def asks(self, number: int) -> list[str]:
        groups = [
            "; ".join(
                f"{check.name}: {text}" for check in group for text in check.asks(1)
            )
            for group in self.groups
        ]
        return [_short(" | ".join(groups))] * number

    def results(self, context: CheckContext) -> Iterator[Result]:
        if context.why_not_gradable and self.name == "not":
            yield None, context.why_not_gradable
            return
        of_skill = any(check.kind.of_skill for check in walk([self]))
        if of_skill and context.has_no_skill and not context.why_not_gradable:
            yield True, _NO_SKILL
            return
        groups = []
        for group in self.groups:
            inside = context.within(group)
            groups.append(
                [result for check in group for result in check.results(inside)]
            )
        passed, reason = _any_of(groups) if self.name == "any_of" else _not(groups[0])
        yield (
            (passed, reason)
            if passed or not context.why_not_gradable
            else (None, context.why_not_gradable)
        )


AnyCheck = Check | Combined


def walk(checks: Iterable[AnyCheck]) -> Iterator[Check]:
    """Every plain check, including those inside of combined ones."""
    for check in checks:
        if isinstance(check, Check):
            yield check
        else:
            for group in check.groups:
                yield from walk(group)


def asked_checks(
    checks: Iterable[AnyCheck], agent: str, *, has_skill: bool = True
) -> tuple[AnyCheck, ...]:
    """The checks of an answer: in arms without the skill, not those of answers with it.

    A plain completion has the skill in its context and opens nothing, so none of these
    ask it to.
    """
    checks = tuple(checks)
    if all(check.with_skill and check.kind.of_opening for check in walk(checks)):
        return checks  # then a plain completion chooses a skill
    return tuple(
        check
        for check in checks
        if not check.with_skill
        or (
            has_skill
            and not (agent == CHAT and any(c.kind.of_skill for c in walk([check])))
        )
    )


def asks_only_for_files(checks: Iterable[AnyCheck]) -> bool:
    """Whether checks look at files, perhaps also at what an agent did,
    but at no text of it.
    """
    kinds = [check.kind for check in walk(checks)]
    return any(kind.of_files for kind in kinds) and all(
        k.of_files or k.needs_agent for k in kinds
    )


def wants_refusal(group: Iterable[AnyCheck]) -> bool:
    """Whether a group asks the model to refuse, by ``refused`` or by the stop
    reason.
    """
    return any(
        (check.name == "refused" and check.argument)
        or (check.name == "stop" and Answer("", stop=check.argument).refused)
        for check in group
        if isinstance(check, Check) and check.required
    )


class Places(NamedTuple):
    """Where an answer has what a check looks for, and what must not be there."""

    found: tuple[Span, ...] = ()
    unwanted: tuple[Span, ...] = ()


def places(
    checks: Sequence[AnyCheck], results: Sequence[int], text: str
) -> list[Places]:
    """One for each result; ``results`` are the numbers of results.
    Stops when time is up.
    """
    spans_of: list[tuple[list[Span], list[Span]]] = [
        ([], []) for _ in range(sum(results))
    ]
    with time_budget(_HIGHLIGHTING), suppress(LimitReachedError):
        for span, number, unwanted in islice(
            _found_spans(checks, results, text), _MOST_PLACES
        ):
            spans_of[number][unwanted].append(span)
    return [
        Places(tuple(wanted_spans), tuple(unwanted))
        for wanted_spans, unwanted in spans_of
    ]


def _found_spans(
    checks: Sequence[AnyCheck], results: Sequence[int], text: str
) -> Iterator[tuple[Span, int, bool]]:
    """Each span, the number of its result, and whether it is unwanted."""
    first = 0
    for check, number in zip(checks, results, strict=True):
        for at, part in enumerate(_parts(check, number), start=first):
            for unwanted, plain in _located(part):
                if plain.kind.find:
                    for span in plain.kind.find(
                        text, plain.argument, plain.case_sensitive
                    ):
                        yield span, at, unwanted
        first += number


def _parts(check: AnyCheck, number: int) -> Sequence[AnyCheck]:
    """A check with a result for each of its texts as that many checks."""
    texts = check.argument if isinstance(check, Check) else None
    if (
        isinstance(check, Combined)
        or not isinstance(texts, list)
        or len(texts) != number
    ):
        return [check][:number]
    return [Check(check.kind, [text], check.case_sensitive) for text in texts]


def _located(check: AnyCheck, unwanted: bool = False) -> Iterator[tuple[bool, Check]]:
    """Every plain check, and whether what it finds is unwanted."""
    if isinstance(check, Check):
        yield unwanted is not check.kind.unwanted, check
        return
    for group in check.groups:
        for inner in group:
            yield from _located(inner, unwanted is not (check.name == "not"))


def spans(places: Iterable[Places | Grade]) -> list[Span]:
    """Where checks found something in an answer: sorted, overlapping spans merged."""
    merged = list[Span]()
    for start, stop in sorted(
        span for place in places for span in (*place.found, *place.unwanted)
    ):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return merged


def _any_of(groups: Sequence[Sequence[Result]]) -> Result:
    missed = []
    for number, group in enumerate(groups, start=1):
        failed = [reason for passed, reason in group if not passed]
        if not failed:
            reasons = "; ".join(reason for _, reason in group)
            return True, _short(f"choice {number} of {len(groups)} passed: {reasons}")
        missed.append(f"({number}) {failed[0]}")
    return False, _short(f"none of {len(groups)} choices passed: {'; '.join(missed)}")


def _not(group: Sequence[Result]) -> Result:
    failed = [reason for passed, reason in group if passed is False]
    if failed:
        return True, _short(f"as expected: {failed[0]}")
    undecided = [reason for passed, reason in group if passed is None]
    if undecided:
        return None, _short(undecided[0])
    return False, _short(f"not expected: {'; '.join(reason for _, reason in group)}")


def _as_text(written: Any) -> str:
    if written is None:
        return ""
    return _short(
        written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
    )


def _short(reason: str) -> str:
    return one_line(reason, _LONGEST_REASON)


# Arguments that several kinds share.


def quoted(text: str) -> str:
    """A text in quotes for a reason; its white space counts."""
    flat = harmless(text[:_LONGEST_REASON]).replace("\n", "\\n").replace("\t", "\\t")
    return (
        f'"{flat if len(flat) <= _LONGEST_QUOTE else flat[: _LONGEST_QUOTE - 1] + "…"}"'
    )


def as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_EMPTY: Final = "must not be empty: every answer would pass, or none"


def _refuse_empty(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError(_EMPTY)
    return value


def _refuse_no_texts(value: Any) -> Any:
    if not isinstance(value, str | list):
        raise ValueError("must be a string or a list of strings")
    if value == []:
        raise ValueError(_EMPTY)
    return value


def _only_true(value: bool) -> bool:
    if not value:
        raise ValueError('must be true; for the opposite, put it inside "not"')
    return value


Text = Annotated[
    str,
    Field(strict=True),
    StringConstraints(min_length=1),
    BeforeValidator(_refuse_empty),
]
one_or_more = (BeforeValidator(as_list), BeforeValidator(_refuse_no_texts))
Paths = Annotated[
    list[Annotated[Text, AfterValidator(relative)]],
    Field(min_length=1),
    BeforeValidator(as_list, json_schema_input_type=Text | list[Text]),
]
TEXT: TypeAdapter[Any] = TypeAdapter(Text)
TEXTS: TypeAdapter[Any] = TypeAdapter(Annotated[list[Text], *one_or_more])
COUNT: TypeAdapter[Any] = TypeAdapter(Annotated[int, Field(strict=True, ge=1)])
ONLY_TRUE: TypeAdapter[Any] = TypeAdapter(
    Annotated[bool, Field(strict=True), AfterValidator(_only_true)]
)
