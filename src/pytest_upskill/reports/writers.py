"""Reports written to disk, each whole or not at all;
one that fails does not stop the others.

A new report is one function and one entry in `REPORTS`, plus its option.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from .._util.files import is_stream, reason_of, replace_file, resolved
from .._util.texts import one_line
from ..errors import InputError, Setting, SettingsError, shown
from ..results.case_changes import Earlier
from ..results.run import RunResults
from ..results.run_file import results_bytes
from ..skills.folder import SKILL_NAMES
from .record_files import transcript_files

# A setting, and a function that writes its report and returns the paths.
Writer = tuple[str, Callable[[], Sequence[Path]]]


@dataclass
class WrittenReports:
    """The files that were written, and the problems with others."""

    paths: list[Path] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)


def write_all(writers: Iterable[Writer]) -> WrittenReports:
    """Write each, even if one before it failed."""
    written = WrittenReports()
    for setting, write in writers:
        try:
            written.paths += write()
        except InputError as error:
            written.problems.append(error)
        except OSError as error:
            problem = f"can't be written: {reason_of(error)}"
            path = shown(Path(error.filename)) if error.filename else ""
            written.problems.append(SettingsError(setting, problem, value=path))
    return written


def written_line(paths: Sequence[Path]) -> str:
    return f"written: {', '.join(one_line(shown(path), 200) for path in paths)}"


def require_apart(
    outputs: Mapping[str, Path | None], other_files: Iterable[tuple[str, Path]] = ()
) -> None:
    """No output may overwrite another, or one of ``other_files``, each with its
    owner.
    """
    taken = list(other_files)
    for setting, path in outputs.items():
        if path is None or is_stream(path):
            continue
        for name, other_path in taken:
            if _is_same(path, other_path):
                problem = (name, " uses the same file")
            elif _holds(setting, path, other_path):
                problem = (name, f" is below it: {shown(other_path)}")
            elif _holds(name, other_path, path):
                problem = (name, f" is a file, not a folder: {shown(other_path)}")
            else:
                continue
            raise SettingsError(
                setting, problem, "Choose another path.", value=shown(path)
            )
        taken.append((Setting(setting), path))


def _is_same(path: Path, other_path: Path) -> bool:
    """Follows symbolic and hard links."""
    try:
        return resolved(path) == resolved(other_path) or path.samefile(other_path)
    except OSError:  # one of them does not exist yet
        return False


def _holds(name: str, file: Path, path: Path) -> bool:
    """Whether a file that is to be written would be the folder of another."""
    new = not name.endswith("_folder") and not file.exists()
    return new and resolved(file) in resolved(path).parents


@dataclass(frozen=True)
class Finished:
    """What reports are made from."""

    results: RunResults
    markdown: Callable[[], str]
    notes: Sequence[str]
    earlier: Earlier | None = None  # the run before, for the page


def _page(run: Finished) -> str:
    from .page import run_page  # loaded only if needed

    return run_page(run.results, run.notes, run.earlier)


# How to write each kind, by the setting that says where;
# returns the paths that were written.
REPORTS: Final[Mapping[str, Callable[[Path, Finished], Sequence[Path]]]] = {
    "json_file": lambda file, run: write_report(file, results_bytes(run.results)),
    "html_file": lambda file, run: write_report(file, _page(run)),
    "markdown_file": lambda file, run: write_report(file, run.markdown()),
    "transcripts_folder": lambda folder, run: write_transcripts(folder, run.results),
}


def report_paths(settings: object) -> dict[str, Path | None]:
    """Where each report goes, by its setting: an attribute of ``settings``,
    if there is one.
    """
    return {setting: getattr(settings, setting, None) for setting in REPORTS}


def report_writers(run: Finished, paths: Mapping[str, Path | None]) -> Iterator[Writer]:
    """``paths`` are those of the reports, by setting."""
    for setting, path in paths.items():
        if path is not None:
            yield setting, partial(REPORTS[setting], path, run)


def write_report(file: Path, content: str | bytes) -> list[Path]:
    replace_file(file, content)
    return [file]


def write_transcripts(folder: Path, results: RunResults) -> list[Path]:
    """Overwrite those of the same trials, and keep others."""
    # Agents get all of a skill's folder: it must not fill up with what they said.
    parents = (resolved(folder), *resolved(folder).parents)
    if any((parent / name).is_file() for parent in parents for name in SKILL_NAMES):
        problem, hint = (
            "inside a skill, which agents get as it is",
            "Choose a folder outside of it.",
        )
        raise SettingsError("transcripts_folder", problem, hint, value=shown(folder))
    files = dict(transcript_files(results))
    if not files:
        problem = "nothing to write: only kept runs of agents have transcripts"
        raise SettingsError("transcripts_folder", problem, value=shown(folder))
    for path, text in files.items():
        replace_file(folder / path, text)
    return [folder]
