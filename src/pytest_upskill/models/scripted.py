"""A fake model that is a real adapter: answers from a file or a Python function.

``scripted:answers.json`` is a list of rules, and the first that matches answers:
``{"question": "text in it", "system": "text in it", "answer": "…"}``; both texts are
optional. For an agent, a rule may call tools: ``"calls": [{"tool": "bash", "arguments":
{…}}]``. ``scripted:answers.py:function`` (or ``scripted:package.module:function``)
takes the Question and returns a text or an Answer.
"""

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import Field, TypeAdapter, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

from .._util.files import load_python_file, reason_of
from .._util.json_forms import Strict, read_json_form
from ..errors import InputError, ModelError, SettingsError, shown
from ..skills.skill import estimated_tokens
from ..trials.answer import Answer, Usage
from ..trials.transcript import Step, ToolCall
from ..trials.trial import Question
from .model import Download, Model, ModelName, ModelSpec, Provider
from .prices import FREE, Price
from .tool_turns import calls_from, object_of, stop_with

Script = Callable[[Question], str | Answer]


class RuleCall(Strict):
    """A call of a tool; arguments that are a text may be broken JSON."""

    tool: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)

    @property
    def text(self) -> str:
        arguments = self.arguments
        return (
            arguments
            if isinstance(arguments, str)
            else json.dumps(arguments, ensure_ascii=False)
        )


class Rule(Strict):
    """One rule of a file.

    A rule with calls needs their tools, and is used once in a trial
    unless it names its turn.
    """

    question: str = ""
    system: str = ""
    turn: int | None = Field(default=None, ge=1)
    # Text in a result of the turn before, or in the user's answer to it
    after: str = ""
    offered: str | None = None  # a tool
    calls: list[RuleCall] = Field(default_factory=list)
    answer: str = Field(default=None, validate_default=True)

    @field_validator("answer", mode="before")
    @classmethod
    def _answer_or_calls(cls, answer: object, info: ValidationInfo) -> object:
        if answer is None and not info.data.get("calls"):
            raise PydanticKnownError("missing")
        return "" if answer is None else answer

    def matches(self, question: Question) -> bool:
        question_text = question.messages[-1][1].casefold()
        return (
            self.question.casefold() in question_text
            and self.system in question.system
            and self.turn in (None, len(question.steps) + 1)
            and self._follows(question)
            and self._needs() <= {tool.name for tool in question.tools}
            and (self.turn is not None or not self._already_made(question))
        )

    def _follows(self, question: Question) -> bool:
        last = question.steps[-1] if question.steps else Step("", (), ())
        texts = [*(result.text for result in last.results), last.answer]
        return not self.after or any(self.after in text for text in texts)

    def _needs(self) -> set[str]:
        return {*(call.tool for call in self.calls), *filter(None, [self.offered])}

    def _already_made(self, question: Question) -> bool:
        calls = [(call.tool, object_of(call.text)) for call in self.calls]
        made_calls = [
            [(call.name, object_of(call.arguments)) for call in s.calls]
            for s in question.steps
        ]
        return bool(calls) and calls in made_calls

    def answer_to(self, question: Question) -> Answer:
        """The answer of this rule."""
        calls = calls_from(
            ((None, call.tool, call.text) for call in self.calls), question.steps
        )
        return _estimated(Answer(self.answer, calls=tuple(calls)), question)


_RULES: Final[TypeAdapter[list[Rule]]] = TypeAdapter(list[Rule])
_EXAMPLE: Final = 'Write [{"question": "text in it", "answer": "the answer"}].'


class ScriptedModel:
    """Adapter to a script."""

    most_in_flight: Final = None
    address: Final = ""

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self._script = script
        self.endpoint = name

    async def ask(self, question: Question) -> Answer:
        try:
            reply = self._script(question)
        except ModelError:
            raise
        except Exception as error:  # the user's code may raise anything
            raise ModelError(
                f"the script raised {error!r}", "Fix the script"
            ) from error
        if not isinstance(reply, str | Answer):
            kind = type(reply).__name__
            raise ModelError(f"the script returned {kind}, not a text or an Answer")
        if isinstance(reply, str):
            reply = _estimated(Answer(reply), question)
        return _with_calls(reply, question) if reply.calls else reply

    async def close(self) -> None:
        pass


