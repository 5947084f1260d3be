"""A reply to come: waited for by any thread, in little room."""

import asyncio
import threading

import pytest

from pytest_upskill.engine.lane import ReplyToCome
from pytest_upskill.trials.answer import Answer

ANSWER = Answer("gate up")


def test_who_waits_gets_the_reply_and_is_not_woken_by_that_of_others() -> None:
    waited, other = ReplyToCome(), ReplyToCome()
    found = list[object]()
    thread = threading.Thread(target=lambda: found.append(waited.result()))
    thread.start()
    other.set_result(Answer("not this one"))
    thread.join(0.05)
    assert found == []
    waited.set_result(ANSWER)
    thread.join(10)
    assert found == [ANSWER]
    assert waited.result() == ANSWER


def test_a_reply_that_is_late_comes_all_the_same() -> None:
    reply = ReplyToCome()
    with pytest.raises(TimeoutError):
        reply.result(timeout=0.01)
    reply.set_result(ANSWER)
    assert reply.result(timeout=0.01) == ANSWER


def test_a_coroutine_can_wait_for_it() -> None:
    async def wait() -> object:
        reply = ReplyToCome()
        asyncio.get_running_loop().call_soon(reply.set_result, ANSWER)
        return await asyncio.wrap_future(reply)

    assert asyncio.run(wait()) == ANSWER


def test_all_replies_share_what_takes_much_room() -> None:
    done, waiting = ReplyToCome(), ReplyToCome()
    done.set_result(ANSWER)
    assert done._condition is waiting._condition
