"""What an agent may ask its provider for, by protocol: what is listed,
and nothing else.
"""

import json
from typing import Any

import pytest

from pytest_upskill.agents.gateway.allowlist import UnlistedContent
from pytest_upskill.agents.gateway.endpoint import PROTOCOLS
from pytest_upskill.models.model import ProtocolName
from support.agent_requests import (
    CACHE,
    EVIL,
    OWN,
    PNG,
    SHELL,
    TEXT,
    URL_IMAGE,
    Json,
    asking,
    document,
    image,
    passed,
)


@pytest.mark.parametrize(
    "url",
    [
        *(
            EVIL,
            " " * 20 + EVIL,
            "\t\r\n" + EVIL,
            "\0" + EVIL,
            "HTTPS://evil.example",
            "//evil",
        ),
        *(
            "gs://bucket/a",
            "file:///etc/passwd",
            "s3://a/b",
            "evil.example/a.png",
            "ftp:evil",
            "",
        ),
        *(
            " data:image/png;base64,aGk=",
            "data:",
            "data :image/png,a",
            "\ufeffdata:,a",
            "ｄata:,a",
        ),
        *(
            "data:,https://evil.example",
            "data:image/png;base64,https://evil.example",
            "data:,a",
        ),
    ],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_address_holds_its_data_or_is_refused(
    protocol: ProtocolName, url: str
) -> None:
    with pytest.raises(UnlistedContent) as caught:
        passed(protocol, asking(protocol, image(protocol, url)))
    assert (caught.value.name, caught.value.is_address) == (url, True)
    body = asking(protocol, image(protocol, PNG))
    assert passed(protocol, body) == (body, [])


def test_an_endless_address_keeps_nobody_waiting() -> None:
    for url in (
        "data:" + "a/" * 200_000,
        "data:a" + ";a" * 200_000,
        PNG + "a" * 400_000 + ":",
    ):
        with pytest.raises(UnlistedContent):
            passed("chat", asking("chat", image("chat", url)))


ADDITION = {
    "type": "tool_addition",
    "tool": {
        "type": "tool_definition",
        "definition": {"type": "advisor_20260301", "name": "a"},
    },
}
REFUSED: list[tuple[ProtocolName, Json, str]] = [
    # Fetched by address, wherever it stands
    ("messages", document(TEXT, URL_IMAGE), EVIL),
    ("messages", {"type": "tool_result", "content": [document(URL_IMAGE)]}, EVIL),
    ("messages", {"type": "tool_result", "content": [URL_IMAGE]}, EVIL),
    ("messages", {"type": "document", "source": {"type": "url", "url": EVIL}}, EVIL),
    ("chat", {"type": "image_url", "image_url": EVIL}, EVIL),
    ("chat", {"type": "video_url", "video_url": {"url": EVIL}}, EVIL),
    ("chat", {"type": "audio_url", "audio_url": EVIL}, EVIL),
    ("chat", {"type": "file", "file": {"file_data": EVIL}}, EVIL),
    ("responses", {"type": "input_file", "file_url": EVIL}, EVIL),
    ("responses", {"type": "input_file", "file_data": EVIL}, EVIL),
    (
        "gemini",
        {"functionResponse": {"parts": [{"file_data": {"file_uri": EVIL}}]}},
        EVIL,
    ),
    # Fetched, run or opened, by its kind
    ("messages", {"type": "video", "source": {"type": "url", "url": EVIL}}, "video"),
    ("messages", {"type": "image", "source": {"type": "file", "file_id": "f"}}, "file"),
    ("messages", {"type": "container_upload", "file_id": "f"}, "container_upload"),
    ("messages", {"type": "server_tool_use", "name": "web_search"}, "server_tool_use"),
    ("messages", {"type": "mcp_tool_use", "server_name": "s"}, "mcp_tool_use"),
    ("messages", ADDITION, "advisor_20260301"),
    ("messages", {"type": "Image", "source": {"type": "url", "url": EVIL}}, "Image"),
    ("messages", {"type": "image ", "source": {"type": "url", "url": EVIL}}, "image "),
    ("messages", {"type": "ｉmage", "source": {"type": "url", "url": EVIL}}, "ｉmage"),
    ("chat", {"type": "video", "video": [EVIL]}, "video"),
    ("chat", {"type": "input_audio", "input_audio": {"data": EVIL}}, "input_audio"),
    ("chat", {"type": "document_url", "document_url": EVIL}, "document_url"),
    (
        "chat",
        {"type": "file", "file": {"file_id": "f"}},
        "messages.content.file.file_id",
    ),
    ("responses", {"type": "input_video", "video_url": EVIL}, "input_video"),
    ("gemini", {"executableCode": {"code": "a"}}, "contents.parts.executableCode"),
    ("gemini", {"videoMetadata": {}}, "contents.parts.videoMetadata"),
    # Without a kind
    ("chat", {"image_url": {"url": EVIL}}, "messages.content without a type"),
    ("chat", {"type": ["image_url"]}, "messages.content without a type"),
    (
        "messages",
        {"type": "image", "source": EVIL},
        "messages.content.source of a wrong form",
    ),
    (
        "messages",
        {"type": "image", "source": [URL_IMAGE]},
        "messages.content.source of a wrong form",
    ),
    (
        "gemini",
        {"inlineData": {"data": EVIL}},
        "contents.parts.inlineData.data of a wrong form",
    ),
    (
        "messages",
        {"type": "text", "text": {"url": EVIL}},
        "messages.content.text of a wrong form",
    ),
]
ITEMS: list[tuple[Json, str]] = [
    (
        {"type": "computer_call_output", "output": {"image_url": EVIL}},
        "computer_call_output",
    ),
    ({"type": "function_call_output", "output": [image("responses", EVIL)]}, EVIL),
    ({"type": "custom_tool_call_output", "output": [image("responses", EVIL)]}, EVIL),
    ({"type": "item_reference", "id": "msg_1"}, "item_reference"),
    ({"id": "msg_1"}, "input of a wrong form"),  # the same, without its type
    ({"type": None, "id": "msg_1"}, "input of a wrong form"),
    ({"type": "message", "id": "msg_1"}, "input of a wrong form"),
    ({"id": "msg_1", "role": "user"}, "input of a wrong form"),
    ({"id": "msg_1", "content": ""}, "input of a wrong form"),
    ({"type": "web_search_call", "id": "ws_1"}, "web_search_call"),
    ({"type": "code_interpreter_call", "id": "ci_1"}, "code_interpreter_call"),
    ({"type": "mcp_approval_response", "approve": True}, "mcp_approval_response"),
    ({"type": "shell_call", "environment": {"container_id": "c"}}, "shell_call"),
    ({"type": "program", "code": "a"}, "program"),
    (
        {"type": "function_call", "name": "a", "caller": {"type": "program"}},
        'caller.type "program"',
    ),
]


@pytest.mark.parametrize(("protocol", "part", "name"), REFUSED)
def test_content_that_is_not_listed_is_refused(
    protocol: ProtocolName, part: Json, name: str
) -> None:
    text = (
        {"text": "Look."} if protocol == "gemini" else {"type": "text", "text": "Look."}
    )
    with pytest.raises(UnlistedContent) as caught:
        passed(protocol, asking(protocol, text, part))
    assert caught.value.name == name


@pytest.mark.parametrize(("item", "name"), ITEMS)
def test_items_that_are_not_listed_are_refused(item: Json, name: str) -> None:
    with pytest.raises(UnlistedContent) as caught:
        passed("responses", {"input": ["Go.", item][1:]})
    assert caught.value.name.removeprefix("input.") == name


def test_a_result_for_a_tool_of_the_provider_is_refused() -> None:
    """Moonshot searches once it gets the arguments back."""
    call = {"id": "1", "type": "builtin_function", "function": {"name": "$web_search"}}
    for changed in (call, {**call, "type": "function"}, {**call, "type": None}):
        said = [{"role": "assistant", "tool_calls": [changed]}]
        with pytest.raises(UnlistedContent, match=r"builtin_function|\$web_search"):
            passed("chat", {"messages": said})
    with pytest.raises(UnlistedContent, match=r"\$web_search"):
        passed(
            "chat",
            {"messages": [{"role": "tool", "name": "$web_search", "content": "{}"}]},
        )


PROVIDERS_TOOLS: list[tuple[ProtocolName, Json, str]] = [
    (
        "messages",
        {"type": "advisor_20260301", "name": "advisor", "model": "m"},
        "advisor_20260301",
    ),
    (
        "messages",
        {"type": "web_fetch_20990101", "name": "web_fetch"},
        "web_fetch_20990101",
    ),
    ("messages", {"type": "mcp_toolset", "mcp_server_name": "s"}, "mcp_toolset"),
    ("messages", {"type": "x_search"}, "x_search"),
    ("messages", {"type": "Custom", "name": "a"}, "Custom"),
    ("messages", {"type": "bash_2025012x", "name": "a"}, "bash_2025012x"),
    ("messages", {"type": 5}, "tools without a type"),
    ("messages", {"url": EVIL}, "tools of a wrong form"),
    (
        "chat",
        {"type": "builtin_function", "function": {"name": "$web_search"}},
        "builtin_function",
    ),
    ("chat", {"type": "function", "function": {"name": "$web_search"}}, ""),
    ("chat", {"type": "x_search"}, "x_search"),
    ("chat", {"type": "web_search"}, "web_search"),
    ("chat", {"type": "openrouter:web_search"}, "openrouter:web_search"),
    ("chat", {"googleSearch": {}}, "tools of a wrong form"),
    ("responses", SHELL, "shell"),
    ("responses", {"type": "shell"}, "shell"),
    ("responses", {"type": "x_search"}, "x_search"),
    (
        "responses",
        {"type": "web_search_preview_2025_03_11"},
        "web_search_preview_2025_03_11",
    ),
    ("responses", {"type": "programmatic_tool_calling"}, "programmatic_tool_calling"),
    ("responses", {"type": "mcp", "server_url": EVIL}, "mcp"),
    ("responses", {"type": "file_search", "vector_store_ids": ["v"]}, "file_search"),
    ("gemini", {"googleSearch": {}}, "tools.googleSearch"),
    ("gemini", {"retrieval": {"externalApi": {}}}, "tools.retrieval"),
]


@pytest.mark.parametrize(("protocol", "tool", "name"), PROVIDERS_TOOLS)
def test_a_tool_that_the_provider_runs_is_left_out(
    protocol: ProtocolName, tool: Json, name: str
) -> None:
    config = {"functionCallingConfig": {"mode": "AUTO"}}
    choice: Json = (
        {"toolConfig": config} if protocol == "gemini" else {"tool_choice": "auto"}
    )
    if protocol == "messages":
        choice = {"tool_choice": {"type": "auto"}}
    kept, left_out = passed(
        protocol, asking(protocol, tools=[OWN[protocol], tool], **choice)
    )
    if name:
        assert left_out == [name]
        assert kept["tools"] == [OWN[protocol]]
    assert "$web_search" not in json.dumps(kept)
    assert kept | choice == kept
    kept, _ = passed(protocol, asking(protocol, tools=[tool], **choice))
    assert kept == asking(protocol) or not name


def test_tools_are_left_out_at_any_depth() -> None:
    tool: Json = {"type": "web_search"}
    for _ in range(7):
        tool = {"type": "namespace", "name": "n", "tools": [OWN["responses"], tool]}
    for place in (
        {"tools": [tool]},
        {"input": [{"type": "additional_tools", "tools": [tool]}]},
    ):
        kept, left_out = passed("responses", {"input": "Go.", **place})
        assert left_out == ["namespace"]
        assert "web_search" not in json.dumps(kept)
        assert json.dumps(kept).count("bash") == 1


def test_a_choice_of_a_tool_that_the_provider_runs_is_left_out() -> None:
    tools = [OWN["responses"]]
    chosen: Any
    for chosen in (
        {"type": "web_search_preview"},
        {"type": "mcp", "server_label": "s"},
        {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "mcp", "server_label": "s"}],
        },
    ):
        kept, left_out = passed(
            "responses", {"input": "Go.", "tools": tools, "tool_choice": chosen}
        )
        assert "mcp" not in json.dumps(kept)
        assert "web_search" not in json.dumps(kept)
        assert left_out


