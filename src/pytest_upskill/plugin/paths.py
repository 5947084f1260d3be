"""Where skills meet pytest's own arguments, and where reports may be written."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ..errors import SettingsError
from .collect import SkillSource
from .options import SKILL, absolute

Guarded = dict[Path, list[SkillSource]]


def add_to_args(config: pytest.Config, sources: Sequence[SkillSource]) -> Guarded:
    """Let pytest collect the skills, as --skill and skill_paths promise.

    --skill: the skills alone, or besides the paths that were given. skill_paths: they stand
    beside testpaths, and like these count only where no path was given. Returns the folders
    that no other argument leads to, with the skills in or below them.
    """
    given = config.args_source == pytest.Config.ArgsSource.ARGS
    by_option = bool(config.getoption(SKILL.dest))
    kept = list(config.args) if given or not by_option else []
    named = [_path_of(config, arg) for arg in kept]
    nodes = {path for path, arg in zip(named, kept, strict=True) if "::" in arg}
    # Who names one case of a skill does not want all of it.
    added = [source for source in sources if source.file not in nodes]
    config.args = kept + ([str(source.file) for source in added] if by_option or not given else [])
    config.args_source = pytest.Config.ArgsSource.ARGS
    folders = [path for path in named if path.is_dir()]
    # pytest's rootdir won't do for home: it moves towards whatever path stands on the line.
    home = config.invocation_params.dir if by_option else config.rootpath
    guarded: Guarded = {}
    for source in sources:
        if not any(source.folder.is_relative_to(folder) for folder in folders):
            for folder in _foreign_folders(source.folder, home):
                guarded.setdefault(folder, []).append(source)
    return guarded


def reached_by_args(config: pytest.Config, sources: Sequence[SkillSource]) -> list[SkillSource]:
    """The skills that pytest can come to from its arguments."""
    paths = [_path_of(config, arg) for arg in config.args]
    return [source for source in sources if any(source.file.is_relative_to(path) for path in paths)]


def _foreign_folders(folder: Path, home: Path) -> list[Path]:
    """A skill's folder and, outside of home, those above it that pytest would enter."""
    if folder.is_relative_to(home):
        return [folder]
    return [folder, *(above for above in folder.parents if not home.is_relative_to(above))]


def _path_of(config: pytest.Config, arg: str) -> Path:
    return absolute(config.invocation_params.dir, arg.partition("[")[0].split("::")[0])


def require_writable(flag: str, file: Path) -> None:
    """Find out before the run, not after it, that its report can't be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        there = file.exists()
        with file.open("ab"):
            pass
        if not there:
            file.unlink()  # an empty report would only mislead, should the run be killed
    except OSError as error:
        raise SettingsError(f"{flag} {file}", error.strerror or str(error)) from None
