"""Code of skills that pytest must not run.

That of the skills that a run tests is kept out unless --skill-allow-code is given, and
so is what only such a skill leads to. Every pytest run imports this module, so it
imports very little.
"""

import os
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Sequence,
)
from contextlib import suppress
from fnmatch import fnmatch
from functools import cached_property
from glob import glob
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ..errors import InputError, shown
from ..settings import INI_FILES
from .pytest_options import (
    FLAGS,
    absolute,
    early_cli_value,
    in_ini,
    ini_entries,
)
from .skill_args import has_agent, path_of, skills_by_name, split_args

_KEY: Final = pytest.StashKey["SkillCode"]()
_SAFE: Final = "PYTHONSAFEPATH"
_MOST_NAMED: Final = 3
_TRUST: Final = f"add {FLAGS['allow_code']} if you trust its author"


class SkillCode:
    """The skills of a run whose files pytest must neither import nor collect.

    Not those of a project that is a skill itself: its ini file is inside the skill, so
    whoever runs pytest there, without --skill, runs its own tests.
    """

    def __init__(self, config: pytest.Config) -> None:
        known, here = config.known_args_namespace, config.invocation_params.dir
        given = early_cli_value(config, "skill_paths")
        self._config = config
        self._here = here
        self._ordinary, named = split_args(config, known.file_or_dir)
        self._by_option = bool(given)
        self._by_name = bool(named)
        roots = [
            absolute(here, path)
            for path in given or in_ini(config, "skill_paths") or ()
        ]
        with suppress(InputError):  # which is reported when the run begins
            roots = skills_by_name(config, roots) if given else roots
        self._owned = bool(roots) and not given
        self._roots = _forms(path.parent if path.is_file() else path for path in roots)
        paths = [path_of(config, arg) for arg in self._ordinary] or [here]
        # As for the skills themselves: those of the ini file are
        # tested below the arguments.
        all_of_them = given or (not known.file_or_dir and here == config.rootpath)
        self._near = None if all_of_them else _forms(paths)
        self._folders = set(
            _forms(
                [
                    *(arg.folder for arg in named),
                    *_find_tasks_below(config, self._ordinary),
                ]
            )
        )
        # A skill may be inside another one, whose code is a stranger's too.
        chosen = self._roots if given else filter(_may_be_skill, self._near or ())
        self._inner = (*chosen, *self._folders)
        self._known: dict[Path, bool] = {}
        self._paths: list[Path] = []  # that pytest would collect
        self._anchors: tuple[Path, ...] = ()  # where pytest's own arguments lead
        self._collects = True  # what is below them

    @property
    def is_asked_for(self) -> bool:
        return bool(self._roots or self._folders)

    @cached_property
    def _ini(self) -> Path | None:
        """The ini file, if it has settings."""
        of_file = any(
            entry.origin == "file" for entry in ini_entries(self._config).values()
        )
        return self._config.inipath if of_file else None

    def skill_around(self, path: Path) -> Path | None:
        """The folder of the skill that a path is in; links are followed."""
        folders = [
            folder for form in _forms([path]) for folder in (form, *form.parents)
        ]
        return next(filter(self._is_closed, folders), None)

    def close(self, folders: Iterable[Path]) -> None:
        """Skills that were found behind links are closed from everywhere."""
        self._folders.update(_forms(filter(self.skill_around, folders)))
        self._known.clear()

    def _is_closed(self, folder: Path) -> bool:
        if folder not in self._known:
            self._known[folder] = self._is_tested(folder) and not self._is_project(
                folder
            )
        return self._known[folder]

    def _is_tested(self, folder: Path) -> bool:
        if folder in self._folders:
            return True
        around = any(path.is_relative_to(folder) for path in self._inner)
        if around and not self._here.is_relative_to(folder):
            return _may_be_skill(folder)
        if not any(map(folder.is_relative_to, self._roots)):
            return False
        near = self._near is None or any(map(folder.is_relative_to, self._near))
        return near and _may_be_skill(folder)

    def _is_project(self, folder: Path) -> bool:
        ini = self._config.inipath
        inside = (
            ini
            and _real(ini).is_relative_to(folder)
            and self._here.is_relative_to(folder)
        )
        return bool(self._owned and inside)

    def require_own_ini(self) -> None:
        """Refuse settings that pytest took from a stranger: they can name code."""
        ini = self._ini
        if not ini or _names_ini(self._config):
            return
        if skill := self.skill_around(ini):
            where = (
                f"ini file inside the skill {shown(skill)}: its settings can run code"
            )
            how = "Run pytest from outside of the skill, with --skill=PATH"
            raise pytest.UsageError(f"{shown(ini)}: {where}\n  {how}, or {_TRUST}.")
        asked = self._by_option or self._by_name
        if asked and not self._here.is_relative_to(_real(ini).parent):
            where = (
                "ini file around the skill, not around this folder: its settings can"
                " run code"
            )
            how = "Write --skill=PATH, with an equals sign, to do without it"
            there = f"run pytest in {shown(ini.parent)}"
            raise pytest.UsageError(
                f"{shown(ini)}: {where}\n  {how}, {there}, or {_TRUST}."
            )

    def require_project_ini(self) -> None:
        """Refuse the ini file of a skill in place of the project's
        own that has skill_paths.

        It may be in the skill, or around one that an argument names.
        """
        ini = self._ini
        if not ini or _names_ini(self._config):
            return
        if self._here.is_relative_to(_real(ini).parent):
            return

        from ..skills.folder import is_skill

        named = [path_of(self._config, arg) for arg in self._ordinary]
        skills = list(filter(is_skill, [*_real(ini).parents, *named]))
        inside = any(map(self._here.is_relative_to, skills))
        if (
            skills
            and not inside
            and _has_skill_paths(self._config.invocation_params.dir)
        ):
            place = (
                "inside" if _real(ini).is_relative_to(_real(skills[0])) else "around"
            )
            where = (
                f"ini file {place} the skill {shown(skills[0])}: its settings can run"
                " code"
            )
            how = f"To test the skill, write --skill={shown(skills[0])}"
            raise pytest.UsageError(f"{shown(ini)}: {where}\n  {how}, or {_TRUST}.")

    def keep_root(self) -> None:
        """Let no skill decide the rootdir, whose conftest files and
        stored answers are believed.
        """
        config, here = self._config, self._here
        root, asked = config.rootpath, self._by_option or self._by_name
        if not asked or _names_ini(config) or _is_typed(config, "--rootdir"):
            return
        paths = [path_of(config, arg) for arg in self._ordinary]
        is_project = config.inipath or paths or (root / "setup.py").is_file()
        if here.is_relative_to(root) and is_project:
            return
        if not any(path.is_relative_to(root) for path in paths):
            config._rootpath = here
            # One without settings, or it would have been refused
            config._inipath = None
            config.known_args_namespace.confcutdir = str(here)

    def take_over(self) -> None:
        """Leave no argument inside a skill to pytest, and import no
        conftest files for its sake.
        """
        known = self._config.known_args_namespace
        args = [arg for arg in self._ordinary if not self._leads_inside(arg)]
        self._collects = bool(args) or not (self._by_option or known.file_or_dir)
        paths = [path_of(self._config, arg) for arg in args] or _find_testpaths(
            self._config, self._here
        )
        self._anchors = _forms(paths or ([self._here] if self._collects else []))
        known.file_or_dir = args
        # The one place where pytest imports conftest files, whatever has led to them.
        plugins: Any = self._config.pluginmanager
        load: Callable[..., ModuleType] = plugins._importconftest

        def load_outside(file: Path, *args: Any, **kwargs: Any) -> ModuleType:
            strange = self.skill_around(file) or self._is_on_the_way(file.parent)
            return ModuleType("conftest") if strange else load(file, *args, **kwargs)

        plugins._importconftest = load_outside
        if (
            self.skill_around(self._config.invocation_params.dir)
            and _SAFE not in os.environ
        ):
            # Workers of xdist are started with the current folder first in sys.path.
            os.environ[_SAFE] = "1"
            self._config.add_cleanup(lambda: os.environ.__delitem__(_SAFE))

    def _is_on_the_way(self, folder: Path) -> bool:
        """Whether a folder is between this one and a skill,
        and no argument of pytest leads there.

        pytest loads the conftest.py of every folder here whose name starts with "test".
        """
        if self._is_led_to(folder):
            return False
        forms = _forms([folder])
        if any(skills.is_relative_to(form) for skills in self._inner for form in forms):
            return True
        below = any(
            form.is_relative_to(skills) for skills in self._inner for form in forms
        )
        return below and _has_skills(folder)

    def _is_led_to(self, folder: Path) -> bool:
        """Whether pytest loads the conftest.py of a folder anyway."""
        root, here = self._config.rootpath, self._here
        above = (*self._anchors, root if self.skill_around(here) else here)
        below = self._anchors if self._collects else ()
        forms = _forms([folder])
        return any(
            path.is_relative_to(form) for path in above for form in forms
        ) or any(form.is_relative_to(path) for path in below for form in forms)

    def _leads_inside(self, arg: str) -> bool:
        """Whether an argument is a skill's folder; what is inside can't be
        collected.
        """
        path = path_of(self._config, arg)
        skill = self.skill_around(path) if path.exists() else None
        if skill and skill not in _forms([path]):
            raise pytest.UsageError(
                f"{shown(path)}: inside the skill {shown(skill)}, which this run"
                f" tests\n  Leave the skill out of this run, or {_TRUST}."
            )
        return skill is not None

    def header_lines(self, skills: Iterable[Path]) -> list[str]:
        """Say what was left out: conftest files on the way,
        tests that pytest would have run.
        """
        from ..skills.folder import TOOL_FOLDERS, walk
        from ..skills.task_folders import is_task_set, tests_beside_tasks

        skills, lines = tuple(skills), list[str]()
        if files := self._conftests_left_out(skills):
            how = f"add {FLAGS['allow_code']}"
            lines.append(f"upskill: not loaded, on the way to a skill: {files} ({how})")
        patterns = self._config.getini("python_files")
        found = set[Path]()
        for skill in skills:
            if not any(map(skill.is_relative_to, self._paths)) or not self.skill_around(
                skill
            ):
                continue
            for folder, subfolders, names in walk(skill):
                subfolders[:] = [
                    name for name in subfolders if name not in TOOL_FOLDERS
                ]
                is_test = (
                    name
                    for name in names
                    if any(fnmatch(name, one) for one in patterns)
                )
                found.update(folder / name for name in is_test)
        if found:
            lines += [
                (
                    f"upskill: {_files(found)} inside skills not run (add"
                    f" {FLAGS['allow_code']})"
                )
            ]
        sets = (
            skill for skill in skills if skill in self._folders and is_task_set(skill)
        )
        if beside := [
            file for folder in sets for file in tests_beside_tasks(folder, patterns)
        ]:
            lines += [f"upskill: {_files(beside)} beside tasks not run: run them apart"]
        return lines

    def _conftests_left_out(self, skills: Iterable[Path]) -> str:
        from .._util.texts import first_few, one_line

        root = self._config.rootpath
        folders = (
            path
            for skill in skills
            if skill.is_relative_to(root)
            for path in skill.parents
        )
        files = (folder / "conftest.py" for folder in dict.fromkeys(folders))
        left_out = (
            file
            for file in files
            if file.is_file() and not self._is_led_to(file.parent)
        )
        return first_few([one_line(shown(file), 100) for file in left_out], _MOST_NAMED)

    def without_skills(self, args: Sequence[str]) -> list[str]:
        """The arguments that are left to pytest."""
        self._paths = [path_of(self._config, arg) for arg in args]
        return [arg for arg in args if not self._leads_inside(arg)]

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if self.skill_around(collection_path) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """What an argument leads to is never ignored, such as a module of --pyargs."""
        collected = yield
        return [] if self.skill_around(file_path) else collected


