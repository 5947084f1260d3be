"""Where skills meet pytest's own arguments."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..errors import SettingsError, SkillError, shown
from ..settings import Settings
from ..skills.case import find_cases
from ..skills.search import find_skills
from .option import absolute
from .options import SKILL


@dataclass(frozen=True)
class SkillSource:
    """Where a skill and its cases are; pytest collects ``file``."""

    label: str
    skill_file: Path
    cases_file: Path | None

    @property
    def folder(self) -> Path:
        return self.skill_file.parent

    @property
    def file(self) -> Path:
        inside = self.cases_file and self.cases_file.is_relative_to(self.folder)
        return self.cases_file if inside and self.cases_file else self.skill_file


def sources_of(
    skill_files: Sequence[Path], tests_file: Path | None, root: Path
) -> list[SkillSource]:
    """The skills of a run; skills of the same name are labelled by their paths."""
    names = [file.parent.name for file in skill_files]
    sources = []
    for file, name in zip(skill_files, names, strict=True):
        label = name if names.count(name) == 1 else relative(file.parent, root)
        sources.append(SkillSource(label, file, tests_file or find_cases(file.parent)))
    return sources


def relative(path: Path, root: Path) -> str:
    try:
        return Path(os.path.relpath(path, root)).as_posix()
    except ValueError:  # another drive on Windows
        return path.as_posix()


Guarded = dict[Path, list[SkillSource]]


def ini_folder(config: pytest.Config) -> Path:
    """The folder of the ini file."""
    return config.inipath.parent if config.inipath else config.rootpath


def sources_wanted(config: pytest.Config, settings: Settings) -> list[SkillSource]:
    """The skills of --skill or skill_paths, each once, with their file of cases."""
    wanted = wanted_by_args(config, settings.skill_paths)
    found = [file for path in wanted for file in _skills_of(path)]
    tests_file = settings.tests_file
    if tests_file and not tests_file.is_file():
        what = "is a folder" if tests_file.is_dir() else "no such file or folder"
        raise SettingsError("tests_file", what, "Give a file of cases.", value=tests_file)
    return sources_of(list(dict.fromkeys(found)), tests_file, config.rootpath)


def _skills_of(path: Path) -> list[Path]:
    try:
        return list(find_skills(path).files)
    except SkillError as error:
        raise SettingsError("skill_paths", error.problem, error.hint, value=error.where) from None


def add_to_args(config: pytest.Config, sources: Sequence[SkillSource]) -> Guarded:
    """Make pytest collect the skills.

    Those of --skill are collected with the paths on the command line, if there are any; those
    of skill_paths are like testpaths, used only without such paths. Returns the folders that no
    other argument leads to, with the skills in or below them.
    """
    given = config.args_source == pytest.Config.ArgsSource.ARGS
    by_option = bool(config.getoption(SKILL.dest))
    kept = list(config.args) if given or not by_option else []
    named = [_path_of(config, arg) for arg in kept]
    nodes = {path for path, arg in zip(named, kept, strict=True) if "::" in arg}
    # If one case of a skill is named, the whole skill is not wanted.
    added = [source for source in sources if source.file not in nodes]
    config.args = kept
    if by_option or not given:
        config.args += [_arg_for(config, source.file) for source in added]
    config.args_source = pytest.Config.ArgsSource.ARGS
    folders = [path for path in named if path.is_dir()]
    # Not pytest's rootdir: it depends on the paths on the command line.
    home = config.invocation_params.dir if by_option else config.rootpath
    guarded: Guarded = {}
    for source in sources:
        if not any(source.folder.is_relative_to(folder) for folder in folders):
            for folder in _foreign_folders(source, home):
                guarded.setdefault(folder, []).append(source)
    return guarded


def wanted_by_args(config: pytest.Config, skill_paths: Sequence[Path]) -> list[Path]:
    """The paths of --skill, or those of skill_paths that are in or above the arguments."""
    given = config.args_source == pytest.Config.ArgsSource.ARGS
    if config.getoption(SKILL.dest) or not given:
        return list(skill_paths)
    named = [_path_of(config, arg) for arg in config.args]
    return [
        path
        for path in skill_paths
        if any(path.is_relative_to(arg) or arg.is_relative_to(path) for arg in named)
    ]


def reached_by_args(config: pytest.Config, sources: Sequence[SkillSource]) -> list[SkillSource]:
    """The skills that pytest reaches from its arguments."""
    paths = [_path_of(config, arg) for arg in config.args]
    return [source for source in sources if any(source.file.is_relative_to(path) for path in paths)]


def _foreign_folders(source: SkillSource, home: Path) -> list[Path]:
    """The folders from the collected file up to the skill's; outside of home, further up."""
    skill = source.folder
    return [
        folder
        for folder in source.file.parents
        if folder.is_relative_to(skill)
        or not (skill.is_relative_to(home) or home.is_relative_to(folder))
    ]


def _arg_for(config: pytest.Config, file: Path) -> str:
    """The file as an argument; pytest would take '[' and '::' in it for parts of a node id."""
    arg = relative(file, config.invocation_params.dir)
    if "[" in arg or "::" in arg:
        raise SettingsError(
            "skill_paths",
            "pytest can't take a path with '[' or '::' in it",
            "Rename the folder, or change into it and run --skill . there.",
            value=shown(file.parent),
        )
    return arg


def _path_of(config: pytest.Config, arg: str) -> Path:
    return absolute(config.invocation_params.dir, arg.partition("[")[0].split("::")[0])
