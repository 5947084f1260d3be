"""Find, read and validate skills: folders with a SKILL.md."""

import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .._util.files import reason_of
from .._util.texts import guess, named_fence, slug
from ..errors import SkillError, shown

SKILL_NAMES: Final = ("SKILL.md", "skill.md")
CASES_NAME: Final = "skill_meta.json"
EVALS_NAME: Final = "evals/evals.json"
MANIFEST_NAME: Final = ".pytest-upskill.json"  # in an installed copy: digests of its files
MAX_FILE_BYTES: Final = 1_000_000

# These live next to the skill but are not part of it.
_NOT_TAUGHT: Final = frozenset({CASES_NAME, "skill_results.json", "evals", MANIFEST_NAME})
_SKIPPED_FOLDERS: Final = frozenset(
    {".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__"}
    | {"site-packages", ".upskill", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)
_KNOWN_KEYS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)


Violation = Callable[[str, str, str], SkillError]
SkillWarning = tuple[int, str]  # line and message


@dataclass(frozen=True)
class UnseenFile:
    """A file that SKILL.md refers to and that no model saw; ``reason`` is why it could not."""

    path: str
    reason: str | None = None


@dataclass(frozen=True)
class Skill:
    """A skill, read from its folder."""

    name: str
    description: str
    file: Path
    body: str
    digest: str
    warnings: tuple[SkillWarning, ...] = ()
    previous: str | None = None  # the body at the ref of --skill-against
    trace: str | None = None  # measured in place of the body, in teach
    references: tuple[tuple[str, str], ...] = ()  # paths and texts of files put in context too
    unseen: tuple[UnseenFile, ...] = ()

    @property
    def text(self) -> str:
        """What a model gets to see: the body, then the files that are put in context."""
        return with_files(self.body, self.references)

    @property
    def tokens(self) -> int:
        """An estimate of the text's tokens; the model's own count is in its usage."""
        return estimated_tokens(self.text)


def with_files(body: str, files: Iterable[tuple[str, str]]) -> str:
    """A body, then files in named fences."""
    return "\n\n".join([body, *(named_fence(path, text) for path, text in files)])


def estimated_tokens(text: str) -> int:
    """Four bytes per token: within about 15 % for English prose on current tokenizers."""
    return max(1, round(len(text.encode("utf-8", "replace")) / 4))


def find_skills(path: Path) -> list[Path]:
    """The SKILL.md files of a path: a file, a skill's folder, or a folder of skills."""
    if not path.exists():
        raise SkillError(path, "no such file or folder", "Check the path.")
    if path.is_file():
        if path.name in SKILL_NAMES:
            return [path]
        raise SkillError(
            path,
            "not a SKILL.md",
            "Name the skill's folder, its SKILL.md, or a folder of skills.",
        )
    found = sorted(_walk_for_skills(path, set()))
    if not found:
        raise SkillError(
            path,
            "no SKILL.md in this folder or below",
            "A skill is a folder with a SKILL.md: frontmatter with name and description, "
            "then the instructions for the model.",
        )
    return found


