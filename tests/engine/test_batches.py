"""Questions by batch, through the real SDKs: nothing is paid for twice,
whatever happens.
"""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_upskill.engine import batches
from pytest_upskill.models.batching import (
    BatchLimits,
    BatchRequest,
    OpenAIBatches,
    batches_of,
)
from pytest_upskill.settings import Settings
from pytest_upskill.trials.answer import Answer, NoAnswer
from support.batch_runs import (
    MODELS,
    PRICE,
    WAIT,
    ask,
    begin,
    engine,
    kept,
    questions,
    texts,
)
from support.batch_server import BatchServer
from support.loopback import Asked, Fault, Kind
from support.loopback import Reply as Said
from support.waiting import wait_until


def test_a_batch_asks_the_very_same_as_single_calls(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    schema = '{"type": "object", "properties": {}, "additionalProperties": false}'
    asked = [*questions(model, "one", "two"), *questions(model, "three", schema=schema)]
    ask(tmp_path / "single", asked, Settings())
    alone = sorted(json.dumps(one.body, sort_keys=True) for one in server.asked)
    replies = ask(tmp_path / "batch", asked)
    [batch] = server.batches.values()
    assert sorted(json.dumps(body, sort_keys=True) for body in batch.bodies) == alone
    assert texts(replies) == ["ONE", "TWO", "THREE"]
    assert all(isinstance(one, Answer) and one.usage.batch for one in replies)


def test_an_answer_that_came_by_batch_serves_later_runs_and_the_other_way_around(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    one, two = questions(model, "one", "two")
    ask(tmp_path, [one])
    [stored] = ask(tmp_path, [one], Settings())
    assert isinstance(stored, Answer)
    assert (stored.stored, stored.usage.batch, stored.seconds) == (True, True, None)
    ask(tmp_path, [two], Settings())
    ask(tmp_path, [one, two])
    assert len(server.batches) == 1


def test_what_an_earlier_run_has_submitted_is_collected(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.looks = 3
    asked = questions(model, "one", "two")
    with engine(tmp_path, model, Settings(batch="submit")) as made:
        begin(made, asked)
        waiting = made.step()
    assert waiting
    assert (waiting.batches, waiting.questions, waiting.done) == (1, 2, 0)
    shown = json.dumps(kept(tmp_path))
    assert "of-the-tests" not in shown  # no key
    assert "one" not in re.findall(r'"(\w+)"', shown)  # no question
    more = questions(model, "three")
    assert texts(ask(tmp_path, [*asked, *more])) == ["ONE", "TWO", "THREE"]
    assert [len(one.requests) for one in server.batches.values()] == [2, 1]
    assert not kept(tmp_path)


def test_what_this_run_does_not_ask_stays_to_be_collected(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.looks = 2
    one, two = questions(model, "one", "two")
    with engine(tmp_path, model, Settings(batch="submit")) as made:
        begin(made, [one, two])
        made.step()
    assert texts(ask(tmp_path, [two])) == ["TWO"]
    [left] = kept(tmp_path)
    assert len(left["keys"]) == 1
    assert texts(ask(tmp_path, [one])) == ["ONE"]
    assert len(server.batches) == 1
    assert not kept(tmp_path)


def test_a_batch_whose_reply_got_lost_is_not_submitted_again(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    asked = questions(model, "one", "two")
    server.trouble = lambda method, path: (
        "lost" if method == "POST" and path.endswith("/batches") else None
    )
    ask(tmp_path, asked)
    server.trouble = lambda _method, _path: None
    said = texts(ask(tmp_path, asked))
    assert said[0] == said[1]
    assert "it is not known whether this batch was submitted (saved as " in said[0]
    assert (
        "Look for a batch of 2 questions at the provider. Delete the file to submit"
        in said[0]
    )
    assert len(server.batches) == 1
    [file] = (tmp_path / ".upskill/batches").glob("*.json")
    file.unlink()
    assert texts(ask(tmp_path, asked)) == ["ONE", "TWO"]


def test_a_run_that_is_stopped_while_it_submits_pays_once(
    tmp_path: Path, server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, asked = OpenAIBatches.submit, questions(MODELS["openai"], "one", "two")

    async def slow(self: OpenAIBatches, requests: Any) -> str:
        await asyncio.sleep(0.3)
        return await submit(self, requests)

    monkeypatch.setattr(OpenAIBatches, "submit", slow)
    with engine(tmp_path, asked[0].model) as made:
        begin(made, asked)
        wait_until(lambda: kept(tmp_path))
    assert [one["id"] for one in kept(tmp_path)] == ["batch_0"]
    assert texts(ask(tmp_path, asked)) == ["ONE", "TWO"]
    assert len(server.batches) == 1


def test_two_runs_that_wait_for_the_same_batch_submit_it_once(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.looks = 6
    asked = questions(model, "one", "two")
    with engine(tmp_path, model) as first, engine(tmp_path, model) as second:
        begin(first, asked)
        begin(second, asked)
        assert texts(first.ask(asked)) == texts(second.ask(asked)) == ["ONE", "TWO"]
    assert len(server.batches) == 1


def test_a_wrong_key_is_one_error(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.trouble = lambda _method, _path: Fault("status", 401, message="invalid key")
    said = set(texts(ask(tmp_path, questions(model, "one", "two"))))
    assert len(said) == 1
    assert "401" in said.pop()
    assert len(server.calls) == 1
    assert not kept(tmp_path)


def test_a_server_without_batches_says_so(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.trouble = lambda _method, _path: Fault("status", 404, message="what?")
    [said] = texts(ask(tmp_path, questions(model, "one")))
    assert "If this server has no batches, drop" in said


def test_a_batch_that_the_server_does_not_know_is_one_error(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    asked = questions(model, "one", "two")
    server.looks = 9
    with engine(tmp_path, model, Settings(batch="submit")) as made:
        begin(made, asked)
        made.step()
    server.batches.clear()
    said = texts(ask(tmp_path, asked))
    assert said[0] == said[1]
    assert "another key?" in said[0]
    assert len(kept(tmp_path)) == 1  # nothing is paid for twice


def test_a_busy_or_broken_server_is_asked_again(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    faults = [
        Fault("status", 429),
        Fault("status", 500),
        Fault("reset"),
        Fault("status", 529),
    ]

    def trouble(method: str, path: str) -> Fault | None:
        return faults.pop() if faults and method == "GET" and "batch_" in path else None

    server.trouble = trouble
    server.looks = 3
    assert texts(ask(tmp_path, questions(model, "one"))) == ["ONE"]
    assert not faults
    assert len(server.batches) == 1


@pytest.mark.parametrize("kind", ["garbage", "html", "empty_body", "wrong_type", "cut"])
def test_a_reply_that_is_none_does_not_end_the_wait(
    tmp_path: Path, server: BatchServer, model: str, kind: Kind
) -> None:
    faults = [Fault(kind)] * 2
    server.trouble = lambda _, path: (
        faults.pop() if faults and path[-2:] == "_0" else None
    )
    assert texts(ask(tmp_path, questions(model, "one"))) == ["ONE"]
    assert not faults


@pytest.mark.parametrize("state", ["paused\x1b[31m", None, 7, ["ended"]])
def test_an_unknown_state_is_told_while_the_run_waits(
    tmp_path: Path, server: BatchServer, model: str, state: object
) -> None:
    shown = server._shown
    odd = {
        "status": state,
        "processing_status": state,
        "request_counts": {"total": "x"},
    }
    server._shown = lambda *given: {**shown(*given), **odd}  # type: ignore[method-assign]
    with engine(tmp_path, model, Settings(batch="submit")) as made:
        begin(made, questions(model, "one"))
        waiting = made.step()
        assert waiting
        assert waiting.trouble.startswith("unknown state of the batch: ")
        assert "\x1b" not in waiting.trouble
    server._shown = shown  # type: ignore[method-assign]
    assert texts(ask(tmp_path, questions(model, "one"))) == ["ONE"]
    assert len(server.batches) == 1


def test_a_busy_server_is_submitted_to_later(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    faults = [Fault("status", 503), Fault("status", 429, retry_after="0")]
    server.trouble = lambda method, _: (
        faults.pop() if faults and method == "POST" else None
    )
    assert texts(ask(tmp_path, questions(model, "one"))) == ["ONE"]
    assert len(server.batches) == 1


def test_a_budget_holds_for_the_worst_case_at_half_the_price(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    [one] = questions(model, "one")
    worst = (256 + len("Be brief.one")) * PRICE.input + 100 * PRICE.output
    enough = 1.01 * worst / 1e6 / 2
    assert texts(ask(tmp_path, [one], replace(WAIT, max_cost=enough))) == ["ONE"]
    [said] = texts(ask(tmp_path / "x", [one], replace(WAIT, max_cost=0.9 * enough)))
    assert "budget" in said
    assert len(server.batches) == 1


def test_what_does_not_fit_into_a_budget_follows_in_another_batch(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    asked = questions(model, *"abcdef")
    worst = (256 + len("Be brief.a")) * PRICE.input + 100 * PRICE.output
    settings = replace(WAIT, max_cost=3.5 * worst / 1e6 / 2)
    assert texts(ask(tmp_path, asked, settings)) == list("ABCDEF")
    sizes = [len(batch.requests) for batch in server.batches.values()]
    assert sizes[0] == 3
    assert sum(sizes) == 6


def test_questions_are_split_by_the_limits_of_the_server(
    tmp_path: Path, server: BatchServer, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = batches._port

    def small(lane: Any) -> Any:
        port = real(lane)
        object.__setattr__(port, "limits", BatchLimits(2, 10**6))
        return port

    monkeypatch.setattr(batches, "_port", small)
    asked = questions(model, *"abcde")
    assert texts(ask(tmp_path, asked)) == list("ABCDE")
    assert [len(batch.requests) for batch in server.batches.values()] == [2, 2, 1]


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from("xy")), max_size=40))
def test_parts_keep_to_the_limits_and_lose_nothing(made: list[tuple[int, str]]) -> None:
    requests = [
        BatchRequest(str(n), {}, path, size) for n, (size, path) in enumerate(made)
    ]
    parts = batches_of(requests, BatchLimits(5, 60))
    assert sorted(int(one.id) for part in parts for one in part) == list(
        range(len(made))
    )
    for part in parts:
        assert 1 <= len(part) <= 5
        assert sum(one.size for one in part) <= 60
        assert len({one.path for one in part}) == 1


def test_models_of_responses_are_asked_there(
    tmp_path: Path, server: BatchServer
) -> None:
    for name in ("openai:gpt-5.4-pro", "openai:gpt-9-new"):
        server.batches.clear()

        def script(asked: Asked) -> Said | Fault:
            if asked.protocol == "openai":
                text = "This model is only supported in v1/responses"
                return Fault("status", 404, message=text)
            return Said(asked.question.upper())

        server._script = script
        assert texts(ask(tmp_path, questions(name, "one"))) == ["ONE"]
        assert [one.path for one in server.batches.values()][-1] == "/v1/responses"


def test_a_schema_that_a_model_refuses_is_left_out(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    def script(asked: Asked) -> Said | Fault:
        if "output_config" in asked.body or "response_format" in asked.body:
            kind = "invalid_request_error"
            return Fault(
                "status", 400, message="no such output format", error_type=kind
            )
        return Said("fine")

    server._script = script
    asked = questions(model, "one", schema='{"type": "object"}')
    assert texts(ask(tmp_path, asked)) == ["fine"]
    assert len(server.batches) == 2


def test_a_folder_that_can_not_be_written_is_an_error_before_anything_is_paid(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    (tmp_path / ".upskill").mkdir()
    (tmp_path / ".upskill/batches").write_text("a file")
    [said] = texts(ask(tmp_path, questions(model, "one")))
    assert "a batch can't be saved in" in said
    assert not server.calls


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model": 1}', '{"keys": 3}', "\xff"])
def test_nothing_is_submitted_while_a_kept_batch_can_not_be_read(
    tmp_path: Path, server: BatchServer, text: str
) -> None:
    one, two = questions(MODELS["openai"], "one", "two")
    server.looks = 2
    with engine(tmp_path, one.model, Settings(batch="submit")) as made:
        begin(made, [one])
        made.step()
    damaged = tmp_path / ".upskill/batches/x.json"
    damaged.write_text(text, encoding="latin-1")
    first, second = texts(ask(tmp_path, [one, two]))
    assert first == "ONE"  # which is in a good one
    assert "x.json: this saved batch can't be read" in second
    assert len(server.batches) == 1
    damaged.unlink()
    assert texts(ask(tmp_path, [one, two])) == ["ONE", "TWO"]


def test_a_run_that_stops_says_that_the_batch_goes_on(
    tmp_path: Path, server: BatchServer, model: str
) -> None:
    server.looks = 10**6
    asked = questions(model, "one")
    with engine(tmp_path, model) as made:
        begin(made, asked)
        wait_until(lambda: made.waiting)
        made.stop()
        [reply] = made.ask(asked)
        assert isinstance(reply, NoAnswer)
        assert "its batch goes on" in reply.reason
        assert made.waiting
