"""A version of a skill as a teacher writes it: asked for, read, linted,
written to a folder.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from .._util.files import read_file, replace_file
from .._util.loaded_names import is_loaded_by_name
from .._util.secrets import masked
from .._util.texts import counted, one_line, slug
from ..errors import spelled
from ..lint.skill_rules import lint_skill_file
from ..skills.folder import installed_files, skill_file
from ..skills.frontmatter import YAML_ERRORS, parse, read_yaml, with_field
from ..skills.skill import (
    LONGEST_NAME,
    Skill,
    estimated_tokens,
    is_valid_name,
    load_skill,
)
from .prompts import draft_form, joined, teacher_role
from .replies import DRAFT_SCHEMA, DraftForm, NotUsable, Request, read_reply

_FOLDERS: Final = ("references", "scripts", "assets")
_GOOD_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
# What a draft takes over from the skill that it improves.
_NOT_BY_TEACHERS: Final = frozenset(
    {"skill-metadata", "skill-unknown-key", "skill-link"}
)
_MOST_FILES: Final = 20
_MOST_FILE_CHARS: Final = 100_000
_MOST_DEPTH: Final = 3
_FRONTMATTER: Final = re.compile(
    r"^---[ \t]*\n(.*?)\n---[ \t]*\n?(.*)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Draft:
    """A version of a skill; ``base`` is the skill that it improves,
    ``source`` its SKILL.md.
    """

    name: str
    description: str
    body: str
    files: tuple[tuple[str, str], ...] = ()
    base: Skill | None = None
    source: str = ""

    @property
    def text(self) -> str:
        """The whole SKILL.md: that of the base with what differs, or a new one."""
        fields, text = parse(self.source).fields, self._rewritten
        if text is not None:
            return text
        head = {**fields, "name": self.name, "description": self.description}
        first = {key: head.pop(key) for key in ("name", "description")}
        front = yaml.safe_dump(
            {**first, **head}, sort_keys=False, allow_unicode=True, width=10**6
        )
        return f"---\n{front}---\n\n{self.body}\n"

    @property
    def _rewritten(self) -> str | None:
        """The SKILL.md of the base, byte by byte but for what differs;
        None if that can't be.
        """
        if self.base is None or not parse(self.source).has_frontmatter:
            return None
        text: str | None = self.source
        for key in ("name", "description"):
            value: str = getattr(self, key)
            if text is not None and value != getattr(self.base, key):
                text = with_field(text, key, value)
        if text is None or self.body == self.base.body:
            return text
        head = text.split("\n")[: parse(text).body_line - 1]
        return "\n".join([*head, "", self.body, ""])

    @property
    def tokens(self) -> int:
        return estimated_tokens(self.body)

    @property
    def folder_name(self) -> str:
        return valid_name(self.name)

    @property
    def base_folder(self) -> Path | None:
        return self.base.file.parent if self.base else None

    def write(self, folder: Path) -> Path:
        """Write it to a folder, with the unchanged files of its base."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.base_folder and self.base_folder.resolve() != folder.resolve():
            for name, file in installed_files(self.base_folder).items():  # no cases
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, folder / name)
        for path, text in self.files:
            replace_file(folder / path, text)
        file = skill_file(folder)
        replace_file(file, self.text.encode())  # with its own line ends
        return file


def draft_of(skill: Skill) -> Draft:
    """An existing skill as the first version."""
    source = read_file(skill.file).decode("utf-8", "replace")
    return Draft(skill.name, skill.description, skill.body, (), skill, source)


def valid_name(name: str) -> str:
    """A name that a skill and its folder may have."""
    return name if is_valid_name(name) else slug(name, LONGEST_NAME) or "my-skill"


@dataclass(frozen=True)
class DraftSpec:
    """What all versions share: the size, a base, a name if it is set."""

    most_tokens: int
    fallback_name: str
    base: Draft | None = None
    name: str | None = None


def draft_request(
    parts: Sequence[str], spec: DraftSpec, *, agents: bool
) -> Request[Draft]:
    """Asks for a version that is a valid skill; ``parts`` say what for."""
    prompt = joined([*parts, draft_form(spec.most_tokens, agents=agents)])
    return Request(
        teacher_role(agents=agents),
        prompt,
        DRAFT_SCHEMA,
        lambda text: read_draft(text, spec),
    )


