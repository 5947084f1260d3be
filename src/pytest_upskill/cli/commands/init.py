"""``pytest-upskill init``: example cases for a skill, and the settings to run them;
``schema``.

Everything is planned first: if one file can't be written, none is.
What exists is never replaced.
"""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..._util import grouped
from ..._util.files import read_file, reason_of, save_file, why_unwritable
from ..._util.git import repository_of
from ..._util.keys import shown_command
from ..._util.texts import guess, harmless, one_line, slug
from ...checks.skill_meta_schema import schema_text
from ...errors import InputError, SkillError, shown
from ...skills.bundle import covered_by, folder_of, plugins_of
from ...skills.case import EDIT_ME
from ...skills.example_cases import example_file
from ...skills.folder import CASES_NAME, SCHEMA_NAME, SKILL_NAMES, is_skill, skill_file
from ...skills.named_skill import DEFAULT_SKILLS, require_text
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import LONGEST_NAME, Skill, is_valid_name, load_skill
from ...skills.suites.reading import read_suites
from ...skills.upskill_config import read_config
from ..first_model import embedded_model, model_of_key
from ..project import MAX_BYTES, CannotEdit, block, ini_settings, with_keys

_PLUGIN: Final = ".claude-plugin/plugin.json"
_MOST_LISTED: Final = 5  # skills whose files get a line each
_KEPT: Final = "kept as it is"
_NEW_SKILL: Final = """\
---
name: {name}
description: What this skill is about, in a sentence. \
Use when somebody asks for it, in their words.
---

# {title}

Write here what a model does not know, or gets wrong without the skill: \
names, commands, steps and
house rules, with examples. Leave out what every model knows.
"""


def add_init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "skill",
        nargs="?",
        metavar="SKILL",
        help=(
            "a skill's folder, a folder of skills, or the name of a new skill (default:"
            " the skill that you are in, else those below the current folder)"
        ),
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would be written"
    )


def add_schema_arguments(_: argparse.ArgumentParser) -> None:
    """None."""


def run_schema(_: argparse.Namespace) -> tuple[str, int]:
    return schema_text().rstrip("\n"), 0


@dataclass(frozen=True)
class _PlannedFile:
    """A file, and what becomes of it; ``text`` is None if it stays as it is."""

    file: Path
    about: str
    text: str | None = None
    preview: str = ""  # of the text, with --dry-run
    has_cases: bool = False


