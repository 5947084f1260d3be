"""How xdist workers reach the engine in the controller:
an authenticated local connection.

The first worker sends the plan it collected; then all ask by key, so that the text of a
skill crosses once and not once per question. Values are pickled: both ends hold a
random key that only xdist's own channel carries, so nobody else can connect.
"""

import os
import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
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

_WAITING: Final = 128  # connections that are not accepted yet
_PAUSE: Final = 0.05  # seconds


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
        self._server = _listening(Path(self._folder.name))
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(
            target=self._accept, name="upskill-link", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> Address:
        """What a worker needs to connect, in types that xdist can carry."""
        return self._server.getsockname(), self._authkey.hex()

    def close(self) -> None:
        """Accept no more workers; those that are connected are still served."""
        self._wake.close()
        self._thread.join()
        self._woken.close()
        self._server.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while self._woken not in [key.fileobj for key, _ in selector.select()]:
                self._accept_one()

    def _accept_one(self) -> None:
        try:
            client, _ = self._server.accept()
            client.settimeout(None)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()
        # It has left, or there are too many files or threads
        except (OSError, RuntimeError):
            time.sleep(_PAUSE)

    def _serve(self, client: socket.socket) -> None:
        connection: Connection[Any, Any] = Connection(client.detach())
        # A stranger, or a worker that has ended.
        with connection, suppress(OSError, EOFError, AuthenticationError):
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

    def _on_ask(self, keys: Sequence[str]) -> list[Reply] | None:
        futures = self._engine.replies_to(keys)
        return [future.result() for future in futures] if futures is not None else None

    def _on_ask_whole(self, questions: Sequence[Question]) -> list[Reply]:
        return self._engine.ask(questions)


def _listening(folder: Path) -> socket.socket:
    """A socket in a private folder; where that can't be, one of this machine."""
    try:
        return _bound(socket.AF_UNIX, str(folder / "link"))
    except (AttributeError, OSError):  # on Windows; if the path is too long
        return _bound(socket.AF_INET, ("127.0.0.1", 0))


def _bound(family: int, address: str | tuple[str, int]) -> socket.socket:
    server = socket.socket(family)
    try:
        server.bind(address)
        server.listen(_WAITING)
        server.settimeout(0)
    except OSError:
        server.close()
        raise
    return server


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
        replies = None
        if not any(question.renew for question in questions):
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
            raise UpskillError(
                "lost the connection to the controller's engine"
            ) from None
