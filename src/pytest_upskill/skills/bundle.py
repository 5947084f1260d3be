"""A bundle: several skills that are tested as one, mostly a plugin of Claude Code.

The entry of a skill is its SKILL.md; that of a bundle is its manifest,
or else its folder.
"""

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final

from .._util import grouped
from .._util.texts import counted, digest, first_few, one_line
from ..errors import SkillError
from ..settings import Settings
from .context import FilesAtRef, FilesOnDisk, at_ref, files_at_ref, load_for_run
from .folder import MANIFEST, SKILL_NAMES, digest_of, is_skill, skill_file
from .frontmatter import Fault
from .plugins import (
    Manifest,
    files_on_disk,
    is_plugin,
    other_parts,
    plugin_above,
    plugin_name,
    read_manifest,
    skill_places,
)
from .search import FoundSkills, find_skills
from .skill import LONGEST_NAME, Skill, UnseenFile, name_in, name_of
from .suites.reading import Ask, read_suites
from .task_folders import has_tasks, tasks_at
from .task_set import load_task_set

_MOST_NAMED: Final = 6
_RENAME: Final = "Rename one of them: agents tell skills apart by their names."


@dataclass(frozen=True)
class Bundle(Skill):
    """Skills that are there together or not at all; its text is that of all of them."""

    root: Path = Path()
    skills: tuple[Skill, ...] = ()
    places: tuple[str, ...] = ()  # the folder of each skill, in the root
    # Names and places of its skills at the git ref
    before: tuple[tuple[str, str], ...] = ()
    plugin: bool = False  # whether Claude Code can install it as a whole
    other_parts: tuple[str, ...] = ()  # in words, what only Claude Code has of it
    left_out: tuple[str, ...] = ()  # paths of skills that are not there, though on disk

    @property
    def folder(self) -> Path:
        return self.root

    @property
    def members(self) -> tuple[Skill, ...]:
        return self.skills


def entry_of(folder: Path) -> Path:
    """The entry of a bundle."""
    return folder / MANIFEST if is_plugin(folder) else folder


def skill_files_in(file: Path) -> tuple[Path, ...]:
    """The SKILL.md files of a skill or bundle, even if some can't be loaded."""
    root = bundle_root(file)
    if root is None:
        return (file,)
    if has_tasks(root):
        return ()  # each is there in its own task alone
    try:
        return tuple(skill_file(root / place) for place in _places(root))
    except SkillError:
        return ()


def bundle_root(file: Path) -> Path | None:
    """The folder of a bundle, given its entry; None for a SKILL.md."""
    if file.match(MANIFEST):
        return file.parent.parent
    return file if file.is_dir() else None


def folder_of(file: Path) -> Path:
    """The folder of a skill or bundle."""
    return bundle_root(file) or file.parent


def find_entries(path: Path, settings: Settings, ask: Ask | None = None) -> FoundSkills:
    """The skills and bundles of a path; SkillError if there are none.

    A plugin is a bundle if it has cases of its own, or is named itself and its skills
    have none. Skills that have cases of their own are also tested alone, unless bundles
    are asked for. ``ask`` is the hook that reads other forms of cases.
    """
    if (
        settings.bundle
        and path.is_dir()
        and not (is_skill(path) and not is_plugin(path))
    ):
        _places(path)  # or say why there are none
        return FoundSkills((entry_of(path),), notes=tuple(_bundle_notes(path, ())))
    tasks = tasks_at(path) if path.is_dir() else []
    try:
        found = _without_tasks(find_skills(path), tasks)
    except SkillError:
        if not is_plugin(path) and not tasks:
            raise
        found = FoundSkills(())
    if tasks:
        top = (
            path
            if not found.files
            else Path(os.path.commonpath([t.parent for t in tasks]))
        )
        return replace(found, files=(*found.files, top))
    files, notes = dict.fromkeys(found.files), list[str]()
    for root in map(folder_of, plugins_of(files, path)):
        if root == path:
            read_manifest(root / MANIFEST)  # or say what is wrong with it
        members = skill_files_in(root / MANIFEST)
        alone = [file for file in members if _has_cases(file.parent, ask)]
        named = root == path and (not alone or settings.tests_file is not None)
        if _is_plain_skill(root, members) or not (_has_cases(root, ask) or named):
            if root == path and len(members) > 1:
                notes.append(_one_by_one(root))
            continue
        alone = [] if settings.tests_file else alone
        files = {file: None for file in files if file not in members or file in alone}
        files[root / MANIFEST] = None
        notes += _bundle_notes(root, alone)
    return replace(found, files=tuple(sorted(files)), notes=tuple(notes))


