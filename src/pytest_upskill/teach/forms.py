"""What teachers and authors of cases reply: the forms, and their JSON schemas.

The schemas are written out, not made from the forms: providers take only a part of JSON Schema
and want every key to be required. The forms take what servers without schemas send.
"""

import json
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ..checks import KINDS

# The checks that an author is told of, each with an example: good for short answers, without
# code of anybody's. What is empty, 0 or false counts as not written.
OFFERED: Final[dict[str, Any]] = {
    "contains": ["wick kindle"],
    "contains_any": ["9.0", "sm_90"],
    "not_contains": ["sudo"],
    "words": ["api"],
    "equals": "feat",
    "starts_with": "fix(",
    "ends_with": ".",
    "regex": [r"v\d+\.\d+"],
    "not_regex": [r"TODO|FIXME"],
    "max_words": 60,
    "json": True,
    "defines": ["parse_date"],
}
_MEANINGS: Final = {
    "contains": "every text is in the answer, in whatever case",
    "contains_any": "one of them is",
    "not_contains": "none of them is",
    "words": "every text is there as whole words",
    "equals": "the whole answer is this text",
    "starts_with": "the answer begins with it",
    "ends_with": "the answer ends with it",
    "regex": "every pattern fits somewhere",
    "not_regex": "none of them fits",
    "max_words": "the answer has no more words",
    "json": "the answer is JSON, or its first fence is",
    "defines": "a code fence of the answer defines these functions or classes",
    "judge": "a judge reads the answer and says whether it meets each sentence",
}
_JUDGE_EXAMPLE: Final = ["It names the command before it explains it."]


class Loose(BaseModel):
    """A form that passes over what it does not know: models add keys of their own."""

    model_config = ConfigDict(extra="ignore")


class FileForm(Loose):
    path: str
    text: str


class DraftForm(Loose):
    name: str = ""
    description: str
    body: str
    files: list[FileForm] = Field(default_factory=list)


class QuestionFileForm(Loose):
    name: str
    text: str


class CaseReply(Loose):
    id: str = ""
    input: str
    files: list[QuestionFileForm] = Field(default_factory=list)
    expected: dict[str, Any]
    tags: list[str] = Field(default_factory=list)
    reference: str
    wrong: str


class CasesReply(Loose):
    cases: list[Any]  # each is held to its form by itself, so that one can't spoil the others


def offered(judge: bool) -> dict[str, Any]:
    return {**OFFERED, **({"judge": _JUDGE_EXAMPLE} if judge else {})}


def checks_told(judge: bool) -> str:
    """The checks in words, one a line with an example."""
    return "\n".join(
        f"- {json.dumps({name: example})}: {_MEANINGS[name]}"
        for name, example in offered(judge).items()
        if name in KINDS
    )


_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


DRAFT_SCHEMA: Final = json.dumps(
    _object(name=_TEXT, description=_TEXT, body=_TEXT, files=_list(_object(path=_TEXT, text=_TEXT)))
)


def cases_schema(judge: bool) -> str:
    kinds = {list: _TEXTS, str: _TEXT, int: {"type": "integer"}, bool: {"type": "boolean"}}
    expected = {name: kinds[type(example)] for name, example in offered(judge).items()}
    case = _object(
        id=_TEXT,
        input=_TEXT,
        files=_list(_object(name=_TEXT, text=_TEXT)),
        expected=_object(**expected),
        tags=_TEXTS,
        reference=_TEXT,
        wrong=_TEXT,
    )
    return json.dumps(_object(cases=_list(case)))
