"""Requests by which an agent could reach beyond its model. None of them goes on."""

import json
from typing import Any

import pytest

from pytest_upskill.agents.gateway.door import UnlistedContent
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
REFUSED: list[tuple[ProtocolName, Json]] = [
    # Fetched by address, wherever it stands
    ("messages", document(TEXT, URL_IMAGE)),
    ("messages", {"type": "tool_result", "content": [document(URL_IMAGE)]}),
    ("messages", {"type": "tool_result", "content": [URL_IMAGE]}),
    ("messages", {"type": "document", "source": {"type": "url", "url": EVIL}}),
    ("chat", {"type": "image_url", "image_url": EVIL}),
    ("chat", {"type": "video_url", "video_url": {"url": EVIL}}),
    ("chat", {"type": "audio_url", "audio_url": EVIL}),
    ("chat", {"type": "file", "file": {"file_data": EVIL}}),
    ("responses", {"type": "input_file", "file_url": EVIL}),
    ("responses", {"type": "input_file", "file_data": EVIL}),
    (
        "gemini",
        {"functionResponse": {"parts": [{"file_data": {"file_uri": EVIL}}]}},
    ),
    # Fetched, run or opened, by its kind
    ("messages", {"type": "video", "source": {"type": "url", "url": EVIL}}),
    ("messages", {"type": "image", "source": {"type": "file", "file_id": "f"}}),
    ("messages", {"type": "container_upload", "file_id": "f"}),
    ("messages", {"type": "server_tool_use", "name": "web_search"}),
    ("messages", {"type": "mcp_tool_use", "server_name": "s"}),
    ("messages", ADDITION),
    ("messages", {"type": "Image", "source": {"type": "url", "url": EVIL}}),
    ("messages", {"type": "image ", "source": {"type": "url", "url": EVIL}}),
    ("messages", {"type": "ｉmage", "source": {"type": "url", "url": EVIL}}),
    ("chat", {"type": "video", "video": [EVIL]}),
    ("chat", {"type": "input_audio", "input_audio": {"data": EVIL}}),
    ("chat", {"type": "document_url", "document_url": EVIL}),
    (
        "chat",
        {"type": "file", "file": {"file_id": "f"}},
    ),
    ("responses", {"type": "input_video", "video_url": EVIL}),
    ("gemini", {"executableCode": {"code": "a"}}),
    ("gemini", {"videoMetadata": {}}),
    # Without a kind
    ("chat", {"image_url": {"url": EVIL}}),
    ("chat", {"type": ["image_url"]}),
    (
        "messages",
        {"type": "image", "source": EVIL},
    ),
    (
        "messages",
        {"type": "image", "source": [URL_IMAGE]},
    ),
    (
        "gemini",
        {"inlineData": {"data": EVIL}},
    ),
    (
        "messages",
        {"type": "text", "text": {"url": EVIL}},
    ),
    # Listed, but in another form
    ("chat", {"type": "image_url", "image_url": [EVIL]}),
    ("chat", {"type": "image_url", "imageUrl": {"URL": EVIL, "url": EVIL}}),
    ("messages", {"type": "image", "source": {"type": "base64", "data": [EVIL]}}),
    ("messages", {"type": "image", "source": {"file_id": "f"}}),
    ("responses", {"type": "input_image", "image_url": {"url": EVIL}}),
    ("gemini", {"fileData": [{"fileUri": "files/1"}]}),
    ("chat", {"type": "file", "file": EVIL}),
    ("gemini", {"inlineData": EVIL}),
]
ITEMS: list[Json] = [
    {"type": "computer_call_output", "output": {"image_url": EVIL}},
    {"type": "function_call_output", "output": [image("responses", EVIL)]},
    {"type": "custom_tool_call_output", "output": [image("responses", EVIL)]},
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_1"},  # the same, without its type
    {"type": None, "id": "msg_1"},
    {"type": "message", "id": "msg_1"},
    {"id": "msg_1", "role": "user"},
    {"id": "msg_1", "content": ""},
    {"type": "web_search_call", "id": "ws_1"},
    {"type": "code_interpreter_call", "id": "ci_1"},
    {"type": "mcp_approval_response", "approve": True},
    {"type": "shell_call", "environment": {"container_id": "c"}},
    {"type": "program", "code": "a"},
    {"type": "function_call", "name": "a", "caller": {"type": "program"}},
]