def read_draft(text: str, spec: DraftSpec) -> Draft:
    form = form_of(text)
    description, body = " ".join(form.description.split()), form.body.strip()
    name = spec.name or slug(form.name, LONGEST_NAME) or spec.fallback_name
    files = tuple((file.path.strip(), masked(file.text)) for file in form.files)
    if problems := list(_file_problems(files)):
        raise NotUsable(problems)
    base, source = (spec.base.base, spec.base.source) if spec.base else (None, "")
    draft = Draft(name, masked(description), masked(body), files, base, source)
    errors, advice = lint_draft(draft)
    if draft.tokens > spec.most_tokens:
        advice.append(
            f"the body has about {counted(draft.tokens, 'token')} (limit"
            f" {spec.most_tokens:,}): say the same in fewer words, and leave out what"
            " every model knows"
        )
    if errors or advice:
        raise NotUsable([*errors, *advice], None if errors else draft)
    return draft


@contextmanager
def loaded(draft: Draft, folder: Path) -> Iterator[Skill]:
    """The draft as a skill to measure, in a temporary folder below this one."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder) as temporary:
        yield load_skill(draft.write(Path(temporary, draft.folder_name)))


def form_of(text: str) -> DraftForm:
    """The form; or a whole SKILL.md, which some models write
    whatever they are asked for.
    """
    try:
        form = read_reply(text, DraftForm)
    except NotUsable:
        if not (match := _FRONTMATTER.search(text)):
            raise
        body = re.sub(r"\n```\s*\Z", "", match[2])  # the end of a fence around it
        form = DraftForm(description="", body=f"---\n{match[1]}\n---\n{body}")
    if form.body.lstrip().startswith("---") and (
        match := _FRONTMATTER.match(form.body.lstrip())
    ):
        fields = _yaml_texts(match[1])
        return DraftForm(
            name=form.name or fields.get("name", ""),
            description=form.description or fields.get("description", ""),
            body=match[2],
            files=form.files,
        )
    return form


def _yaml_texts(text: str) -> dict[str, str]:
    try:
        data = read_yaml(text, only_texts=True)[1]
    except YAML_ERRORS:
        return {}
    pairs = data.items() if isinstance(data, dict) else ()
    return {str(key): value for key, value in pairs if isinstance(value, str)}


def _file_problems(files: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if len(files) > _MOST_FILES:
        yield f"{len(files)} files (limit {_MOST_FILES})"
    earlier = set[str]()
    for path, text in files[:_MOST_FILES]:
        name = one_line(path, 80)
        parts = path.split("/")
        if parts[0] not in _FOLDERS or not 2 <= len(parts) <= _MOST_DEPTH:
            yield f"the file {name!r} must be in references/, scripts/ or assets/"
        elif not all(_GOOD_PART.fullmatch(part) for part in parts):
            yield f"the path {name!r} may have only letters, digits and . _ -"
        elif loaded := next(filter(is_loaded_by_name, parts), ""):
            yield (
                f"the file {name!r}: {loaded!r} is loaded by its name, by a tool;"
                " rename it"
            )
        elif path.lower() in earlier:
            yield f"the file {name!r} is given twice"
        if len(text) > _MOST_FILE_CHARS:
            yield (
                f"the file {name!r} has {len(text):,} characters (limit"
                f" {_MOST_FILE_CHARS:,})"
            )
        earlier.add(path.lower())


def lint_draft(draft: Draft) -> tuple[list[str], list[str]]:
    """Errors and warnings of a version, but for what it takes over from the skill."""
    with tempfile.TemporaryDirectory() as folder:
        findings = list(lint_skill_file(draft.write(Path(folder, draft.folder_name))))
    problems: dict[str, list[str]] = {"error": [], "warning": []}
    for finding in findings:
        if finding.code in _NOT_BY_TEACHERS:
            continue
        hint = f". {spelled(finding.hint)}" if finding.hint else ""
        problems[finding.level].append(one_line(f"{finding.message}{hint}", 300))
    return problems["error"], problems["warning"]


def new_errors(draft: Draft, original: Draft) -> list[str]:
    """What is wrong with a version that was not wrong with the skill before."""
    earlier = lint_draft(original)[0]
    return [error for error in lint_draft(draft)[0] if error not in earlier]
