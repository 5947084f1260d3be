"""A plugin of Claude Code: its manifest, the skills that it has,
and the files to install.
"""

import json
import os
import posixpath
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter

from .._util.files import read_file
from .._util.json_forms import line_of, read_json, read_json_form
from .._util.texts import one_line
from ..errors import SkillError, shown
from .folder import (
    MANIFEST,
    MAX_FILE_BYTES,
    SKILL_NAMES,
    TOOL_FOLDERS,
    installed_files,
    is_installed,
    is_taught,
    is_worktree,
    leads_outside,
    walk,
)
from .references import Files

MCP_FILE: Final = ".mcp.json"
_SERVERS: Final = "mcpServers"
_SKILLS: Final = "skills"  # the folder of a plugin's skills
_LONGEST_NAME: Final = 64
# Where a plugin has what only Claude Code knows: the word for it, its usual place,
# its key.
_OTHERS: Final = (
    ("commands", "commands", "commands"),
    ("subagents", "agents", "agents"),
    ("hooks", "hooks/hooks.json", "hooks"),
)

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _ManifestForm(BaseModel):
    """The keys of plugin.json that matter here; Claude Code itself looks at the
    others.
    """

    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)

    name: _Text
    description: str = ""
    skills: str | list[str] = []
    commands: Any = None
    agents: Any = None
    hooks: Any = None
    mcpServers: Any = None


_FORM: Final = TypeAdapter(_ManifestForm)


@dataclass(frozen=True)
class Manifest:
    """What a plugin.json says."""

    name: str
    description: str
    # Folders besides the usual one, relative to the plugin
    skills: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # all that it names: these are installed even if hidden
    keys: frozenset[str] = frozenset()  # of what it has besides skills
    servers: Any = None  # MCP servers: a path, paths, or their settings by name


