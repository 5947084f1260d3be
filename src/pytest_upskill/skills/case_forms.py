"""The form of skill_meta.json, with the messages for values that do not fit.

The field descriptions end up in the JSON schema, where editors show them.
"""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    StringConstraints,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .._util.json_forms import Strict
from .._util.texts import slug
from ..settings import MOST_RUNS, MOST_TURNS
from .invocation import Invocation
from .task_forms import SandboxForm, Text, TextOrFile, WrittenReference, either

_GOOD_ID: Final = re.compile(r"\w[\w.+-]*")
_GOOD_TAG: Final = re.compile(r"[^\W_][\w.-]*")
_PYTEST_MARKS: Final = frozenset(
    {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings"}
)


def _as_text(value: Any) -> Any:
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    )


def is_good_id(text: str) -> bool:
    return bool(_GOOD_ID.fullmatch(text))


def is_good_tag(text: str) -> bool:
    return bool(_GOOD_TAG.fullmatch(text)) and text not in _PYTEST_MARKS


def _good_id(value: str) -> str:
    if not is_good_id(value):
        raise ValueError(
            f"{value!r} can't be part of a test id; use letters, digits and . _ + -, "
            f"for example {slug(value) or 'case-1'!r}"
        )
    return value


def _good_tag(value: str) -> str:
    if not is_good_tag(value):
        raise ValueError(
            f"{value!r} can't be a pytest mark; use another word of letters, digits and"
            " . _ -"
        )
    return value


def _good_reason(value: Any) -> Any:
    if not isinstance(value, bool) and not (isinstance(value, str) and value.strip()):
        raise ValueError("must be a reason, true or false")
    return value


def _one_or_more(value: Any) -> Any:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise ValueError("must be a string or a list of strings")
    return value


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


def _no_system(value: Any) -> Any:
    if value == "system":
        raise ValueError(
            'write a system prompt as "system" of the case, next to "input"'
        )
    return value


class MessageForm(Strict):
    """One turn of a conversation."""

    role: Annotated[Literal["user", "assistant"], BeforeValidator(_no_system)] = Field(
        description="Who says it: user and assistant in turn, user first and last."
    )
    content: Text = Field(description="What this message says.")


def _in_turn(messages: list[MessageForm]) -> list[MessageForm]:
    turns = [message.role for message in messages]
    if (
        turns[-1:] != ["user"]
        or turns != (["user", "assistant"] * len(turns))[: len(turns)]
    ):
        raise ValueError("user and assistant must take turns, with user first and last")
    return messages


Messages = Annotated[list[MessageForm], AfterValidator(_in_turn)]
Input = Annotated[
    Annotated[Text, Tag("text")] | Annotated[Messages, Tag("messages")],
    either({str: "text", list: "messages"}, "must be a string or a list of messages"),
]


def _invocation(value: str) -> str:
    Invocation.of(value)
    return value


Invoke = Annotated[Text, AfterValidator(_invocation)]


Files = Annotated[
    Annotated[None, Tag("none")]
    | Annotated[list[Text], Tag("paths")]
    | Annotated[dict[str, TextOrFile], Tag("texts")],
    either(
        {type(None): "none", list: "paths", dict: "texts"},
        "must be an object of strings or a list of paths",
    ),
]


class ContextForm(Strict):
    """What belongs to a question."""

    files: Files = Field(
        None,
        description=(
            "Files to append to the question, each in a fence with its name; for an"
            ' agent, files in its workspace: name → text, or name → {"file": "path in'
            " the skill's folder\"}, or a list of such paths."
        ),
    )


MOST_ANSWERS: Final = 20  # of a user
DEFAULT_ANSWERS: Final = 6
Fact = Annotated[Text, StringConstraints(max_length=2_000)]
Replies = Annotated[
    list[Annotated[Text, StringConstraints(max_length=10_000)]],
    Field(min_length=1, max_length=MOST_ANSWERS),
]


