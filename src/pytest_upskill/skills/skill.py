"""Read a skill as leniently as agents do, and report what violates the
specification.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from .._util.texts import guess, named_fence, one_line, slug
from ..errors import SkillError
from .folder import Contents, contents_of, decoded, digest_of, read_text
from .frontmatter import Fault, Level, Parsed, first_paragraph, parse

LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
_LONGEST_COMPATIBILITY: Final = 500
_MOST_UNKNOWN: Final = 20  # keys that are reported
USERS_ONLY: Final = "disable-model-invocation"
_LINK_AS_TEXT: Final = re.compile(r"(?:\.\./)+\S+\.md")
_KNOWN_KEYS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)
_KEYS_OF_CLAUDE_CODE: Final = frozenset(
    {"when_to_use", "argument-hint", "arguments", "user-invocable"}
    | {"model", "effort", "context", "agent", "hooks", "paths", "shell"}
)


@dataclass(frozen=True)
class UnseenFile:
    """A file that SKILL.md refers to and that no model saw;
    ``reason`` says why it could not.
    """

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
    warnings: tuple[Fault, ...] = ()
    previous: str | None = None  # the body at the ref of --skill-against
    # Paths and texts of files put in context too
    references: tuple[tuple[str, str], ...] = ()
    unseen: tuple[UnseenFile, ...] = ()
    file_text: str = ""  # the whole SKILL.md, if it is from disk
    previous_file: str | None = None  # the whole SKILL.md at the ref

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def members(self) -> tuple["Skill", ...]:
        """The skills that it stands for: itself, or those of a bundle."""
        return (self,)

    @property
    def text(self) -> str:
        """What a model gets to see: the body, then the files that are put in
        context.
        """
        return with_files(self.body, self.references)

    @property
    def tokens(self) -> int:
        """An estimate of the text's tokens; the model's own count is in its usage."""
        return estimated_tokens(self.text)


def with_files(body: str, files: Iterable[tuple[str, str]]) -> str:
    """A body, then files in named fences."""
    return "\n\n".join([body, *(named_fence(path, text) for path, text in files)])


def listing_tokens(skill: Skill) -> int:
    """An estimate of what a skill's entry in the list of skills costs every request."""
    return estimated_tokens(f"{skill.name}: {skill.description}")


def estimated_tokens(text: str) -> int:
    """Four bytes per token: within about 15 % for English prose on current
    tokenizers.
    """
    return max(1, round(len(text.encode("utf-8", "replace")) / 4))


def load_skill(file: Path) -> Skill:
    """Read a SKILL.md that has text; faults of its form are in ``warnings``."""
    text = read_text(file)
    parsed = parse(text)
    if not parsed.body:
        raise SkillError(
            file,
            "no text after the frontmatter" if parsed.has_frontmatter else "no text",
            "Write the instructions for the model below the second '---'.",
        )
    if _LINK_AS_TEXT.fullmatch(parsed.body):
        raise SkillError(
            file,
            "a symbolic link that git wrote as a text",
            "Copy the file that it names, or set core.symlinks and check it out again.",
        )
    contents = contents_of(file.parent)
    faults = sorted(_faults(file, parsed, contents), key=lambda fault: fault.line)
    return Skill(
        _name(file, parsed),
        _description(parsed),
        file,
        parsed.body,
        digest_of(file.parent, contents.files),
        tuple(faults),
        file_text=text,
    )


def name_of(file: Path) -> str:
    """The name of the skill of a SKILL.md, even if it can't be loaded;
    reads no other file.
    """
    try:
        return _name(file, parse(read_text(file)))
    except SkillError:
        return _folder_name(file)


def name_in(file: Path, text: str) -> str:
    """The name of the skill of a SKILL.md that had this text."""
    return _name(file, parse(text))


def fields_of(file: Path) -> dict[str, Any]:
    """The frontmatter of a SKILL.md, every scalar as a string."""
    return parse(read_text(file)).fields


