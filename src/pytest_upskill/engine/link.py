"""How xdist workers reach the engine in the controller:
an authenticated local connection.

The first worker sends the plan it collected; then each asks its own questions. Values
are pickled: both ends hold a random key that only xdist's own channel carries, so
nobody else can connect.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from pathlib import Path
from typing import Any, Final

from ..errors import UpskillError
from ..trials.answer import Reply
from ..trials.plan import Plan
from ..trials.trial import Question
from .engine import Engine

Address = tuple[Any, str]

_BACKLOG: Final = 128
_RETRY_SECONDS: Final = 0.05


class LinkServer:
    """The controller's end: one thread to accept, and one per worker.

    The accepting thread never waits for a client, and so neither do
    other clients nor ``close``.
    """

    def __init__(self, engine: Engine, on_plan: Callable[[Plan], None]) -> None:
        self._engine = engine
        self._on_plan = on_plan
        self._plan_key: str | None = None
        self._lock = threading.Lock()
        self._authkey = os.urandom(32)
        self._folder = tempfile.TemporaryDirectory(
            prefix="upskill-", ignore_cleanup_errors=True
        )
        self._listener = _listener(Path(self._folder.name))
        self._is_closing = False
        self._thread = threading.Thread(
            target=self._accept, name="upskill-link", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> Address:
        """What a worker needs to connect, in types that xdist can carry."""
        return self._listener.address, self._authkey.hex()

    def close(self) -> None:
        """Accept no more workers; those that are connected are still served."""
        if self._is_closing:
            return

        self._is_closing = True
        with suppress(OSError):
            Client(self._listener.address).close()  # wakes the thread
            self._thread.join()
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while not self._is_closing:
            try:
                client = self._listener.accept()
                threading.Thread(
                    target=self._serve, args=(client,), daemon=True
                ).start()
            # It has left, or there are too many files or threads
            except (OSError, RuntimeError):
                time.sleep(_RETRY_SECONDS)

    def _serve(self, connection: "Connection[Any, Any]") -> None:
        # A stranger, or a worker that has ended.
        ends = (OSError, EOFError, AuthenticationError)
        with connection, suppress(*ends):
            deliver_challenge(connection, self._authkey)
            answer_challenge(connection, self._authkey)
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

    def _on_ask(self, questions: Sequence[Question]) -> list[Reply]:
        return self._engine.ask(questions)


def _listener(folder: Path) -> Listener:
    """A listener in a private folder; where that can't be, one of this machine.

    It has no key: the thread that accepts would wait for clients to prove theirs.
    """
    try:
        return Listener(str(folder / "link"), "AF_UNIX", _BACKLOG)
    except (ValueError, OSError):  # on Windows; if the path is too long
        return Listener(("127.0.0.1", 0), "AF_INET", _BACKLOG)


class LinkClient:
    """The worker's end: ``start`` and ``ask``, as the engine has them."""

    def __init__(self, address: Address) -> None:
        socket_address, authkey = address
        try:
            self._connection = Client(socket_address, authkey=bytes.fromhex(authkey))
        except (OSError, EOFError, AuthenticationError) as error:
            raise UpskillError(
                f"can't connect to the controller's engine: {error}"
            ) from None

    def start(self, plan: Plan) -> None:
        if self._call("wants_plan", plan.key):
            self._call("plan_of", plan)

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        return list(self._call("ask", questions))

    def close(self) -> None:
        self._connection.close()

    def _call(self, verb: str, value: object) -> Any:
        try:
            self._connection.send((verb, value))
            return self._connection.recv()
        except (OSError, EOFError):
            raise UpskillError(
                "lost the connection to the controller's engine"
            ) from None
