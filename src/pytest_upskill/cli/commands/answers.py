"""``pytest-upskill answers``: show or delete the stored answers of a project."""

import argparse
import time
from datetime import datetime
from pathlib import Path
from typing import Final

from ..._util.texts import counted, harmless
from ...engine.store import FILE_NAME, FOLDER, Store
from ...options import number

_NO_STORE: Final = (
    f"no stored answers here or in a parent folder ({FOLDER}/{FILE_NAME})"
)


def add_answers_arguments(parser: argparse.ArgumentParser) -> None:
    forget = parser.add_mutually_exclusive_group()
    forget.add_argument(
        "--prune",
        type=number("a number of days", 0).parse,
        metavar="DAYS",
        help="delete answers older than this many days",
    )
    forget.add_argument("--clear", action="store_true", help="delete all answers")


def run_answers(args: argparse.Namespace) -> tuple[str, int]:
    """Delete what was asked for, then show what is left."""
    file = _store_file(Path.cwd())
    if file is None:
        return _NO_STORE, 0
    lines: list[str] = []
    store = Store(file, lines.append)
    failed = False
    if args.clear or args.prune is not None:
        age = 0.0 if args.clear else args.prune * 86_400
        forgotten = store.prune(time.time() - age)
        failed = forgotten is None
        lines += (
            [] if forgotten is None else [f"{counted(forgotten, 'answer')} deleted"]
        )
    size = store.size()
    store.close()
    lines.append(
        f"{file}: {counted(sum(size.answers.values()), 'answer')}, {size.size:,} bytes"
    )
    if size.oldest is not None:
        lines.append(f"oldest: {datetime.fromtimestamp(size.oldest):%Y-%m-%d %H:%M}")
    lines += [
        f"{number:>9,}  {harmless(model)}" for model, number in size.answers.items()
    ]
    return "\n".join(lines), int(failed)


def _store_file(start: Path) -> Path | None:
    files = (folder / FOLDER / FILE_NAME for folder in (start, *start.parents))
    return next((file for file in files if file.is_file()), None)