def _without_tasks(found: FoundSkills, tasks: Sequence[Path]) -> FoundSkills:
    """Without the skills of tasks."""

    def is_own(folder: Path) -> bool:
        return not any(folder.is_relative_to(task) for task in tasks)

    files = tuple(file for file in found.files if is_own(file))
    left_out = tuple(skipped for skipped in found.left_out if is_own(skipped.path))
    return replace(found, files=files, left_out=left_out)


def plugins_of(files: Iterable[Path], path: Path) -> list[Path]:
    """The plugins, by their manifests, that skills found at a path are in."""
    folders = (plugin_above(file, path) for file in files) if path.is_dir() else ()
    named = [path] if is_plugin(path) else []
    return [root / MANIFEST for root in dict.fromkeys([*named, *filter(None, folders)])]


def covered_by(manifest: Path) -> frozenset[Path]:
    """The skills of a plugin if that has cases, so that these need none of their
    own.
    """
    root = folder_of(manifest)
    return frozenset(skill_files_in(manifest) if _has_cases(root, None) else ())


def parts_besides_skills(file: Path) -> tuple[str, ...]:
    """What the plugin of a manifest has for Claude Code alone; nothing for other
    files.
    """
    root = bundle_root(file)
    if root is None or not is_plugin(root):
        return ()
    try:
        return other_parts(FilesOnDisk(root), read_manifest(root / MANIFEST))
    except SkillError:
        return ()  # which its tests report


def entry_in(folder: Path, *, bundle: bool) -> Path | None:
    """What the cases in a folder are about; None if that is
    neither a skill nor a bundle.
    """
    if is_plugin(folder) and not _is_plain_skill(
        folder, skill_files_in(folder / MANIFEST)
    ):
        return folder / MANIFEST
    if is_skill(folder):
        return skill_file(folder)
    return folder if bundle and folder.is_dir() else None


def _has_cases(folder: Path, ask: Ask | None) -> bool:
    suites = read_suites(folder, ask=ask)
    return suites.has_cases or suites.has_triggers


def _is_plain_skill(root: Path, members: Sequence[Path]) -> bool:
    """Whether a plugin is nothing but the skill in its root."""
    return members == (skill_file(root),) and not parts_besides_skills(root / MANIFEST)


def _bundle_notes(root: Path, alone: Sequence[Path]) -> Iterator[str]:
    name = entry_name(entry_of(root))
    skills = [name_of(file) for file in skill_files_in(entry_of(root))]
    listed = first_few([one_line(skill, LONGEST_NAME) for skill in skills], _MOST_NAMED)
    if skills:
        yield f"{name}: {counted(len(skills), 'skill')} tested as one ({listed})"
    else:
        parts = " and ".join(parts_besides_skills(entry_of(root)))
        yield f"{name}: a plugin without skills, tested for its {parts}"
    if alone:
        names = first_few([name_of(file) for file in alone], _MOST_NAMED)
        yield f"{name}: also tested alone, on their own cases: {names}"


def _one_by_one(root: Path) -> str:
    name = entry_name(root / MANIFEST)
    return (
        f"{name}: a plugin without cases of its own, so its skills are tested one by"
        " one (skill_bundle = true tests them as one)"
    )


def load_entry(file: Path, settings: Settings) -> Skill:
    """The skill of a SKILL.md or the bundle of a folder or manifest, as a run needs
    it.
    """
    root = bundle_root(file)
    if root is None:
        return load_for_run(file, settings)
    return load_task_set(root) if has_tasks(root) else load_bundle(root, settings)


