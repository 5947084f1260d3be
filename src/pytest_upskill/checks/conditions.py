"""What may be asked of any text, as part of a larger check: of a file, or of a command's output.

These are the kinds of checks that look at an answer's text, with the same arguments.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, create_model

from .._util.json_forms import Strict
from ..trials.answer import Answer
from . import data_checks, text_checks
from .check import CheckContext, Kind, Result

_OF_ANSWERS_ALONE: Final = ("max_output_tokens", "max_seconds", "refused", "stop")
KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (*text_checks.KINDS, *data_checks.KINDS)
    if kind.name not in _OF_ANSWERS_ALONE
}

Condition = tuple[Kind, Any]  # with its argument


class _Argument:
    """The argument of a kind as the type of a form's field."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return self._kind.argument.core_schema


def _field(name: str) -> str:
    """Forms have methods of their own, such as ``json``."""
    return f"text_{name}"


if TYPE_CHECKING:
    ConditionsForm = Strict
else:
    ConditionsForm = create_model(
        "ConditionsForm",
        __base__=Strict,
        **{
            _field(name): (Annotated[Any, _Argument(kind)] | None, Field(None, alias=name))
            for name, kind in KINDS.items()
        },
    )


def conditions_in(form: ConditionsForm) -> tuple[Condition, ...]:
    found = ((kind, getattr(form, _field(name))) for name, kind in KINDS.items())
    return tuple((kind, value) for kind, value in found if value is not None)


def results_in(text: str, where: str, condition: Condition, context: CheckContext) -> list[Result]:
    """As many as there would be for any other text."""
    kind, value = condition
    sensitive = context.case_sensitive
    return list(
        kind.evaluate(CheckContext(Answer(text), context.case, value, sensitive, where=where))
    )
