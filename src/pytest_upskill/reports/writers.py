"""Reports written to disk, each whole or not at all; one that fails does not stop the others."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from .._util.files import replace_file
from .._util.texts import one_line
from ..errors import InputError, Setting, SettingsError, shown
from ..results.run import RunResults
from ..results.to_json import results_bytes
from .export.benchmark_folder import benchmark_places
from .export.record_csv import csv_text

# The setting that wants something written, and how to write it; that returns where it went.
Writer = tuple[str, Callable[[], Sequence[Path]]]


@dataclass
class Written:
    """The files that were written, and the problems with others."""

    paths: list[Path] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)


def write_all(writers: Iterable[Writer]) -> Written:
    """Write each, even if one before it failed."""
    done = Written()
    for setting, how in writers:
        try:
            done.paths += how()
        except InputError as error:
            done.problems.append(error)
        except OSError as error:
            done.problems.append(SettingsError(setting, f"can't be written: {error}"))
    return done


def written_line(paths: Sequence[Path]) -> str:
    return f"written: {', '.join(one_line(shown(path), 200) for path in paths)}"


def require_apart(wanted: Mapping[str, Path | None]) -> None:
    """Two reports in one file would overwrite each other."""
    known: dict[Path, str] = {}
    for setting, path in wanted.items():
        if path is None or path.parts[:2] == ("/", "dev"):
            continue
        first = known.setdefault(path.resolve(), setting)
        if first != setting:
            problem = (Setting(first), " writes to the same file")
            raise SettingsError(setting, problem, "Give two files.", value=shown(path))


def report_writers(
    results: RunResults,
    markdown: str,
    notes: Sequence[str],
    wanted: Mapping[str, Path | None],
) -> Iterator[Writer]:
    """``wanted`` is where each report goes, by its setting."""
    for setting, path in wanted.items():
        if path is None:
            continue
        match setting:
            case "json_file":
                yield setting, partial(write_report, path, results_bytes(results))
            case "csv_file":
                yield setting, partial(write_report, path, csv_text(results))
            case "markdown_file":
                yield setting, partial(write_report, path, markdown)
            case "html_file":
                yield setting, partial(write_report, path, _page(results, notes))
            case "benchmark_folder":
                yield setting, partial(add_benchmark, path, results)


def _page(results: RunResults, notes: Sequence[str]) -> str:
    from .html import html_report  # loaded only if needed

    return html_report(results, notes)


def write_report(file: Path, content: str | bytes) -> list[Path]:
    replace_file(file, content)
    return [file]


def add_benchmark(folder: Path, results: RunResults) -> list[Path]:
    """Add an iteration, with the same number for all skills and models; overwrite none."""
    places = {folder / place.folder: place.files for place in benchmark_places(results)}
    number = 1 + max(map(_last_iteration, places), default=0)
    for place, files in places.items():
        _add_folder(place / f"iteration-{number}", files)
    return [place / f"iteration-{number}" for place in places]


def _last_iteration(place: Path) -> int:
    names = [entry.name for entry in place.iterdir()] if place.is_dir() else []
    found = [re.fullmatch(r"iteration-(\d{1,9})", name, re.ASCII) for name in names]
    return max((int(match[1]) for match in found if match), default=0)


def _add_folder(folder: Path, files: Mapping[str, str]) -> None:
    draft = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        for name, text in files.items():
            replace_file(draft / name, text)
        draft.rename(folder)  # fails if another run took the number meanwhile
    finally:
        shutil.rmtree(draft, ignore_errors=True)