@pytest.mark.parametrize(("protocol", "part"), REFUSED)
def test_content_that_a_provider_would_fetch_run_or_open_is_refused(
    protocol: ProtocolName, part: Json
) -> None:
    text = (
        {"text": "Look."} if protocol == "gemini" else {"type": "text", "text": "Look."}
    )
    with pytest.raises(UnlistedContent) as caught:
        passed(protocol, asking(protocol, text, part))
    assert caught.value.name


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_that_a_provider_would_fetch_run_or_open_is_refused(item: Json) -> None:
    with pytest.raises(UnlistedContent):
        passed("responses", {"input": [item]})


def test_no_stored_reply_is_continued() -> None:
    """The account keeps replies of other trials, too."""
    asked = {"input": "Go.", "previous_response_id": "resp_of_another"}
    with pytest.raises(UnlistedContent, match="previous_response_id"):
        passed("responses", asked)


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


PROVIDERS_TOOLS: list[tuple[ProtocolName, Json]] = [
    (
        "messages",
        {"type": "advisor_20260301", "name": "advisor", "model": "m"},
    ),
    (
        "messages",
        {"type": "web_fetch_20990101", "name": "web_fetch"},
    ),
    ("messages", {"type": "mcp_toolset", "mcp_server_name": "s"}),
    ("messages", {"type": "x_search"}),
    ("messages", {"type": "Custom", "name": "a"}),
    ("messages", {"type": "bash_2025012x", "name": "a"}),
    ("messages", {"type": 5}),
    ("chat", "web_search"),  # type: ignore[list-item]
    ("messages", {"url": EVIL}),
    (
        "chat",
        {"type": "builtin_function", "function": {"name": "$web_search"}},
    ),
    ("chat", {"type": "function", "function": {"name": "$web_search"}}),
    ("chat", {"type": "x_search"}),
    ("chat", {"type": "web_search"}),
    ("chat", {"type": "openrouter:web_search"}),
    ("chat", {"googleSearch": {}}),
    ("responses", SHELL),
    ("responses", {"type": "shell"}),
    ("responses", {"type": "x_search"}),
    (
        "responses",
        {"type": "web_search_preview_2025_03_11"},
    ),
    ("responses", {"type": "programmatic_tool_calling"}),
    ("responses", {"type": "mcp", "server_url": EVIL}),
    ("responses", {"type": "file_search", "vector_store_ids": ["v"]}),
    ("gemini", {"googleSearch": {}}),
    ("gemini", {"retrieval": {"externalApi": {}}}),
]