def is_plugin(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def plugin_above(file: Path, top: Path) -> Path | None:
    """The nearest plugin that a skill is in, not above ``top``."""
    folders = (folder for folder in file.parents if folder.is_relative_to(top))
    return next(filter(is_plugin, folders), None)


def read_manifest(file: Path, data: bytes | None = None) -> Manifest:
    """SkillError with the line if it is broken; ``data`` is its content at a git
    ref.
    """

    def read(path: Path) -> bytes:
        return read_file(path, MAX_FILE_BYTES) if data is None else data

    form: _ManifestForm = read_json_form(
        file, _FORM, SkillError, "Fix the manifest.", read
    )
    written = [form.skills] if isinstance(form.skills, str) else form.skills
    skills = list[str]()
    for number, path in enumerate(written):
        folder = _inside(path)
        if folder is None:
            text, _ = read_json(file, SkillError, read=read)
            place = (_SKILLS,) if isinstance(form.skills, str) else (_SKILLS, number)
            problem = f"skills: {one_line(path, 100)!r} is not in the plugin"
            hint = "Name a folder of the plugin, such as ./skills/."
            raise SkillError(f"{shown(file)}:{line_of(text, place)}", problem, hint)
        skills.append(folder)
    named = [form.commands, form.agents, form.hooks]
    paths = {path for value in named for path in _paths_in(value)}
    return Manifest(
        one_line(form.name, _LONGEST_NAME),
        form.description,
        tuple(dict.fromkeys(skills)),
        tuple(sorted({*paths, *filter(None, skills)})),
        frozenset(key for _, _, key in _OTHERS if getattr(form, key)),
        form.mcpServers,
    )


def plugin_name(folder: Path) -> str:
    """The name of a plugin, even if its manifest is broken."""
    try:
        return read_manifest(folder / MANIFEST).name
    except SkillError:
        return one_line(Path(os.path.realpath(folder)).name, _LONGEST_NAME) or "plugin"


def _inside(path: str) -> str | None:
    """A path relative to the plugin, empty for the plugin itself;
    None if it leads elsewhere.
    """
    path = path.removeprefix("${CLAUDE_PLUGIN_ROOT}/")
    normal = posixpath.normpath(path)
    if path.startswith(("/", "~")) or "\0" in path or normal.split("/")[0] == "..":
        return None
    return "" if normal == "." else normal


def _paths_in(value: Any) -> Iterator[str]:
    """The paths of a plugin that a key names: a text, a list,
    or ``source`` of commands.
    """
    if isinstance(value, str):
        path = _inside(value)
        yield from [path] if path else []
    elif isinstance(value, list):
        for item in value:
            yield from _paths_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _paths_in(item.get("source")) if isinstance(item, dict) else ()


def skill_places(files: Files, manifest: Manifest) -> list[str]:
    """The folders of a plugin's skills, as Claude Code finds them;
    empty is the plugin itself.
    """

    def is_skill(folder: str) -> bool:
        return any(files.entries(folder).get(name) is False for name in SKILL_NAMES)

    places = dict[str, None]()
    for folder in (_SKILLS, *manifest.skills):
        if is_skill(folder):
            places[folder] = None
            continue
        entries = files.entries(folder)
        below = (
            posixpath.join(folder, name) for name in sorted(entries) if entries[name]
        )
        places |= dict.fromkeys(filter(is_skill, below))
    if not places and is_skill(""):
        places[""] = None
    return list(places)


def other_parts(files: Files, manifest: Manifest) -> tuple[str, ...]:
    """What a plugin has for Claude Code alone, in words."""

    def exists(path: str) -> bool:
        folder, name = posixpath.split(path)
        return name in files.entries(folder)

    return tuple(
        word for word, path, key in _OTHERS if key in manifest.keys or exists(path)
    )


def files_on_disk(
    root: Path, manifest: Manifest, places: Iterable[str]
) -> dict[str, Path]:
    """The files of a plugin that go into copies, by their paths in it.

    Skills may be links out of the plugin, as Claude Code follows these.
    """
    found = dict[str, Path]()
    for folder, subfolders, names in walk(root):
        subfolders[:] = [name for name in subfolders if not _is_foreign(folder / name)]
        for name in names:
            path = (folder / name).relative_to(root)
            if (folder / name).is_file() and not leads_outside(root, folder / name):
                found[path.as_posix()] = folder / name
    chosen = {path: found[path] for path in installed_paths(found, manifest)}
    for place in places:
        files = installed_files(root / place).items()
        chosen |= {posixpath.join(place, path): file for path, file in files}
    return dict(sorted(chosen.items()))


def installed_paths(paths: Collection[str], manifest: Manifest) -> list[str]:
    """Those of a plugin's paths that go into copies: no hidden ones,
    and nothing of cases.
    """
    pure = {path: PurePosixPath(path) for path in paths}
    skills = {file.parent for file in pure.values() if file.name in SKILL_NAMES}
    return [
        path
        for path, file in pure.items()
        if path == MANIFEST
        or (
            (
                is_installed(file)
                or any(file.is_relative_to(named) for named in manifest.paths)
            )
            and is_taught(file)
            and all(
                is_taught(file.relative_to(skill)) for skill in skills & {*file.parents}
            )
        )
    ]


def without_servers(data: bytes, manifest: Manifest) -> bytes:
    """A manifest without its MCP servers; as it is if it has none."""
    if manifest.servers is None:
        return data
    _, written = read_json(Path(MANIFEST), SkillError, read=lambda _: data)
    kept = {key: value for key, value in written.items() if key != _SERVERS}
    return json.dumps(kept, indent=2).encode()


def server_files(manifest: Manifest) -> set[str]:
    """The files that tell of MCP servers, which are not installed."""
    return {MCP_FILE, *_paths_in(manifest.servers)}


def _is_foreign(folder: Path) -> bool:
    if folder.name in TOOL_FOLDERS or (folder / "pyvenv.cfg").is_file():
        return True
    return is_worktree(folder)
