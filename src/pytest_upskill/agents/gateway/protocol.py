"""What the gateway must know of a protocol: what was asked, what was said, how errors look.

Requests come from an agent and replies from a server: both may hold anything. What can't be
understood is left out of the record; it is passed on all the same.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ...skills.case import Role
from ...trials.answer import Answer, Usage
from ...trials.number_types import whole_number
from ...trials.tools import Step, Tool, ToolCall, ToolResult
from ...trials.trial import Question

Body = dict[str, Any]  # a JSON object
ItemKind = Literal["system", "user", "assistant", "thinking", "call", "result"]
_MOST_OUTPUT: Final = 10_000_000  # tokens; more is nonsense


@dataclass(frozen=True)
class Item:
    """A part of a conversation as a request repeats it."""

    kind: ItemKind
    text: str
    call: str = ""  # the id of a call, or of what a result is the result of
    tool: str = ""  # the name of a called tool
    failed: bool = False


@dataclass(frozen=True)
class AgentRequest:
    """A request."""

    model: str
    system: str
    items: tuple[Item, ...]
    tools: tuple[Tool, ...]
    max_output: int | None
    stream: bool
    follows: str = ""  # the id of the reply that it goes on from, if the server keeps replies
    thread: str = ""  # what the agent calls this conversation, if it does
    free_form: frozenset[str] = frozenset()  # the names of tools that take a text, not JSON
    forbids: bool = False  # the tools are there, but may not be called


@dataclass(frozen=True)
class Target:
    """What the path of a request says."""

    path: str
    model: str = ""  # where the path names it, not the body
    stream: bool = False  # the same
    counts: bool = False  # it asks only how many tokens there are
    query: str = ""  # that goes on to the server


@dataclass(frozen=True)
class ModelReply:
    """A reply, or as much of it as arrived."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop: str = "end"
    id: str = ""


class ReplyStream(ABC):
    """Reads a stream, and makes the body of it that a plain reply would have had."""

    ended = False  # whether the reply is whole

    @abstractmethod
    def add(self, event: Body) -> None: ...

    @abstractmethod
    def body(self) -> Body: ...


class Protocol(ABC):
    """One protocol. What it reads may be of any form: no method may raise but as it says."""

    version = "/v1"
    path: str  # below the address of a server, without the version
    count_path = ""  # the same for the number of tokens
    last_event = b""  # what ends every stream

    def target(self, path: str, query: str) -> Target | None:
        """What a path means; None if it is none of this protocol."""
        path = path.removeprefix(self.version)
        if path not in (self.path, self.count_path) or not path:
            return None
        kept = "beta=true" if query == "beta=true" else ""
        return Target(path, counts=path == self.count_path, query=kept)

    def url(self, base: str, target: Target, model: str) -> str:  # noqa: ARG002
        """Where a request goes at a server whose address is the one that its SDK is given."""
        return f"{base}{target.path}"

    def headers(self, own: Mapping[str, str]) -> Mapping[str, str]:
        """How this protocol sends what a server wants to see of us, such as a key."""
        return own

    @abstractmethod
    def asked(self, body: Body) -> AgentRequest:
        """What a request asks; ValueError if it is none."""

    @abstractmethod
    def said(self, body: Body) -> ModelReply: ...

    @abstractmethod
    def reading(self) -> ReplyStream: ...

    @abstractmethod
    def written(self, answer: Answer, request: AgentRequest) -> Body:
        """The reply that a server would send with this answer to a request."""

    @abstractmethod
    def events(self, body: Body) -> Iterator[Body]:
        """The same as a stream."""

    def error(self, status: int, message: str) -> Body:
        """An error in the form of OpenAI's protocols."""
        kind = _OPENAI_ERRORS.get(status, "invalid_request_error")
        code = "model_not_found" if status == 404 else None
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def counted(self, tokens: int) -> Body:
        """A number of tokens as a server tells it."""
        return {"input_tokens": tokens}

    def tokens_in(self, counted: Body) -> int | None:
        """The number of tokens that a server told."""
        return whole_number(counted.get("input_tokens"))

    def models(self, model: str) -> Body:
        """The list of models, which is one."""
        ends = {"first_id": model, "last_id": model, "has_more": False}
        return {"object": "list", "data": [self.model(model)], **ends}

    def model(self, model: str) -> Body:
        return {
            **{"id": model, "object": "model", "created": 0, "owned_by": "pytest-upskill"},
            **{"type": "model", "display_name": model, "created_at": "1970-01-01T00:00:00Z"},
        }

    def prepare(self, body: Body, model: str, effort: str | None) -> None:  # noqa: ARG002
        """Ask the model, for what the record needs, and as its name says."""
        body["model"] = model

    def is_ours(self, event: Body) -> bool:  # noqa: ARG002
        """Whether an event came only because we asked for it."""
        return False

    def without_reach(self, body: Body) -> Iterator[str]:
        """Take out of a request what a provider would do beyond answering; yields their names.

        Agents have no network; nor may a provider search, fetch or run things for them, or
        answer with another model.
        """
        for key in _REACHING_KEYS:
            if body.pop(key, None):
                yield key
        found = [kind for place in (body, *dicts(body.get("input"))) for kind in _take_out(place)]
        yield from dict.fromkeys(found)
        choice = body.get("tool_choice")
        if found and body.get("tools") == []:
            del body["tools"]
            body.pop("tool_choice", None)
        elif isinstance(choice, dict) and _reaches(choice):
            del body["tool_choice"]

    def fetched(self, body: Body) -> Iterator[str]:
        """Addresses of images and files in a request, which the provider would fetch."""
        waiting: list[object] = [body.get("messages"), body.get("input")]
        while waiting:
            one = waiting.pop()
            if isinstance(one, list):
                waiting += one
            elif isinstance(one, dict):
                if one.get("type") in _WITH_ADDRESS:
                    yield from _addresses(one)
                else:
                    waiting += [one.get("content"), one.get("output")]


