"""Checks of the commands that an agent called."""

import shlex
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, TypeAdapter

from ..._util.json_forms import Strict
from ..._util.texts import one_line
from ...checks.check import CheckContext, CheckKind, Evaluate, Result, quoted
from ...skills.case import Case
from ...trials.transcript import Activity, CommandCall
from .answers import Words, fits
from .part import Commands

_MAX_NAMED: Final = 100  # characters


class CallForm(Strict):
    """Calls of a command."""

    command: Words = Field(
        min_length=1,
        description="How the command line begins; * stands for anything.",
    )
    args: Words | None = Field(
        None, description="All that follows; * stands for anything."
    )

    @property
    def line(self) -> str:
        return self.command if self.args is None else f"{self.command} {self.args}"

    def fits(self, call: CommandCall) -> bool:
        end = " *" if self.args is None else ""
        return fits(f"{self.line}{end}", call.words)


def _as_calls(value: Any) -> Any:
    entries = value if isinstance(value, list) else [value]
    return [{"command": one} if isinstance(one, str) else one for one in entries]


_Written = str | CallForm
_CALLS: Final[TypeAdapter[Any]] = TypeAdapter(
    Annotated[
        list[CallForm],
        Field(min_length=1),
        BeforeValidator(_as_calls, json_schema_input_type=_Written | list[_Written]),
    ]
)


def _called(expected: bool) -> Evaluate:
    def evaluate(context: CheckContext) -> Iterator[Result]:
        calls = (context.answer.activity or Activity()).commands
        for form in context.value:
            name = form.command.split()[0]
            if "*" not in name and name not in _find_names(context.case):
                # Nobody would see its calls, and each answer would pass or fail.
                yield (
                    None,
                    f"no calls of {name} are seen: add evals/commands/{name}.yaml",
                )
                continue

            fitting = [call for call in calls if form.fits(call)]
            shown = fitting[:1] or calls
            lines = "; ".join(shlex.join(call.words) for call in shown)
            called = one_line(lines, _MAX_NAMED) or "nothing"
            verb = "was called" if fitting else "was not called"
            reason = f"{quoted(form.line)} {verb} (called: {called})"
            yield bool(fitting) is expected, reason

    return evaluate


def _find_names(case: Case) -> set[str]:
    """The commands that have answers."""
    names: set[str] = set()
    for part in case.parts:
        if isinstance(part, Commands):
            names.update(part.answers)
    return names


KINDS: Final = (
    CheckKind("called", _CALLS, _called(expected=True), needs_agent=True),
    CheckKind("not_called", _CALLS, _called(expected=False), needs_agent=True),
)
ABOUT: Final = {
    "called": (
        "Calls of the commands in evals/commands, by how their lines begin.",
        ["gh pr list", {"command": "gh", "args": "pr view *"}],
    ),
    "not_called": ("The same for calls that an agent must not make.", "gh pr merge"),
}
