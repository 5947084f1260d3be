"""What the engine needs of a model: one method, and an end."""

from typing import Protocol

from ..trials.records import Answer
from ..trials.trial import Question


class Model(Protocol):
    """An adapter to one model.

    ``ask`` raises ModelError, and nothing else, when there is no answer; it leaves ``seconds``
    to the engine. ``most_in_flight`` is how many questions the model can work on at once, if
    it has such a limit of its own. ``endpoint`` is the same for models that share a server and
    a key, and so its limits; it is no secret, and is shown to nobody. ``address`` is where the
    model is, fit to be shown; empty if it has none.
    """

    @property
    def endpoint(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def most_in_flight(self) -> int | None: ...

    async def ask(self, question: Question) -> Answer: ...

    async def close(self) -> None: ...
