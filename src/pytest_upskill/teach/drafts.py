"""A version of a skill as a teacher writes it: read, linted, written to a folder, saved."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from .._util.files import exchange, reason_of, replace_file, why_unwritable
from .._util.small_yaml import YAML_ERRORS, read_yaml
from .._util.texts import counted, one_line, slug
from ..errors import InputError, Setting, SettingsError, shown, spelled
from ..lint.skill_rules import lint_skill_file
from ..skills.folder import CASES_NAME, installed_files, is_skill, skill_file
from ..skills.skill import LONGEST_NAME, Skill, estimated_tokens, is_valid_name, load_skill
from .prompts import TEACHER, TEACHER_OF_AGENTS
from .replies import DRAFT_SCHEMA, DraftForm, NotUsable, TeachRequest, ask_for, read_reply
from .secrets import masked
from .teach_models import TeachModels

_FOLDERS: Final = ("references", "scripts", "assets")
_GOOD_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
# What a draft takes over from the skill that it improves.
_NOT_BY_TEACHERS: Final = frozenset({"skill-metadata", "skill-unknown-key", "skill-link"})
_MOST_FILES: Final = 20
_MOST_FILE_CHARS: Final = 100_000
_MOST_DEPTH: Final = 3
_FRONTMATTER: Final = re.compile(r"^---[ \t]*\n(.*?)\n---[ \t]*\n?(.*)", re.DOTALL | re.MULTILINE)

_ELSEWHERE: Final = ("Choose another folder with ", Setting("output"), ".")


@dataclass(frozen=True)
class Draft:
    """A version of a skill; ``base`` is the folder of the one that it improves."""

    name: str
    description: str
    body: str
    files: tuple[tuple[str, str], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the frontmatter, besides those two
    base: Path | None = None

    @property
    def text(self) -> str:
        """The whole SKILL.md."""
        head = {"name": self.name, "description": self.description, **self.fields}
        front = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1_000_000)
        return f"---\n{front}---\n\n{self.body}\n"

    @property
    def tokens(self) -> int:
        return estimated_tokens(self.body)

    def write(self, folder: Path) -> Path:
        """Write it to a folder, with the unchanged files of its base."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.base and self.base.resolve() != folder.resolve():
            copy_taught(self.base, folder)
        for path, text in self.files:
            replace_file(folder / path, text)
        file = skill_file(folder)
        replace_file(file, self.text)
        return file


def copy_taught(base: Path, folder: Path) -> None:
    """Copy the files that an agent gets: no cases, no hidden files."""
    for name, file in installed_files(base).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, folder / name)


def draft_of(skill: Skill, fields: Mapping[str, Any]) -> Draft:
    """An existing skill as the first version; its name becomes that of a folder."""
    name = skill.name if is_valid_name(skill.name) else slug(skill.name, LONGEST_NAME)
    fields = {key: value for key, value in fields.items() if key not in ("name", "description")}
    return Draft(name or "my-skill", skill.description, skill.body, (), fields, skill.file.parent)


@dataclass(frozen=True)
class DraftSpec:
    """What all versions share: the size, a folder to try them in, a base, a name if it is set."""

    most_tokens: int
    scratch: Path
    fallback_name: str
    base: Draft | None = None
    name: str | None = None


def ask_for_draft(models: TeachModels, prompt: str, spec: DraftSpec, session: int) -> Draft:
    """A version by the teacher; UnusableError if it is still no valid skill after one repair."""
    system = TEACHER_OF_AGENTS if models.with_agents else TEACHER
    request = TeachRequest(models.teacher, system, prompt, DRAFT_SCHEMA, session)
    return ask_for(models, request, lambda text: read_draft(text, spec))


def read_draft(text: str, spec: DraftSpec) -> Draft:
    form = form_of(text)
    description, body = " ".join(form.description.split()), form.body.strip()
    name = spec.name or slug(form.name, LONGEST_NAME) or spec.fallback_name
    files = tuple((file.path.strip(), masked(file.text)) for file in form.files)
    if problems := list(_file_problems(files)):
        raise NotUsable(problems)
    base = spec.base
    draft = Draft(
        name,
        masked(description),
        masked(body),
        files,
        base.fields if base else {},
        base.base if base else None,
    )
    errors, advice = _lint(draft, spec)
    if errors or advice:
        raise NotUsable([*errors, *advice], None if errors else draft)
    return draft


