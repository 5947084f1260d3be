"""What the gateway needs of a protocol: requests, replies and errors.

Requests of agents and replies of servers may hold anything. What can't be parsed is not
logged, but passed on all the same.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ...models.tool_turns import dicts_in
from ...skills.case import Role
from ...trials.answer import Answer, Usage
from ...trials.transcript import Step, Tool, ToolCall, ToolResult
from ...trials.trial import Question
from .door import Door, Passed
from .http import Body, dict_of, limit_of, text_of

# Instructions are the system text of a request; "system" is said later.
ItemKind = Literal[
    "instruction", "system", "user", "assistant", "thinking", "call", "result"
]
_TOOL_CHOICES: Final = ("tool_choice", "toolConfig", "tool_config")
# Where a tool has the form of its arguments.
_SCHEMAS: Final = (
    "input_schema",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "format",
)
_OPENAI_ERRORS: Final = {401: "authentication_error", 403: "permission_error"}


@dataclass(frozen=True)
class Item:
    """A part of the conversation in a request."""

    kind: ItemKind
    text: str
    call: str = ""  # the id of the call, also of a result
    tool: str = ""  # the name of a called tool
    failed: bool = False


@dataclass(frozen=True)
class AgentRequest:
    """A parsed request."""

    model: str
    system: str
    items: tuple[Item, ...]
    tools: tuple[Tool, ...]
    max_output: int | None
    stream: bool
    thread: str = ""  # the agent's id of the conversation, if it sends one
    free_form: frozenset[str] = frozenset()  # names of tools that take a text, not JSON
    forbids_tools: bool = False  # the tools are there, but may not be called


@dataclass(frozen=True)
class Target:
    """What the path of a request says."""

    path: str
    model: str = ""  # where the path names it, not the body
    stream: bool = False  # where the path says so, not the body
    counts: bool = False  # it only asks for the number of tokens
    query: str = ""  # to pass on


class ReplyStream(ABC):
    """Joins the events of a stream to the body of a plain reply."""

    ended = False  # whether the reply is complete

    @abstractmethod
    def add(self, event: Body) -> None: ...

    @abstractmethod
    def body(self) -> Body: ...


class Protocol(ABC):
    """One protocol. Whatever it reads, its methods raise only what they document."""

    version = "/v1"
    path: str  # below the address of a server, without the version
    content = "messages"  # the key of the list of messages
    limits: tuple[str, ...] = ("max_tokens",)  # the keys of the longest reply
    count_path = ""  # of requests for the number of tokens
    last_event = b""  # of every stream
    door: Door

    def target(self, path: str, query: str) -> Target | None:
        """The meaning of a path; None if it is not of this protocol."""
        path = path.removeprefix(self.version)
        if path not in (self.path, self.count_path) or not path:
            return None
        passed_on = "beta=true" if query == "beta=true" else ""
        return Target(path, counts=path == self.count_path, query=passed_on)

    def url(self, base: str, target: Target, model: str) -> str:  # noqa: ARG002
        """Where a request goes; ``base`` is the address that the
        provider's SDK would get.
        """
        return f"{base}{target.path}"

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Our own headers, such as that of the key, as this protocol has them."""
        return headers

    def parse_request(self, body: Body) -> AgentRequest:
        """ValueError if it is no request of this protocol."""
        if not isinstance(body.get(self.content), list):
            raise ValueError(f"{self.content}: a list is required")

        system, items = list[str](), list[Item]()
        for item in self.items(body):
            if item.kind == "instruction":
                system.append(item.text)
            else:
                items.append(item)
        return AgentRequest(
            text_of(body.get("model")),
            "\n\n".join(filter(None, system)),
            tuple(items),
            tuple(self.tools(body)),
            limit_of(body, *self.limits),
            body.get("stream") is True,
            forbids_tools=body.get("tool_choice") in ("none", {"type": "none"}),
        )

    @abstractmethod
    def items(self, body: Body) -> Iterator[Item]:
        """The conversation in a request."""

    def tools(self, body: Body) -> Iterator[Tool]:
        """The tools that a request offers."""
        for tool in dicts_in(body.get("tools")):
            yield tool_of(dict_of(tool.get("function")) or tool)

    @abstractmethod
    def parse_reply(self, body: Body) -> Answer: ...

    @abstractmethod
    def stream(self) -> ReplyStream: ...

    @abstractmethod
    def reply_body(self, answer: Answer, request: AgentRequest) -> Body:
        """The reply of a server that gives this answer to a request."""

    @abstractmethod
    def events(self, body: Body) -> Iterator[Body]:
        """The events of a reply as a stream."""

    def error(self, status: int, message: str) -> Body:
        """An error in the form of OpenAI's protocols."""
        kind = _OPENAI_ERRORS.get(status, "invalid_request_error")
        code = "model_not_found" if status == 404 else None
        return {
            "error": {"message": message, "type": kind, "param": None, "code": code}
        }

    def count_reply(self, tokens: int) -> Body:
        """The reply to a request for the number of tokens."""
        return {"input_tokens": tokens}

    def models(self, model: str) -> Body:
        """The list of the only model."""
        ends = {"first_id": model, "last_id": model, "has_more": False}
        return {"object": "list", "data": [self.model(model)], **ends}

    def model(self, model: str) -> Body:
        return {
            "id": model,
            "object": "model",
            "created": 0,
            "owned_by": "pytest-upskill",
            "type": "model",
            "display_name": model,
            "created_at": "1970-01-01T00:00:00Z",
        }

    def pass_on(self, body: Body, *, network: bool) -> Passed:
        """What of a request goes on.

        UnlistedContent if its content has something that does not go on.
        """
        passed = self.door.pass_on(body, network=network)
        if "tools" in body and "tools" not in passed.body:
            for key in _TOOL_CHOICES:
                passed.body.pop(key, None)
        return passed

    def prepare(self, body: Body, model: str, effort: str | None) -> None:  # noqa: ARG002
        """Set the model, its effort, and the options that our log needs."""
        body["model"] = model

    def is_added_usage(self, event: Body) -> bool:  # noqa: ARG002
        """Whether an event has the usage that only we asked for."""
        return False


