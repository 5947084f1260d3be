"""Stored answers, so that none is paid for twice."""

import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from .._util.files import inflated
from .._util.json_forms import MOST_TIME, form_of, parse_limited
from .._util.texts import counted, digest
from ..trials.answer import Answer, Reply
from ..trials.answer_times import dated
from ..trials.trial import Question
from .database import Database, Row
from .leases import LEASES_TABLE, RELEASE, Leases

FOLDER: Final = ".upskill"
FILE_NAME: Final = "answers.sqlite"
_MAX_ANSWER_BYTES: Final = 64_000_000  # unpacked
_ANSWERS_TABLE: Final = (
    "CREATE TABLE answers (key TEXT PRIMARY KEY, model TEXT NOT NULL, created REAL"
    " NOT NULL, answer BLOB NOT NULL)"
)
# An answer that is written late replaces no newer one,
# unless that has a date in the future.
_INSERT: Final = """
INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET model = excluded.model, created = excluded.created, answer = excluded.answer
WHERE NOT (answers.created > excluded.created AND answers.created <= ?)
"""
# SQLite keeps any type in any column. What is no time was long ago.
_IS_TIME: Final = f"(typeof(created) = 'real' AND created BETWEEN 0 AND {MOST_TIME})"
_TIME: Final = f"CASE WHEN {_IS_TIME} THEN created ELSE 0.0 END"


@dataclass(frozen=True)
class StoreSize:
    """What a store holds."""

    answers: dict[str, int]  # by model
    size: int  # in bytes
    oldest: float | None  # time.time()


class Store:
    """The answers of a project, by key. Opened and used by one thread.

    Answers are written together when ``save`` is called. One that can't be read is
    asked for again; one that can't be written is tried again at the end.
    """

    def __init__(
        self, file: Path, notify: Callable[[str], None] = lambda _: None
    ) -> None:
        self.database = Database(file, (_ANSWERS_TABLE, LEASES_TABLE), notify)
        self.leases = Leases(self.database)
        self._notify = notify
        self._unsaved: dict[str, Row] = {}
        self._unusable = 0  # answers that can't be written as JSON

    def get(self, key: str) -> Answer | None:
        found = self._find(key)
        return _unpacked(*found) if found else None

    def asked_at(self, key: str) -> int | None:
        """When an answer was given; None if there is none."""
        found = self._find(key)
        return int(found[0]) if found else None

    def put(self, key: str, model: str, answer: Answer) -> None:
        """Keep an answer for ``save``."""
        try:
            data = _packed(answer)
        except ValueError as error:
            self.database.error = error
            self._unusable += 1
            return

        # An argument may not be UTF-8
        name = model.encode(errors="backslashreplace").decode()
        asked_at = time.time() if answer.asked_at is None else float(answer.asked_at)
        self._unsaved[key] = (key, name, asked_at, data)

    @property
    def unsaved(self) -> bool:
        """Whether there is something that can be saved now."""
        return bool(self.leases.over or self._unsaved) and not self.database.failed

    def save(self, most: int | None = None) -> bool:
        """Write the answers that wait for it, and end their leases; False if that
        fails.
        """
        now = time.time()
        keys = list(self._unsaved)[:most]
        rows = [(*self._unsaved[key], now) for key in keys]
        if self.database.write((_INSERT, rows), (RELEASE, self.leases.over)) is None:
            return False

        for key in keys:
            del self._unsaved[key]
        self.leases.over.clear()
        return True

    def size(self) -> StoreSize:
        counts = self.database.read(
            "SELECT model, COUNT(*) FROM answers GROUP BY model ORDER BY model"
        )
        oldest = self.database.read(
            f"SELECT MIN(created) FROM answers WHERE {_IS_TIME}"
        )
        # Not the size of the files: while the store is open, SQLite keeps more of them.
        pages = "pragma_page_count, pragma_page_size"
        size = self.database.read(f"SELECT page_count * page_size FROM {pages}")
        return StoreSize(
            {str(model): number for model, number in counts},
            size[0][0] if size else 0,
            oldest[0][0] if oldest else None,
        )

    def prune(self, before: float) -> int | None:
        """Delete answers from before this time.time(); returns how many,
        None if that fails.
        """
        deletion = "DELETE FROM answers WHERE created < ?"
        deleted = self.database.write((deletion, [(before,)]))
        if deleted is None:
            self._notify(f"stored answers can't be deleted: {self.database.problem}")
            return None

        self.database.shrink()
        return deleted

    def close(self) -> bool:
        """Store what could not be stored so far; returns
        whether all answers are stored.
        """
        if self.unsaved:
            self.save()
        if self._unsaved:
            self.database.open()
        while self.unsaved:
            self.save(most=1)  # so that as many are kept as there is room for
        self.leases.close()
        self.database.close()
        missing = len(self._unsaved) + self._unusable
        if missing:
            answers = counted(missing, "answer")
            self._notify(f"{answers} could not be stored: {self.database.problem}")
        self._unsaved.clear()
        self._unusable = 0
        return not missing

    def _find(self, key: str) -> Row | None:
        """The time and the packed answer of a key."""
        if key in self._unsaved:
            return self._unsaved[key][2:]
        columns = f"{_TIME}, CAST(answer AS BLOB)"
        rows = self.database.read(f"SELECT {columns} FROM answers WHERE key=?", key)
        return rows[0] if rows else None