@contextmanager
def loaded(draft: Draft, scratch: Path) -> Iterator[Skill]:
    """The draft as a skill to measure, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=scratch) as folder:
        yield load_skill(draft.write(Path(folder, draft.name)))


def form_of(text: str) -> DraftForm:
    """The form; or a whole SKILL.md, which some models write whatever they are asked for."""
    try:
        form = read_reply(text, DraftForm)
    except NotUsable:
        if not (match := _FRONTMATTER.search(text)):
            raise
        body = re.sub(r"\n```\s*\Z", "", match[2])  # the end of a fence around it
        form = DraftForm(description="", body=f"---\n{match[1]}\n---\n{body}")
    if form.body.lstrip().startswith("---") and (match := _FRONTMATTER.match(form.body.lstrip())):
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
        elif path.lower() in earlier:
            yield f"the file {name!r} is given twice"
        if len(text) > _MOST_FILE_CHARS:
            yield f"the file {name!r} has {len(text):,} characters (limit {_MOST_FILE_CHARS:,})"
        earlier.add(path.lower())


def _lint(draft: Draft, spec: DraftSpec) -> tuple[list[str], list[str]]:
    """Errors, and warnings, which are only advice; no faults that a teacher can't mend."""
    errors, advice = lint_draft(draft, spec.scratch)
    if draft.tokens > spec.most_tokens:
        advice.append(
            f"the body has about {counted(draft.tokens, 'token')} (limit {spec.most_tokens:,}): "
            "say the same in fewer words, and leave out what every model knows"
        )
    return errors, advice


def lint_draft(draft: Draft, scratch: Path) -> tuple[list[str], list[str]]:
    """Errors and warnings of a version, but for what it takes over from the skill."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=scratch) as folder:
        findings = list(lint_skill_file(draft.write(Path(folder, draft.name))))
    problems: dict[str, list[str]] = {"error": [], "warning": []}
    for finding in findings:
        if finding.code in _NOT_BY_TEACHERS:
            continue
        hint = f". {spelled(finding.hint)}" if finding.hint else ""
        problems[finding.level].append(one_line(f"{finding.message}{hint}", 300))
    return problems["error"], problems["warning"]


def checked_name(setting: str, name: str) -> str:
    """The name if it is valid; SettingsError with a valid one if not."""
    if name != slug(name, LONGEST_NAME):
        raise SettingsError(
            setting,
            "a skill's name has only lowercase letters, digits and single hyphens",
            f"For example: {slug(name, LONGEST_NAME) or 'my-skill'}",
            value=name,
        )
    return name


def require_free(setting: str, folder: Path, *, force: bool) -> None:
    """SettingsError unless the folder is free, or a skill that may be replaced."""
    if not folder.exists():
        return
    if folder.is_dir() and (is_skill(folder) or not any(folder.iterdir())):
        if force or not is_skill(folder):
            return
        raise SettingsError(
            setting,
            "a skill already exists here",
            ("Choose another name, or add ", Setting("force"), " (the old one is kept)."),
            value=shown(folder),
        )
    problem, hint = "this exists and is not a skill", "Choose another folder."
    raise SettingsError(setting, problem, hint, value=shown(folder))


def require_writable(folder: Path, setting: str = "") -> None:
    """Raise if a folder can't be written: found before anything is paid for."""
    if problem := why_unwritable(folder, folder=True):
        if setting:
            raise SettingsError(setting, problem, _ELSEWHERE, value=shown(folder))
        raise InputError(folder, problem, _ELSEWHERE)


def free_name(parent: Path, name: str) -> str:
    """The name, with a number if it is taken."""
    number, free = 2, name
    while os.path.lexists(parent / free):
        free = f"{name[: LONGEST_NAME - 4]}-{number}"
        number += 1
    return free


def save_skill(
    draft: Draft, cases: str | None, folder: Path, keep_before: Callable[[Path], Path]
) -> Path | None:
    """Write the skill and its cases; return where the previous skill is kept, if any."""
    folder = folder.resolve()  # a link to a skill stays a link
    try:
        kept = keep_before(folder) if any(folder.glob("*")) else None
        if draft.base and draft.base.resolve() == folder.resolve():
            if not _is_unchanged(draft, folder):
                draft.write(folder)
            if cases is not None:
                replace_file(folder / CASES_NAME, cases)
            return kept
        with suppress(FileExistsError):  # a file: an error below
            folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
            new = Path(temporary, "new")
            draft.write(new)
            if cases is not None:
                replace_file(new / CASES_NAME, cases)
            exchange(new, folder, Path(temporary, "old"))
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(folder, problem, "Check the folder.") from None
    return kept


def _is_unchanged(draft: Draft, folder: Path) -> bool:
    """Whether the folder has this version already: then not even its frontmatter is rewritten."""
    now = load_skill(skill_file(folder))
    same = (now.body, now.description) == (draft.body, draft.description)
    return same and not draft.files