def load_bundle(root: Path, settings: Settings) -> Bundle:
    """SkillError if it has no skills and nothing else, or if one of them can't be
    read.
    """
    plugin, files = is_plugin(root), FilesOnDisk(root)
    manifest = (
        read_manifest(root / MANIFEST) if plugin else Manifest(_folder_name(root), "")
    )
    places = _places(root)
    others = other_parts(files, manifest) if plugin else ()
    if not places and not others:
        hint = "A plugin has its skills in skills/NAME/SKILL.md."
        raise SkillError(root, "no skill in this bundle", hint)
    members = [load_for_run(skill_file(root / place), settings) for place in places]
    _require_names(
        root,
        [(member.name, place) for member, place in zip(members, places, strict=True)],
    )
    if plugin:
        content = digest_of(root, files_on_disk(root, manifest, places).values())
    else:
        content = digest(*(member.digest for member in members))
    bundle = Bundle(
        manifest.name,
        manifest.description,
        entry_of(root),
        joined((member.name, member.text) for member in members),
        content,
        tuple(_faults(files, manifest)),
        unseen=tuple(
            UnseenFile(posixpath.join(place, file.path), file.reason)
            for member, place in zip(members, places, strict=True)
            for file in member.unseen
        ),
        root=root,
        skills=tuple(members),
        places=tuple(places),
        plugin=plugin,
        other_parts=others,
    )
    return bundle if settings.against is None else _with_previous(bundle, settings)


def without_skills(bundle: Bundle, names: Collection[str]) -> Bundle:
    """A bundle without some of its skills."""
    each = list(zip(bundle.members, bundle.places, strict=True))
    kept = [(member, place) for member, place in each if member.name not in names]
    gone = [place or member.file.name for member, place in each if member.name in names]
    return replace(
        bundle,
        skills=tuple(member for member, _ in kept),
        places=tuple(place for _, place in kept),
        body=joined((member.name, member.text) for member, _ in kept),
        digest=digest(bundle.digest, *gone),
        left_out=tuple(gone),
    )


def joined(texts: Iterable[tuple[str, str]]) -> str:
    """The texts of several skills as one, each under its name."""
    return "\n\n".join(f"# Skill: {name}\n\n{text.strip()}" for name, text in texts)


def _places(root: Path) -> list[str]:
    if is_plugin(root):
        return skill_places(FilesOnDisk(root), read_manifest(root / MANIFEST))
    files = find_skills(root).files
    return [os.path.relpath(file.parent, root).replace(os.sep, "/") for file in files]


def _with_previous(bundle: Bundle, settings: Settings) -> Bundle:
    """With the text of all skills that it had at the git ref; as it is if it is
    newer.
    """
    assert settings.against is not None
    root, before, texts = (
        bundle.root.resolve(),
        list[tuple[str, str]](),
        list[tuple[str, str]](),
    )
    for place in _places_at(root, files_at_ref(root, settings.against), bundle.plugin):
        if skill := at_ref(root / place, settings):
            name = name_in(root / place / SKILL_NAMES[0], skill.file_text)
            before.append((name, place))
            texts.append((name, skill.text))
    if not before:
        return bundle
    text = joined(texts)
    return replace(bundle, previous=text, previous_file=text, before=tuple(before))


def _places_at(root: Path, files: FilesAtRef, plugin: bool) -> list[str]:
    if not plugin:
        skills = (PurePosixPath(path) for path in files.paths)
        return sorted(
            "" if path.parent == PurePosixPath() else str(path.parent)
            for path in skills
            if path.name in SKILL_NAMES
        )
    if MANIFEST not in files.paths:
        return []
    return skill_places(files, read_manifest(root / MANIFEST, files.data(MANIFEST)))


def _require_names(root: Path, members: Iterable[tuple[str, str]]) -> None:
    for name, same in grouped(members, lambda member: member[0]).items():
        if len(same) > 1:
            folders = " and ".join(place or "." for _, place in same)
            raise SkillError(root, f"{folders} have the same name ({name})", _RENAME)


def _faults(files: FilesOnDisk, manifest: Manifest) -> Iterator[Fault]:
    for folder in manifest.skills:
        if folder and not files.entries(folder):
            problem = f"skills: {one_line(folder, 100)!r} is not there, or empty"
            yield Fault(
                1, problem, "plugin-skills", "warning", "Name a folder of skills."
            )


def _folder_name(root: Path) -> str:
    return one_line(Path(os.path.realpath(root)).name, LONGEST_NAME) or "bundle"


def entry_name(file: Path) -> str:
    """The name of a skill or bundle, even if it can't be loaded."""
    root = bundle_root(file)
    if root is None:
        return name_of(file)
    return plugin_name(root) if is_plugin(root) else _folder_name(root)