def _packed(answer: Answer) -> bytes:
    """An answer as compressed JSON; ValueError if it could not be read again.

    Its time is in a column.
    """
    form = form_of(Answer)
    timeless = replace(answer, asked_at=None)
    values = form.dump_python(
        timeless, mode="json", exclude_defaults=True, warnings=False
    )
    form.validate_python(values)
    return zlib.compress(json.dumps(values).encode())


def _unpacked(asked_at: float, data: bytes) -> Answer | None:
    """The answer of a row; None if it can't be read."""
    try:
        values = parse_limited(inflated(data, _MAX_ANSWER_BYTES).decode())
        answer = form_of(Answer).validate_python(values)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return replace(answer, stored=True, asked_at=int(asked_at))


class KnownAnswers:
    """What the engine knows without asking: nothing."""

    fresh = False  # whether to ask even what is known

    @property
    def store(self) -> Store | None:
        """Where answers are kept that have a key."""
        return None

    def get(self, _question: Question) -> Reply | None:
        return None

    def asked_at(self, _question: Question) -> int | None:
        """When a kept answer was given; None if there is none."""
        return None

    def put(self, _question: Question, _answer: Answer) -> None:
        """Keep an answer, once the store is saved."""

    def put_late(self, _question: Question, _answer: Answer) -> Answer | None:
        """Keep that a question reached its time limit.

        Returns the failed answer if it did so in an earlier run, too.
        """
        return None

    @property
    def trouble(self) -> str:
        """Why nothing must be asked: answers can't be kept. Empty if they can."""
        return ""

    def key_of(self, _question: Question) -> str | None:
        """What an answer is stored under; None if it is not stored."""
        return None

    def close(self) -> bool:
        """Returns whether all answers were kept that should be."""
        return True


_NO_ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType({})


class StoredAnswers(KnownAnswers):
    """Answers of earlier runs, under a key of everything that shapes them.

    ``identity`` maps the name of a model to what it really is (protocol, address,
    id), or to None if its answers must not be stored. ``open_store`` is called on
    the engine's thread. A ``fresh`` run asks everything itself, even what another
    run is asking, and even if it can't be kept. ``hint`` says what to do if answers
    can't be kept. ``recorded`` are answers of a file by the keys of their
    questions; the newer one counts.

    ``seconds_for`` is the time limit of a question. One that reached it in two runs has
    failed, and is asked again only with more time: asking until it ends well would
    favour the arm with more time-outs.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        identity: Callable[[str], str | None],
        *,
        fresh: bool,
        hint: str = "",
        recorded: Mapping[str, Answer] = _NO_ANSWERS,
        seconds_for: Callable[[Question], float] = lambda _: 0.0,
    ) -> None:
        self._recorded = recorded
        self._open_store = open_store
        self._hint = hint
        self._identity = identity
        self.fresh = fresh
        self._seconds_for = seconds_for
        self._answering = set[str]()  # models that have answered
        self._open: Store | None = None

    def get(self, question: Question) -> Reply | None:
        recorded = self._recorded.get(question.key)
        key = self.key_of(question)
        if self.fresh or key is None:
            return recorded

        stored = self.store.get(key)
        if stored and stored.stop != "time":
            self._answering.add(question.model)
        elif stored and (stored.seconds or 0.0) < self._seconds_for(question):
            stored = None
        if recorded and stored:
            is_newer = (stored.asked_at or 0) > (recorded.asked_at or 0)
            return stored if is_newer else recorded
        return recorded or stored

    def asked_at(self, question: Question) -> int | None:
        if question.key in self._recorded:
            answer = self.get(question)
            return answer.asked_at if isinstance(answer, Answer) else None

        key = self.key_of(question)
        return None if self.fresh or key is None else self.store.asked_at(key)

    def put(self, question: Question, answer: Answer) -> None:
        self._answering.add(question.model)
        if key := self.key_of(question):
            self.store.put(key, question.model, answer)

    def put_late(self, question: Question, answer: Answer) -> Answer | None:
        key = self.key_of(question)
        if key is None or not _may_fail(question):
            return None

        first_key = f"late {key}"
        late = dated(replace(answer, seconds=self._seconds_for(question)))
        turns = answer.activity.turns if answer.activity else 0
        # A server that answers nothing at all is down: no answer has failed.
        answers = turns > 0 or question.model in self._answering
        if answers and self.store.get(first_key):
            self.store.put(key, question.model, late)
            return late

        self.store.put(first_key, question.model, late)
        return None

    @property
    def trouble(self) -> str:
        if self._open is None or self.fresh:
            return ""
        database = self._open.database
        return f"{database.problem}{self._hint}" if database.failed else ""

    def key_of(self, question: Question) -> str | None:
        names = [question.asked_as]
        user = question.task.user if question.task else None
        if user and user.model:
            names.append(user.model)
        identities = []
        for name in names:
            identity = self._identity(name)
            if identity is None:
                return None
            identities.append(identity)
        return digest(*identities, question.content)

    def close(self) -> bool:
        is_kept = self._open.close() if self._open else True
        return is_kept or self.fresh

    @property
    def store(self) -> Store:
        if self._open is None:
            self._open = self._open_store()
        return self._open


def _may_fail(question: Question) -> bool:
    """Whether a question is that of a case.

    Nothing follows from a judge, a teacher or a choice of skills that never came.
    """
    task = question.task
    is_choice = question.choice or (task and task.until_opened)
    return not (is_choice or question.schema or question.verdicts)
