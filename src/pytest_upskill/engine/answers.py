"""What the engine knows without asking: nothing, the stored answers, or a recording."""

from collections.abc import Callable, Mapping

from .._util.texts import digest
from ..trials.answer import Answer, NoAnswer, Reply
from ..trials.trial import Question
from .store import Store

Identity = Callable[[str], str | None]


class KnownAnswers:
    """Nothing is known and nothing kept."""

    def get(self, _question: Question) -> Reply | None:
        return None

    def put(self, _question: Question, _answer: Answer) -> None:
        pass

    def close(self) -> None:
        pass


class StoredAnswers(KnownAnswers):
    """Answers under a key of everything that shapes them.

    ``identity`` says for the name of a model what it really is (protocol, address, id), or None
    if its answers must not be kept. ``open_store`` is called by the engine's own thread, the
    only one that may use the store.
    """

    def __init__(self, open_store: Callable[[], Store], identity: Identity, *, fresh: bool) -> None:
        self._open_store = open_store
        self._identity = identity
        self._fresh = fresh
        self._store: Store | None = None

    def get(self, question: Question) -> Reply | None:
        key = self._key(question)
        return None if self._fresh or key is None else self._opened().get(key)

    def put(self, question: Question, answer: Answer) -> None:
        if key := self._key(question):
            self._opened().put(key, question.model, answer)

    def close(self) -> None:
        if self._store:
            self._store.close()

    def _key(self, question: Question) -> str | None:
        identity = self._identity(question.model)
        return None if identity is None else digest(identity, question.content)

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store


class ReplayedAnswers(KnownAnswers):
    """Answers of a recording, and of nothing else: what it does not have is an error."""

    def __init__(self, answers: Mapping[str, Answer], file: str, how_to_record: str) -> None:
        self._answers = answers
        self._missing = NoAnswer(f"this question is not in {file}. Record it: {how_to_record}")

    def get(self, question: Question) -> Reply | None:
        return self._answers.get(question.key, self._missing)
