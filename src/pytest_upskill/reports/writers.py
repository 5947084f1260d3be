"""Reports written to disk, each whole or not at all; one that fails does not stop the
others.

A new report is one function and one entry in `REPORTS`, plus its option.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .._util.files import is_stream, reason_of, replace_file, resolved
from .._util.texts import one_line
from ..errors import InputError, Setting, SettingsError, shown
from ..results.run import RunResults
from ..results.run_file import results_bytes
from ..skills.folder import SKILL_NAMES
from .record_files import transcript_files

if TYPE_CHECKING:
    from ..results.case_changes import Earlier

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
            if clash := _find_clash(setting, path, name, other_path):
                hint = "Choose another path."
                raise SettingsError(setting, (name, clash), hint, value=shown(path))
        taken.append((Setting(setting), path))


def _find_clash(setting: str, path: Path, name: str, other_path: Path) -> str:
    """What is wrong with the other path, which ``name`` writes."""
    if _is_same(path, other_path):
        return " uses the same file"
    if _is_folder_of(setting, path, other_path):
        return f" is below it: {shown(other_path)}"
    if _is_folder_of(name, other_path, path):
        return f" is a file, not a folder: {shown(other_path)}"
    return ""


def _is_same(path: Path, other_path: Path) -> bool:
    """Follows symbolic and hard links."""
    try:
        return resolved(path) == resolved(other_path) or path.samefile(other_path)
    except OSError:  # one of them does not exist yet
        return False


def _is_folder_of(name: str, file: Path, path: Path) -> bool:
    """Whether a file that is to be written would be the folder of another."""
    is_new_file = not name.endswith("_folder") and not file.exists()
    return is_new_file and resolved(file) in resolved(path).parents


@dataclass(frozen=True)
class Finished:
    """What reports are made from."""

    results: RunResults
    markdown: Callable[[], str]
    notes: Sequence[str]
    earlier: "Earlier | None" = None  # the run before, for the page


def _page_text(run: Finished) -> str:
    # Slow to import, and seldom needed.
    from .page import run_page

    return run_page(run.results, run.notes, run.earlier)


def _write_badges(folder: Path, run: Finished) -> Sequence[Path]:
    from .publish import write_badges

    return write_badges(folder, run.results)


# How to write each kind, by the setting that says where; returns the written paths.
REPORTS: Final[Mapping[str, Callable[[Path, Finished], Sequence[Path]]]] = {
    "json_file": lambda file, run: write_report(file, results_bytes(run.results)),
    "html_file": lambda file, run: write_report(file, _page_text(run)),
    "markdown_file": lambda file, run: write_report(file, run.markdown()),
    "transcripts_folder": lambda folder, run: write_transcripts(folder, run.results),
    "badge_folder": _write_badges,
}


def report_paths(settings: object) -> dict[str, Path | None]:
    """Where each report goes, by the setting, if ``settings`` has it."""
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
    for parent in (resolved(folder), *resolved(folder).parents):
        if any((parent / name).is_file() for name in SKILL_NAMES):
            problem = "inside a skill, which agents get as it is"
            hint = "Choose a folder outside of it."
            value = shown(folder)
            raise SettingsError("transcripts_folder", problem, hint, value=value)

    files = dict(transcript_files(results))
    if not files:
        problem = "nothing to write: only kept runs of agents have transcripts"
        raise SettingsError("transcripts_folder", problem, value=shown(folder))
    for path, text in files.items():
        replace_file(folder / path, text)
    return [folder]
