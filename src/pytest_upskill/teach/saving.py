"""Save a skill and its cases; replace what is there only if asked to."""

import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .._util.files import exchange, reason_of, replace_file, why_unwritable
from .._util.texts import slug
from ..errors import InputError, Setting, SettingsError, shown
from ..skills.folder import CASES_NAME, is_skill, skill_file
from ..skills.skill import LONGEST_NAME, load_skill
from .case_file import CaseFile, case_file_text
from .drafts import Draft
from .outcome import Taught
from .secrets import masked
from .state import TeachState

_ELSEWHERE: Final = ("Choose another folder with ", Setting("output"), ".")
_VERSION: Final = "1.0"  # of the format, as upskill writes it


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
    number, found = 2, name
    while os.path.lexists(parent / found):
        found = f"{name[: LONGEST_NAME - 4]}-{number}"
        number += 1
    return found


def metadata_of(taught: Taught, task: str, teacher: str) -> dict[str, Any]:
    """As upskill writes it."""
    whole = taught.together
    known = [row.arm("skill").rate for row in whole.summaries] if whole else []
    rates = [rate for rate in known if rate is not None]
    return {
        "version": _VERSION,
        "generated_by": teacher,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source_task": masked(task),
        "test_pass_rate": round(sum(rates) / len(rates), 4) if rates else None,
    }


def save(draft: Draft, cases: str | None, folder: Path, state: TeachState) -> Path | None:
    """Write the skill and its cases; return where the previous skill is kept, if any."""
    folder = folder.resolve()  # a link to a skill stays a link
    try:
        kept = state.keep_before(folder) if any(folder.glob("*")) else None
        if draft.base and draft.base.resolve() == folder.resolve():
            if not _is_there(draft, folder):
                draft.write(folder)
            if cases is not None:
                replace_file(folder / CASES_NAME, cases)
            return kept
        with suppress(FileExistsError):  # a file, which is told below
            folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as made:
            new = Path(made, "new")
            draft.write(new)
            if cases is not None:
                replace_file(new / CASES_NAME, cases)
            exchange(new, folder, Path(made, "old"))
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(folder, problem, "Check the folder.") from None
    return kept


def _is_there(draft: Draft, folder: Path) -> bool:
    """Whether the folder has this version already: then not even its frontmatter is rewritten."""
    now = load_skill(skill_file(folder))
    same = (now.body, now.description) == (draft.body, draft.description)
    return same and not draft.files


def saved_cases(old: CaseFile, taught: Taught, metadata: dict[str, Any]) -> str:
    new = [one for one in taught.cases if one.data]
    return case_file_text(old, new, taught.held, metadata)