def _find_tasks_below(config: pytest.Config, args: Sequence[str]) -> list[Path]:
    """Tasks below arguments that are pytest's own, such as a folder with tests beside
    them.
    """
    if not args or not has_agent(config):
        return []

    from ..skills.task_folders import tasks_at

    tasks = []
    for arg in args:
        tasks += tasks_at(path_of(config, arg))
    return tasks


def _find_testpaths(config: pytest.Config, here: Path) -> list[Path]:
    paths: list[Path] = []
    for pattern in config.getini("testpaths"):
        found = glob(str(here / pattern), recursive=True)  # noqa: PTH207
        paths += map(Path, found)
    return paths


def _names_ini(config: pytest.Config) -> bool:
    return _is_typed(config, "-c", "--config-file")


def _is_typed(config: pytest.Config, *options: str) -> bool:
    return any(word.startswith(options) for word in _own_words(config))


def _files(tests: Collection[Path]) -> str:
    return f"{len(tests):,} test file{'' if len(tests) == 1 else 's'}"


def keep_code_of_skills_out(config: pytest.Config) -> None:
    """Before pytest imports the first conftest.py."""
    if FLAGS["allow_code"] in _own_words(config):
        return
    code = SkillCode(config)
    if not code.is_asked_for:
        code.require_project_ini()
        return
    code.require_own_ini()
    code.keep_root()
    if not (early_cli_value(config, "allow_code") or in_ini(config, "allow_code")):
        code.take_over()
        config.stash[_KEY] = code
        config.pluginmanager.register(code, "upskill-code")


