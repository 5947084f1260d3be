"""Find, read and validate skills: a folder with SKILL.md is one."""

import hashlib
import os
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from .._util.texts import guess, slug
from ..errors import SettingsError, SkillError, shown

SKILL_NAMES: Final = ("SKILL.md", "skill.md")
CASES_NAME: Final = "skill_meta.json"
EVALS_NAME: Final = "evals/evals.json"
MAX_FILE_BYTES: Final = 1_000_000

# Cases and results stand beside the skill and are not part of what a model is taught.
_NOT_TAUGHT: Final = frozenset({CASES_NAME, "skill_results.json", "evals"})
_SKIPPED_FOLDERS: Final = frozenset(
    {".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__"}
    | {"site-packages", ".upskill", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
)
_KNOWN_KEYS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)


Violation = Callable[[str, str, str], SkillError]
Warned = tuple[int, str]  # line and text of what is only odd


@dataclass(frozen=True)
class Skill:
    """A skill as read from its folder."""

    name: str
    description: str
    file: Path
    body: str
    digest: str
    warnings: tuple[Warned, ...] = ()
    previous: str | None = None  # the body at the ref of --skill-against
    trace: str | None = None  # what a lesson measures beside the body

    @property
    def tokens(self) -> int:
        """About how many tokens the body costs; a model's own count is in its usage."""
        return estimated_tokens(self.body)


def estimated_tokens(text: str) -> int:
    """Four bytes a token: within some 15 % for English prose on today's tokenizers."""
    return max(1, round(len(text.encode("utf-8", "replace")) / 4))


def find_skills(path: Path) -> list[Path]:
    """The SKILL.md files that a path stands for: the file, a skill's folder, a folder of skills."""
    if not path.exists():
        raise SettingsError(
            f"--skill {shown(path)}", "there is no such file or folder", "Check the path."
        )
    if path.is_file():
        if path.name in SKILL_NAMES:
            return [path]
        raise SettingsError(
            f"--skill {shown(path)}",
            "this file is not a SKILL.md",
            "Give the skill's folder, its SKILL.md, or a folder of skills.",
        )
    found = sorted(_walk_for_skills(path, set()))
    if not found:
        raise SettingsError(
            f"--skill {shown(path)}",
            "no SKILL.md in this folder or below it",
            "A skill is a folder with a SKILL.md: a frontmatter with name and description, "
            "then the text that teaches the model.",
        )
    return found


def _walk_for_skills(top: Path, seen: set[str]) -> Iterator[Path]:
    """Links are followed, since agents' folders often link to where a skill is kept."""
    for folder, subfolders, files in os.walk(top, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        name = next((name for name in SKILL_NAMES if name in files), None)
        if name:
            subfolders.clear()  # what lies inside a skill belongs to it
            yield Path(folder, name)
        elif "pyvenv.cfg" in files:
            subfolders.clear()
        else:
            subfolders[:] = [sub for sub in subfolders if sub not in _SKIPPED_FOLDERS]


def find_cases(folder: Path) -> Path | None:
    """The file of a skill's cases, if it has one."""
    files = (folder / name for name in (CASES_NAME, EVALS_NAME))
    return next((file for file in files if file.is_file()), None)


def is_taught(root: Path, path: Path) -> bool:
    """Whether a file or folder below a skill's is part of what the skill brings."""
    return path.relative_to(root).parts[0] not in _NOT_TAUGHT and path.name not in _SKIPPED_FOLDERS


def load_skill(file: Path) -> Skill:
    """Read a SKILL.md and hold it to the Agent Skills specification."""
    digest, fields, lines, body = _read(file)
    for violation in _violations(file, fields, lines, body):
        raise violation
    warnings = _warnings(fields, lines)
    return Skill(fields["name"], fields["description"], file, body, digest, warnings)


def fields_of(file: Path) -> dict[str, Any]:
    """The frontmatter of a SKILL.md, every scalar as a string."""
    return _read(file)[1]


def review_skill(file: Path) -> tuple[list[SkillError], tuple[Warned, ...]]:
    """All violations of the specification, where load_skill raises at the first; what is odd."""
    try:
        _, fields, lines, body = _read(file)
    except SkillError as error:
        return [error], ()
    return list(_violations(file, fields, lines, body)), _warnings(fields, lines)


def _read(file: Path) -> tuple[str, dict[str, Any], dict[str, int], str]:
    """The digest of the folder, the fields with their lines, the body."""
    try:
        digest = _inspect_folder(file.parent)
        text = read_text(file)
    except OSError as error:
        raise SkillError(file, f"this skill can't be read: {error}") from None
    frontmatter, body = _split(file, text)
    return digest, *_parse_yaml(file, frontmatter), body


def _inspect_folder(root: Path) -> str:
    """Refuse links that lead out of the skill and huge files; digest all that it teaches."""
    real_root = root.resolve()
    total = hashlib.sha256()
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(sub for sub in subfolders if sub not in _SKIPPED_FOLDERS)
        for name in sorted([*files, *subfolders]):
            path = Path(folder, name)
            # realpath, since resolve raises at a link that leads to itself
            real = Path(os.path.realpath(path))
            if path.is_symlink() and not real.is_relative_to(real_root):
                raise SkillError(
                    path,
                    "this symbolic link leads out of the skill's folder",
                    "Put a copy of the file into the skill.",
                )
            relative = path.relative_to(root)
            if relative.parts[0] in _NOT_TAUGHT or not path.is_file():
                continue
            size = path.stat().st_size
            if size > MAX_FILE_BYTES:
                raise SkillError(
                    path,
                    f"this file has {size:,} bytes; a file of a skill may have {MAX_FILE_BYTES:,}",
                    "Shorten it, or keep it outside of the skill.",
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
            f"this file is not UTF-8 (byte {error.start})",
            "Save it as UTF-8.",
        ) from None


def body_of(data: bytes) -> str:
    """What a SKILL.md teaches, also if the specification does not allow it otherwise."""
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
            "there is no frontmatter",
            "Begin the file with '---', a line 'name: …', a line 'description: …' and '---'.",
        )
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    raise SkillError(
        f"{shown(file)}:1", "the frontmatter has no end", "Close it with a line of '---'."
    )


