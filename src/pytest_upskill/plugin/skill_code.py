"""Skills among pytest's own arguments, and code of theirs that pytest must not run.

An argument names a skill by one of its files:
``skills/x/skill_meta.json::id[m]``. Code of the skills that a run tests is kept
out unless --skill-allow-code is given, and so is what only such a skill leads to.
Every pytest run imports this module, so it imports very little.
"""

import os
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass
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
    cli_flags,
    cli_gates,
    cli_value,
    early_cli_value,
    in_ini,
    ini_entries,
    value_of,
)

_KEY: Final = pytest.StashKey["SkillCode"]()
_SAFE: Final = "PYTHONSAFEPATH"
_MOST_NAMED: Final = 3
_TRUST: Final = f"add {FLAGS['allow_code']} if you trust its author"


@dataclass(frozen=True)
class SkillArg:
    """A skill that an argument names, or one of its cases."""

    skill_file: Path
    cases_file: Path | None  # None if the argument is the SKILL.md
    case: str | None = None  # None for all cases
    label: str | None = None  # of an agent and a model; None for those of the run

    @property
    def folder(self) -> Path:
        from ..skills.bundle import folder_of
        from ..skills.task_folders import task_at

        task = task_at(self.cases_file) if self.cases_file else None
        return task or folder_of(self.skill_file)


def is_asked_for(config: pytest.Config) -> bool:
    """A model alone is enough: tests in Python name their skills themselves."""
    settings = ("skill_paths", "models")
    return any(
        cli_value(config, name) or in_ini(config, name) for name in settings
    ) or bool(split_args(config, config.args)[1])


def asks_for_skills(config: pytest.Config) -> bool:
    """Whether the command line names a skill, a model or a gate.

    Other runs are of a project that happens to have skills.
    """
    settings = {"skill_paths", "models", "accept", "accept_lower", "confident"}
    named = cli_flags(config, settings)
    return bool(named or cli_gates(config) or split_args(config, config.args)[1])


def skills_by_name(config: pytest.Config, paths: Iterable[Path]) -> list[Path]:
    """The paths of --skill, in which a skill of the project may stand by its name."""
    paths = list(paths)
    if all(map(os.path.lexists, paths)):
        return paths
    from ..skills.named_skill import path_or_name, skills_dir

    here, ini = config.invocation_params.dir, in_ini(config, "skill_paths") or ()
    folders = [*(absolute(here, path) for path in ini), skills_dir(here, os.environ)]
    return [path_or_name(path, here, folders) for path in paths]


def split_args(
    config: pytest.Config, args: Sequence[str]
) -> tuple[list[str], list[SkillArg]]:
    """The arguments that are pytest's own, and those that name skills."""
    pairs = [(arg, _skill_arg(config, arg)) for arg in args]
    return [arg for arg, named in pairs if not named], [
        named for _, named in pairs if named
    ]


def path_of(config: pytest.Config, arg: str) -> Path:
    """The path in an argument, which may be a node id."""
    return absolute(config.invocation_params.dir, arg.partition("::")[0])


def _skill_arg(config: pytest.Config, arg: str) -> SkillArg | None:
    path = path_of(config, arg)
    _, colons, name = arg.partition("::")
    case, _, label = name.partition("[")
    if task := _task_arg(config, path, case, label.removesuffix("]")):
        return task
    bundle = value_of(config, "bundle")
    is_bundle = bundle and colons and path.is_dir()
    if not is_bundle and (path.suffix not in (".md", ".json") or not path.is_file()):
        return None
    doctests = getattr(config.known_args_namespace, "doctestglob", None)
    if path.suffix == ".md" and not label and doctests:
        return None
    skill_file = _skill_file_for(path, _tests_file(config), bundle=bundle)
    if skill_file is None:
        return None
    return SkillArg(
        skill_file,
        None if path == skill_file else path,
        case if colons else None,
        label.removesuffix("]") or None,
    )


def _task_arg(
    config: pytest.Config, path: Path, case: str, label: str
) -> SkillArg | None:
    """A task of a benchmark, or a folder of them, if there is an agent for it."""
    if not path.exists() or not (label or _has_agent(config)):
        return None
    from ..skills.task_folders import is_task_set, task_at

    if task := task_at(path):
        return task_arg(task, case, label)
    return SkillArg(path, None) if not case and is_task_set(path) else None


