"""Where a skill is saved: never over anything that is not kept,
or that was changed meanwhile.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Final

from .._util.files import exchange, read_file, reason_of, replace_file, why_unwritable
from .._util.secrets import masked
from .._util.texts import slug
from ..errors import InputError, Setting, SettingsError, shown
from ..reports.terminal.progress_screen import as_sentence
from ..skills.folder import CASES_NAME, is_skill
from ..skills.skill import LONGEST_NAME
from ..trials.arm import SKILL
from .case_file import CaseFile, case_file_text
from .case_writing import HOLDOUT, UsableCase
from .drafts import Draft
from .outcome import Attempt, Taught
from .teach_run import TeachRun

_FORMAT_VERSION: Final = "1.0"  # of the format, as upskill writes it
_ELSEWHERE: Final = ("Choose another folder with ", Setting("output"), ".")


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
            (
                "Choose another name, or add ",
                Setting("force"),
                " (the old one is kept).",
            ),
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


def save_skill(
    draft: Draft | None,
    cases: str | None,
    folder: Path,
    keep_before: Callable[[Path], Path],
    old: CaseFile,
) -> Path | None:
    """Write a version and its cases; None is left as it is.
    Return where the old skill is kept.

    InputError if that can't be done, or if somebody changed the
    skill or its cases meanwhile.
    """
    folder = folder.resolve()  # a link to a skill stays a link
    base = draft.base_folder if draft else folder
    try:
        if base and base.resolve() == folder:
            _require_unchanged(draft, old if cases is not None else CaseFile())
        kept = keep_before(folder) if any(folder.glob("*")) else None
        if base and base.resolve() == folder:
            if draft:
                draft.write(folder)
            if cases is not None:
                replace_file(folder / CASES_NAME, cases)
            return kept
        assert draft, "a skill without a folder is a new one"
        with suppress(FileExistsError):  # a file: an error below
            folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{folder.name}-", dir=folder.parent
        ) as temporary:
            new = Path(temporary, "new")
            draft.write(new)
            if cases is not None:
                replace_file(new / CASES_NAME, cases)
            exchange(new, folder, Path(temporary, "old"))
    except OSError as error:
        problem = f"can't be written: {reason_of(error)}"
        raise InputError(folder, problem, "Check the folder.") from None
    return kept


def _require_unchanged(draft: Draft | None, old: CaseFile) -> None:
    """InputError if the SKILL.md or the cases are not what this run began with."""
    if draft and draft.base and read_file(draft.base.file) != draft.source.encode():
        raise _changed(draft.base.file)
    if old.file:
        try:
            data = json.loads(read_file(old.file).decode("utf-8-sig"))
        except ValueError:
            data = None
        if data != old.data:
            raise _changed(old.file)


def _changed(file: Path) -> InputError:
    return InputError(file, "it was changed while this ran", "Run it again.")


def save_taught(
    run: TeachRun,
    taught: Taught,
    old: CaseFile,
    new: Sequence[UsableCase],
    folder: Path,
    *,
    with_cases: bool = True,
) -> Taught:
    """The chosen version in its folder, with its cases; the previous skill is kept."""
    best, cases = taught.best, None
    if with_cases:
        held = frozenset(case for case, part in taught.cases.items() if part == HOLDOUT)
        cases = case_file_text(
            old, new, held, _metadata(taught, run) if best.is_new else {}
        )
    taught = with_costs(taught, run)
    draft = best.draft if best.is_new else None
    try:
        kept = save_skill(draft, cases, folder, run.versions.keep_before, old)
    except InputError as error:
        return replace(taught, unsaved=_why_unsaved(error, best, cases, run))
    return replace(taught, folder=folder, kept=kept)


def with_costs(taught: Taught, run: TeachRun) -> Taught:
    cost, seconds = run.models.spent(), round(monotonic() - run.clock, 1)
    sentences = (*taught.sentences, *map(as_sentence, run.final_notes()))
    succeeded = taught.succeeded and not run.models.not_kept
    return replace(
        taught, cost=cost, seconds=seconds, sentences=sentences, succeeded=succeeded
    )


def _metadata(taught: Taught, run: TeachRun) -> dict[str, Any]:
    """As upskill writes it."""
    results = taught.best.all_cases
    rows = results.rows if results else []
    rates = [rate for row in rows if (rate := row.arm(SKILL).rate) is not None]
    return {
        "version": _FORMAT_VERSION,
        "generated_by": run.models.teacher,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source_task": masked(run.settings.task),
        "test_pass_rate": round(sum(rates) / len(rates), 4) if rates else None,
    }


def _why_unsaved(
    error: InputError, best: Attempt, cases: str | None, run: TeachRun
) -> str:
    """Why the skill was not saved, and where its best version is."""
    text = f"Not saved: {error.where}: {error.problem}."
    with suppress(InputError, OSError):
        kept = run.versions.keep(best, cases)
        text += f"\nThe best version is kept in {shown(kept)}"
    again = "the same command saves it without asking anything again"
    return f"{text}\nOnce that is fixed, {again}."