@dataclass
class _Plan:
    """What is to be written, what stays, and what to tell."""

    root: Path  # the folder of the ini file
    folder: Path | None = None  # of the skills
    entries: list[_PlannedFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def writes(self) -> list[tuple[Path, str]]:
        return [
            (entry.file, entry.text) for entry in self.entries if entry.text is not None
        ]

    @property
    def new_cases(self) -> list[Path]:
        return [file for file, _ in self.writes if file.name == CASES_NAME]


def run_init(args: argparse.Namespace) -> tuple[str, int]:
    here = Path.cwd()
    plan = _Plan(_root(here))
    path = here if args.skill is None else _named(args.skill, here)
    if os.path.lexists(path):
        files = _skills(plan, path, named=args.skill is not None)
        plugins = plugins_of(files, path)
        for manifest in filter(covered_by, plugins):
            _plan_cases(plan, folder_of(manifest), manifest)
        covered = frozenset[Path]().union(*map(covered_by, plugins))
        for file in files:
            if file not in covered:
                _plan_cases(plan, file.parent, file)
    else:
        files = [_plan_skill(plan, path)]
    if plan.new_cases:
        _plan_schema(plan)
    if files:
        _plan_ini(plan, here, [file.parent for file in files])
    for file, _ in plan.writes:
        linked = (
            ""
            if _is_inside(file, plan.root)
            else "a link that leads out of this project"
        )
        if problem := linked or why_unwritable(file):
            raise InputError(file, problem, "Nothing was written.")
    if not args.dry_run:
        # As bytes: what a file of the user says stays as it is
        for file, text in plan.writes:
            save_file(file, text.encode("utf-8", "backslashreplace"))
    return _text(plan, dry_run=args.dry_run), 1 if plan.problems else 0


def _root(here: Path) -> Path:
    """The project's folder: of pytest's ini file, else of pyproject.toml, else of git,
    else here.

    An ini file outside of the git repository belongs to something else.
    """
    top, ini = repository_of(here), ini_settings(here)
    if ini and (top is None or ini[0].is_relative_to(top)):
        return ini[0].parent
    above = [
        folder for folder in (here, *here.parents) if top and folder.is_relative_to(top)
    ]
    return next(
        (f for f in (here, *above) if (f / "pyproject.toml").is_file()), top or here
    )


def _named(written: str, here: Path) -> Path:
    """The path of a skill or a folder; that of a new skill does not exist yet."""
    require_text(written)
    path = here / written
    path = Path(os.path.abspath(path))  # noqa: PTH100
    if os.path.lexists(path):
        return path
    name = path.name
    if name == DEFAULT_SKILLS or not (is_valid_name(name) and name.isascii()):
        example = (
            "my-skill"
            if name == DEFAULT_SKILLS
            else slug(name, LONGEST_NAME) or "my-skill"
        )
        raise InputError(
            one_line(written, 200),
            "no such file or folder",
            "Check the path. A new skill has a name of lowercase letters, digits and"
            f" single hyphens, for example {example}.",
        )
    return _place_of_skills(name, here) / name if written == name else path


def _place_of_skills(name: str, here: Path) -> Path:
    """The folder for a new skill: where the others are, else ``skills``."""
    if here.name == DEFAULT_SKILLS:
        return here
    if skills_dir := read_config(here, os.environ).skills_dir:
        return skills_dir
    usual = here / DEFAULT_SKILLS
    try:
        folders = {
            file.parent.parent
            for file in find_skills(here).files
            if file.parent != here
        }
    except SkillError:
        folders = set()
    if usual.is_dir() or not folders:
        return usual
    if len(folders) > 1:
        command = shown_command(["pytest-upskill", "init", shown(min(folders) / name)])
        problem = f"no such skill, and {len(folders)} folders have skills"
        raise InputError(name, problem, f"To start one, name its folder: {command}")
    return folders.pop()


def _skills(plan: _Plan, path: Path, *, named: bool) -> list[Path]:
    """The SKILL.md of each skill that is meant, inside of the project."""
    if not named:
        above = [
            folder
            for folder in (path, *path.parents)
            if folder.is_relative_to(plan.root)
        ]
        path = next((skill_file(folder) for folder in above if is_skill(folder)), path)
    try:
        search = find_skills(path)
    except SkillError as error:
        if not path.is_dir():
            raise
        hint = (
            "A skill is a folder with a SKILL.md. To start one: pytest-upskill init"
            " my-skill"
        )
        raise InputError(path, error.problem, hint) from None
    plan.notes += left_out_lines(search.left_out)
    files = list[Path]()
    for file in search.files:
        if _is_inside(file.parent, plan.root):
            files.append(file)
        else:
            plan.problems.append(
                f"{one_line(shown(file.parent), 200)} is outside of this project, "
                f"{one_line(str(plan.root), 200)}: run this command in its own project"
            )
    return files


def _is_inside(folder: Path, root: Path) -> bool:
    """A link could lead anywhere."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))


def _plan_skill(plan: _Plan, folder: Path) -> Path:
    """Plan a skill that does not exist yet, and its cases; returns its SKILL.md."""
    if not _is_inside(folder, plan.root):
        problem = f"outside of this project, {plan.root}"
        raise InputError(
            folder, problem, "Run this command in the project of the skill."
        )
    file = folder / SKILL_NAMES[0]
    text = _NEW_SKILL.format(
        name=folder.name, title=folder.name.replace("-", " ").capitalize()
    )
    plan.entries.append(_PlannedFile(file, "a new skill", text, text))
    beside = (
        [entry.name for entry in folder.parent.iterdir()]
        if folder.parent.is_dir()
        else []
    )
    if close := guess(folder.name, beside):
        plan.notes.append(f"{folder.name} is a new skill{close}.")
    description = text.partition("description: ")[2].partition("\n")[0]
    _plan_examples(plan, Skill(folder.name, description, file, "", ""))
    return file


def _plan_cases(plan: _Plan, folder: Path, file: Path) -> None:
    usual = folder / CASES_NAME
    path = read_suites(folder).path or (usual if os.path.lexists(usual) else None)
    if path:
        about = f"{_KEPT}, with examples to edit" if _has_examples(path) else _KEPT
        plan.entries.append(_PlannedFile(path, about, has_cases=True))
        return
    try:
        _plan_examples(plan, load_skill(file))
    except SkillError as error:
        plan.problems.append(
            one_line(f"{error.where}: {error.problem}. {error.hint}", 500)
        )


def _has_examples(file: Path) -> bool:
    try:
        return f'"{EDIT_ME}"'.encode() in read_file(file, MAX_BYTES)
    except OSError:
        return False


def _plan_examples(plan: _Plan, skill: Skill) -> None:
    folder = skill.file.parent
    schema = Path(
        os.path.relpath(plan.root / SCHEMA_NAME, os.path.realpath(folder))
    ).as_posix()
    file, text = folder / CASES_NAME, example_file(skill, schema)
    plan.entries.append(
        _PlannedFile(file, "two example cases", text, text, has_cases=True)
    )


def _plan_schema(plan: _Plan) -> None:
    file = plan.root / SCHEMA_NAME
    if os.path.lexists(file):
        plan.entries.append(_PlannedFile(file, _KEPT))
    else:
        plan.entries.append(
            _PlannedFile(file, "the JSON schema of cases, for editors", schema_text())
        )


def _plan_ini(plan: _Plan, here: Path, folders: Sequence[Path]) -> None:
    """Plan the keys that pytest's ini file lacks, in the file that
    pytest reads or would read.
    """
    file, settings = plan.root / "pytest.ini", dict[str, Any]()
    if (ini := ini_settings(here)) and ini[0].parent == plan.root:
        file, settings = ini
    elif (plan.root / "pyproject.toml").is_file():
        file = plan.root / "pyproject.toml"
    plan.folder = plan.root / (common := _common_folder(folders, plan.root))
    values = {"skill_paths": common}
    if "skill_paths" in settings:
        plan.notes += _not_covered(file, settings["skill_paths"], folders)
    model, reason = _model(os.environ, here)
    if model:
        values["skill_models"] = model
    if "skill_models" not in settings:
        plan.notes.append(reason)
    keys = {key: value for key, value in values.items() if key not in settings}
    if not keys:
        plan.entries.append(_PlannedFile(file, _KEPT))
        return
    try:
        old = (
            read_file(file, MAX_BYTES).decode("utf-8") if os.path.lexists(file) else ""
        )
        new, lines = with_keys(file.name, old, keys), block(file.name, keys)
    except OSError as error:
        raise InputError(
            file, f"can't be read: {reason_of(error)}", "Check the file."
        ) from None
    except (CannotEdit, UnicodeDecodeError) as error:
        problem = str(error) if isinstance(error, CannotEdit) else "not UTF-8"
        hint = (
            "Nothing was written. Name the skill when you run it: pytest --skill PATH"
        )
        raise InputError(file, problem, hint) from None
    about = " and ".join(keys)
    plan.entries.append(
        _PlannedFile(file, f"{about} added" if old else about, new, lines)
    )


def _common_folder(folders: Sequence[Path], root: Path) -> str:
    """What skill_paths says: the folder that all skills are in,
    for one that is added later too.

    Skills of one plugin are beside those of the next plugin.
    """
    top = Path(os.path.realpath(root))
    real = [Path(os.path.realpath(folder)) for folder in folders]
    common = Path(os.path.commonpath([f if f == top else f.parent for f in real]))
    inside = [
        f for f in (common, *common.parents) if f != top and f.is_relative_to(top)
    ]
    plugin = next(
        (f for f in inside if (f / _PLUGIN).is_file() or f.parent.name == "plugins"),
        None,
    )
    return (plugin.parent if plugin else common).relative_to(top).as_posix()


def _not_covered(file: Path, paths: Any, folders: Sequence[Path]) -> Iterator[str]:
    """Skills that the paths of the ini file do not reach."""
    names = paths.split() if isinstance(paths, str) else paths
    tops = (
        [file.parent / str(name) for name in names] if isinstance(names, list) else []
    )
    for folder in folders:
        if not any(_is_inside(folder, top) for top in tops):
            path = one_line(shown(folder), 200)
            yield f"skill_paths of {shown(file)} does not include {path}: add it there."


def _model(env: Mapping[str, str], here: Path) -> tuple[str, str]:
    """A model that can be asked here, empty if something else names one;
    and why this one.
    """
    config = read_config(here, env)
    if config.file and config.eval_models:
        return "", f"Model: {', '.join(config.eval_models)}, of {shown(config.file)}."
    model = model_of_key(env) or embedded_model()
    return model.name, f"Model: {model.name}, {model.reason}."


def _text(plan: _Plan, *, dry_run: bool) -> str:
    word = "would be written" if dry_run else "written"
    rows = list[tuple[str, str, str]]()
    for (about, has_cases), entries in grouped(
        plan.entries, lambda e: (e.about, e.has_cases)
    ).items():
        written = entries[0].text is not None
        state = f"{word}: {about}" if written else about
        names = [one_line(shown(entry.file), 200) for entry in entries]
        if has_cases and len(entries) > _MOST_LISTED:
            names = [f"cases of {len(entries):,} skills"]
        rows += [
            (name, state, entry.preview)
            for name, entry in zip(names, entries, strict=False)
        ]
    width = max((len(name) for name, _, _ in rows), default=0)
    lines = list[str]()
    for name, state, preview in rows:
        lines.append(f"{name:<{width}}  {state}")
        if dry_run and preview:
            lines += ["", *(f"    {line}" for line in preview.splitlines()), ""]
    if not plan.writes and plan.entries:
        lines.append("Nothing to write.")
    lines += ["", *map(harmless, plan.notes)] if plan.notes else []
    lines += [f"not done: {problem}" for problem in plan.problems]
    if plan.entries and not dry_run:
        lines += ["", "Next:", *_next(plan)]
    return "\n".join(lines)


def _next(plan: _Plan) -> Iterator[str]:
    """What to do now, a line each."""
    new = [
        one_line(shown(file), 200)
        for file, _ in plan.writes
        if file.name in SKILL_NAMES
    ]
    yield from (f"  write {name}" for name in new)
    cases = [entry.file for entry in plan.entries if entry.has_cases]
    if plan.new_cases or any(map(_has_examples, cases)):
        yield (
            f'  edit the cases: they are examples, until you remove the tag "{EDIT_ME}"'
        )
    one_skill = plan.new_cases or cases
    if len(one_skill) == 1 and one_skill[0].name == CASES_NAME:
        folder = shown(one_skill[0].parent)
        words = ["pytest", *([] if folder == "." else [folder])]
    else:  # without the project's own tests
        words = ["pytest", *(["--skill", shown(plan.folder)] if plan.folder else [])]
    command = shown_command(words)
    commands = (f"{command} --collect-only", command)
    width = len(commands[0])
    yield f"  {commands[0]}  # free: what a run would ask"
    yield f"  {commands[1]:<{width}}  # ask it, with and without the skill"
