"""No reply fills the memory: not a bomb, not one without an end,
not one of many values.
"""

import gzip
import json
import socket
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from pytest_upskill._util.json_forms import about_values
from pytest_upskill.engine import Engine, ModelFacts
from pytest_upskill.errors import ModelError
from pytest_upskill.models import Model, reply_size
from pytest_upskill.trials.answer import Answer, NoAnswer
from pytest_upskill.trials.trial import Question
from support.adapters import answers_of, spec_of
from support.loopback import LoopbackServer, Reply

QUESTION = Question("m", "Be brief.", (("user", "What is the gate's command?"),), 64, 1)
MOST = 50_000
LARGE = b" " * 1_000_000  # unpacked, or sent before the client must have left


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setattr(reply_size, "MOST_BYTES", MOST)
    return str(request.param)


@contextmanager
def server(
    head: str, body: bytes, *, endless: bool = False
) -> Iterator[tuple[str, list[int]]]:
    """The address of a server that sends this to everybody,
    and how much each connection took.
    """
    taken: list[int] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(20)
                    connection.recv(65536)
                    taken.append(0)
                    connection.sendall(head.encode())
                    while not taken[-1] or endless:
                        connection.sendall(body)
                        taken[-1] += len(body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(20)


def headers(*more: str, status: str = "200 OK") -> str:
    return "\r\n".join(
        [f"HTTP/1.1 {status}", "content-type: application/json", *more, "", ""]
    )


def ask(provider: str, url: str) -> Answer:
    return answers_of(spec_of(provider, url), QUESTION)[0]


def refused(provider: str, url: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(provider, url)
    assert "is too large (more than " in caught.value.problem
    assert not caught.value.transient
    assert caught.value.paid == ()
    return caught.value


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data)


def _raw_deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _twice(data: bytes) -> bytes:
    return gzip.compress(gzip.compress(data))


def _zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        zstd = pytest.importorskip("backports.zstd")
    packed: bytes = zstd.compress(data)
    return packed


def _brotli(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("brotli").compress(data)
    return packed


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", _deflated),
        ("deflate", _raw_deflated),
        ("gzip, gzip", _twice),
        ("zstd", _zstd),
        ("br", _brotli),
    ],
)
def test_a_reply_that_unpacks_to_too_much_is_an_error(
    provider: str, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    body = pack(LARGE)
    assert len(body) < MOST
    head = headers(f"content-encoding: {encoding}", f"content-length: {len(body)}")
    with server(head, body) as (url, _):
        refused(provider, url)


@pytest.mark.parametrize(
    "status", ["200 OK", "500 Oh", "429 Busy", "302 Found\r\nlocation: /x"]
)
@pytest.mark.parametrize("form", ["transfer-encoding: chunked", "connection: close"])
def test_a_body_without_an_end_is_left(provider: str, status: str, form: str) -> None:
    part = b" " * 10_000
    body = b"%x\r\n%s\r\n" % (len(part), part) if "chunked" in form else part
    with server(headers(form, status=status), body, endless=True) as (url, taken):
        refused(provider, url)
    assert len(taken) == 1  # no redirect is followed
    assert 0 < taken[0] < 50_000_000  # with what is on its way


def test_a_packed_body_that_unpacks_to_nothing_is_left_too(provider: str) -> None:
    """Empty blocks for ever, or garbage after the end of the packed data."""
    packer = zlib.compressobj(wbits=31)
    start = packer.compress(b"{") + packer.flush(zlib.Z_SYNC_FLUSH)
    head = headers("content-encoding: gzip", "connection: close")
    for begins, goes_on in (
        (start, b"\0\0\0\xff\xff" * 1000),
        (gzip.compress(b"{}"), b"x" * 5000),
    ):
        both = head.encode("latin-1") + begins
        with server(both.decode("latin-1"), goes_on, endless=True) as (url, _):
            with pytest.raises(ModelError) as caught:
                ask(provider, url)
            assert "too large" in caught.value.problem or "lost" in caught.value.problem


@pytest.mark.parametrize("values", ["[]", "{}", '""', "1", '{"type": "text"}'])
@pytest.mark.parametrize("status", ["200 OK", "500 Oh"])
def test_a_reply_of_too_many_values_is_an_error(
    provider: str, values: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_size, "MOST_VALUES", 200)
    many = ", ".join([values] * 300)
    body = f'{{"choices": [{many}], "content": [{many}], "error": [{many}]}}'.encode()
    with server(headers(f"content-length: {len(body)}", status=status), body) as (
        url,
        _,
    ):
        refused(provider, url)


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2, 3]}, ', '\\"[', "\\", '"', "{[,", "ä, 🙂"]
)
def test_the_text_of_an_answer_is_one_value_whatever_it_says(
    provider: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_size, "MOST_VALUES", 50)
    with LoopbackServer(lambda _: Reply(text * 500)) as loopback:
        assert ask(provider, loopback.url).text == text * 500


def test_values_are_counted_in_linear_time() -> None:
    """Strings without an end, which a careless pattern would try again at every
    quote.
    """
    marks = b"," * 2 * reply_size.MOST_VALUES
    for body in (b'\\"' * 2_000_000, b"\\" * 2_000_001, b'"' * 9_001):
        assert about_values(marks + b'"' + body, 10_000) >= reply_size.MOST_VALUES


def test_a_reply_that_is_too_large_is_not_asked_for_again(provider: str) -> None:
    async def open_model(_: str) -> Model:
        spec = spec_of(provider, url)
        return await spec.provider.open(spec, 20)

    body = gzip.compress(LARGE)
    head = headers("content-encoding: gzip", f"content-length: {len(body)}")
    with server(head, body) as (url, taken):
        engine = Engine(ModelFacts(open_model, lambda _: 30), concurrency=1)
        [reply] = engine.ask([QUESTION])
        engine.close()
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(f"m: the reply from {url}")
    assert reply.reason.endswith(" MB, or 10,000 values). Check the address")
    assert len(taken) == 1


def test_a_reply_nested_without_an_end_is_one_line(provider: str) -> None:
    body = b"[" * 9_000
    head = headers(f"content-length: {len(body)}")
    with server(head, body) as (url, _), pytest.raises(ModelError) as caught:
        ask(provider, url)
    assert "\n" not in str(caught.value)


def test_packed_replies_are_read_as_ever(provider: str) -> None:
    reply = {
        "id": "x",
        "model": "m",
        "type": "message",
        "role": "assistant",
        "object": "chat.completion",
        "created": 0,
        "choices": [
            {"index": 0, "message": {"content": "gate up"}, "finish_reason": "stop"}
        ],
        "content": [{"type": "text", "text": "gate up"}],
        "stop_reason": "end_turn",
    }
    body = gzip.compress(json.dumps(reply).encode())
    head = headers("content-encoding: gzip", f"content-length: {len(body)}")
    with server(head, body) as (url, _):
        assert ask(provider, url).text == "gate up"