def _walk_for_skills(top: Path, seen: set[str]) -> Iterator[Path]:
    """Follows links, since agents' folders often link to skills kept elsewhere."""
    for folder, subfolders, files in os.walk(top, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        name = next((name for name in SKILL_NAMES if name in files), None)
        if name:
            subfolders.clear()  # folders inside a skill belong to it
            yield Path(folder, name)
        elif "pyvenv.cfg" in files:
            subfolders.clear()
        else:
            subfolders[:] = [sub for sub in subfolders if sub not in _SKIPPED_FOLDERS]


def skill_file(path: Path) -> Path:
    """The SKILL.md of a skill, given itself or its folder; it may not exist."""
    files = (path / name for name in SKILL_NAMES)
    return path if path.is_file() else next(filter(Path.is_file, files), path / SKILL_NAMES[0])


def find_cases(folder: Path) -> Path | None:
    """The file with a skill's cases, if any."""
    files = (folder / name for name in (CASES_NAME, EVALS_NAME))
    return next((file for file in files if file.is_file()), None)


def is_taught(root: Path, path: Path) -> bool:
    """Whether a path below a skill's folder is part of the skill."""
    return path.relative_to(root).parts[0] not in _NOT_TAUGHT and path.name not in _SKIPPED_FOLDERS


def load_skill(file: Path) -> Skill:
    """Read a SKILL.md and check it against the Agent Skills specification."""
    digest, fields, lines, body = _read(file)
    for violation in _violations(file, fields, lines, body):
        raise violation
    warnings = _warnings(fields, lines)
    return Skill(fields["name"], fields["description"], file, body, digest, warnings)


def fields_of(file: Path) -> dict[str, Any]:
    """The frontmatter of a SKILL.md, every scalar as a string."""
    return _read(file)[1]


def review_skill(file: Path) -> tuple[list[SkillError], tuple[SkillWarning, ...]]:
    """All violations of the specification, and all warnings."""
    try:
        _, fields, lines, body = _read(file)
    except SkillError as error:
        return [error], ()
    return list(_violations(file, fields, lines, body)), _warnings(fields, lines)


def _read(file: Path) -> tuple[str, dict[str, Any], dict[str, int], str]:
    """The folder's digest, the frontmatter, the lines of its keys, and the body."""
    try:
        digest = _inspect_folder(file.parent)
        text = read_text(file)
    except OSError as error:
        where = Path(error.filename or file)
        raise SkillError(where, reason_of(error), "Check the path.") from None
    frontmatter, body = _split(file, text)
    return digest, *_parse_yaml(file, frontmatter), body


def _inspect_folder(root: Path) -> str:
    """Reject links out of the folder and huge files; return a digest of the skill's files."""
    real_root = root.resolve()
    total = hashlib.sha256()
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(sub for sub in subfolders if sub not in _SKIPPED_FOLDERS)
        for name in sorted([*files, *subfolders]):
            path = Path(folder, name)
            # Path.resolve raises on a link to itself
            real = Path(os.path.realpath(path))
            if path.is_symlink() and not real.is_relative_to(real_root):
                raise SkillError(
                    path,
                    "symbolic link out of the skill's folder",
                    "Copy the file into the skill.",
                )
            relative = path.relative_to(root)
            if relative.parts[0] in _NOT_TAUGHT or not path.is_file():
                continue
            size = path.stat().st_size
            if size > MAX_FILE_BYTES:
                raise SkillError(
                    path,
                    f"{size:,} bytes (limit {MAX_FILE_BYTES:,})",
                    "Shorten it, or move it out of the skill.",
                )
            total.update(f"{relative.as_posix()}\0{size}\0".encode("utf-8", "surrogateescape"))
            total.update(path.read_bytes())
    return total.hexdigest()


def read_text(file: Path) -> str:
    try:
        return _decoded(file.read_bytes())
    except UnicodeDecodeError as error:
        raise SkillError(
            file,
            f"not UTF-8 (byte {error.start})",
            "Save it as UTF-8.",
        ) from None


def text_of(data: bytes) -> str:
    """The text of a file; ValueError if it is binary."""
    try:
        text = _decoded(data)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    if "\0" in text:
        raise ValueError("not a text")
    return text


def body_of(data: bytes) -> str:
    """The body of a SKILL.md, even if the file is invalid."""
    text = _decoded(data, "replace")
    try:
        return _split(Path(SKILL_NAMES[0]), text)[1]
    except SkillError:
        return text.strip()


def _decoded(data: bytes, errors: str = "strict") -> str:
    return data.decode("utf-8-sig", errors).replace("\r\n", "\n").replace("\r", "\n")


def _split(file: Path, text: str) -> tuple[str, str]:
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise SkillError(
            f"{shown(file)}:1",
            "no frontmatter",
            "Start with the lines '---', 'name: …', 'description: …' and '---'.",
        )
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    raise SkillError(f"{shown(file)}:1", "frontmatter not closed", "End it with a line '---'.")


def _parse_yaml(file: Path, frontmatter: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The frontmatter's fields, every scalar as a string, and their lines."""
    try:
        node = yaml.compose(frontmatter, Loader=yaml.BaseLoader)
        fields = yaml.load(frontmatter, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{shown(file)}:{mark.line + 2}:{mark.column + 1}" if mark else file
        raise SkillError(
            where,
            f"invalid YAML in the frontmatter: {error.problem or error.context}",
            "Indent with spaces, and quote values that contain ':' or '#'.",
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        problem = str(error).splitlines()[0] if str(error) else "nested too deeply"
        raise SkillError(file, f"invalid YAML in the frontmatter: {problem}") from None
    if not isinstance(node, yaml.MappingNode) or not isinstance(fields, dict):
        raise SkillError(
            f"{shown(file)}:2",
            "the frontmatter must be a mapping",
            "Write at least 'name: …' and 'description: …'.",
        )
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 2
        if key.value in lines:
            raise SkillError(f"{shown(file)}:{line}", f"duplicate key {key.value!r}", "Remove one.")
        lines[str(key.value)] = line
    return fields, lines


def _violations(
    file: Path, fields: Mapping[str, Any], lines: Mapping[str, int], body: str
) -> Iterator[SkillError]:
    """Every violation of the specification."""

    def violation(key: str, problem: str, hint: str) -> SkillError:
        return SkillError(f"{shown(file)}:{lines.get(key, 2)}", problem, hint)

    for key in ("name", "description"):
        if key not in fields:
            yield violation(key, f"{key!r} is missing", f"Add a line '{key}: …'.")
    for key, limit in (("name", 64), ("description", 1024), ("compatibility", 500)):
        value = fields.get(key, "unset")
        if not isinstance(value, str) or not value.strip():
            yield violation(key, f"{key!r} must be a non-empty string", f"Write '{key}: …'.")
        elif len(value) > limit:
            yield violation(
                key, f"{key!r} has {len(value)} characters (limit {limit})", "Shorten it."
            )
        elif key == "name" in fields and (problem := _name_problem(value, file.parent)):
            yield violation(key, *problem)
    yield from _optional_violations(fields, violation)
    if not body:
        yield SkillError(
            file,
            "no text after the frontmatter",
            "Write the instructions for the model below the second '---'.",
        )


def _warnings(fields: Mapping[str, Any], lines: Mapping[str, int]) -> tuple[SkillWarning, ...]:
    return tuple(
        (
            lines.get(key, 2),
            f"{key!r} is not in the Agent Skills specification{guess(key, _KNOWN_KEYS)}",
        )
        for key in fields
        if key not in _KNOWN_KEYS
    )


def _name_problem(name: str, folder: Path) -> tuple[str, str] | None:
    good = all(char == "-" or (char.isalnum() and char == char.lower()) for char in name)
    if not good or name.startswith("-") or name.endswith("-") or "--" in name:
        return (
            f"invalid name {name!r}: use only lowercase letters, digits and single hyphens",
            f"For example: {slug(name, 64) or 'my-skill'}",
        )
    # macOS returns folder names in another normal form than people type.
    real_folder = unicodedata.normalize("NFKC", folder.resolve().name)
    if unicodedata.normalize("NFKC", name) not in (real_folder, folder.name):
        return (
            f"the name {name!r} differs from the folder's name {folder.resolve().name!r}",
            "Rename one of them: agents find a skill by its folder.",
        )
    return None


def _optional_violations(fields: Mapping[str, Any], violation: Violation) -> Iterator[SkillError]:
    if not isinstance(fields.get("license", ""), str):
        yield violation("license", "'license' must be a string", "For example: license: MIT")
    metadata = fields.get("metadata", {})
    if metadata != "" and not (
        isinstance(metadata, dict)
        and all(isinstance(value, str) for pair in metadata.items() for value in pair)
    ):
        yield violation(
            "metadata",
            "'metadata' must map strings to strings",
            "Write one indented 'key: value' per line below it.",
        )
    tools = fields.get("allowed-tools", "")
    if not isinstance(tools, str) and not (
        isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)
    ):
        yield violation(
            "allowed-tools",
            "'allowed-tools' must be a string or a list of strings",
            "Write the tools on one line, separated by spaces.",
        )


class NotTextError(ValueError):
    """A file that should be a text is none."""


def read_skill_file(folder: Path, name: str) -> str:
    """The text of a file in the skill's folder; ValueError says why it can't be used."""
    if "\0" in name:
        raise ValueError(f"invalid file name {name!r}")
    try:
        # Path.resolve raises on a link to itself
        real, root = Path(os.path.realpath(folder / name)), Path(os.path.realpath(folder))
        if not real.is_relative_to(root):
            raise ValueError(f"{name!r} is outside the skill's folder; copy it there")
        if not real.is_file():
            what = "is a folder" if real.is_dir() else "not found"
            raise ValueError(f"{name!r} {what}; name a file, relative to the skill's folder")
        size = real.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ValueError(f"{name!r} has {size:,} bytes (limit {MAX_FILE_BYTES:,})")
        text = real.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotTextError(f"{name!r} is not UTF-8 text (byte {error.start})") from None
    except UnicodeEncodeError:
        raise ValueError(f"invalid file name {name!r}") from None
    except OSError as error:
        raise ValueError(f"can't read {name!r}: {reason_of(error)}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