def reply_of(
    items: Sequence[Item],
    usage: Usage,
    *,
    stop: str,
    between: str = "\n",
) -> Answer:
    """The reply that is repeated as these items in the next request.

    ``between``: what separates thoughts.
    """
    texts: dict[ItemKind, list[str]] = {"assistant": [], "thinking": []}
    calls = list[ToolCall]()
    for item in items:
        if item.kind == "call":
            calls.append(ToolCall(item.call, item.tool, item.text))
        elif item.kind in texts:
            texts[item.kind].append(item.text)
    return Answer(
        "".join(texts["assistant"]),
        usage,
        stop,
        calls=tuple(calls),
        thinking=between.join(filter(None, texts["thinking"])),
    )


def is_forced(body: Body) -> bool:
    """Whether a request forces its model to call a tool, such as for a title."""
    choice = body.get("tool_choice")
    named = (
        (choice.get("name"), choice.get("function")) if isinstance(choice, dict) else ()
    )
    return any(named)


def tool_of(tool: Body, name: str = "") -> Tool:
    schema = next((tool[key] for key in _SCHEMAS if tool.get(key)), None)
    return Tool(
        name or text_of(tool.get("name")),
        text_of(tool.get("description")),
        json.dumps(schema),
    )


def question_of(request: AgentRequest, trial: Question) -> Question:
    """The question that a request of a trial's agent asks."""
    messages, steps, text = list[tuple[Role, str]](), list[Step](), ""
    for item in request.items:
        if item.kind == "call":
            _add_call(item, text, steps)
            text = ""
        elif item.kind == "result" and steps:
            result = ToolResult(item.call, item.text, item.failed)
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, result))
        elif item.kind == "assistant":
            text = item.text
        elif item.kind == "thinking":
            continue
        elif steps and text:  # the user answers
            steps.append(Step(text, (), (), answer=item.text))
            text = ""
        elif steps:  # a message after a result: the model sees it there
            _add_to_last(item, steps)
        else:
            messages += [("assistant", text)] if text else []
            messages.append(("user", item.text))
            text = ""
    return Question(
        trial.model,
        request.system,
        tuple(messages) or (("user", ""),),
        request.max_output or trial.max_output,
        trial.run,
        tools=() if request.forbids_tools else request.tools,
        steps=tuple(steps),
        login=trial.login,
    )


def _add_call(item: Item, text: str, steps: list[Step]) -> None:
    """Add a call to the step of its turn."""
    call = ToolCall(item.call, item.tool, item.text)
    if steps and steps[-1].calls and not steps[-1].results:
        steps[-1] = replace(steps[-1], calls=(*steps[-1].calls, call))
    else:
        steps.append(Step(text, (call,), ()))


def _add_to_last(item: Item, steps: list[Step]) -> None:
    """Add a message to the last result, or to what the user said."""
    if steps[-1].answer:
        steps[-1] = replace(steps[-1], answer=f"{steps[-1].answer}\n{item.text}")
        return
    *before, last = steps[-1].results or (ToolResult(steps[-1].calls[-1].id, ""),)
    last = replace(last, text=f"{last.text}\n{item.text}" if last.text else item.text)
    steps[-1] = replace(steps[-1], results=(*before, last))
