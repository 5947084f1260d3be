"""Batches that were submitted, saved beside the stored answers: a file for each.

It is written before the batch is submitted, so that a killed run leaves a trace of
it. It names the questions that no run has collected yet by the keys of their
answers, never by their texts.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Final

from pydantic import Field

from .._util.files import read_file, reason_of, replace_file
from .._util.json_forms import FormError, form_of, json_values, read_form
from .._util.texts import one_line
from ..errors import ModelError, shown
from .store import make_folder, require_database

FOLDER: Final = "batches"
_DAY: Final = 86_400.0
# Both providers keep results for about a month; older ones can't be collected any more.
_MAX_AGE: Final = 30 * _DAY
_PAUSE: Final = 0.5  # seconds, while another run submits


@dataclass(eq=False)
class SavedBatch:
    """A batch, perhaps submitted: ``id`` is empty as long as that is not known."""

    file: Annotated[Path, Field(exclude=True)]
    model: str  # its name in the run
    address: str
    created: float  # time.time()
    number: int  # of its requests
    # Of answers that were not collected; they are the ids of their requests
    keys: list[str]
    id: str = ""


class BatchFiles:
    """The batches of a project. Used by the engine's thread only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self.unreadable = ""  # the last problem with a file, if any

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let no two runs submit at once: both would submit the same questions.

        SQLite's locks end with their process.
        """
        lock = None
        try:
            make_folder(self._folder.parent)
            self._folder.mkdir(exist_ok=True)
            require_database(self._folder / "lock")
            lock = sqlite3.connect(
                self._folder / "lock", isolation_level=None, timeout=0
            )
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
            raise self._unsaved(error) from None
        try:
            yield
        finally:
            lock.close()

    def any(self) -> bool:
        return any(self._folder.glob("*.json"))

    def all(self) -> list[SavedBatch]:
        """Those that can still be collected, the newest last."""
        batches, self.unreadable = list[SavedBatch](), ""
        for file in sorted(self._folder.glob("*.json")):
            try:
                data = json.loads(read_file(file))
                batch: SavedBatch = read_form(
                    form_of(SavedBatch), {**data, "file": file}
                )
            except FileNotFoundError:  # another run has just collected it
                continue
            except (OSError, ValueError, TypeError, RecursionError, FormError) as error:
                reason = one_line(str(error), 100)
                self.unreadable = (
                    f"{shown(file)}: this saved batch can't be read ({reason})"
                )
                continue
            if time.time() - batch.created > _MAX_AGE:
                self.forget(batch)
            else:
                batches.append(batch)
        return batches

    def begin(self, model: str, address: str, keys: Iterable[str]) -> SavedBatch:
        """Save a batch that is about to be submitted; ModelError if that fails."""
        keys, now = list(keys), time.time()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        file = self._folder / f"{stamp}-{token_hex(6)}.json"
        batch = SavedBatch(file, model, address, now, len(keys), keys)
        self.save(batch)
        return batch

    def save(self, batch: SavedBatch) -> None:
        if not batch.keys:
            self.forget(batch)
            return
        try:
            replace_file(batch.file, json.dumps(json_values(batch), indent=1) + "\n")
        except OSError as error:
            raise self._unsaved(error) from None

    def forget(self, batch: SavedBatch) -> None:
        with suppress(OSError):
            batch.file.unlink()

    def _unsaved(self, error: Exception) -> ModelError:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        problem = f"a batch can't be saved in {shown(self._folder)}: {reason}"
        return ModelError(problem, "Make the folder writable", fatal=True)
