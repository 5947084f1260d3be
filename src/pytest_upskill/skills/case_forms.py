"""The form of skill_meta.json: what may stand in it, and what is said where it does not fit.

The descriptions are what an editor shows to who writes such a file: schema.py makes its JSON
schema of them.
"""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SkipValidation,
    StringConstraints,
    Tag,
)

from .._util.json_forms import Strict
from .._util.texts import slug
from ..settings import MOST_RUNS

_GOOD_ID: Final = re.compile(r"\w[\w.+-]*")
_GOOD_TAG: Final = re.compile(r"[^\W_][\w.-]*")
_PYTEST_MARKS: Final = frozenset(
    {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings"}
)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _good_id(value: str) -> str:
    if not _GOOD_ID.fullmatch(value):
        raise ValueError(
            f"{value!r} can't be part of a test's name; use letters, digits and . _ + - only, "
            f"for example {slug(value) or 'case-1'!r}"
        )
    return value


def _good_tag(value: str) -> str:
    if not _GOOD_TAG.fullmatch(value) or value in _PYTEST_MARKS:
        raise ValueError(
            f"{value!r} can't be a mark of pytest; use another word of letters, digits and . _ -"
        )
    return value


def _good_reason(value: Any) -> Any:
    if not isinstance(value, bool) and not (isinstance(value, str) and value.strip()):
        raise ValueError("this is neither a text that says why, nor true or false")
    return value


def _one_or_more(value: Any) -> Any:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise ValueError("this is neither a text nor a list of texts")
    return value


Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
CaseId = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str | int),
    AfterValidator(_good_id),
]
CaseTag = Annotated[str, AfterValidator(_good_tag)]
Reason = Annotated[bool | str, BeforeValidator(_good_reason)]
Patterns = Annotated[
    list[Text], BeforeValidator(_one_or_more, json_schema_input_type=Text | list[Text])
]


def either(choices: dict[type, str], problem: str) -> Discriminator:
    """Picks the form of a union by the type of what is written, so that one thing is said of it."""

    def tag_of(value: Any) -> str | None:
        return next((tag for kind, tag in choices.items() if isinstance(value, kind)), None)

    return Discriminator(tag_of, custom_error_type="neither", custom_error_message=problem)


def _no_system(value: Any) -> Any:
    if value == "system":
        raise ValueError('a system text is written as "system" of the case, beside "input"')
    return value


class MessageForm(Strict):
    """One turn of a conversation."""

    role: Annotated[Literal["user", "assistant"], BeforeValidator(_no_system)] = Field(
        description="Who says it."
    )
    content: Text = Field(description="What is said.")


def _in_turn(messages: list[MessageForm]) -> list[MessageForm]:
    turns = [message.role for message in messages]
    if turns[-1:] != ["user"] or turns != (["user", "assistant"] * len(turns))[: len(turns)]:
        raise ValueError("user and assistant must take turns, with user first and last")
    return messages


Messages = Annotated[list[MessageForm], AfterValidator(_in_turn)]
Input = Annotated[
    Annotated[Text, Tag("text")] | Annotated[Messages, Tag("messages")],
    either({str: "text", list: "messages"}, "this is neither a text nor a list of messages"),
]


class FileOfSkill(Strict):
    """A file that stands in the skill's folder."""

    file: Text = Field(description="Its path, from the skill's folder on.")


TextOrFile = Annotated[
    Annotated[str, Tag("text")] | Annotated[FileOfSkill, Tag("file")],
    either({str: "text", dict: "file"}, "this is neither a text nor an object with a 'file'"),
]
Files = Annotated[
    Annotated[None, Tag("none")]
    | Annotated[list[Text], Tag("paths")]
    | Annotated[dict[str, TextOrFile], Tag("texts")],
    either(
        {type(None): "none", list: "paths", dict: "texts"},
        "this is neither an object of texts nor a list of paths",
    ),
]


class ContextForm(Strict):
    files: Files = Field(
        None,
        description="Files that are appended to the question, each in a fence with its name: "
        'name → text, or name → {"file": "path in the skill\'s folder"}, or a list of such paths.',
    )


class SharedForm(Strict):
    """What a case and the defaults of a file have in common."""

    context: ContextForm | None = Field(None, description="What belongs to the question.")
    system: Text | None = Field(
        None,
        description="The system text of both arms, in place of 'You are a helpful assistant.'",
    )
    tags: list[CaseTag] = Field(
        default_factory=list, description='Marks of pytest, for -m "build and not slow".'
    )
    skip: Reason | None = Field(None, description="Why this is not asked, or true.")
    xfail: Reason | None = Field(None, description="Why this is expected to fail, or true.")
    runs: int | None = Field(
        None,
        ge=1,
        le=MOST_RUNS,
        description="How often each arm is asked, in place of --skill-runs.",
    )
    threshold: float | None = Field(
        None,
        gt=0,
        le=1,
        description="The share of runs that must pass with the skill; without it more than half.",
    )
    models: Patterns | None = Field(
        None,
        description="Only for models whose name or id fits one of these, as in 'claude-*'.",
    )
    # upskill writes these three as null where a case has none.
    validator: Text | None = Field(
        None, description="The name of a check that a conftest.py registers."
    )
    validator_config: dict[str, Any] | None = Field(None, description="What that check is given.")
    output_file: str | None = Field(None, description="Given to that check too.")


class CaseForm(SharedForm):
    """One question with the checks that its answer must pass."""

    id: CaseId | None = Field(
        None,
        description="The name of the test: letters, digits and . _ + -. Without one it is made of "
        "the question.",
    )
    input: Input = Field(
        description="The question; or a list of messages of user and assistant in turn, of which "
        "the last is the question.",
    )
    expected: Any = Field(None, description="The checks that the answer must pass.")


class DefaultsForm(SharedForm):
    """What holds for every case of the file that does not say otherwise."""

    expected: dict[str, Any] | None = Field(
        None, description="Checks of every case; those of a case itself win, key by key."
    )


class MetaForm(Strict):
    """The cases of a skill: questions that are asked with and without it."""

    schema_: str | None = Field(
        None, alias="$schema", description="Where the schema of this file is; for editors."
    )
    metadata: dict[str, Any] | None = Field(None, description="Anything; it is left alone.")
    defaults: DefaultsForm | None = Field(
        None,
        description="What holds for every case that does not say otherwise; tags are added.",
    )
    # Held to their form after the defaults are put in.
    cases: list[SkipValidation[CaseForm]] | None = Field(None, description="The cases.")
    tests: list[SkipValidation[CaseForm]] | None = Field(
        None, description="The cases, under the name that upskill saves them with."
    )
