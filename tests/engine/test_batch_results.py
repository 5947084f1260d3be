"""Results of batches: failed, cut, odd, or in nobody's hands; none is paid for
twice.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.engine import batches
from pytest_upskill.engine.store import Store
from pytest_upskill.trials.answer import Answer
from support.batch_runs import MODELS, WAIT, ask, kept, questions, texts
from support.batch_server import BatchServer, Lines, as_lines
from support.loopback import Fault


@pytest.mark.parametrize("fate", ["errored", "expired", "canceled"])
def test_what_fails_in_a_batch_is_an_error_that_says_so(
    tmp_path: Path, server: BatchServer, model: str, fate: str
) -> None:
    server.fate_of = lambda said: fate if said == "two" else "succeeded"
    one, two = texts(ask(tmp_path, questions(model, "one", "two")))
    assert one == "ONE"
    words = {"errored": "told to fail", "expired": "expired", "canceled": "cancelled"}[
        fate
    ]
    assert words in two
    assert "=fallback" in two
    server.fate_of = lambda _: "succeeded"
    assert texts(ask(tmp_path, questions(model, "one", "two"))) == ["ONE", "TWO"]
    assert [len(batch.requests) for batch in server.batches.values()] == [2, 1]


@pytest.mark.parametrize("fate", ["errored", "expired", "canceled"])
def test_what_fails_in_a_batch_is_asked_alone_if_that_is_wanted(
    tmp_path: Path, server: BatchServer, model: str, fate: str
) -> None:
    server.fate_of = lambda said: fate if said == "two" else "succeeded"
    settings = replace(WAIT, batch="fallback")
    replies = ask(tmp_path, questions(model, "one", "two"), settings)
    assert texts(replies) == ["ONE", "TWO"]
    assert [isinstance(one, Answer) and one.usage.batch for one in replies] == [
        True,
        False,
    ]
    assert [one.retries for one in replies] == [0, 1]
    assert len(server.batches) == 1


def test_a_batch_that_is_refused_as_a_whole_says_why(
    tmp_path: Path, server: BatchServer
) -> None:
    server.status, server.done = "failed", 0
    [said] = texts(ask(tmp_path, questions(MODELS["openai"], "one")))
    assert "the batch was refused: Enqueued token limit reached" in said


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_a_batch_that_ends_early_tells_of_what_is_missing(
    tmp_path: Path, server: BatchServer, status: str
) -> None:
    server.status, server.done = status, 1
    server.lines = lambda results: as_lines(
        [one for one in results if "ONE" in str(one)]
    )
    one, two = texts(ask(tmp_path, questions(MODELS["openai"], "one", "two")))
    assert one == "ONE"
    assert status in two
    assert not kept(tmp_path)


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_results_of_a_batch_that_ends_early_may_be_cut_too(
    tmp_path: Path, server: BatchServer, status: str
) -> None:
    server.status, server.done, server.lines = status, 2, cut_short
    asked = questions(MODELS["openai"], "one", "two")
    assert "its results lack 1 answer" in texts(ask(tmp_path, asked))[1]
    server.lines = as_lines
    assert texts(ask(tmp_path, asked)) == ["ONE", "TWO"]
    assert len(server.batches) == 1


def test_results_that_are_no_longer_kept_are_asked_for_again(
    tmp_path: Path, server: BatchServer
) -> None:
    shown = server._shown
    archived = {"archived_at": "2026-10-01T00:00:00Z"}
    server._shown = (  # type: ignore[method-assign]
        lambda *given: {**shown(*given), **archived}
    )
    gone = Fault("status", 404)
    server.trouble = lambda _, path: gone if path.endswith("results") else None
    [said] = texts(ask(tmp_path, questions(MODELS["anthropic"], "one")))
    assert "its results are no longer kept. Run again, or by batch=fallback" in said
    assert not kept(tmp_path)


def hostile(results: list[dict[str, Any]]) -> list[bytes]:
    """In another order, among lines that are nothing, of others, doubled, endless."""
    lines = as_lines(list(reversed(results)))
    strange = [
        b"not json\n",
        b"\n",
        b"[1, 2]\n",
        b'{"custom_id": 7}\n',
        b'{"custom_id": "stranger", "result": {"type": "succeeded", "message": {}}}\n',
        b'{"custom_id": {"a": []}, "result": [], "response": 5, "error": "no"}\n',
        b"x" * 17_000_000 + b"\n",
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
    ]
    other = json.dumps(results).replace("ONE", "EVIL").replace("TWO", "EVIL")
    doubled = as_lines(json.loads(other))
    return [*strange, *lines, *doubled, *strange[:5], b"".join(lines)[:40]]


def test_results_may_be_anything(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.lines = hostile
    assert texts(ask(tmp_path, questions(model, "one", "two"))) == ["ONE", "TWO"]


def cut_short(results: list[dict[str, Any]]) -> list[bytes]:
    whole = b"".join(as_lines(results))
    return [whole[: len(whole) * 2 // 3]]


def nothing(_: list[dict[str, Any]]) -> list[bytes]:
    return [b"{}"]


@pytest.mark.parametrize("lines", [cut_short, nothing])
def test_results_that_are_cut_on_their_way_are_not_paid_for_again(
    tmp_path: Path, server: BatchServer, model: str, lines: Lines
) -> None:
    asked = questions(model, "one", "two")
    server.lines = lines
    said = texts(ask(tmp_path, asked))[1]
    assert re.search(r"its results lack \d answers? \(batch ", said)
    assert "Delete the file to submit its questions again" in said
    server.lines = as_lines
    assert texts(ask(tmp_path, asked)) == ["ONE", "TWO"]
    assert len(server.batches) == 1
    assert not kept(tmp_path)


def test_results_that_are_cut_once_are_taken_again(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    left = [cut_short]
    server.lines = lambda results: (left.pop() if left else as_lines)(results)
    assert texts(ask(tmp_path, questions(model, "one", "two"))) == ["ONE", "TWO"]
    assert len(server.batches) == 1


def test_results_that_are_not_there_are_asked_alone_if_that_is_wanted(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.lines = nothing
    asked = questions(model, "one", "two")
    assert texts(ask(tmp_path, asked, replace(WAIT, batch="fallback"))) == [
        "ONE",
        "TWO",
    ]
    assert not kept(tmp_path)


def disk_full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("part", "name", "broken"),
    [(Store, "_save", lambda _: None), (batches.Batches, "_answer", disk_full)],
)
def test_what_can_not_be_stored_or_read_stays_to_be_collected(
    tmp_path: Path,
    server: BatchServer,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    part: type,
    name: str,
    broken: object,
) -> None:
    asked = questions(model, "one", "two")
    with monkeypatch.context() as patch:
        patch.setattr(part, name, broken)
        ask(tmp_path, asked)
    assert texts(ask(tmp_path, asked)) == ["ONE", "TWO"]
    assert len(server.batches) == 1
    assert not kept(tmp_path)


@pytest.mark.parametrize(
    "reply", [None, 7, "words", [], {}, {"content": 3, "choices": "x"}]
)
def test_a_result_that_is_no_reply_is_an_error(
    tmp_path: Path, server: BatchServer, model: str, reply: object
) -> None:
    def odd(results: list[dict[str, Any]]) -> list[bytes]:
        for one in results:
            if "result" in one:
                one["result"]["message"] = reply
            else:
                one["response"]["body"] = reply
        return as_lines(results)

    server.lines = odd
    [said] = texts(ask(tmp_path, questions(model, "one")))
    assert re.search("invalid reply|unreadable reply", said)


def test_a_connection_that_breaks_among_results_loses_none(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    left = ["lost"]

    def trouble(_method: str, path: str) -> str | None:
        return left.pop() if left and path.endswith(("results", "content")) else None

    server.trouble = trouble
    asked = questions(model, *map(str, range(50)))
    assert texts(ask(tmp_path, asked)) == list(map(str, range(50)))
    assert len(server.batches) == 1