def is_for_users_only(fields: Mapping[str, Any]) -> bool:
    """Whether a frontmatter says that no model opens the skill by itself,
    but a user by name.
    """
    return str(fields.get(USERS_ONLY, "")).strip().lower() == "true"


def body_of(data: bytes) -> str:
    """The body of a SKILL.md, even if there is something wrong with the file."""
    return parse(decoded(data, "replace")).body


class SkillSummary(NamedTuple):
    description: str
    body: str
    users_only: bool = False  # whether no model may open it by itself


def summary_of(data: bytes) -> SkillSummary:
    """What an agent needs of a SKILL.md, even if there is something wrong with it."""
    parsed = parse(decoded(data, "replace"))
    return SkillSummary(
        _description(parsed), parsed.body, is_for_users_only(parsed.fields)
    )


def is_valid_name(name: str) -> bool:
    """Whether the specification allows a name."""
    good = all(
        char == "-" or (char.isalnum() and char == char.lower()) for char in name
    )
    wrong = name.startswith("-") or name.endswith("-") or "--" in name
    return good and not wrong and 0 < len(name) <= LONGEST_NAME


def _name(file: Path, parsed: Parsed) -> str:
    """The name as a label for reports: short, on one line."""
    written = parsed.fields.get("name")
    name = one_line(written, LONGEST_NAME) if isinstance(written, str) else ""
    return name or _folder_name(file)


def _folder_name(file: Path) -> str:
    return one_line(_real(file.parent).name, LONGEST_NAME) or "skill"


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))  # Path.resolve raises on a link to itself


def _description(parsed: Parsed) -> str:
    written = parsed.fields.get("description")
    if isinstance(written, str) and written.strip():
        # YAML may have half characters
        return written.encode("utf-8", "replace").decode("utf-8")
    return first_paragraph(parsed.body, LONGEST_DESCRIPTION)


def _faults(file: Path, parsed: Parsed, contents: Contents) -> Iterator[Fault]:
    """Everything that violates the specification, or that an agent may reject."""
    yield from parsed.faults
    if parsed.has_frontmatter:
        yield from _name_faults(file, parsed)
        yield from _description_faults(parsed)
        yield from _optional_faults(parsed)
        yield from islice(_unknown_keys(parsed), _MOST_UNKNOWN)
    if contents.links_out:
        first, *others_out = contents.links_out
        path = one_line(first.relative_to(file.parent).as_posix(), 200)
        problem = f"{path!r} is a symbolic link out of the skill's folder, and not read"
        problem += f" (and {len(others_out)} more)" if others_out else ""
        yield Fault(
            1, problem, "skill-link", "warning", "Copy the file into the skill."
        )


def _fault(
    parsed: Parsed,
    key: str,
    message: str,
    hint: str,
    *,
    level: Level,
    code: str = "skill-metadata",
) -> Fault:
    return Fault(parsed.lines.get(key, 2), message, code, level, hint)


def _name_faults(file: Path, parsed: Parsed) -> Iterator[Fault]:
    def fault(message: str, hint: str, level: Level) -> Fault:
        return _fault(parsed, "name", message, hint, level=level, code="skill-name")

    folder = file.parent
    name = parsed.fields.get("name")
    if "name" not in parsed.fields:
        yield fault(
            "'name' is missing", f"Add a line 'name: {_folder_name(file)}'.", "error"
        )
    elif not isinstance(name, str) or not name.strip():
        yield fault("'name' must be a non-empty string", "Write 'name: …'.", "error")
    elif len(name) > LONGEST_NAME:
        problem = f"'name' has {len(name)} characters (limit {LONGEST_NAME})"
        yield fault(problem, "Shorten it.", "error")
    elif not is_valid_name(name):
        short_name = one_line(name, LONGEST_NAME)
        problem = (
            f"invalid name {short_name!r}: use only lowercase letters, digits and"
            " single hyphens"
        )
        yield fault(
            problem, f"For example: {slug(name, LONGEST_NAME) or 'my-skill'}", "warning"
        )
    elif not _is_named_like(folder, name) and not _is_repository(folder):
        problem = (
            f"the name {name!r} differs from the folder's name {_folder_name(file)!r}"
        )
        yield fault(
            problem, "Rename one of them: agents find a skill by its folder.", "warning"
        )


