"""A fake model that is a real adapter: answers from a file or a Python function.

``scripted:answers.json`` is a list of rules, and the first that matches answers:
``{"question": "text in it", "system": "text in it", "answer": "…"}``; both texts are optional.
``scripted:answers.py:function`` (or ``scripted:package.module:function``) takes the Question and
returns a text or an Answer.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from .._util.files import reason_of
from .._util.json_forms import Strict, read_json_form
from .._util.python_files import load_python_file
from ..errors import InputError, ModelError, SettingsError, shown
from ..skills.skill import estimated_tokens
from ..trials.answer import Answer, Usage
from ..trials.trial import Question
from .port import Download, Model, ModelName, ModelSpec, Provider
from .prices import FREE, Price
from .sdk import empty_reply

Script = Callable[[Question], str | Answer]


class Rule(Strict):
    """One rule of a file."""

    question: str = ""
    system: str = ""
    answer: str

    def matches(self, question: Question) -> bool:
        asked = question.messages[-1][1].casefold()
        return self.question.casefold() in asked and self.system in question.system


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
            raise ModelError(f"the script raised {error!r}", "Fix the script") from error
        if not isinstance(reply, str | Answer):
            kind = type(reply).__name__
            raise ModelError(f"the script returned {kind}, not a text or an Answer")
        if isinstance(reply, str):
            reply = Answer(reply, Usage(_tokens_in(question), estimated_tokens(reply), 0))
        if not reply.text.strip() and not reply.files and not reply.refused:
            raise empty_reply(reply.stop, reply.usage)
        return reply

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class ScriptedProvider(Provider):
    """Scripts; their answers are never stored, as a script may answer anything at any time."""

    def resolve(self, wanted: ModelName, rest: str, env: Mapping[str, str]) -> ModelSpec:  # noqa: ARG002
        return ModelSpec(wanted.name, self, str(wanted.folder / Path(rest).expanduser()))

    def require(self, spec: ModelSpec, env: Mapping[str, str], download: Download) -> None:  # noqa: ARG002
        load_script(spec)

    def identity(self, spec: ModelSpec) -> str | None:  # noqa: ARG002
        return None

    def price(self, spec: ModelSpec) -> Price | None:  # noqa: ARG002
        return FREE

    async def open(self, spec: ModelSpec, timeout: float) -> Model:  # noqa: ARG002
        return ScriptedModel(load_script(spec), spec.name)


def _tokens_in(question: Question) -> int:
    return sum(map(estimated_tokens, (question.system, *(text for _, text in question.messages))))


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


def _not_loaded(spec: ModelSpec, source: str, error: Exception) -> SettingsError:
    place = shown(Path(source))
    if isinstance(error, OSError):
        return spec.error(f"{place}: {reason_of(error)}", "Check the path.")
    if isinstance(error, ModuleNotFoundError):
        return spec.error(str(error), "Check the name.")
    cause = error.__cause__ if source.endswith(".py") else error
    if isinstance(cause, SyntaxError):
        where = f"{shown(Path(cause.filename or source))}:{cause.lineno}"
        return spec.error(f"{where}: {type(cause).__name__}: {cause.msg}")
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

    def script(question: Question) -> str:
        for rule in rules:
            if rule.matches(question):
                return rule.answer
        raise ModelError(f"no rule in {file} matches this question", "Add one with only an answer")

    return script