class ScriptedProvider(Provider):
    """Scripts; their answers are never stored, as a script may
    answer anything at any time.
    """

    def resolve(
        self,
        model: ModelName,
        location: str,
        env: Mapping[str, str],  # noqa: ARG002
    ) -> ModelSpec:
        return ModelSpec(
            model.name, self, str(model.folder / Path(location).expanduser())
        )

    def require(
        self,
        spec: ModelSpec,
        env: Mapping[str, str],  # noqa: ARG002
        download: Download,  # noqa: ARG002
    ) -> None:
        load_script(spec)

    def identity(self, spec: ModelSpec) -> str | None:  # noqa: ARG002
        return None

    def price(self, spec: ModelSpec) -> Price | None:  # noqa: ARG002
        return FREE

    async def open(self, spec: ModelSpec, timeout: float) -> Model:  # noqa: ARG002
        return ScriptedModel(load_script(spec), spec.name)


def _with_calls(answer: Answer, question: Question) -> Answer:
    """An answer as a server would give it: calls have unique ids, and need tools."""
    raw_calls = [
        (call.id, call.name, call.arguments) for call in answer.calls if question.tools
    ]
    calls = tuple(calls_from(raw_calls, question.steps))
    return replace(answer, calls=calls, stop=stop_with(answer.stop, calls))


def _estimated(answer: Answer, question: Question) -> Answer:
    """The answer with its usage, estimated from the texts."""
    input_texts = [question.system, *(text for _, text in question.messages)]
    input_texts += [
        text for tool in question.tools for text in (tool.description, tool.schema)
    ]
    for step in question.steps:
        input_texts += [
            step.text,
            *map(_written, step.calls),
            *(result.text for result in step.results),
            *filter(None, [step.answer]),
        ]
    output_texts = [answer.text, *map(_written, answer.calls)]
    usage = Usage(
        sum(map(estimated_tokens, input_texts)),
        sum(map(estimated_tokens, output_texts)),
        0,
    )
    return replace(answer, usage=usage)


def _written(call: ToolCall) -> str:
    return f"{call.name} {call.arguments}"


def load_script(spec: ModelSpec) -> Script:
    """The script of a model name, or SettingsError."""
    if spec.model_id.endswith(".json"):
        return _script_of_file(spec, Path(spec.model_id))
    source, colon, function = spec.model_id.rpartition(":")
    if not colon:
        raise spec.error(
            "neither a .json file nor a function",
            "Write scripted:FILE.json or scripted:FILE.py:FUNCTION.",
        )
    try:
        module = _import(source)
    except Exception as error:
        raise _not_loaded(spec, source, error) from error
    script: object = getattr(module, function, None)
    if not callable(script):
        raise spec.error(f"{source} has no function {function!r}", "Check its name.")
    return script


def script_file(spec: ModelSpec) -> Path | None:
    """The file of a script; None if it is a function of an installed module."""
    source = (
        spec.model_id.rpartition(":")[0]
        if ":" in Path(spec.model_id).name
        else spec.model_id
    )
    return Path(source) if source.endswith((".json", ".py")) else None


def with_script_file(spec: ModelSpec, file: Path) -> ModelSpec:
    """The same script, in a copy of its file."""
    return replace(
        spec, model_id=spec.model_id.replace(str(script_file(spec)), str(file), 1)
    )


def _not_loaded(spec: ModelSpec, source: str, error: Exception) -> SettingsError:
    place = shown(Path(source))
    if isinstance(error, OSError):
        return spec.error(f"{place}: {reason_of(error)}", "Check the path.")
    if isinstance(error, ModuleNotFoundError):
        return spec.error(str(error), "Check the name.")
    cause = error.__cause__ if source.endswith(".py") else error
    if isinstance(cause, SyntaxError):
        location = f"{shown(Path(cause.filename or source))}:{cause.lineno}"
        return spec.error(f"{location}: {type(cause).__name__}: {cause.msg}")
    return spec.error(f"{place}: {type(cause).__name__}: {cause}")


def _import(source: str) -> object:
    if source.endswith(".py"):
        return load_python_file(Path(source))
    return importlib.import_module(source)


def _script_of_file(spec: ModelSpec, file: Path) -> Script:
    try:
        rules: list[Rule] = read_json_form(file, _RULES, InputError, _EXAMPLE)
    except InputError as error:
        raise spec.error(f"{error.where}: {error.problem}", error.hint) from None

    def script(question: Question) -> Answer:
        for rule in rules:
            if rule.matches(question):
                return rule.answer_to(question)
        raise ModelError(
            f"no rule in {file} matches this question", "Add one with only an answer"
        )

    return script