def task_arg(task: Path, case: str = "", label: str = "") -> SkillArg:
    """One task of a set, which is that of the folder around it."""
    from ..skills.task_folders import task_file, task_id

    name = task_id(task)  # in a run with others of this name it has a number
    case = case if case.rstrip("0123456789") not in ("", f"{name}-") else name
    return SkillArg(task.parent, task_file(task), case, label or None)


def _has_agent(config: pytest.Config) -> bool:
    return bool(early_cli_value(config, "agents") or value_of(config, "agents"))


def task_folders(config: pytest.Config) -> list[Path]:
    """Arguments that are tasks of a benchmark, or folders of them,
    though no agent is named.
    """
    paths = [path_of(config, arg) for arg in config.args if "::" not in arg]
    likely = [path for path in paths if next(_may_have_tasks(path), None)]
    if not likely:
        return []
    from ..skills.task_folders import is_task_set, task_at

    return [path for path in likely if task_at(path) or is_task_set(path)]


def task_hint(config: pytest.Config) -> str:
    """What to add if arguments are tasks; empty if none is."""
    folders = task_folders(config)
    name = folders[0].name if folders else ""
    return (
        f"upskill: {name}: tasks of a benchmark; add --skill-agent NAME to run them"
        * bool(name)
    )


def _may_have_tasks(folder: Path) -> Iterator[Path]:
    """Files that tasks have, in a folder or directly below it."""
    for pattern in ("task.toml", "task.md", "*/task.toml", "*/task.md"):
        yield from folder.glob(pattern)


def _tests_file(config: pytest.Config) -> Path | None:
    """The file of cases, also before pytest has set its options."""
    if early := early_cli_value(config, "tests_file"):
        return absolute(config.invocation_params.dir, early)
    file: Path | None = value_of(config, "tests_file")
    return file


def _skill_file_for(
    path: Path, tests_file: Path | None, *, bundle: bool
) -> Path | None:
    """The SKILL.md of the skill that a file names, or what stands for a bundle."""
    from ..skills.bundle import entry_in
    from ..skills.folder import CASES_NAME, MANIFEST, SKILL_NAMES
    from ..skills.suites.beside import is_file_beside

    if path.name in SKILL_NAMES or path.match(MANIFEST):
        return path
    if path.is_dir():
        return entry_in(path, bundle=bundle)
    folders = list(path.parents) if path == tests_file else []
    folders += [path.parent] if path.name == CASES_NAME else []
    folders += [path.parent.parent] if path.parent.name == "evals" else []
    folders += path.parents[1:3] if is_file_beside(path) else []
    tested = (entry_in(folder, bundle=bundle) for folder in folders)
    return next(filter(None, tested), None)


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
            _forms([*(arg.folder for arg in named), *self._tasks_below()])
        )
        # A skill may be inside another one, whose code is a stranger's too.
        chosen = self._roots if given else filter(_may_be_skill, self._near or ())
        self._inner = (*chosen, *self._folders)
        self._known: dict[Path, bool] = {}
        self._paths: list[Path] = []  # that pytest would collect
        self._anchors: tuple[Path, ...] = ()  # where pytest's own arguments lead
        self._collects = True  # what is below them

    def _tasks_below(self) -> list[Path]:
        """Tasks below arguments that are pytest's own, such as a
        folder with tests beside them.
        """
        if not _has_agent(self._config) or not self._ordinary:
            return []
        from ..skills.task_folders import tasks_at

        return [
            t for arg in self._ordinary for t in tasks_at(path_of(self._config, arg))
        ]

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
        if not ini or self._names_ini:
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
        if not ini or self._here.is_relative_to(_real(ini).parent) or self._names_ini:
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
        if not asked or self._names_ini or self._names("--rootdir"):
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

    @property
    def _names_ini(self) -> bool:
        return self._names("-c", "--config-file")

    def _names(self, *options: str) -> bool:
        return any(word.startswith(options) for word in _own_words(self._config))

    def take_over(self) -> None:
        """Leave no argument inside a skill to pytest, and import no
        conftest files for its sake.
        """
        known = self._config.known_args_namespace
        args = [arg for arg in self._ordinary if not self._leads_inside(arg)]
        self._collects = bool(args) or not (self._by_option or known.file_or_dir)
        paths = [path_of(self._config, arg) for arg in args] or self._testpaths()
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

    def _testpaths(self) -> list[Path]:
        patterns = (str(self._here / path) for path in self._config.getini("testpaths"))
        return [Path(path) for text in patterns for path in glob(text, recursive=True)]  # noqa: PTH207

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
