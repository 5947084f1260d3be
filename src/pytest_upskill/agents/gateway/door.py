"""The one door to a provider: what of a request goes on, and nothing else.

An agent has no network, and no account but for its one model. A provider must not
search, fetch or run things for it, open what is stored in the account, or answer
faster, more often or with another model than is paid for. Providers add new ways every
month, so what goes on is listed by name: the keys of a request and the kinds of its
parts by each protocol, and here whatever holds for all of them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from .http import Body

_Names = frozenset[str]

# Where all protocols have what a model reads. A request with anything else is refused.
_CONTENT: Final = frozenset(
    ("messages", "system", "input", "contents", "system_instruction")
)
# Tools that agents carry out themselves.
_OWN_TOOLS: Final = frozenset(
    (
        "custom",
        "function",
        "namespace",
        "bash",
        "text_editor",
        "memory",
        "computer",
        "local_shell",
        "apply_patch",
        "tool_search",
    )
)
_TOOLS: Final = ("tools", "functions")
_KINDS: Final[Mapping[str, _Names]] = {
    "tool_choice": _OWN_TOOLS
    | {"auto", "any", "none", "required", "tool", "allowed_tools"},
    # Not "compact": what it costs is not in the usage.
    "context_management": frozenset(
        ("clear_tool_uses", "clear_thinking", "compaction")
    ),
}
# Keys and kinds that need a network, which a case may have.
_REACHING: Final = frozenset(
    (
        "mcp_servers",
        "mcp_toolset",
        "mcp_tool_use",
        "mcp_tool_result",
        "web_search",
        "web_search_preview",
        "web_search_options",
        "web_search_call",
        "web_search_tool_result",
        "web_fetch",
        "web_fetch_tool_result",
        "code_execution",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "server_tool_use",
        "mcp",
        "mcp_list_tools",
        "mcp_call",
        "mcp_approval_request",
        "mcp_approval_response",
        "google_search",
        "google_search_retrieval",
        "url_context",
        "executable_code",
        "code_execution_result",
    )
)
# Values that cost more, or keep something in the account, are left out.
_LIMITS: Final[Mapping[str, tuple[object, ...]]] = {
    "service_tier": (
        "auto",
        "default",
        "standard",
        "standard_only",
        "SERVICE_TIER_STANDARD",
    ),
    "speed": ("standard",),
    "inference_geo": ("global",),
    "n": (1,),
    "candidate_count": (1,),
    "modalities": ("text",),
    "response_modalities": ("TEXT",),
    "background": (False,),
    "store": (False,),
    "reasoning.mode": ("standard",),
    "prompt_cache_options.ttl": ("30m",),
    "prompt_cache_breakpoint.ttl": ("30m",),
    "allowed_callers": ("direct",),
}
# A text here must hold its data, as nothing is fetched.
_ADDRESSES: Final = frozenset(
    (
        "file",
        "inline_data",
        "url",
        "image_url",
        "video_url",
        "audio_url",
        "file_url",
        "file_uri",
        "file_data",
        "source",
    )
)
# Schemas, without references to other documents.
_SCHEMAS: Final = frozenset(
    (
        "schema",
        "parameters",
        "input_schema",
        "output_schema",
        "response_schema",
        "response_json_schema",
        "_response_json_schema",
        "parameters_json_schema",
    )
)
# Any JSON that nobody fetches or runs, such as the arguments of a call.
_DATA: Final = frozenset(
    ("input", "input_examples", "arguments", "args", "response", "action", "operation")
)
# Objects with any keys and plain values.
_FLAT: Final = frozenset(
    (
        "metadata",
        "client_metadata",
        "logit_bias",
        "cache_control",
        "citations",
        "annotations",
        "transformations",
        "block_binding",
        "keep",
        "trigger",
        "clear_at_least",
        "task_budget",
        "reasoning_details",
        "thinking_blocks",
        "google",
    )
)
# All other keys below those of a request.
_FIELDS: Final = frozenset(
    (
        # of messages
        "type",
        "role",
        "id",
        "index",
        "name",
        "content",
        "text",
        "refusal",
        "status",
        "phase",
        "prefix",
        "partial",
        "clear_at",
        "output_config",
        # of images and files
        "data",
        "media_type",
        "mime_type",
        "title",
        "context",
        "detail",
        "filename",
        "display_name",
        "media_resolution",
        "level",
        # of thoughts
        "thinking",
        "thought",
        "signature",
        "closed",
        "thought_signature",
        "reasoning",
        "reasoning_content",
        "reasoning_text",
        "reasoning_opaque",
        "encrypted_content",
        "summary",
        "extra_content",
        "parts",
        # of calls and results
        "tool_calls",
        "function_call",
        "function",
        "caller",
        "namespace",
        "execution",
        "toolset_name",
        "call_id",
        "tool_call_id",
        "tool_use_id",
        "function_response",
        "output",
        "is_error",
        "tool_name",
        "will_continue",
        "scheduling",
        "prompt_cache_breakpoint",
        # of tools
        "tool",
        "description",
        "strict",
        "custom",
        "format",
        "grammar",
        "syntax",
        "behavior",
        "defer_loading",
        "eager_input_streaming",
        "max_characters",
        "display_height_px",
        "display_width_px",
        "display_number",
        "enable_zoom",
        "function_declarations",
        "definition",
        "computer_use",
        "environment",
        "excluded_predefined_functions",
        "disable_parallel_tool_use",
        "allowed_tools",
        "function_calling_config",
        "allowed_function_names",
        "stream_function_call_arguments",
        # of settings
        "mode",
        "ttl",
        "effort",
        "generate_summary",
        "verbosity",
        "enabled",
        "exclude",
        "max_tokens",
        "budget_tokens",
        "display",
        "clear_thinking",
        "enable_thinking",
        "preserve_thinking",
        "edits",
        "clear_tool_inputs",
        "exclude_tools",
        "compact_threshold",
        "previous_message_id",
        "json_schema",
        "include",
        "include_usage",
        "include_obfuscation",
        "continuous_usage_stats",
        "temperature",
        "top_p",
        "top_k",
        "max_output_tokens",
        "stop_sequences",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "response_logprobs",
        "logprobs",
        "response_mime_type",
        "enable_enhanced_civic_answers",
        "thinking_config",
        "include_thoughts",
        "thinking_budget",
        "thinking_level",
        "category",
        "threshold",
        "method",
    )
)
_NESTED: Final = (
    _FIELDS | _ADDRESSES | _SCHEMAS | _DATA | _FLAT | _LIMITS.keys() | set(_TOOLS)
)

_DATED: Final = re.compile(r"_\d{8}$")
_FETCHED: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=_\s-]*")
_INLINE: Final = re.compile(rf"data:[\w.+/-]*(;[\w.=+-]+)*;base64,{_BASE64.pattern}")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class UnlistedContent(Exception):
    """Why a request is refused; ``is_address`` if the provider would fetch ``name``."""

    def __init__(self, name: str, is_address: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.is_address = is_address


class Passed(NamedTuple):
    """What of a request goes on, and names of what is left out."""

    body: Body
    left_out: list[str]


@dataclass(frozen=True)
class Door:
    """What a protocol lets through: keys of requests, and kinds of parts of content."""

    keys: frozenset[str]
    kinds: frozenset[str] = frozenset()

    def pass_on(self, body: Body, *, network: bool) -> Passed:
        """What of a request goes on.

        UnlistedContent if its content has something that is not listed.
        """
        walk = _Walk(self.kinds, network)
        kept = walk.pick(body, "", self.keys, None)
        if not kept.get("tools", True):
            del kept["tools"]
        return Passed(kept, walk.left_out)


class _Walk:
    def __init__(self, kinds: frozenset[str], network: bool) -> None:
        self.left_out = list[str]()
        self._kinds = kinds  # of parts of content
        self._network = network

    def pick(
        self, value: Body, name: str, listed: frozenset[str], kinds: _Names | None
    ) -> Body:
        """The listed keys of an object; whatever is not listed is left out."""
        kept = Body()
        for key, each in value.items():
            place = f"{name}.{key}" if name else key
            if not self._is_listed(key, listed):
                if each not in (None, []):
                    self.left_out.append(place)
            elif each is None:
                kept[key] = None
            elif not _is_within_limits(each, place):
                self.left_out.append(f'{place} "{each}"')
            elif name:
                kept[key] = self._value(each, place, kinds)
            else:
                self._add_setting(kept, key, each)
        return kept

    def _add_setting(self, kept: Body, key: str, value: Any) -> None:
        """Add a key of the request, if all of its value may pass."""
        field = snake(key)
        if field in _CONTENT:
            if not isinstance(value, str | list | dict):
                raise UnlistedContent(f"{key} of a wrong form")
            kept[key] = self._walk(value, key, self._kinds)
            return

        try:
            kept[key] = self._value(value, key, _KINDS.get(field))
        except UnlistedContent as unlisted:
            self.left_out.append(unlisted.name)

    def _value(self, value: Any, name: str, kinds: _Names | None) -> Any:
        field = _field(name)
        if field in _DATA or self._is_reaching(field):
            return value
        if field in _FLAT:
            _check_flat(value, name)
            return value
        if field in _SCHEMAS:
            _check_schema(value, name)
            return value
        if field in _TOOLS:
            return self._own_tools(value, name)
        if field == "definition":  # of a tool, or the text of a grammar
            kinds = _OWN_TOOLS
        return self._walk(value, name, kinds)

    def _own_tools(self, tools: Any, name: str) -> list[Any]:
        """The tools that agents carry out themselves; the others are left out."""
        own = list[Any]()
        for tool in tools if isinstance(tools, list) else [tools]:
            try:
                if not isinstance(tool, dict):
                    raise UnlistedContent(f"{name} of a wrong form")
                own.append(self._walk(tool, name, _OWN_TOOLS))
            except UnlistedContent as unlisted:
                self.left_out.append(unlisted.name)
        return own

    def _walk(self, value: Any, name: str, kinds: _Names | None) -> Any:
        """All of a value that may pass; UnlistedContent if nothing of a part may."""
        if isinstance(value, list):
            return [self._walk(each, name, kinds) for each in value]
        if isinstance(value, str):
            self._check_text(value, name)
        if not isinstance(value, dict):
            return value

        kind = value.get("type")
        if kinds is not None and kind is not None:
            if not isinstance(kind, str):
                raise UnlistedContent(f"{name} without a type")
            undated = _DATED.sub("", kind)
            if self._is_reaching(undated):
                return value
            if undated not in kinds:
                raise UnlistedContent(kind)
        if "data" in value and kind not in ("text", "redacted_thinking"):
            data = value["data"]
            if not isinstance(data, str) or not _BASE64.fullmatch(data):
                raise UnlistedContent(f"{name}.data of a wrong form")

        left_out = len(self.left_out)
        # What is within a tool has kinds of its own, such as that of a grammar.
        kept = self.pick(value, name, _NESTED, None if kinds is _OWN_TOOLS else kinds)
        if value and not kept:
            names = ", ".join(self.left_out[left_out:])
            del self.left_out[left_out:]
            raise UnlistedContent(names)
        return kept

    def _check_text(self, text: str, name: str) -> None:
        field = _field(name)
        # A provider's own tools are called $web_search and the like.
        if field == "name" and text.strip().startswith("$"):
            raise UnlistedContent(f'{name} "{text}"')
        if field not in _ADDRESSES or _INLINE.fullmatch(text):
            return
        if not (self._network and _FETCHED.fullmatch(text)):
            raise UnlistedContent(text, is_address=True)

    def _is_listed(self, key: str, listed: frozenset[str]) -> bool:
        field = snake(key)
        return field in listed or self._is_reaching(field)

    def _is_reaching(self, name: str) -> bool:
        return self._network and name in _REACHING


def snake(name: str) -> str:
    """The form of a name that is listed; Google takes both."""
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _field(name: str) -> str:
    return snake(name.rpartition(".")[2])


def _is_within_limits(value: Any, name: str) -> bool:
    holder_and_field = ".".join(snake(name).split(".")[-2:])
    limit = _LIMITS.get(holder_and_field) or _LIMITS.get(_field(name))
    values = value if isinstance(value, list) else [value]
    return limit is None or all(each in limit for each in values)


def _check_flat(value: Any, name: str) -> None:
    for each in value if isinstance(value, list) else [value]:
        plain = each.values() if isinstance(each, dict) else [each]
        for inner in plain:
            inners = inner if isinstance(inner, list) else [inner]
            if any(isinstance(deep, dict | list) for deep in inners):
                raise UnlistedContent(f"{name} of a wrong form")


def _check_schema(schema: Any, name: str) -> None:
    if not isinstance(schema, dict | bool):
        raise UnlistedContent(f"{name} of a wrong form")
    _check_references(schema, name)


def _check_references(schema: Any, name: str) -> None:
    """UnlistedContent if a schema refers to another document."""
    if isinstance(schema, dict):
        for key in _REFERENCES:
            if isinstance(schema.get(key), str) and not schema[key].startswith("#"):
                raise UnlistedContent(f'{name}.{key} "{schema[key]}"')
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            _check_references(each, name)


# Headers

_DATE: Final = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
# Betas that change how a model answers, by name and for every date. What others switch
# on is not passed on, or costs more, such as fast-mode and context-1m.
_BETAS: Final = frozenset(
    (
        *("adaptive-thinking", "advanced-tool-use", "afk-mode", "auto-mode-classifier"),
        *("cache-diagnosis", "claude-code", "claude-code-side-query", "computer-use"),
        *(
            "context-hint",
            "context-management",
            "dangerous-tool-use",
            "dev-full-thinking",
        ),
        *(
            "effort",
            "extended-cache-ttl",
            "fine-grained-tool-streaming",
            "inline-tools",
        ),
        *(
            "interleaved-thinking",
            "mid-conversation-output-config",
            "mid-conversation-system",
        ),
        *("mid-conversation-system-clear-at", "mid-conversation-tool-changes"),
        *("model-context-window-exceeded", "output-128k", "output-300k", "pdfs"),
        *(
            "prompt-caching",
            "prompt-caching-scope",
            "redact-thinking",
            "structured-outputs",
        ),
        *("task-budgets", "thinking-binding-controls", "thinking-display-updates"),
        *("thinking-resumption", "thinking-token-count", "token-counting"),
        *(
            "token-efficient-tools",
            "tool-examples",
            "tool-provenance",
            "tool-search-tool",
        ),
    )
)
_REACHING_BETAS: Final = frozenset(
    ("web-search", "web-fetch", "code-execution", "mcp-client")
)
# The only headers that are passed on, and their values, if they are listed.
_HEADERS: Final[Mapping[str, frozenset[str] | None]] = {
    **dict.fromkeys(("accept", "anthropic-version", "user-agent")),
    "anthropic-beta": _BETAS,
    "openai-beta": frozenset(("responses=experimental",)),
}


def passed_headers(
    headers: Iterable[tuple[str, str]],
    *,
    network: bool,
    also: Mapping[str, frozenset[str] | None] | None = None,
) -> tuple[dict[str, str], list[str]]:
    """What of the headers is passed on, and names of values that are left out.

    ``also``: headers, or values of them, that are passed on
    besides those of all agents.
    """
    passed, left_out = dict[str, str](), list[str]()
    for header, value in headers:
        name = header.lower()
        listed, more = (each.get(name, frozenset()) for each in (_HEADERS, also or {}))
        if listed is None or more is None:
            passed[name] = value
        elif listed := listed | more:
            for each in filter(None, (each.strip() for each in value.split(","))):
                undated = _DATE.sub("", each)
                if undated in listed or (network and undated in _REACHING_BETAS):
                    passed[name] = f"{passed[name]},{each}" if name in passed else each
                else:
                    left_out.append(f"{name} {each}")
    return passed, left_out