class UserForm(Strict):
    """A user who answers the agent's questions."""

    facts: list[Fact] | None = Field(
        None,
        min_length=1,
        max_length=50,
        description=(
            "What the user knows, such as 'The invoice is due on 3 May.' A model"
            " answers the agent's questions from these facts alone."
        ),
    )
    max_turns: int | None = Field(
        None,
        ge=1,
        le=MOST_ANSWERS,
        description=(
            f"The most answers that a model gives (default: {DEFAULT_ANSWERS})."
        ),
    )
    replies: Replies | None = Field(
        None, description="Fixed answers instead, the same as replies of the case."
    )

    @field_validator("replies")
    @classmethod
    def _one_kind(
        cls, replies: list[str] | None, info: ValidationInfo
    ) -> list[str] | None:
        others = [name for name in ("facts", "max_turns") if info.data.get(name)]
        if replies and others:
            raise ValueError(f"can't be combined with {others[0]}; keep one of them")
        return replies

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.facts and not self.replies:
            raise ValueError('needs "facts", a list of what the user knows')
        return self


class SharedForm(Strict):
    """The keys that a case and the defaults of a file share."""

    context: ContextForm | None = Field(
        None, description="What belongs to the question, besides its text."
    )
    workspace: Text | None = Field(
        None,
        description=(
            "A folder in the skill's folder, such as 'fixtures/march'; an agent works"
            " on a copy of it. Without an agent, its text files are appended to the"
            " question. It is not installed with the skill."
        ),
    )
    setup: Text | None = Field(
        None,
        description=(
            "A command that runs in the workspace before the agent, in both arms, such"
            " as 'mkdir out'; if it fails, there is no answer."
        ),
    )
    sandbox: SandboxForm | None = Field(
        None,
        description="What this case needs of the sandbox, besides what the file says.",
    )
    mcp: list[Text] | None = Field(
        None,
        description=(
            "The MCP servers that an agent has, in both arms;"
            " evals/mocks/SERVER/TOOL.md answers (default: all servers with mocks)."
        ),
    )
    mocks: Text | None = Field(
        None,
        description=(
            "A folder in evals/ with more mocks, SERVER/TOOL.md; they replace those of "
            "evals/mocks."
        ),
    )
    commands: Text | None = Field(
        None,
        description=(
            "A folder in evals/ with more commands, NAME.yaml; they replace those of "
            "evals/commands."
        ),
    )
    max_turns: int | None = Field(
        None,
        ge=1,
        le=MOST_TURNS,
        description="Turns that an agent may take, instead of those set.",
    )
    timeout: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that an agent may take, instead of those set.",
    )
    system: Text | None = Field(
        None,
        description=(
            "The system prompt of both arms instead of 'You are a helpful assistant.'"
        ),
    )
    tags: list[CaseTag] = Field(
        default_factory=list,
        description='pytest marks such as "build", for pytest -m "build and not slow".',
    )
    skip: Reason | None = Field(
        None, description="Do not ask this case: the reason, or true."
    )
    xfail: Reason | None = Field(
        None, description="A wrong answer is expected: the reason, or true."
    )
    runs: int | None = Field(
        None,
        ge=1,
        le=MOST_RUNS,
        description="Runs of each arm of this case, instead of the number set for all.",
    )
    threshold: float | None = Field(
        None,
        gt=0,
        le=1,
        description=(
            "The share of runs with the skill that must pass (default: more than half)."
        ),
    )
    models: Patterns | None = Field(
        None,
        description=(
            "Only for models whose name or id matches one of these, like 'claude-*'."
        ),
    )
    # upskill writes these three as null if a case has none.
    validator: Text | None = Field(
        None, description="The name of a check that a conftest.py registers."
    )
    validator_config: dict[str, Any] | None = Field(
        None, description="What the check named by validator is given."
    )
    output_file: str | None = Field(
        None, description="A file name that the check named by validator is given, too."
    )