@pytest.mark.parametrize(("protocol", "tool"), PROVIDERS_TOOLS)
def test_a_tool_that_the_provider_runs_is_left_out(
    protocol: ProtocolName, tool: Json
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
    assert kept == asking(protocol, tools=[OWN[protocol]], **choice)
    assert len(left_out) == 1
    kept, left_out = passed(protocol, asking(protocol, tools=[tool], **choice))
    assert kept == asking(protocol)
    assert len(left_out) == 1


def test_tools_are_left_out_at_any_depth() -> None:
    tool: Json = {"type": "web_search"}
    for _ in range(7):
        tool = {"type": "namespace", "name": "n", "tools": [OWN["responses"], tool]}
    for place in (
        {"tools": [tool]},
        {"input": [{"type": "additional_tools", "tools": [tool]}]},
    ):
        kept, left_out = passed("responses", {"input": "Go.", **place})
        assert left_out == ["web_search"]
        assert "web_search" not in json.dumps(kept)
        assert json.dumps(kept).count("bash") == 7


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


@pytest.mark.parametrize("name", ["$ref", "$dynamicRef"])
def test_a_schema_refers_to_no_other_document(name: str) -> None:
    schema: Json = {"anyOf": [{"anyOf": [{name: EVIL}]}]}
    tool = {"name": "bash", "input_schema": schema}
    kept, left_out = passed("messages", asking("messages", tools=[tool]))
    assert kept == asking("messages")
    assert left_out == [f'tools.input_schema.{name} "{EVIL}"']


LEFT_OUT: list[tuple[ProtocolName, Json]] = [
    # What costs more, or answers more than once
    ("messages", {"speed": "fast"}),
    ("messages", {"service_tier": "priority"}),
    ("messages", {"inference_geo": "us"}),
    ("messages", {"fallbacks": [{"model": "other"}]}),
    ("messages", {"context_management": {"edits": [{"type": "compact_20260112"}]}}),
    ("chat", {"service_tier": "priority"}),
    ("chat", {"service_tier": ["priority"]}),
    ("chat", {"service_tier": {"a": 1}}),
    ("chat", {"service_tier": "Priority"}),
    ("chat", {"n": 5}),
    ("chat", {"best_of": 5}),
    ("chat", {"modalities": ["text", "audio"]}),
    ("chat", {"models": ["other"]}),
    ("chat", {"provider": {"order": ["dear"]}}),
    ("chat", {"store": True}),
    (
        "responses",
        {"prompt_cache_options": {"ttl": "12h"}},
    ),
    ("responses", {"service_tier": "flex"}),
    ("responses", {"reasoning": {"mode": "pro"}}),
    ("responses", {"background": True}),
    (
        "gemini",
        {"generationConfig": {"candidateCount": 3}},
    ),
    (
        "gemini",
        {"generation_config": {"candidate_count": 3}},
    ),
    ("gemini", {"serviceTier": "priority"}),
    # What reaches out, or into the account
    ("messages", {"container": "container_1"}),
    ("messages", {"thread": {"id": "t"}}),
    ("messages", {"mcp_servers": [{"url": EVIL}]}),
    ("chat", {"web_search_options": {}}),
    ("chat", {"search_parameters": {"mode": "on"}}),
    ("chat", {"enable_search": True}),
    ("chat", {"plugins": [{"id": "web"}]}),
    ("chat", {"api_base": EVIL}),
    ("chat", {"chat_template": "{{ 1 }}"}),
    (
        "chat",
        {"chat_template_kwargs": {"chat_template": "a"}},
    ),
    ("chat", {"metadata": {"a": {"url": EVIL}}}),
    ("responses", {"conversation": "conv_1"}),
    ("responses", {"prompt": {"id": "pmpt_1"}}),
    ("gemini", {"cached_content": "cachedContents/1"}),
    # Keys that look like others
    ("chat", {" tools": [{"type": "web_search"}]}),
    ("chat", {"Tools": [{"type": "web_search"}]}),
    ("chat", {"tools\0": [{"type": "web_search"}]}),
    ("chat", {"ｔools": [{"type": "web_search"}]}),
    ("chat", {"tools": {"type": "web_search"}}),
    ("chat", {"tools": "web_search"}),
    ("gemini", {"cached__content": "a"}),
]


@pytest.mark.parametrize(("protocol", "keys"), LEFT_OUT)
def test_a_setting_that_is_not_listed_is_left_out(
    protocol: ProtocolName, keys: Json
) -> None:
    kept, left_out = passed(protocol, asking(protocol, **keys))
    assert kept == asking(protocol)
    assert len(left_out) == 1


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


@pytest.mark.parametrize(
    "more", [{"source_url": EVIL}, {"file_id": "f"}, {"tools": [SHELL]}]
)
def test_an_unknown_key_of_content_is_left_out(more: Json) -> None:
    """The rest of it is what a newer agent means."""
    part = {**TEXT, **more, **CACHE}
    kept, left_out = passed("messages", asking("messages", part))
    kept["messages"][0]["content"][0].pop("tools", None)
    assert kept == asking("messages", {**TEXT, **CACHE})
    assert len(left_out) == 1