def _parse_yaml(file: Path, frontmatter: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The frontmatter's fields, every scalar as a string, and the line of each."""
    try:
        node = yaml.compose(frontmatter, Loader=yaml.BaseLoader)
        fields = yaml.load(frontmatter, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{shown(file)}:{mark.line + 2}:{mark.column + 1}" if mark else file
        raise SkillError(
            where,
            f"the frontmatter is not YAML: {error.problem or error.context}",
            "Indent with spaces, and put a text with ':' or '#' in it between quotes.",
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        problem = str(error).splitlines()[0] if str(error) else "nested too deep"
        raise SkillError(file, f"the frontmatter is not YAML: {problem}") from None
    if not isinstance(node, yaml.MappingNode) or not isinstance(fields, dict):
        raise SkillError(
            f"{shown(file)}:2",
            "the frontmatter is not a list of 'key: value'",
            "Write at least 'name: …' and 'description: …'.",
        )
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 2
        if key.value in lines:
            raise SkillError(
                f"{shown(file)}:{line}", f"{key.value!r} stands here twice", "Remove one."
            )
        lines[str(key.value)] = line
    return fields, lines


def _violations(
    file: Path, fields: Mapping[str, Any], lines: Mapping[str, int], body: str
) -> Iterator[SkillError]:
    """Every way in which the specification is not kept."""

    def violation(key: str, problem: str, hint: str) -> SkillError:
        return SkillError(f"{shown(file)}:{lines.get(key, 2)}", problem, hint)

    for key in ("name", "description"):
        if key not in fields:
            yield violation(key, f"the frontmatter has no {key!r}", f"Add a line '{key}: …'.")
    for key, limit in (("name", 64), ("description", 1024), ("compatibility", 500)):
        value = fields.get(key, "unset")
        if not isinstance(value, str) or not value.strip():
            yield violation(key, f"{key!r} is not a text", f"Write '{key}: …' on one line.")
        elif len(value) > limit:
            yield violation(
                key, f"{key!r} has {len(value)} characters; {limit} are allowed", "Shorten it."
            )
        elif key == "name" in fields and (problem := _name_problem(value, file.parent)):
            yield violation(key, *problem)
    yield from _optional_violations(fields, violation)
    if not body:
        yield SkillError(
            file,
            "there is no text after the frontmatter",
            "Write below the second '---' what the model should know.",
        )


def _warnings(fields: Mapping[str, Any], lines: Mapping[str, int]) -> tuple[Warned, ...]:
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
            f"the name {name!r} may hold only lowercase letters, digits and single hyphens",
            f"For example: {slug(name, 64) or 'my-skill'}",
        )
    # macOS hands out folder names in another normal form than people type.
    real_folder = unicodedata.normalize("NFKC", folder.resolve().name)
    if unicodedata.normalize("NFKC", name) not in (real_folder, folder.name):
        return (
            f"the name {name!r} is not the folder's name {folder.resolve().name!r}",
            "Rename one of the two: agents find a skill by its folder.",
        )
    return None


def _optional_violations(fields: Mapping[str, Any], violation: Violation) -> Iterator[SkillError]:
    if not isinstance(fields.get("license", ""), str):
        yield violation("license", "'license' is not a text", "Write 'license: MIT', say.")
    metadata = fields.get("metadata", {})
    if metadata != "" and not (
        isinstance(metadata, dict)
        and all(isinstance(value, str) for pair in metadata.items() for value in pair)
    ):
        yield violation(
            "metadata",
            "'metadata' is not a map from text to text",
            "Write one 'key: value' a line below it, indented.",
        )
    tools = fields.get("allowed-tools", "")
    if not isinstance(tools, str) and not (
        isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)
    ):
        yield violation(
            "allowed-tools",
            "'allowed-tools' is neither a text nor a list of texts",
            "Write the tools on one line with spaces between them.",
        )


def read_skill_file(folder: Path, name: str) -> str:
    """The text of a file of the skill; ValueError, with what is wrong, if it has none to give."""
    if "\0" in name:
        raise ValueError(f"{name!r} can't be the name of a file")
    try:
        # realpath, since resolve raises at a link that leads to itself
        real, root = Path(os.path.realpath(folder / name)), Path(os.path.realpath(folder))
        if not real.is_relative_to(root):
            raise ValueError(f"{name!r} leads out of the skill's folder; put a copy into it")
        if not real.is_file():
            what = "is a folder" if real.is_dir() else "is not there"
            raise ValueError(f"{name!r} {what}; name a file, from the skill's folder on")
        size = real.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ValueError(
                f"{name!r} has {size:,} bytes; {MAX_FILE_BYTES:,} are allowed, so shorten it"
            )
        text = real.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name!r} is not a text in UTF-8 (byte {error.start}), and a question is all text"
        ) from None
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} can't be the name of a file") from None
    except OSError as error:
        raise ValueError(f"{name!r} can't be read: {error.strerror or error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
