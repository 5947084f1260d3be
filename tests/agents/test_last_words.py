"""What an agent said at its end."""

import json

import pytest

from pytest_upskill.agents.command_agent import last_error

UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", ""),
        ("\n \n", ""),
        ("Error: no key\n", "Error: no key"),
        ("starting\nError: no key\nBye.\n", "Error: no key"),
        ("one\ntwo\n", "two"),
        ("\x1b[31mError:\x1b[0m no \x1b]0;title\x07key\x1b[K\n", "Error: no key"),
        (
            "node: error while loading shared libraries: libatomic.so.1: cannot open\n",
            "node: error while loading shared libraries: libatomic.so.1: cannot open",
        ),
        (
            "file:///x.js:5\n    throw new Error('x')\n    ^\n\n"
            "Error: pi needs node 22\n    at main (x.js:5:3)\n\nNode.js v20.1.0\n",
            "Error: pi needs node 22",
        ),
        (
            "Out of memory\n"
            "[The sandbox stopped the command: it used more than 4096 MB of memory.]\n",
            "[The sandbox stopped the command: it used more than 4096 MB of memory.]",
        ),
        (f"Error: session {UUID} is lost\n", "Error: session … is lost"),
        (
            "2026-11-16T03:12:35.123Z Error: fetch http://127.0.0.1:43617/v1 failed\n",
            "Error: fetch http://127.0.0.1/v1 failed",
        ),
        (
            "Error: process 12345 died, request req_011CUabcdEFGH12345\n",
            "Error: process … died, request …",
        ),
        ("Error: trialkey-abcdefghijklmnopqrstuvwxyz123456 is wrong\n", "Error: *** is wrong"),
        ('{"type": "assistant", "message": {"text": "hello"}}\n', ""),
        ('{"cut": "in the mid\n', '{"cut": "in the mid'),
    ],
)
def test_the_line_that_says_most(output: str, words: str) -> None:
    assert last_error(output.encode()) == words


@pytest.mark.parametrize(
    "event",
    [
        {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: refused"},
        {"type": "error", "message": "API Error: refused"},
        {"type": "turn.failed", "error": {"message": "API Error: refused"}},
        {"type": "session.error", "data": {"errorType": "x", "message": "API Error: refused"}},
        {"type": "error", "error": {"name": "X", "data": {"message": "API Error: refused"}}},
        {"type": "result", "status": "error", "error": {"message": "API Error:\nrefused"}},
        {"error": "API Error: refused"},
        {"type": "message_end", "message": {"errorMessage": "API Error: refused"}, "error": True},
    ],
)
def test_an_error_is_found_in_an_event(event: object) -> None:
    lines = [{"type": "system"}, event, {"type": "usage", "message": "Total error: none"}]
    assert last_error("\n".join(map(json.dumps, lines)).encode()) == "API Error: refused"


def test_whatever_it_says_is_one_short_line() -> None:
    deep = '{"error":' * 5000 + "1" + "}" * 5000
    for output in (b"\xff\xfe\0" * 9000, b"error " * 10**6, deep.encode(), b"\x1b[" * 10**5):
        words = last_error(output)
        assert len(words) <= 250
        assert words.isprintable()


@pytest.mark.parametrize("line", ["a-" * 10_000, "1" * 19_999 + "a", "1." * 10_000, "A1" * 10_000])
def test_no_line_keeps_it_busy(line: str) -> None:
    """The engine's loop waits for it: one such line once took half a minute."""
    assert len(last_error("\n".join([line] * 50).encode())) <= 250
