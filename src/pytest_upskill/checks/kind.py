"""A kind of check: its name, the form of its argument, and how an answer is held to it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, TypeAdapter

from .._util.texts import one_line
from ..skills.cases import Case
from ..trials.answer import Answer

# Passed or not, and a reason that a person understands. None: it can't be said, which fails too,
# but does not make a "not" around it pass.
Said = tuple[bool | None, str]


NO_CASE: Final = Case("", "")


@dataclass(frozen=True)
class CheckContext:
    """What a check written in Python may look at. Which arm answered is hidden from it."""

    answer: Answer
    case: Case
    value: Any = None  # what the case gives the check: 3 for ``{"haiku": 3}``


@dataclass(frozen=True)
class Given:
    """What a check is given beside the answer and its own argument.

    ``rulings`` is what the judge said of each text of the rubric.
    """

    case: Case = NO_CASE
    case_sensitive: bool = False
    rulings: Mapping[str, Said] = field(default_factory=dict)


Hold = Callable[[Answer, Any, Given], Iterable[Said]]
Span = tuple[int, int]
Find = Callable[[str, Any, bool], Iterable[Span | None]]  # text, argument, whether case counts


@dataclass(frozen=True)
class Kind:
    """``hold`` says one thing or more of an answer: one for each text of a list, say.

    ``argument`` has the form in which the argument is written, and makes of it what ``hold``
    takes: a compiled pattern of a text, a list of a single text. ``find`` tells where in the answer
    that is which it looks for, where there is such a place.
    """

    name: str
    argument: TypeAdapter[Any]
    hold: Hold
    find: Find | None = None


def quoted(text: str) -> str:
    """A text inside of a reason."""
    return f'"{one_line(text, 100)}"'


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_EMPTY = "every answer would pass it, or none; write the text that you look for"


def _refuse_empty(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"must not be empty: {_EMPTY}")
    return value


def _refuse_no_texts(value: Any) -> Any:
    if not isinstance(value, str | list):
        raise ValueError("this is neither a text nor a list of texts")
    if value == []:
        raise ValueError(f"must not be empty: {_EMPTY}")
    return value


def _only_true(value: bool) -> bool:
    if not value:
        raise ValueError('write true, or "not" around it for the opposite')
    return value


Text = Annotated[
    str, Field(strict=True), StringConstraints(min_length=1), BeforeValidator(_refuse_empty)
]
one_or_more = (BeforeValidator(_as_list), BeforeValidator(_refuse_no_texts))
TEXT: TypeAdapter[Any] = TypeAdapter(Text)
TEXTS: TypeAdapter[Any] = TypeAdapter(Annotated[list[Text], *one_or_more])
COUNT: TypeAdapter[Any] = TypeAdapter(Annotated[int, Field(strict=True, ge=1)])
ONLY_TRUE: TypeAdapter[Any] = TypeAdapter(
    Annotated[bool, Field(strict=True), AfterValidator(_only_true)]
)