_OPENAI_ERRORS: Final = {401: "authentication_error", 403: "permission_error"}
_REACHING_KEYS: Final = (
    *("mcp_servers", "container", "web_search_options", "background", "models", "plugins"),
    *("fallbacks", "conversation", "prompt"),
)
# Kinds of tools that the provider carries out itself; the agent carries out all others.
_REACHING_TOOLS: Final = (
    *("web_search", "web_fetch", "code_execution", "code_interpreter", "file_search", "mcp"),
    *("image_generation", "openrouter:"),
)


def _take_out(place: Body, depth: int = 5) -> Iterator[str]:
    """Tools that reach, also in tools of tools; yields their kinds."""
    tools = place.get("tools")
    if not isinstance(tools, list) or not depth:
        return
    reaching = [tool for tool in tools if _reaches(tool)]
    if reaching:
        place["tools"] = [tool for tool in tools if not _reaches(tool)]
        yield from (str(tool["type"]) for tool in reaching)
    for tool in dicts(place["tools"]):
        yield from _take_out(tool, depth - 1)


def _reaches(tool: object) -> bool:
    kind = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and kind.startswith(_REACHING_TOOLS)


_WITH_ADDRESS: Final = ("image", "document", "image_url", "input_image", "input_file", "file")
_ADDRESSES: Final = ("url", "image_url", "file_url", "file_data")


def _addresses(block: Body) -> Iterator[str]:
    for key, value in block.items():
        if key in _ADDRESSES and isinstance(value, str) and "://" in value[:20]:
            yield value
        elif isinstance(value, dict):
            yield from (one for one in _addresses(value))


def is_forced(body: Body) -> bool:
    """Whether a request leaves its model no choice but to call one tool, such as for a title."""
    choice = body.get("tool_choice")
    named = (choice.get("name"), choice.get("function")) if isinstance(choice, dict) else ()
    return any(named)


def limit_of(body: Body, *names: str) -> int | None:
    found = (whole_number(body.get(name)) for name in names)
    return next((one for one in found if one is not None and one <= _MOST_OUTPUT), None)


def dicts(value: object) -> list[Body]:
    """The objects in what should be a list of objects."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts_in(content: object) -> str:
    """The text of a message: a string, or a list of blocks with texts."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (text_of(part.get("text")) for part in dicts(content))))


def tool_of(name: object, description: object, schema: object) -> Tool:
    return Tool(text_of(name), text_of(description), json.dumps(schema))


def question_of(asked: AgentRequest, trial: Question) -> Question:
    """The question that a request of a trial's agent asks."""
    messages, steps, said = list[tuple[Role, str]](), list[Step](), ""
    for item in asked.items:
        if item.kind == "call":
            _add_call(item, said, steps)
            said = ""
        elif item.kind == "result" and steps:
            result = ToolResult(item.call, item.text, item.failed)
            steps[-1] = replace(steps[-1], results=(*steps[-1].results, result))
        elif item.kind == "assistant":
            said = item.text
        elif item.kind == "thinking":
            continue
        elif steps:  # said after a result: a model sees it there
            _add_to_result(item, steps)
        else:
            messages += [("assistant", said)] if said else []
            messages.append(("user", item.text))
            said = ""
    return Question(
        trial.model,
        asked.system,
        tuple(messages) or (("user", ""),),
        asked.max_output or trial.max_output,
        trial.run,
        tools=() if asked.forbids else asked.tools,
        steps=tuple(steps),
    )


def _add_call(item: Item, said: str, steps: list[Step]) -> None:
    """A call begins a step, unless another of its turn has begun it."""
    call = ToolCall(item.call, item.tool, item.text)
    if steps and not steps[-1].results:
        steps[-1] = replace(steps[-1], calls=(*steps[-1].calls, call))
    else:
        steps.append(Step(said, (call,), ()))


def _add_to_result(item: Item, steps: list[Step]) -> None:
    *before, last = steps[-1].results or (ToolResult(steps[-1].calls[-1].id, ""),)
    last = replace(last, text=f"{last.text}\n{item.text}" if last.text else item.text)
    steps[-1] = replace(steps[-1], results=(*before, last))
