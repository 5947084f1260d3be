"""How xdist workers reach the engine in the controller: an authenticated local connection.

The first worker sends the plan it collected; then all ask by key, so that the text of a skill
crosses once and not once per question. Values are pickled: both ends hold a random key that only
xdist's own channel carries, so nobody else can connect.
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from ..errors import UpskillError
from ..trials.answer import Reply
from ..trials.plan import Plan
from ..trials.trial import Question
from .engine import Engine

Address = tuple[Any, str]


class LinkServer:
    """The controller's end: one thread to accept, and one per worker."""

    def __init__(self, engine: Engine, on_plan: Callable[[Plan], None]) -> None:
        self._engine = engine
        self._on_plan = on_plan
        self._plan_key: str | None = None
        self._lock = threading.Lock()
        self._authkey = os.urandom(32)
        self._listener = Listener(authkey=self._authkey)
        self._closing = False
        self._thread = threading.Thread(target=self._accept, name="upskill-link", daemon=True)
        self._thread.start()

    @property
    def address(self) -> Address:
        """What a worker needs to connect, in types that xdist can carry."""
        return self._listener.address, self._authkey.hex()

    def close(self) -> None:
        self._closing = True
        with suppress(OSError, EOFError, AuthenticationError):
            # Closing a listener doesn't wake a thread blocked in accept; a connection does.
            Client(self._listener.address, authkey=self._authkey).close()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                continue  # a stranger, or a worker that died while connecting
            if self._closing:
                connection.close()
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: "Connection[Any, Any]") -> None:
        with connection, suppress(OSError, EOFError):  # the worker has ended
            while True:
                verb, value = connection.recv()
                connection.send(getattr(self, f"_on_{verb}")(value))

    def _on_wants_plan(self, key: str) -> bool:
        with self._lock:
            if self._plan_key == key:
                return False
            self._plan_key = key
            return True

    def _on_plan_of(self, plan: Plan) -> None:
        self._on_plan(plan)

    def _on_ask(self, keys: Sequence[str]) -> list[Reply] | None:
        futures = self._engine.replies_to(keys)
        return [future.result() for future in futures] if futures is not None else None

    def _on_ask_whole(self, questions: Sequence[Question]) -> list[Reply]:
        return self._engine.ask(questions)


class LinkClient:
    """The worker's end: ``start`` and ``ask``, as the engine has them."""

    def __init__(self, address: Address) -> None:
        where, authkey = address
        try:
            self._connection = Client(where, authkey=bytes.fromhex(authkey))
        except (OSError, EOFError, AuthenticationError) as error:
            raise UpskillError(f"can't connect to the controller's engine: {error}") from None

    def start(self, plan: Plan) -> None:
        if self._call("wants_plan", plan.key):
            self._call("plan_of", plan)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        replies = self._call("ask", [question.key for question in questions])
        if replies is None:
            replies = self._call("ask_whole", list(questions))
        return list(replies)

    def close(self) -> None:
        self._connection.close()

    def _call(self, verb: str, value: object) -> Any:
        try:
            self._connection.send((verb, value))
            return self._connection.recv()
        except (OSError, EOFError):
            raise UpskillError("lost the connection to the controller's engine") from None