class CaseForm(SharedForm):
    """One question with the checks its answer must pass."""

    id: CaseId | None = Field(
        None,
        description=(
            "The test id, such as deploy-command: letters, digits and . _ + - (default:"
            " from the question)."
        ),
    )
    group: Text | None = Field(
        None,
        description=(
            "A name that variants of one question share, such as the same task with"
            " other numbers: for the lift they are averaged, and count as one case."
        ),
    )
    scaffold: Text | None = Field(
        None,
        description=(
            "A bash script below a folder of the skill, such as 'evals/late/setup.sh',"
            " that makes the workspace of an agent, before setup. It sees the files of"
            " evals/ but those of other cases; the agent sees none of them."
        ),
    )
    input: Input = Field(
        description=(
            "The question, or a list of messages, user and assistant in turn, that ends"
            " with the question."
        ),
    )
    invoke: Invoke | None = Field(
        None,
        description=(
            "The explicit use of the skill, '/name arguments': arms with the skill get"
            " it in place of the input, which is the arguments if there is none."
        ),
    )
    user: UserForm | None = Field(
        None,
        description=(
            "A user who answers an agent that ends its turn with a question. Example: "
            '{"facts": ["The invoice is in EUR."], "max_turns": 6}'
        ),
    )
    replies: Replies | None = Field(
        None,
        description=(
            "Fixed answers to the agent's questions, in order; once they are used up,"
            " the agent gets no more."
        ),
    )
    expected: Any = Field(
        None,
        description=(
            "The checks that the answer must pass: an object of checks, or a list of"
            ' such groups. Example: {"contains": ["9.0"], "not_contains": ["8.0"]}'
        ),
    )

    skills: Text | None = Field(
        None,
        description=(
            "A folder in the skill's folder, such as 'environment/skills', with skills "
            "that arms with the skill have in this case alone."
        ),
    )
    reference: WrittenReference | None = Field(
        None,
        description=(
            "A solution, which shows that the checks can be passed: the text of an "
            "answer, or an object with files, or a script. Example: "
            '{"run": "solution/solve.sh"}'
        ),
    )

    @field_validator("replies")
    @classmethod
    def _no_second_user(
        cls, replies: list[str] | None, info: ValidationInfo
    ) -> list[str] | None:
        if replies and info.data.get("user"):
            raise ValueError("can't be combined with user; keep one of them")
        return replies


class DefaultsForm(SharedForm):
    """Defaults for every case of the file."""

    expected: dict[str, Any] | None = Field(
        None, description="Checks of every case; a case overrides them key by key."
    )


class TriggerForm(Strict):
    """A query, and whether an agent should open the skill for it."""

    # Others write why, or for which part of the skill
    model_config = ConfigDict(extra="allow")

    query: Text = Field(description="What a user writes; it should not name the skill.")
    should_trigger: bool = Field(
        description="Whether the skill should be opened for it, or is a near miss."
    )
    id: CaseId | None = Field(
        None, description="The test id, behind 'trigger-' (default: from the query)."
    )


class TriggerListsForm(Strict):
    """The same as two lists of queries."""

    should_trigger: list[Text] = Field(
        default_factory=list, description="Queries that should open the skill."
    )
    should_not_trigger: list[Text] = Field(
        default_factory=list,
        description="Queries that are near misses: the skill should stay closed.",
    )


class MetaForm(Strict):
    """The cases of a skill: questions to ask with and without it."""

    schema_: str | None = Field(
        None,
        alias="$schema",
        description=(
            "The path or address of this schema, by which editors complete and check"
            " the file."
        ),
    )
    metadata: dict[str, Any] | None = Field(
        None, description="Anything you like to note; it is not read."
    )
    defaults: DefaultsForm | None = Field(
        None,
        description="Defaults for every case; tags are added to a case's own.",
    )
    sandbox: SandboxForm | None = Field(
        None, description="What the skill's scripts need of the sandbox of an agent."
    )
    # Validated after the defaults are merged in.
    cases: list[SkipValidation[CaseForm]] | None = Field(
        None,
        description=(
            "The cases: questions, each with the checks that its answer must pass."
        ),
    )
    tests: list[SkipValidation[CaseForm]] | None = Field(
        None, description="The same as cases, by the name that upskill gives them."
    )
    triggers: SkipValidation[list[TriggerForm] | TriggerListsForm | None] = Field(
        None,
        description=(
            "Queries that should, or should not, make an agent open the skill. Example:"
            ' [{"query": "roll back lamp", "should_trigger": true}]'
        ),
    )
