"""Batches that were submitted, kept beside the stored answers: a file for each.

It is written before the batch is, so that a killed run leaves a trace of what it may have
submitted. It names the questions that the batch was asked for and that no run has collected yet, by
the keys of their answers, and never their texts.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from .._util.files import read_file, reason_of, replace_file
from .._util.texts import one_line
from ..errors import ModelError, shown
from .database import make_folder

FOLDER: Final = "batches"
_DAY: Final = 86_400.0
# Both providers keep results for about a month; older ones can't be collected any more.
_LONGEST_KEPT: Final = 30 * _DAY
_PAUSE: Final = 0.5  # seconds, while another run submits
_DIGITS: Final = 40  # of a key


@dataclass(eq=False)
class KeptBatch:
    """A batch, perhaps submitted: ``id`` is empty as long as that is not known."""

    file: Path
    mark: str
    model: str  # its name in the run
    address: str
    made: float  # time.time()
    number: int  # of its requests
    keys: dict[str, str]  # by the ids of its requests, of answers that were not collected
    id: str = ""
    sure: bool = True  # whether the batch with this id is the one
    others: list[str] = field(default_factory=list)  # ids of batches that it is not

    def own_id(self, key: str) -> str:
        return f"{self.mark}-{key[:_DIGITS]}"

    def to_json(self) -> dict[str, Any]:
        data = {**vars(self)}
        del data["file"]
        return data


class BatchFiles:
    """The batches of a project. Used by the engine's thread only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self.unread = ""  # what is wrong with a file that was found last, if anything is

    @property
    def shown(self) -> str:
        return shown(self._folder)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let no two runs submit at once: one would take the other's batch for a lost one.

        SQLite's locks end with their process.
        """
        lock = None
        try:
            make_folder(self._folder.parent)
            self._folder.mkdir(exist_ok=True)
            lock = sqlite3.connect(self._folder / "lock", isolation_level=None, timeout=0)
            while True:
                try:
                    lock.execute("BEGIN EXCLUSIVE")
                    break
                except sqlite3.OperationalError as error:
                    if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY:
                        raise
                    await asyncio.sleep(_PAUSE)
        except (OSError, sqlite3.Error) as error:
            if lock:
                lock.close()
            raise self._unkept(error) from None
        try:
            yield
        finally:
            lock.close()

    def any(self) -> bool:
        return any(self._folder.glob("*.json"))

    def all(self) -> list[KeptBatch]:
        """Those that can still be collected, the newest last."""
        found, self.unread = [], ""
        for file in sorted(self._folder.glob("*.json")):
            try:
                one = _read(file)
            except FileNotFoundError:  # another run has just collected it
                continue
            except (
                OSError,
                ValueError,
                TypeError,
                KeyError,
                AttributeError,
                RecursionError,
            ) as why:
                said = one_line(str(why), 100)
                self.unread = f"{shown(file)}: this kept batch can't be read ({said})"
                continue
            if time.time() - one.made > _LONGEST_KEPT:
                self.forget(one)
            else:
                found.append(one)
        return found

    def begin(self, model: str, address: str, keys: Iterable[str]) -> KeptBatch:
        """Keep a batch that is about to be submitted; ModelError if that can't be."""
        mark, now = token_hex(6), time.time()
        when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        file = self._folder / f"{when}-{mark}.json"
        kept = KeptBatch(file, mark, model, address, now, 0, {})
        kept.keys = {kept.own_id(key): key for key in keys}
        kept.number = len(kept.keys)
        self.save(kept)
        return kept

    def save(self, kept: KeptBatch) -> None:
        if not kept.keys:
            self.forget(kept)
            return
        try:
            replace_file(kept.file, json.dumps(kept.to_json(), indent=1) + "\n")
        except OSError as error:
            raise self._unkept(error) from None

    def forget(self, kept: KeptBatch) -> None:
        with suppress(OSError):
            kept.file.unlink()

    def _unkept(self, error: Exception) -> ModelError:
        why = reason_of(error) if isinstance(error, OSError) else str(error)
        problem = f"a batch can't be kept in {self.shown}: {why}"
        return ModelError(problem, "Make the folder writable", fatal=True)


def _read(file: Path) -> KeptBatch:
    data = json.loads(read_file(file))
    texts = {name: data[name] for name in ("mark", "model", "address", "id")}
    if not all(isinstance(text, str) for text in texts.values()) or not texts["mark"]:
        raise ValueError("its texts are none")
    return KeptBatch(
        file,
        made=float(data["made"]),
        number=int(data["number"]),
        keys={str(own): str(key) for own, key in data["keys"].items()},
        sure=bool(data["sure"]),
        others=[str(one) for one in data["others"]],
        **texts,
    )
