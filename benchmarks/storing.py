"""Many stored answers: to open, to find one, to delete half of them."""

import hashlib
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from material import MODEL
from pytest_upskill.engine.store import Store
from pytest_upskill.trials.answer import Answer, Usage
from tables import limited, show

ANSWERS: Final = 100_000
TEXT: Final = "x" * 1500


def store(folder: Path) -> None:
    """Fill a store, then use it as a run and ``pytest-upskill answers`` do."""
    file, now = folder / ".upskill" / "answers.sqlite", time.time()
    keys = [
        hashlib.sha256(str(number).encode()).hexdigest() for number in range(ANSWERS)
    ]
    answers = Store(file)
    for key in keys:
        answers.put(key, MODEL, Answer(TEXT, Usage(1000, 400, 0), seconds=1.0))
        answers.save()
    answers.close()
    with closing(sqlite3.connect(file)) as connection:  # one second apart
        connection.execute("UPDATE answers SET created = ? - rowid", (now,))
        connection.commit()
    size = file.stat().st_size / ANSWERS

    started = time.perf_counter()
    answers = Store(file)
    opened = time.perf_counter() - started
    some = keys[:: ANSWERS // 2000]
    found = _seconds(lambda: [answers.get(key) for key in some]) / len(some)
    pruned = _seconds(lambda: answers.prune(now - ANSWERS / 2))
    answers.close()

    shown = [
        f"{ANSWERS:,}",
        f"{size:,.0f}",
        f"{1000 * opened:.1f}",
        f"{1e6 * found:.0f}",
    ]
    head = ["answers", "bytes each", "ms to open", "µs to find one", "s to prune half"]
    show(
        f"Stored answers of {len(TEXT):,} characters", [[*shown, f"{pruned:.2f}"]], head
    )
    limits = [
        ["open", *limited(1000 * opened, 50, " ms")],
        ["prune", *limited(pruned, 2, " s")],
        ["bytes of an answer", *limited(size, 2400)],
    ]
    show("Limits of the store", limits)


def _seconds(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started