def _is_repository(folder: Path) -> bool:
    """Whether the folder is a repository, whose name depends on whoever cloned it."""
    return any((folder / name).exists() for name in (".git", ".gitignore", ".github"))


def _is_named_like(folder: Path, name: str) -> bool:
    # macOS returns folder names in another normal form than people type.
    names = {
        unicodedata.normalize("NFKC", path.name) for path in (folder, _real(folder))
    }
    return unicodedata.normalize("NFKC", name) in names


def _description_faults(parsed: Parsed) -> Iterator[Fault]:
    def fault(message: str, hint: str) -> Fault:
        return _fault(
            parsed,
            "description",
            message,
            hint,
            level="error",
            code="skill-description",
        )

    description = parsed.fields.get("description")
    if "description" not in parsed.fields:
        yield fault("'description' is missing", "Add a line 'description: …'.")
    elif not isinstance(description, str) or not description.strip():
        yield fault(
            "'description' must be a non-empty string", "Write 'description: …'."
        )
    elif (length := len(description.strip())) > LONGEST_DESCRIPTION:
        problem = f"'description' has {length} characters (limit {LONGEST_DESCRIPTION})"
        yield fault(problem, "Shorten it.")


def _optional_faults(parsed: Parsed) -> Iterator[Fault]:
    fields = parsed.fields
    compatibility = fields.get("compatibility", "unset")
    if not isinstance(compatibility, str) or not compatibility.strip():
        problem, hint = (
            "'compatibility' must be a non-empty string",
            "Write 'compatibility: …'.",
        )
        yield _fault(parsed, "compatibility", problem, hint, level="warning")
    elif len(compatibility) > _LONGEST_COMPATIBILITY:
        length = len(compatibility)
        problem = (
            f"'compatibility' has {length} characters (limit {_LONGEST_COMPATIBILITY})"
        )
        yield _fault(parsed, "compatibility", problem, "Shorten it.", level="warning")
    if not isinstance(fields.get("license", ""), str):
        problem, hint = "'license' must be a string", "For example: license: MIT"
        yield _fault(parsed, "license", problem, hint, level="warning")
    metadata = fields.get("metadata", {})
    if metadata != "" and not isinstance(metadata, dict):
        problem, hint = (
            "'metadata' must map strings to strings",
            "Write 'key: value' below it.",
        )
        yield _fault(parsed, "metadata", problem, hint, level="error")
    elif metadata and (
        odd := next((k for k, v in metadata.items() if type(v) is not str), None)
    ):
        kind = "a list" if isinstance(metadata[odd], list) else "a map"
        problem = (
            f"'metadata' must map strings to strings: {one_line(odd, 60)!r} is {kind}"
        )
        yield _fault(
            parsed,
            "metadata",
            problem,
            "Write it as one quoted string.",
            level="warning",
        )
    tools = fields.get("allowed-tools", "")
    if not isinstance(tools, str) and not (
        isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)
    ):
        problem = "'allowed-tools' must be a string or a list of strings"
        hint = "Write the tools on one line, separated by spaces."
        yield _fault(parsed, "allowed-tools", problem, hint, level="warning")


def _unknown_keys(parsed: Parsed) -> Iterator[Fault]:
    for key in parsed.fields:
        if key not in _KNOWN_KEYS and key != USERS_ONLY:  # which tests heed
            name = one_line(key, 60)
            problem = (
                f"{name!r} is not in the Agent Skills"
                f" specification{guess(name, _KNOWN_KEYS)}"
            )
            hint = "Agents may ignore it; 'metadata' has room for keys of your own."
            if key in _KEYS_OF_CLAUDE_CODE:
                hint = "Claude Code reads it; other agents may ignore it."
            yield _fault(
                parsed, key, problem, hint, level="warning", code="skill-unknown-key"
            )