def code_kept_out(config: pytest.Config) -> SkillCode | None:
    """None if the code of skills may run, or if no skill is tested."""
    return config.stash.get(_KEY, None)


def _may_be_skill(folder: Path) -> bool:
    """Whether there is a SKILL.md. A broken link counts too: it may be whole
    tomorrow.
    """
    from ..skills.folder import SKILL_NAMES
    from ..skills.task_folders import is_task

    return any(os.path.lexists(folder / name) for name in SKILL_NAMES) or is_task(
        folder
    )


def _has_skills(folder: Path) -> bool:
    from ..errors import SkillError
    from ..skills.search import find_skills

    with suppress(SkillError):
        return bool(find_skills(folder).files)
    return False


def _own_words(config: pytest.Config) -> list[str]:
    """The command line as it was typed: that of the config also has
    the addopts of the ini file.
    """
    typed = map(str, config.invocation_params.args)
    return [*typed, *os.environ.get("PYTEST_ADDOPTS", "").split()]


def _has_skill_paths(folder: Path) -> bool:
    from .._util.files import read_file

    for file in (
        above / name for above in (folder, *folder.parents) for name in INI_FILES
    ):
        with suppress(OSError):
            if b"skill_paths" in read_file(file):
                return True
    return False


def _forms(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Paths as they are written, and as they really are."""
    return tuple(dict.fromkeys(form for path in paths for form in (path, _real(path))))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # Path.resolve raises on a link to itself