def test_a_schema_refers_to_no_other_document() -> None:
    for name, depth in (("$ref", 1), ("$dynamicRef", 7)):
        schema: Json = {name: "https://evil.example/schema.json"}
        for _ in range(depth):
            schema = {"anyOf": [schema]}
        tool = {"name": "bash", "input_schema": schema}
        kept, (left_out,) = passed("messages", asking("messages", tools=[tool]))
        assert (
            left_out == f'tools.input_schema.{name} "https://evil.example/schema.json"'
        )
        assert kept["tools"] == [{"name": "bash"}]
    tool = {"name": "bash", "input_schema": EVIL}
    kept, _ = passed("messages", asking("messages", tools=[tool]))
    assert kept["tools"] == [{"name": "bash"}]


LEFT_OUT: list[tuple[ProtocolName, Json, str]] = [
    # What costs more, or answers more than once
    ("messages", {"speed": "fast"}, 'speed "fast"'),
    ("messages", {"service_tier": "priority"}, 'service_tier "priority"'),
    ("messages", {"inference_geo": "us"}, 'inference_geo "us"'),
    ("messages", {"fallbacks": [{"model": "other"}]}, "fallbacks"),
    ("messages", {"context_management": {"edits": [{"type": "compact_20260112"}]}}, ""),
    ("chat", {"service_tier": "priority"}, 'service_tier "priority"'),
    ("chat", {"service_tier": ["priority"]}, 'service_tier "priority"'),
    ("chat", {"service_tier": {"a": 1}}, "service_tier \"{'a': 1}\""),
    ("chat", {"service_tier": "Priority"}, 'service_tier "Priority"'),
    ("chat", {"n": 5}, 'n "5"'),
    ("chat", {"best_of": 5}, "best_of"),
    ("chat", {"modalities": ["text", "audio"]}, 'modalities "audio"'),
    ("chat", {"models": ["other"]}, "models"),
    ("chat", {"provider": {"order": ["dear"]}}, "provider"),
    ("chat", {"store": True}, 'store "True"'),
    (
        "responses",
        {"prompt_cache_options": {"ttl": "12h"}},
        'prompt_cache_options.ttl "12h"',
    ),
    ("responses", {"service_tier": "flex"}, 'service_tier "flex"'),
    ("responses", {"reasoning": {"mode": "pro"}}, 'reasoning.mode "pro"'),
    ("responses", {"background": True}, 'background "True"'),
    (
        "gemini",
        {"generationConfig": {"candidateCount": 3}},
        'generationConfig.candidateCount "3"',
    ),
    (
        "gemini",
        {"generation_config": {"candidate_count": 3}},
        'generation_config.candidate_count "3"',
    ),
    ("gemini", {"serviceTier": "priority"}, 'serviceTier "priority"'),
    # What reaches out, or into the account
    ("messages", {"container": "container_1"}, "container"),
    ("messages", {"thread": {"id": "t"}}, "thread"),
    ("messages", {"mcp_servers": [{"url": EVIL}]}, "mcp_servers"),
    ("chat", {"web_search_options": {}}, "web_search_options"),
    ("chat", {"search_parameters": {"mode": "on"}}, "search_parameters"),
    ("chat", {"enable_search": True}, "enable_search"),
    ("chat", {"plugins": [{"id": "web"}]}, "plugins"),
    ("chat", {"api_base": EVIL}, "api_base"),
    ("chat", {"chat_template": "{{ 1 }}"}, "chat_template"),
    (
        "chat",
        {"chat_template_kwargs": {"chat_template": "a"}},
        "chat_template_kwargs.chat_template",
    ),
    ("chat", {"metadata": {"a": {"url": EVIL}}}, "metadata.a of a wrong form"),
    ("responses", {"conversation": "conv_1"}, "conversation"),
    ("responses", {"prompt": {"id": "pmpt_1"}}, "prompt"),
    ("gemini", {"cached_content": "cachedContents/1"}, "cached_content"),
    # Keys that look like others
    ("chat", {" tools": [{"type": "web_search"}]}, " tools"),
    ("chat", {"Tools": [{"type": "web_search"}]}, "Tools"),
    ("chat", {"tools\0": [{"type": "web_search"}]}, "tools\0"),
    ("chat", {"ｔools": [{"type": "web_search"}]}, "ｔools"),
    ("chat", {"tools": {"type": "web_search"}}, "tools of a wrong form"),
    ("gemini", {"cached__content": "a"}, "cached__content"),
]


@pytest.mark.parametrize(("protocol", "keys", "name"), LEFT_OUT)
def test_a_setting_that_is_not_listed_is_left_out(
    protocol: ProtocolName, keys: Json, name: str
) -> None:
    kept, left_out = passed(protocol, asking(protocol, **keys))
    assert kept == asking(protocol)
    assert left_out == ([name] if name else ["compact_20260112"])


def test_nothing_is_not_worth_a_finding() -> None:
    keys: Json = {
        "mcp_servers": [],
        "container": None,
        "service_tier": None,
        "speed": "standard",
    }
    kept, left_out = passed("messages", asking("messages", **keys))
    assert kept == asking("messages", service_tier=None, speed="standard")
    assert left_out == []


def test_an_unknown_key_of_content_is_left_out() -> None:
    """The rest of it is what a newer agent means."""
    part = {**TEXT, "source_url": EVIL, **CACHE}
    kept, left_out = passed("messages", asking("messages", part))
    assert kept == asking("messages", {**TEXT, **CACHE})
    assert left_out == ["messages.content.source_url"]
