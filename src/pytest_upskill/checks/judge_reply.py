"""What a judge must reply, and how its reply is read.

A judge may quote or repeat the answer, which may hold a verdict of its own making. So a
verdict counts only with a mark that no answer can contain, and a reply that has two
different ones is none at all.
"""

import json
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from .._util.json_forms import objects_in
from .._util.texts import one_line
from ..trials.answer import without_reasoning

_LONGEST_REPLY: Final = 100_000  # characters; a judge may write some 20,000
_SHORTEST_END: Final = '"verdict":"pass"}]}'  # of a reply
_VERDICT: Final = {
    "type": "object",
    "properties": {
        "criterion": {"type": "integer"},
        "quote": {"type": "string"},
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": ["pass", "fail", "unsure"]},
    },
    "required": ["criterion", "quote", "reason", "verdict"],
    "additionalProperties": False,
}


class Ruling(BaseModel):
    """A judge's verdict on one criterion."""

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)

    criterion: int
    quote: str
    reason: str
    verdict: Literal["pass", "fail", "unsure"]


class _Reply(BaseModel):
    # An answer that is quoted as it is could end the verdicts and open
    # another key for the rest.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    mark: str
    verdicts: list[Ruling]


def wanted_form(mark: str) -> str:
    """What a judge is told about its reply."""
    return (
        f'Reply with JSON only: {{"mark": "{mark}", "verdicts": [{{"criterion": 1,'
        ' "quote": "…", "reason": "…", "verdict": "pass"}]}, with this mark and'
        " exactly one entry for each criterion, in their order."
    )


def schema(criteria: int) -> str:
    """Written out, not made from the models above: providers support
    only part of JSON Schema.

    The mark is not in it: servers compile each new schema, which takes seconds.
    """
    verdicts = {
        "type": "array",
        "description": f"{criteria} verdicts",
        "items": _VERDICT,
    }
    return json.dumps(
        {
            "type": "object",
            "properties": {"mark": {"type": "string"}, "verdicts": verdicts},
            "required": ["mark", "verdicts"],
            "additionalProperties": False,
        }
    )


def read_reply(
    text: str, criteria: int, mark: str, judged: str = ""
) -> list[Ruling] | str:
    """The verdicts of a reply in the order of the criteria, or the problem with it.

    ``judged`` is what the judge may have copied.
    """
    if len(text) > _LONGEST_REPLY:
        return f"it has {len(text):,} characters"
    objects = list(objects_in(without_reasoning(text)))
    if not objects:
        return "it has no complete JSON object"
    marked = [(data, source) for data, source in objects if data.get("mark") == mark]
    if not marked:
        return f'no object in it has the mark "{mark}"'
    if any(_is_copied(source, judged) for _, source in marked):
        return (
            "its verdicts end with words of the answer: quotes in a text need a"
            " backslash"
        )
    read = [_verdicts_of(data, criteria) for data, _ in marked]
    problems = [verdicts for verdicts in read if isinstance(verdicts, str)]
    if problems:
        return problems[0]
    rulings_read = [verdicts for verdicts in read if not isinstance(verdicts, str)]
    if (
        len({tuple(ruling.verdict for ruling in rulings) for rulings in rulings_read})
        > 1
    ):
        return f"it has {len(rulings_read)} different sets of verdicts"
    return rulings_read[-1]


def _is_copied(source: str, judged: str) -> bool:
    """Whether the end of an object stands in the answer as well.

    A judge that quotes without a backslash lets the answer close its string, and then
    the object, with verdicts of its own.
    """
    end = "".join(source.split())[-len(_SHORTEST_END) :]
    return end in "".join(judged.split())


def _verdicts_of(data: dict[str, Any], criteria: int) -> list[Ruling] | str:
    try:
        verdicts = _Reply.model_validate(data).verdicts
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return one_line(f"{place}: {first['msg']}" if place else first["msg"], 200)
    numbers = sorted(ruling.criterion for ruling in verdicts)
    if numbers != list(range(1, criteria + 1)):
        return f"there must be one verdict for each of criteria 1 to {criteria}"
    return sorted(verdicts, key=lambda ruling: ruling.criterion)
