"""Which skills a run tests, and where they meet pytest's own arguments."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pytest

from ..errors import SettingsError, SkillError
from ..settings import Settings
from ..skills.bundle import entry_name, find_entries, folder_of
from ..skills.folder import cases_files
from ..skills.search import FoundSkills, SkippedFolder, labels_of
from ..skills.suites.beside import is_file_beside
from ..skills.suites.reading import Ask
from ..skills.task_folders import task_at, tasks_at
from .hooks import asked_suite
from .pytest_options import absolute, cli_value
from .skill_args import SkillArg, path_of, split_args, task_arg
from .skill_code import code_kept_out
from .skill_source import SkillSource
from .untested import nothing_to_test


@dataclass(frozen=True)
class Selected:
    """The skills of a run."""

    sources: tuple[SkillSource, ...] = ()
    without_cases: tuple[SkillSource, ...] = ()
    left_out: tuple[SkippedFolder, ...] = ()
    labels: tuple[str, ...] = ()  # of agents and models in node ids
    notes: tuple[str, ...] = ()  # about bundles

    @property
    def all(self) -> tuple[SkillSource, ...]:
        return self.sources + self.without_cases

    @property
    def on_usual_models(self) -> bool:
        """Whether a skill is to be tested on the models of the run."""
        any_whole_skill = any(not source.picks for source in self.sources)
        return any_whole_skill or any(
            not label for source in self.sources for _, label in source.picks
        )


def select_skills(config: pytest.Config, settings: Settings) -> Selected:
    """Find the skills of a run, and leave only its own arguments to pytest.

    Those of --skill are added to the paths on the command line, if there are any; those
    of skill_paths are like testpaths: without such paths all are tested, else those
    below them, and in a folder below the rootdir those below it.
    """
    ordinary, named = split_args(config, config.args)
    has_args = config.args_source == pytest.Config.ArgsSource.ARGS
    by_option = bool(cli_value(config, "skill_paths"))
    only_below = not by_option and (
        has_args or config.invocation_params.dir != config.rootpath
    )
    paths = [path_of(config, arg) for arg in ordinary]
    if by_option and not has_args:
        ordinary = []
        config.args_source = pytest.Config.ArgsSource.ARGS
    code = code_kept_out(config)
    config.args = code.without_skills(ordinary) if code else ordinary

    named += map(task_arg, filter(None, map(task_at, settings.skill_paths)))
    named_files = tuple(arg.skill_file for arg in named)
    near = [*filter(Path.is_dir, paths), *named_files] if only_below else None
    ask = partial(asked_suite, config)
    found = _found_skills(config, settings, near, ask)
    sources = _all_sources(
        named,
        found.files,
        settings.tests_file,
        ask,
        below=paths if only_below else None,
    )
    if sources:
        _require_file(settings.tests_file)
    conftests = partial(
        _conftests_for,
        is_inside=code.skill_around if code else _inside_any(found.files + named_files),
        home=config.invocation_params.dir if by_option else _project(config),
        root=config.rootpath,
        trusted=code is None,
    )
    chosen = [replace(source, conftests=conftests(source.folder)) for source in sources]
    if code:
        code.close(source.folder for source in chosen)
    selected = _selected(chosen, named, found)
    if selected.without_cases and not selected.sources and (by_option or named):
        raise nothing_to_test(selected.without_cases, settings)
    return selected


def _found_skills(
    config: pytest.Config, settings: Settings, near: Sequence[Path] | None, ask: Ask
) -> FoundSkills:
    """The skills of the setting skill_paths; only those near these places, if any."""
    ignored = _ignored(config)
    files: list[Path] = []
    left_out: list[SkippedFolder] = []
    notes: list[str] = []
    for root in settings.skill_paths:
        if task_at(root):
            continue
        if near is not None and not any(_is_near(root, place) for place in near):
            continue
        search = _skills_of(root, settings, ask)
        for file in search.files:
            if not any(map(ignored, _below(root, file))):
                files.append(file)
        left_out += search.left_out
        notes += search.notes
    return FoundSkills(
        tuple(dict.fromkeys(files)),
        tuple(dict.fromkeys(left_out)),
        tuple(dict.fromkeys(notes)),
    )


def _all_sources(
    named: Sequence[SkillArg],
    found: Sequence[Path],
    tests_file: Path | None,
    ask: Ask,
    *,
    below: Sequence[Path] | None,
) -> list[SkillSource]:
    """The sources of named skills, and of found ones below these paths, if any."""
    named_files = {arg.skill_file for arg in named}
    files = dict.fromkeys([*found, *(arg.skill_file for arg in named)])
    labels = labels_of(list(files), entry_name)
    sources = _sources(named, tests_file, labels, ask)
    # If one case of a skill is named, the others don't run.
    whole_skills = [SkillArg(file, None) for file in found if file not in named_files]
    for file, source in _sources(whole_skills, tests_file, labels, ask).items():
        if below is None or any(file.is_relative_to(path) for path in below):
            sources[file] = source
    return list(sources.values())


def _selected(
    chosen: Sequence[SkillSource], named: Sequence[SkillArg], found: FoundSkills
) -> Selected:
    tested = {source.file: source.is_tested for source in chosen}
    labels = dict.fromkeys(arg.label for arg in named if arg.label)
    selected = Selected(
        tuple(source for source in chosen if tested[source.file]),
        tuple(source for source in chosen if not tested[source.file]),
        labels=tuple(labels),
    )
    # A node id is about one skill
    if all(source.picks for source in chosen):
        return selected
    return replace(selected, left_out=found.left_out, notes=found.notes)


def _sources(
    args: Iterable[SkillArg],
    tests_file: Path | None,
    labels: Mapping[Path, str],
    ask: Ask,
) -> dict[Path, SkillSource]:
    """The sources of arguments by the file that pytest collects."""
    sources: dict[Path, SkillSource] = {}
    for arg in args:
        named = arg.cases_file
        if (
            named
            and is_file_beside(named)
            and not cases_files(folder_of(arg.skill_file))
        ):
            named = None  # the usual file of a skill that has no other
        picks = () if arg.case is None else ((arg.case, arg.label),)
        tests = tests_file or named
        source = SkillSource(labels[arg.skill_file], arg.skill_file, tests, ask, picks)
        if earlier := sources.get(source.file):
            both = earlier.picks and source.picks
            source = replace(source, picks=earlier.picks + source.picks if both else ())
            if earlier.tests != source.tests:  # several tasks of a set, say
                source = replace(source, tests=tests_file)
        sources[source.file] = source
    return sources


def relative(path: Path, root: Path) -> str:
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive on Windows
        return path.as_posix()


def ini_folder(config: pytest.Config) -> Path:
    """The folder of the ini file."""
    return config.inipath.parent if config.inipath else config.rootpath


def _project(config: pytest.Config) -> Path:
    """The folder of the project around the current folder.

    Not pytest's rootdir: it may be that of a skill elsewhere
    that the command line names.
    """
    here = config.invocation_params.dir
    return (
        ini_folder(config)
        if config.inipath and here.is_relative_to(ini_folder(config))
        else here
    )


def _conftests_for(
    skill: Path,
    is_inside: Callable[[Path], object],
    home: Path,
    root: Path,
    *,
    trusted: bool,
) -> Path | None:
    """The folder of the project, unless it is inside a skill:
    testing one must not run its code.

    For the same reason none on the way to the skill, such as a checkout of someone
    else's, unless the code of skills is ``trusted``.
    """
    around = [
        folder for folder in skill.parents if trusted and folder.is_relative_to(home)
    ]
    project = [home, root] if home.is_relative_to(root) else [home]
    return next(
        (folder for folder in [*around, *project] if not is_inside(folder)), None
    )


def _inside_any(skill_files: Iterable[Path]) -> Callable[[Path], bool]:
    folders = {folder_of(file) for file in skill_files}
    return lambda path: not folders.isdisjoint(_upwards(path))


def _upwards(path: Path) -> tuple[Path, ...]:
    return path, *path.parents


def _skills_of(path: Path, settings: Settings, ask: Ask) -> FoundSkills:
    try:
        return find_entries(path, settings, ask)
    except SkillError as error:
        raise SettingsError(
            "skill_paths", error.problem, error.hint, value=error.where
        ) from None


def _require_file(tests_file: Path | None) -> None:
    if tests_file and not tests_file.is_file() and not tasks_at(tests_file):
        problem = "no such file or folder"
        if tests_file.exists():
            problem = "is a folder" if tests_file.is_dir() else "not a regular file"
        raise SettingsError(
            "tests_file",
            problem,
            "Give a file of cases, or a folder of tasks.",
            value=tests_file,
        )


def _ignored(config: pytest.Config) -> Callable[[Path], bool]:
    """Whether pytest's --ignore or --ignore-glob names a path."""
    folder = config.invocation_params.dir
    paths = {absolute(folder, path) for path in config.getoption("ignore", None) or ()}
    globs = [
        str(absolute(folder, glob))
        for glob in config.getoption("ignore_glob", None) or ()
    ]
    return lambda path: path in paths or any(fnmatch(str(path), glob) for glob in globs)


def _below(root: Path, file: Path) -> list[Path]:
    """A file and its folders below ``root``: a path that is named is not ignored,
    as in pytest.
    """
    return [
        path
        for path in (file, *file.parents)
        if path != root and path.is_relative_to(root)
    ]


def _is_near(root: Path, place: Path) -> bool:
    return root.is_relative_to(place) or place.is_relative_to(root)
