"""Google's protocol at the gateway, as its CLI speaks it."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from pytest_upskill.skills.case import SandboxNeeds
from pytest_upskill.trials.answer import Usage
from pytest_upskill.trials.trial import Task
from support.endpoints import KEY, QUESTION, Opened, open_endpoint, spec_of
from support.loopback import Asked, Fault, LoopbackServer, Reply

CALLING = Reply(
    "Let me look.", calls=(("bash", {"command": "ls"}),), thinking="Hm.", cache_read=3
)
ASKED: dict[str, Any] = {
    "contents": [{"role": "user", "parts": [{"text": "Open the gate."}]}],
    "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
    "generationConfig": {"maxOutputTokens": 77},
}
both = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])


class Refused(Exception):
    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GENERIC_API_KEY"):
        monkeypatch.setenv(name, KEY)


async def post(
    opened: Opened,
    body: Any = ASKED,
    verb: str = "generateContent",
    *,
    model: str = "model-1",
    query: str = "",
    by_query: bool = False,
) -> Any:
    """The reply, or the events of a stream."""
    params = {"key": opened.token} if by_query else {}
    params |= dict([query.split("=")]) if query else {}
    headers = {} if by_query else {"x-goog-api-key": opened.token}
    url = f"{opened.url}/v1beta/models/{model}:{verb}"
    async with httpx2.AsyncClient(timeout=60) as client:
        reply = await client.post(url, json=body, params=params, headers=headers)
    if reply.status_code != 200:
        raise Refused(reply.status_code, reply.json())
    if "event-stream" not in reply.headers["content-type"]:
        return reply.json()
    lines = (line for line in reply.text.splitlines() if line.startswith("data: "))
    return [json.loads(line[6:]) for line in lines]


async def ask(opened: Opened, streamed: bool, body: Any = ASKED, **options: Any) -> str:
    """The text of the answer."""
    if not streamed:
        bodies = [await post(opened, body, **options)]
    else:
        bodies = await post(
            opened, body, "streamGenerateContent", query="alt=sse", **options
        )
    parts = [
        part for one in bodies for part in one["candidates"][0]["content"]["parts"]
    ]
    return "".join(one.get("text", "") for one in parts if not one.get("thought"))


def at_endpoint(
    test: Callable[[Opened], Any], reply: Any = None, **options: Any
) -> LoopbackServer:
    provider = options.pop("provider", "gemini")

    async def run(url: str) -> None:
        spec = spec_of(provider, url, **options.pop("spec", {}))
        async with open_endpoint(spec, **options) as opened, asyncio.timeout(60):
            await test(opened)

    with LoopbackServer(reply or (lambda _: Reply("Done."))) as server:
        asyncio.run(run(server.url))
    return server


@both
@pytest.mark.parametrize("provider", ["gemini", "generic"])
def test_a_reply_goes_through_and_is_kept(provider: str, streamed: bool) -> None:
    async def test(opened: Opened) -> None:
        assert await ask(opened, streamed, by_query=streamed) == "Let me look."
        answer, question = opened.answer(), opened.calls.questions[0]
        told = [(turn.kind, turn.text) for turn in answer.transcript]
        assert told == [
            ("system", "Be brief."),
            ("user", "Open the gate."),
            ("thinking", "Hm."),
            ("assistant", "Let me look."),
            ("call", '{"command": "ls"}'),
        ]
        assert answer.usage == Usage(13, 5, 3)
        assert (question.max_output, question.system) == (77, "Be brief.")
        assert question.messages == (("user", "Open the gate."),)

    (seen,) = at_endpoint(test, lambda _: CALLING, provider=provider).asked
    assert (seen.protocol, seen.model) == ("gemini", "model-1")
    assert seen.headers["x-goog-api-key"] == KEY
    assert "authorization" not in seen.headers
    assert seen.body == ASKED
    assert "trialkey-" not in str(seen)


def test_the_same_model_speaks_chat_at_another_address() -> None:
    async def test(opened: Opened) -> None:
        async with httpx2.AsyncClient() as client:
            said = {
                "model": "model-1",
                "messages": [{"role": "user", "content": "Go."}],
            }
            headers = {"authorization": f"Bearer {opened.token}"}
            reply = await client.post(
                f"{opened.url}/v1/chat/completions", json=said, headers=headers
            )
            assert reply.json()["choices"][0]["message"]["content"] == "Done."

    (seen,) = at_endpoint(test).asked
    assert (seen.protocol, seen.headers["authorization"]) == ("openai", f"Bearer {KEY}")


@pytest.mark.parametrize("made_up", ["nothing", "results", "both"])
def test_calls_without_ids_are_paired_with_their_results(made_up: str) -> None:
    """Gemini CLI makes up ids when it repeats a call."""

    def script(asked: Asked) -> Reply:
        calls: Any = [
            (
                ("bash", {"command": "ls"}),
                ("read", {"path": "a"}),
                ("bash", {"command": "id"}),
            ),
            (("bash", {"command": "ls"}),),
            (),
        ][[0, 3, 4].index(len(asked.results))]
        return Reply("" if calls else "Done.", calls=calls)

    async def test(opened: Opened) -> None:
        contents = list(ASKED["contents"])
        for texts in (["gate", "text of a", "me"], ["latch"]):
            reply = await post(opened, {**ASKED, "contents": contents})
            content = reply["candidates"][0]["content"]
            results = [
                {
                    "functionResponse": {
                        **(
                            {}
                            if made_up == "nothing"
                            else {"id": f"own-{len(contents)}-{at}"}
                        ),
                        "name": part["functionCall"]["name"],
                        "response": {"output": text},
                    }
                }
                for at, (part, text) in enumerate(
                    zip(content["parts"], texts, strict=True)
                )
            ]
            for at, part in enumerate(content["parts"]):
                if made_up == "both":
                    part["functionCall"]["id"] = f"own-{len(contents)}-{at}"
            if made_up == "both":
                results.reverse()
            contents += [content, {"role": "user", "parts": results}]
        assert (
            await ask(opened, streamed=False, body={**ASKED, "contents": contents})
            == "Done."
        )
        answer = opened.answer()
        told = [
            turn.text for turn in answer.transcript if turn.kind in ("call", "result")
        ]
        assert told == [
            *('{"command": "ls"}', "gate", '{"path": "a"}', "text of a"),
            *('{"command": "id"}', "me", '{"command": "ls"}', "latch"),
        ]
        assert answer.activity
        assert (answer.activity.turns, answer.activity.tool_calls) == (3, 4)
        assert answer.text == "Done."

    at_endpoint(test, script)


@both
@pytest.mark.parametrize("kind", ["status", "garbage", "error_first"])
def test_what_failed_before_its_first_byte_is_asked_again(
    streamed: bool, kind: Any
) -> None:
    if kind == "error_first" and not streamed:
        return

    def script(asked: Asked) -> Reply | Fault:
        return Fault(kind, 503) if asked.attempt < 3 else Reply("At last.")

    async def test(opened: Opened) -> None:
        assert await ask(opened, streamed) == "At last."
        assert [error.transient for error in opened.calls.errors] == [True, True]

    assert len(at_endpoint(test, script, attempts=3).asked) == 3


@pytest.mark.parametrize("kind", ["reset", "cut", "error_later"])
def test_a_stream_that_breaks_off_breaks_off_for_the_agent(kind: Any) -> None:
    async def test(opened: Opened) -> None:
        if kind == "error_later":
            events = await post(opened, ASKED, "streamGenerateContent", query="alt=sse")
            assert "told to fail" in events[-1]["error"]["message"]
        else:
            with pytest.raises(httpx2.HTTPError):
                await ask(opened, streamed=True)
        assert opened.endpoint.no_answer
        assert opened.answer().usage.output is None

    at_endpoint(test, lambda _: Fault(kind))


@pytest.mark.parametrize(
    ("fault", "hint", "fatal"),
    [
        (Fault("status", 403), "Check GEMINI_API_KEY or GOOGLE_API_KEY", True),
        (
            Fault("status", 400, details=({"reason": "API_KEY_INVALID"},)),
            "Check GEMINI_API_KEY or GOOGLE_API_KEY",
            True,
        ),
        (Fault("status", 404), "Check the model's name", False),
        (
            Fault(
                "status",
                429,
                details=({"violations": [{"quotaId": "GenerateRequestsPerDay"}]},),
            ),
            "Check the plan and the billing",
            True,
        ),
        (Fault("status", 503), "try again later", False),
    ],
)
def test_what_google_refuses(fault: Fault, hint: str, fatal: bool) -> None:
    async def test(opened: Opened) -> None:
        with pytest.raises(Refused) as caught:
            await ask(opened, streamed=False)
        assert caught.value.status in (400, 404)
        (error,) = opened.calls.errors
        assert hint in str(error)
        assert error.fatal == fatal

    at_endpoint(test, lambda _: fault)


def test_google_says_how_long_to_wait() -> None:
    details = ({"violations": [{"quotaId": "PerMinute"}]}, {"retryDelay": "34.5s"})

    async def test(opened: Opened) -> None:
        with pytest.raises(Refused):
            await ask(opened, streamed=True)
        (error,) = opened.calls.errors
        assert error.rate_limited
        assert error.retry_after == 34.5

    at_endpoint(test, lambda _: Fault("status", 429, details=details))


def test_tokens_are_estimated_without_the_server() -> None:
    async def test(opened: Opened) -> None:
        assert 0 < (await post(opened, ASKED, "countTokens"))["totalTokens"] < 1000

    assert not at_endpoint(test).asked


def test_the_models_are_the_one_of_the_trial() -> None:
    async def test(opened: Opened) -> None:
        async with httpx2.AsyncClient(
            headers={"x-goog-api-key": opened.token}
        ) as client:
            listed = (await client.get(f"{opened.url}/v1beta/models")).json()
            assert [one["name"] for one in listed["models"]] == ["models/model-1"]
            one = (await client.get(f"{opened.url}/v1beta/models/model-1")).json()
            assert one == listed["models"][0]

    assert not at_endpoint(test).asked


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("gemini-2.5-flash", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-3.5-flash", {"includeThoughts": True, "thinkingLevel": "low"}),
    ],
)
def test_the_effort_of_the_models_name_is_asked_for(model: str, thinking: Any) -> None:
    given = {
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
        "topK": 3,
    }

    async def test(opened: Opened) -> None:
        await ask(
            opened,
            streamed=False,
            body={**ASKED, "generationConfig": given},
            model=model,
        )

    (seen,) = at_endpoint(test, spec={"model_id": model, "effort": "low"}).asked
    assert seen.body["generationConfig"] == {"thinkingConfig": thinking, "topK": 3}


REACHING: list[dict[str, Any]] = [
    {"googleSearch": {}},
    {"google_search": {}},
    {"urlContext": {}},
    {"url_context": {}},
    {"codeExecution": {}},
    {"fileSearch": {"fileSearchStoreNames": ["a"]}},
    {"googleMaps": {}},
    {"ofTomorrow": {}},
]


@pytest.mark.parametrize("with_own", [False, True])
def test_a_provider_does_nothing_else_for_an_agent(with_own: bool) -> None:
    own = {"function_declarations": [{"name": "bash"}]}
    tools = [{**tool, **own} for tool in REACHING] if with_own else REACHING
    config = {"functionCallingConfig": {"mode": "AUTO"}}
    body = {
        **ASKED,
        "tools": tools,
        "toolConfig": config,
        "cachedContent": "cachedContents/x",
    }

    async def test(opened: Opened) -> None:
        await ask(opened, streamed=False, body=body)
        names = [f"tools.{name}" for tool in REACHING for name in tool] + [
            "cachedContent"
        ]
        assert [text.split(",")[0] for text in opened.findings] == [
            f"asked the provider for {name}" for name in names
        ]

    (seen,) = at_endpoint(test).asked
    assert seen.body.get("tools") == ([own] * len(REACHING) if with_own else None)
    assert ("toolConfig" in seen.body) == with_own
    assert "cachedContent" not in seen.body


FILE = {"fileData": {"fileUri": "https://evil.example/?q=1", "mimeType": "text/plain"}}


PARTS: list[dict[str, Any]] = [
    FILE,
    {"file_data": {"file_uri": "https://evil.example/?q=1"}},
    {"functionResponse": {"name": "a", "response": {}, "parts": [FILE]}},
]


def test_a_provider_fetches_nothing_for_an_agent() -> None:
    async def test(opened: Opened) -> None:
        for part in PARTS:
            asked: Any = {
                "contents": [{"role": "user", "parts": [{"text": "Look."}, part]}]
            }
            with pytest.raises(Refused, match="there is no network"):
                await post(opened, asked)
        assert opened.findings == (
            "asked the provider to fetch https://evil.example/?q=1 (3 times)",
        )

    assert not at_endpoint(test).asked


def test_with_a_network_it_may() -> None:
    body = {**ASKED, "tools": [{"googleSearch": {}}]}
    task = Task("cli", needs=SandboxNeeds(network=True))

    async def test(opened: Opened) -> None:
        await ask(opened, streamed=False, body=body)
        assert opened.findings == ()

    server = at_endpoint(test, question=replace(QUESTION, task=task))
    assert server.asked[0].body["tools"] == [{"googleSearch": {}}]


ELSEWHERE = [
    ("model-1", "batchGenerateContent", ""),
    ("model-1", "embedContent", ""),
    ("model-1", "streamGenerateContent", ""),  # a stream of another form
    ("", "generateContent", ""),
    ("model-1/../other", "generateContent", ""),
    ("other", "generateContent", ""),
    ("other", "streamGenerateContent", "alt=sse"),
    ("tunedModels/model-1", "generateContent", ""),
]


def test_other_paths_and_models_are_refused() -> None:
    async def test(opened: Opened) -> None:
        for model, verb, query in ELSEWHERE:
            before = opened.findings
            with pytest.raises(Refused) as caught:
                await post(opened, ASKED, verb, model=model, query=query)
            assert caught.value.status == 404, (model, verb)
            assert caught.value.body["error"]["status"] == "NOT_FOUND"
            assert caught.value.body["error"]["code"] == 404
            assert opened.findings != before, (model, verb)

    assert not at_endpoint(test).asked


def test_a_wrong_key_in_the_address() -> None:
    async def test(opened: Opened) -> None:
        url = f"{opened.url}/v1beta/models/model-1:generateContent"
        async with httpx2.AsyncClient() as client:
            for key in ("", "wrong", KEY):
                reply = await client.post(f"{url}?key={key}", json=ASKED)
                assert reply.status_code == 401
                assert reply.json()["error"]["status"] == "UNAUTHENTICATED"
        assert opened.findings == ("sent no token", "sent a wrong token (2 times)")

    assert not at_endpoint(test).asked


ODD: list[tuple[dict[str, Any], int]] = [
    ({}, 400),
    ({"contents": {}}, 400),
    ({"contents": []}, 200),
    ({"contents": [], "systemInstruction": 7}, 400),
    ({"contents": [], "generationConfig": {}, "model": ["x"], "toolConfig": None}, 200),
]


def test_odd_bodies() -> None:
    async def test(opened: Opened) -> None:
        for body, status in ODD:
            before = opened.findings
            if status == 200:
                assert await post(opened, body)
            else:
                with pytest.raises(Refused, match="400"):
                    await post(opened, body)
            assert (opened.findings != before) == (status != 200), body

    at_endpoint(test)
