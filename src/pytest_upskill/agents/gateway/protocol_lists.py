"""What of requests is passed on, for each protocol.
``allowlist.py`` says what these forms mean.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from .allowlist import (
    ADDRESS,
    BASE64,
    DATA,
    FLAT,
    NAME,
    PLAIN,
    SCHEMA,
    Allowlist,
    Content,
    Form,
    Kinds,
    Needs,
    Offer,
    Reaching,
    TextOr,
    alike,
    plain,
)

Forms = Mapping[str, Form]

_CACHE: Forms = {"cache_control": plain("type", "ttl", "scope")}
_SCHEMA: Forms = {**plain("name", "description", "strict"), "schema": SCHEMA}
_PROMPT_CACHE: Forms = {"mode": PLAIN, "ttl": ("30m",)}

# Messages

_MESSAGES_TEXT: Forms = {"text": PLAIN, "citations": [FLAT], **_CACHE}
_MESSAGES_SOURCES: Forms = {
    "base64": {"media_type": PLAIN, "data": BASE64},
    "text": plain("media_type", "data"),
    "url": {"url": ADDRESS},
}
_MESSAGES_IMAGE: Forms = {
    "source": Kinds(_MESSAGES_SOURCES),
    "transformations": FLAT,
    **_CACHE,
}
# Within a document.
_MESSAGES_QUOTED: Final = TextOr(
    [Kinds({"text": _MESSAGES_TEXT, "image": _MESSAGES_IMAGE})]
)
_MESSAGES_RESULT_PARTS: Forms = {
    "text": _MESSAGES_TEXT,
    "image": _MESSAGES_IMAGE,
    "document": {
        **plain("title", "context"),
        "source": Kinds(
            {**_MESSAGES_SOURCES, "content": {"content": _MESSAGES_QUOTED}}
        ),
        "citations": FLAT,
        **_CACHE,
    },
    "tool_reference": {"tool_name": PLAIN, **_CACHE},
}
_MESSAGES_CALL: Forms = {
    **plain("id", "name", "toolset_name"),
    "input": DATA,
    "caller": {"type": ("direct",)},
    **_CACHE,
}
_MESSAGES_AGENTS_TOOL: Forms = {
    **plain(
        "description",
        "defer_loading",
        "eager_input_streaming",
        "strict",
        "max_characters",
    ),
    **plain("display_height_px", "display_width_px", "display_number", "enable_zoom"),
    "name": NAME,
    "input_schema": SCHEMA,
    "input_examples": DATA,
    "allowed_callers": ("direct",),
    **_CACHE,
}
_MESSAGES_TOOL: Final = Kinds(
    {
        **alike(_MESSAGES_AGENTS_TOOL, "custom", "bash_*", "text_editor_*", "memory_*"),
        "computer_*": _MESSAGES_AGENTS_TOOL,
        **alike(
            Reaching(), "web_search_*", "web_fetch_*", "code_execution_*", "mcp_toolset"
        ),
    },
    untyped=Needs("name", _MESSAGES_AGENTS_TOOL),
)
_MESSAGES_CHANGE: Forms = {
    "tool": Kinds(
        {
            "tool_reference": plain("name", "tool_name"),
            "tool_definition": {"definition": _MESSAGES_TOOL},
        }
    ),
    **_CACHE,
}
_MESSAGES_BLOCK: Final = Kinds(
    {
        **_MESSAGES_RESULT_PARTS,
        "thinking": plain("thinking", "signature"),
        "redacted_thinking": plain("data"),
        "tool_use": _MESSAGES_CALL,
        "tool_result": {
            **plain("tool_use_id", "is_error"),
            "content": TextOr([Kinds(_MESSAGES_RESULT_PARTS)]),
            **_CACHE,
        },
        **alike(_MESSAGES_CHANGE, "tool_addition", "tool_removal"),
        **alike(Reaching(), "server_tool_use", "mcp_tool_use", "mcp_tool_result"),
        **alike(Reaching(), "web_search_tool_result", "web_fetch_tool_result"),
        **alike(
            Reaching(), "code_execution_tool_result", "bash_code_execution_tool_result"
        ),
        "text_editor_code_execution_tool_result": Reaching(),
    }
)
_MESSAGES_FORMAT: Final = Kinds({"json_schema": {"schema": SCHEMA}})
_MESSAGES: Forms = {
    **plain(
        "model",
        "max_tokens",
        "stream",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
    ),
    "messages": Content(
        [
            {
                **plain("role", "clear_at"),
                "content": TextOr([_MESSAGES_BLOCK]),
                "output_config": plain("effort"),
            }
        ]
    ),
    "system": Content(TextOr([Kinds({"text": _MESSAGES_TEXT})])),
    "tools": [_MESSAGES_TOOL],
    "tool_choice": Kinds(
        {
            **alike(plain("disable_parallel_tool_use"), "auto", "any", "none"),
            "tool": {"name": NAME, "disable_parallel_tool_use": PLAIN},
        }
    ),
    "metadata": plain("user_id"),
    "thinking": {
        **plain("type", "budget_tokens", "display", "keep"),
        "block_binding": FLAT,
    },
    "output_config": {
        "effort": PLAIN,
        "format": _MESSAGES_FORMAT,
        "task_budget": plain("type", "total", "remaining"),
    },
    "output_format": _MESSAGES_FORMAT,
    # Not "compact": what it costs is not in the usage.
    "context_management": {
        "edits": [
            Kinds(
                {
                    "clear_tool_uses_*": {
                        **plain("clear_tool_inputs", "exclude_tools"),
                        **alike(FLAT, "keep", "trigger", "clear_at_least"),
                    },
                    "clear_thinking_*": {"keep": TextOr(FLAT)},
                }
            ),
        ]
    },
    "diagnostics": plain("previous_message_id"),
    "service_tier": ("auto", "standard_only"),
    "speed": ("standard",),
    "inference_geo": ("global",),
    "mcp_servers": Reaching(),
    **_CACHE,
}
MESSAGES: Final = Allowlist(_MESSAGES)


# Chat Completions

_CHAT_ADDRESS: Final = TextOr({"url": ADDRESS, **plain("detail", "id")}, ADDRESS)
_CHAT_PART: Final = Kinds(
    {
        "text": {"text": PLAIN, **_CACHE},
        **{
            kind: {kind: _CHAT_ADDRESS, **_CACHE} for kind in ("image_url", "video_url")
        },
        "audio_url": {"audio_url": _CHAT_ADDRESS},
        "file": {"file": {"file_data": ADDRESS, "filename": PLAIN}, **_CACHE},
        "refusal": plain("refusal"),
        "thinking": {
            "thinking": TextOr([Kinds({"text": plain("text")})]),
            **plain("signature", "closed"),
        },
    }
)
_CHAT_CALLED: Forms = {"name": NAME, **plain("arguments", "thought_signature")}
_CHAT_FUNCTION_CALL: Forms = {
    **plain("id", "index"),
    "function": _CHAT_CALLED,
    "extra_content": {"google": FLAT},
}
_CHAT_MESSAGE: Forms = {
    **plain("role", "tool_call_id", "refusal", "prefix", "partial", "phase", "id"),
    **plain(
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "reasoning_opaque",
        "thinking",
    ),
    "name": NAME,
    "reasoning_details": [FLAT],
    "thinking_blocks": [FLAT],
    "content": TextOr([_CHAT_PART]),
    "tool_calls": [
        Kinds(
            {
                "function": _CHAT_FUNCTION_CALL,
                "custom": {"id": PLAIN, "custom": {"name": NAME, "input": PLAIN}},
            },
            untyped=_CHAT_FUNCTION_CALL,
        )
    ],
    "function_call": _CHAT_CALLED,
    "extra_content": {"google": FLAT},
    **_CACHE,
}
_CHAT_FUNCTION: Forms = {
    "name": NAME,
    "parameters": SCHEMA,
    "input_schema": SCHEMA,
    **plain("description", "strict"),
}
_CHAT_TOOL: Final = Kinds(
    {
        "function": {"function": _CHAT_FUNCTION, **_CHAT_FUNCTION, **_CACHE},
        "custom": {
            "custom": {
                "name": NAME,
                "description": PLAIN,
                "format": {"type": PLAIN, "grammar": plain("definition", "syntax")},
            },
            **_CACHE,
        },
    },
    untyped=Needs("name", _CHAT_FUNCTION),
)
_CHAT_NAMED: Forms = {"name": NAME, "function": {"name": NAME}}
_CHAT_CHOICES: Forms = {"function": _CHAT_NAMED, "custom": {"custom": {"name": NAME}}}
_CHAT: Forms = {
    **plain(
        "model", "stream", "max_tokens", "max_completion_tokens", "stop", "seed", "user"
    ),
    **plain(
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "typical_p",
        "random_seed",
        "do_sample",
    ),
    **plain(
        "frequency_penalty", "presence_penalty", "repetition_penalty", "repeat_penalty"
    ),
    **plain(
        "logprobs",
        "top_logprobs",
        "parallel_tool_calls",
        "reasoning_effort",
        "verbosity",
    ),
    **plain(
        "enable_thinking", "preserve_thinking", "thinking_budget", "include_reasoning"
    ),
    **plain(
        "reasoning_format",
        "reasoning_split",
        "prompt_mode",
        "safe_prompt",
        "tool_stream",
    ),
    **plain(
        "cache_prompt",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
    ),
    "logit_bias": FLAT,
    "metadata": FLAT,
    "usage": plain("include"),
    "stream_options": plain(
        "include_usage", "include_obfuscation", "continuous_usage_stats"
    ),
    "messages": Content([_CHAT_MESSAGE]),
    "tools": [_CHAT_TOOL],
    "functions": [_CHAT_FUNCTION],
    "tool_choice": TextOr(
        Kinds(
            {
                **alike({}, "auto", "none", "any", "required"),
                **_CHAT_CHOICES,
                "allowed_tools": {
                    "allowed_tools": {"mode": PLAIN, "tools": [Kinds(_CHAT_CHOICES)]}
                },
            }
        )
    ),
    "function_call": TextOr({"name": NAME}),
    "response_format": Kinds(
        {
            **alike({}, "text", "json_object"),
            "json_schema": {"json_schema": _SCHEMA},
        }
    ),
    "reasoning": plain("effort", "summary", "max_tokens", "exclude", "enabled"),
    "thinking": plain("type", "budget_tokens", "keep", "clear_thinking"),
    "chat_template_kwargs": plain("enable_thinking", "thinking", "preserve_thinking"),
    "prompt_cache_options": _PROMPT_CACHE,
    "modalities": ("text",),
    "n": (1,),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "web_search_options": Reaching(),
}
CHAT: Final = Allowlist(_CHAT)


# Responses

_BREAKPOINT: Forms = {"prompt_cache_breakpoint": _PROMPT_CACHE}
_RESPONSES_TEXTS: Forms = {
    "text": plain("text"),
    "summary_text": plain("text"),
    "reasoning_text": plain("text"),
    "input_text": {"text": PLAIN, **_BREAKPOINT},
    "output_text": {"text": PLAIN, "annotations": [FLAT]},
    "refusal": plain("refusal"),
}
_RESPONSES_PART: Final = Kinds(
    {
        **_RESPONSES_TEXTS,
        "input_image": {"image_url": ADDRESS, "detail": PLAIN, **_BREAKPOINT},
        "input_file": {
            "file_data": ADDRESS,
            "file_url": ADDRESS,
            "filename": PLAIN,
            **_BREAKPOINT,
        },
    }
)
_RESPONSES_MESSAGE: Forms = {
    **plain("id", "role", "status", "phase"),
    "content": TextOr([_RESPONSES_PART]),
}
_RESPONSES_CALL: Forms = {
    **plain("id", "call_id", "name", "status", "namespace", "execution"),
    "caller": {"type": ("direct",)},
}
_RESPONSES_RESULT: Forms = {**_RESPONSES_CALL, "output": TextOr([_RESPONSES_PART])}
_RESPONSES_NO_CALLER: Forms = {"allowed_callers": ("direct",), "defer_loading": PLAIN}
_RESPONSES_FUNCTIONS: Forms = {
    "function": {
        "name": NAME,
        "parameters": SCHEMA,
        "output_schema": SCHEMA,
        **_RESPONSES_NO_CALLER,
        **plain("description", "strict"),
    },
    "custom": {
        "name": NAME,
        "description": PLAIN,
        **_RESPONSES_NO_CALLER,
        "format": plain("type", "syntax", "definition"),
    },
}
_RESPONSES_TOOL: Final = Kinds(
    {
        **_RESPONSES_FUNCTIONS,
        "namespace": {
            "name": NAME,
            "description": PLAIN,
            "tools": Offer([Kinds(_RESPONSES_FUNCTIONS)]),
        },
        "tool_search": {**plain("execution", "description"), "parameters": SCHEMA},
        "local_shell": {},
        "apply_patch": _RESPONSES_NO_CALLER,
        **alike(Reaching(), "web_search", "web_search_preview", "web_search_*"),
        **alike(Reaching(), "web_search_preview_*", "mcp"),
        "code_interpreter": Reaching(
            {"container": {"type": ("auto",), "network_policy": FLAT}}
        ),
    },
    untyped=Needs("name", _RESPONSES_FUNCTIONS["function"]),
)
_RESPONSES_TOOLS: Forms = {
    **plain("id", "role", "call_id", "status", "execution"),
    "tools": Offer([_RESPONSES_TOOL]),
}
_RESPONSES_ITEM: Final = Kinds(
    {
        "message": Needs("content", {"type": PLAIN, **_RESPONSES_MESSAGE}),
        "reasoning": {
            **plain("id", "status", "encrypted_content"),
            "summary": [Kinds(_RESPONSES_TEXTS)],
            "content": [Kinds(_RESPONSES_TEXTS)],
        },
        "function_call": {**_RESPONSES_CALL, "arguments": PLAIN},
        "function_call_output": _RESPONSES_RESULT,
        "custom_tool_call": {**_RESPONSES_CALL, "input": PLAIN},
        "custom_tool_call_output": _RESPONSES_RESULT,
        "tool_search_call": {**_RESPONSES_CALL, "arguments": DATA},
        "tool_search_output": _RESPONSES_TOOLS,
        "additional_tools": _RESPONSES_TOOLS,
        "local_shell_call": {**_RESPONSES_CALL, "action": DATA},
        "local_shell_call_output": {**_RESPONSES_CALL, "output": PLAIN},
        "apply_patch_call": {**_RESPONSES_CALL, "operation": DATA},
        "apply_patch_call_output": {**_RESPONSES_CALL, "output": PLAIN},
        "compaction": plain("id", "encrypted_content"),
        "compaction_trigger": plain("id"),
        **alike(Reaching(), "web_search_call", "code_interpreter_call"),
        **alike(Reaching(), "mcp_list_tools", "mcp_call"),
        **alike(Reaching(), "mcp_approval_request", "mcp_approval_response"),
    },
    # An id alone means an item that is stored.
    untyped=Needs("role", Needs("content", _RESPONSES_MESSAGE)),
)
_RESPONSES_CHOICES: Forms = {
    **alike({"name": NAME, "namespace": PLAIN}, "function", "custom", "namespace"),
    **alike({}, "local_shell", "apply_patch", "tool_search", "auto"),
}
_RESPONSES: Forms = {
    **plain(
        "model",
        "stream",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "include",
    ),
    **plain(
        "temperature",
        "top_p",
        "top_logprobs",
        "truncation",
        "parallel_tool_calls",
        "user",
    ),
    **plain("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "store"),
    "previous_response_id": PLAIN,  # the endpoint knows those of its trial
    "metadata": FLAT,
    "client_metadata": FLAT,
    "input": Content(TextOr([_RESPONSES_ITEM])),
    "tools": [_RESPONSES_TOOL],
    "tool_choice": TextOr(
        Kinds(
            {
                **_RESPONSES_CHOICES,
                "allowed_tools": {"mode": PLAIN, "tools": [Kinds(_RESPONSES_CHOICES)]},
            }
        )
    ),
    "reasoning": {
        **plain("effort", "summary", "generate_summary", "context"),
        "mode": ("standard",),
    },
    "text": {
        "verbosity": PLAIN,
        "format": Kinds(
            {
                **alike({}, "text", "json_object"),
                "json_schema": _SCHEMA,
            }
        ),
    },
    "context_management": [Kinds({"compaction": plain("compact_threshold")})],
    "stream_options": plain("include_obfuscation", "include_usage"),
    "prompt_cache_options": _PROMPT_CACHE,
    "background": (False,),
    "service_tier": ("auto", "default"),
}
RESPONSES: Final = Allowlist(_RESPONSES)


# Gemini, whose keys have two forms

_GEMINI_BLOB: Forms = {
    "inlineData": {**plain("mimeType", "displayName"), "data": BASE64},
    "fileData": {**plain("mimeType", "displayName"), "fileUri": ADDRESS},
}
_GEMINI_PART: Forms = {
    **plain("text", "thought", "thoughtSignature"),
    **_GEMINI_BLOB,
    "functionCall": {**plain("id", "name"), "args": DATA},
    "functionResponse": {
        **plain("id", "name", "willContinue", "scheduling"),
        "response": DATA,
        "parts": [_GEMINI_BLOB],
    },
    "mediaResolution": plain("level"),
    **alike(Reaching(), "executableCode", "codeExecutionResult"),
}
_GEMINI_CONTENT: Forms = {"role": PLAIN, "parts": [_GEMINI_PART]}
_GEMINI_FUNCTION: Forms = {
    "name": NAME,
    **plain("description", "behavior"),
    **alike(SCHEMA, "parameters", "parametersJsonSchema"),
    **alike(SCHEMA, "response", "responseJsonSchema"),
}
_GEMINI: Forms = {
    "model": PLAIN,
    "contents": Content([_GEMINI_CONTENT]),
    "systemInstruction": Content(_GEMINI_CONTENT),
    "tools": [
        {
            "functionDeclarations": [_GEMINI_FUNCTION],
            "computerUse": plain("environment", "excludedPredefinedFunctions"),
            **alike(Reaching(), "googleSearch", "googleSearchRetrieval"),
            **alike(Reaching(), "urlContext", "codeExecution"),
        }
    ],
    "toolConfig": {
        "functionCallingConfig": plain(
            "mode", "allowedFunctionNames", "streamFunctionCallArguments"
        )
    },
    "generationConfig": {
        **plain(
            "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed"
        ),
        **plain("presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs"),
        **plain("responseMimeType", "mediaResolution", "enableEnhancedCivicAnswers"),
        **alike(SCHEMA, "responseSchema", "responseJsonSchema"),
        "_responseJsonSchema": SCHEMA,
        "thinkingConfig": plain("includeThoughts", "thinkingBudget", "thinkingLevel"),
        "responseModalities": ("TEXT",),
        "candidateCount": (1,),
    },
    "safetySettings": [plain("category", "threshold", "method")],
    "serviceTier": ("standard", "SERVICE_TIER_STANDARD"),
}


def camel(name: str) -> str:
    """Google takes both forms of a name."""
    return re.sub(r"(?<=.)_([a-z])", lambda match: match[1].upper(), name)


GEMINI: Final = Allowlist(_GEMINI, camel)


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
