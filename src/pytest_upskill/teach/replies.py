"""Ask a model for JSON of a known form: forms, schemas, reading, one repair.

The schemas are made of examples rather than of the forms: providers accept only a
subset of JSON Schema and want every key to be required. The forms accept what servers
without schema support send.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .._util.secrets import masked
from .._util.texts import one_line
from ..checks.judging import sent_back
from ..errors import BudgetError, TeachError, UnusableError
from ..trials.answer import NoAnswer
from ..trials.trial import Question
from .teach_models import TeachModels

Form = TypeVar("Form", bound=BaseModel)
Value = TypeVar("Value")

TEACHER_MAX_OUTPUT: Final = 8192
_MOST_OBJECTS: Final = 200
_MOST_SHOWN: Final = 6
_MOST_SENT_BACK: Final = 60_000  # characters of a reply: more than a teacher may write
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
# Small models put line breaks into strings
_DECODER: Final = json.JSONDecoder(strict=False)

# The checks that authors may use, with an example and its meaning: good for short
# answers, and none runs code. An empty, 0 or false value counts as not written.
_OFFERED: Final[dict[str, tuple[Any, str]]] = {
    "contains": (["wick kindle"], "every text is in the answer, in whatever case"),
    "contains_any": (["9.0", "sm_90"], "one of them is"),
    "not_contains": (["sudo"], "none of them is"),
    "words": (["api"], "every text is there as whole words"),
    "equals": ("feat", "the whole answer is this text"),
    "starts_with": ("fix(", "the answer begins with it"),
    "ends_with": (".", "the answer ends with it"),
    "regex": ([r"v\d+\.\d+"], "every pattern fits somewhere"),
    "not_regex": ([r"TODO|FIXME"], "none of them fits"),
    "max_words": (60, "the answer has no more words"),
    "json": (True, "the answer is JSON, or its first fence is"),
    "defines": (
        ["parse_date"],
        "a code fence of the answer defines these functions or classes",
    ),
}
_JUDGE: Final = (
    ["It names the command before it explains it."],
    "a judge reads the answer and says whether it meets each sentence",
)


class Loose(BaseModel):
    """A form that ignores unknown keys: models add their own."""

    model_config = ConfigDict(extra="ignore", defer_build=True)


class DraftFile(Loose):
    path: str
    text: str


class DraftForm(Loose):
    name: str = ""
    description: str = ""
    body: str
    files: list[DraftFile] = Field(default_factory=list)


class QuestionFileForm(Loose):
    name: str
    text: str


class LeftFileForm(Loose):
    """A file that an agent must leave, and what must be in it or not."""

    path: str
    contains: list[str] = Field(default_factory=list)
    not_contains: list[str] = Field(default_factory=list)


class CaseReply(Loose):
    """``leaves`` and the files of both answers are for agents alone."""

    id: str = ""
    input: str
    files: list[QuestionFileForm] = Field(default_factory=list)
    expected: dict[str, Any]
    leaves: list[LeftFileForm] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    reference: str
    reference_files: list[QuestionFileForm] = Field(default_factory=list)
    wrong: str
    wrong_files: list[QuestionFileForm] = Field(default_factory=list)


def offered(judge: bool) -> dict[str, tuple[Any, str]]:
    """The checks that an author may use: an example of each, and its meaning."""
    return {**_OFFERED, **({"judge": _JUDGE} if judge else {})}


def described_checks(judge: bool) -> str:
    """The checks for a prompt: one a line, with an example."""
    return "\n".join(
        f"- {json.dumps({name: example})}: {meaning}"
        for name, (example, meaning) in offered(judge).items()
    )


def schema_like(example: Any) -> dict[str, Any]:
    """The schema of values like this one: all keys are required, and no others
    allowed.
    """
    if isinstance(example, dict):
        properties = {key: schema_like(value) for key, value in example.items()}
        about = {"required": list(properties), "additionalProperties": False}
        return {"type": "object", "properties": properties, **about}
    if isinstance(example, list):
        return {"type": "array", "items": schema_like(example[0])}
    return {"type": {str: "string", int: "integer", bool: "boolean"}[type(example)]}


_FILE: Final = {"name": "", "text": ""}
DRAFT_SCHEMA: Final = json.dumps(
    schema_like(
        {"name": "", "description": "", "body": "", "files": [{"path": "", "text": ""}]}
    )
)
VERSION_SCHEMA: Final = json.dumps(schema_like({"body": ""}))


def cases_schema(judge: bool, *, agents: bool = False) -> str:
    expected = {name: example for name, (example, _) in offered(judge).items()}
    case = {"id": "", "input": "", "files": [_FILE], "expected": expected, "tags": [""]}
    case |= {"reference": "", "wrong": ""}
    if agents:
        case |= {"leaves": [{"path": "", "contains": [""], "not_contains": [""]}]}
        case |= {"reference_files": [_FILE], "wrong_files": [_FILE]}
    return json.dumps(schema_like({"cases": [case]}))


class NotUsable(Exception):
    """A reply with problems, which are written for the model that sent it.

    ``value`` is what can still be used of it, if the problems are only advice.
    """

    def __init__(self, problems: Sequence[str], value: Any = None) -> None:
        self.problems = list(problems)
        self.value = value
        super().__init__("; ".join(self.problems))


@dataclass(frozen=True)
class Request(Generic[Value]):
    """What a model is asked to write, and how its reply is read."""

    system: str
    prompt: str
    schema: str
    read: Callable[[str], Value]  # raises NotUsable
    repairs: int = 1


def ask_for(models: TeachModels, model: str, request: Request[Value]) -> Value:
    """What is read of the reply, or of a repaired one.

    UnusableError if the last reply is not usable either,
    unless its problems are only advice.
    """
    prompt = masked(request.prompt)
    question = Question(
        model,
        request.system,
        (("user", prompt),),
        TEACHER_MAX_OUTPUT,
        schema=request.schema,
    )
    usable = list[Value]()
    for repairs_left in range(request.repairs, -1, -1):
        reply = models.ask([question])[0]
        if isinstance(reply, NoAnswer):
            raise no_answer(models, reply.reason)
        try:
            return request.read(reply.text)
        except NotUsable as error:
            usable += [] if error.value is None else [error.value]
            problems = error.problems
        if repairs_left:
            turns = (
                *question.messages,
                ("assistant", sent_back(reply.text, _MOST_SENT_BACK)),
                ("user", _repair_prompt(problems)),
            )
            question = replace(question, messages=turns)
    if usable:
        return usable[-1]
    reasons = [one_line(problem, 300) for problem in problems[:_MOST_SHOWN]]
    times = "twice" if request.repairs == 1 else f"{request.repairs + 1} times"
    lines = "\n  ".join([f"{model} returned an unusable reply {times}:", *reasons])
    raise UnusableError(f"{lines}\n  Try a stronger model.") from None


def _repair_prompt(problems: Sequence[str]) -> str:
    return (
        "This can't be used yet:\n"
        + "\n".join(f"- {problem}" for problem in problems)
        + "\n\nReply with the whole JSON object once more, corrected, and nothing else."
    )


def no_answer(models: TeachModels, reason: str) -> TeachError:
    """The error for a question without an answer; servers may
    quote keys in their reasons.
    """
    reason = masked(reason)
    return BudgetError(reason) if models.out_of_budget else TeachError(reason)


def read_reply(text: str, form: type[Form]) -> Form:
    """The first JSON object in a text that has the form; NotUsable says what is
    wrong.
    """
    problem = ""
    for data in objects_in(text):
        try:
            return form.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            message = one_line(
                f"{place}: {first['msg']}" if place else first["msg"], 200
            )
            # Of the first object: the others are inside it
            problem = problem or message
    raise NotUsable([f"invalid JSON: {problem or 'no JSON object in the reply'}"])


def read_entries(text: str, key: str, required: str) -> list[Any]:
    """The list under a key; if the reply is cut off or a bare list, the entries in it.

    Each is validated on its own, so that one can't spoil the others.
    """
    objects = list(objects_in(text))
    lists = (data[key] for data in objects if isinstance(data.get(key), list))
    entries = next(lists, None) or [data for data in objects if required in data]
    if not entries:
        problem = (
            f"it has no {key}"
            if objects
            else "invalid JSON: no JSON object in the reply"
        )
        raise NotUsable([problem])
    return entries


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """All JSON objects in a text, whatever is around them: fences, prose, thoughts."""
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            data = _printable(_DECODER.raw_decode(text, at)[0])
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            yield data
        at = text.find("{", at + 1)


def _printable(value: Any) -> Any:
    """Without control characters and lone surrogates."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub("", value.replace("\r\n", "\n"))
    if isinstance(value, list):
        return [_printable(entry) for entry in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(value[key]) for key in value}
    return value
