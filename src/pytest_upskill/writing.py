"""Reports to files, each whole or not at all."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .errors import InputError
from .reports.benchmark import benchmark_places
from .reports.csv_report import csv_text
from .results import RunResults
from .results_json import results_bytes

Writer = tuple[str, Callable[[], object]]  # what is written, by its option, and how


@dataclass(frozen=True)
class ReportFiles:
    """Where each kind of report is wanted."""

    json: Path | None = None
    csv: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    benchmark: Path | None = None  # a folder


def tried(writers: Iterable[Writer]) -> list[str]:
    """Write each, whatever became of those before; what went wrong, in lines."""
    problems = []
    for what, how in writers:
        try:
            how()
        except InputError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{what} could not be written: {error}")
    return problems


def report_writers(
    files: ReportFiles, results: RunResults, markdown: str, notes: Sequence[str], flags: str
) -> Iterator[Writer]:
    """``flags`` is how the options begin that named the files."""
    if files.json:
        yield f"{flags}json", partial(replace_file, files.json, results_bytes(results))
    if files.csv:
        yield f"{flags}csv", partial(replace_file, files.csv, encoded(csv_text(results)))
    if files.markdown:
        yield f"{flags}markdown", partial(replace_file, files.markdown, encoded(markdown))
    if files.html:
        from .reports.html import html_report  # what few runs want is loaded for them alone

        page = html_report(results, notes).encode()
        yield f"{flags}html", partial(replace_file, files.html, page)
    if files.benchmark:
        yield f"{flags}benchmark", partial(add_benchmark, files.benchmark, results)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def replace_file(file: Path, content: bytes) -> None:
    """Whole or not at all: who is interrupted keeps the old file."""
    if file.exists() and not file.is_file():  # a pipe, or a device as /dev/stdout
        file.write_bytes(content)
        return
    target = file.resolve()  # a link stays one
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    except OSError as error:  # of a file that nobody has heard of
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        draft.unlink(missing_ok=True)


def add_benchmark(folder: Path, results: RunResults) -> None:
    """A new iteration, with the same number for all that the run has; none is written over."""
    places = {folder / place.folder: place.files for place in benchmark_places(results)}
    number = 1 + max(map(_last_iteration, places), default=0)
    for place, files in places.items():
        _add_folder(place / f"iteration-{number}", files)


def _last_iteration(place: Path) -> int:
    names = [entry.name for entry in place.iterdir()] if place.is_dir() else []
    found = [re.fullmatch(r"iteration-(\d{1,9})", name, re.ASCII) for name in names]
    return max((int(match[1]) for match in found if match), default=0)


def _add_folder(folder: Path, files: Mapping[str, str]) -> None:
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        for name, text in files.items():
            file = draft / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(encoded(text))
        draft.rename(folder)  # fails where another run took the number meanwhile
    finally:
        shutil.rmtree(draft, ignore_errors=True)
