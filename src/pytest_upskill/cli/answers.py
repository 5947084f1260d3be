"""``pytest-upskill answers``: the stored answers of a project."""

import argparse
import time
from datetime import datetime
from pathlib import Path

from ..engine.store import FILE_NAME, FOLDER, Store
from ..texts import counted, harmless


def answers_text(prune_days: float | None, clear: bool) -> str:
    """What this project's store holds, after forgetting what was asked to be forgotten."""
    file = _store_file(Path.cwd())
    if file is None:
        return f"no answers are stored here or above ({FOLDER}/{FILE_NAME})"
    lines: list[str] = []
    store = Store(file, lines.append)
    if clear or prune_days is not None:
        before = time.time() - (0.0 if clear else (prune_days or 0.0) * 86_400)
        lines.append(f"{counted(store.prune(before), 'answer')} forgotten")
    size = store.size()
    store.close()
    lines.append(f"{file}: {counted(sum(size.answers.values()), 'answer')}, {size.size:,} bytes")
    if size.oldest is not None:
        lines.append(f"the oldest is of {datetime.fromtimestamp(size.oldest):%Y-%m-%d %H:%M}")
    lines += [f"{number:>9,}  {harmless(model)}" for model, number in size.answers.items()]
    return "\n".join(lines)


def days(text: str) -> float:
    """How old an answer may be, as an argument."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days, 0 or more")
    return number


def _store_file(start: Path) -> Path | None:
    files = (folder / FOLDER / FILE_NAME for folder in (start, *start.parents))
    return next((file for file in files if file.is_file()), None)
