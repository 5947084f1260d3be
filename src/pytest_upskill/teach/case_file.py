"""A skill's cases on disk: read, split into learning and held-out, written back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._util.texts import digest
from ..checks import load_checked_cases
from ..errors import CasesError
from ..skills.skill import CASES_NAME, find_cases
from .case_writing import HOLDOUT, LEARN, GoodCase


@dataclass(frozen=True)
class CaseFile:
    """What stands in the file, and its cases; nothing where there is no file."""

    file: Path | None = None
    data: Any = None
    cases: tuple[GoodCase, ...] = ()

    @property
    def can_grow(self) -> bool:
        """Whether cases can be added: not to evals.json, which has another form."""
        return self.file is None or self.file.name == CASES_NAME


def read_case_file(folder: Path) -> CaseFile:
    """The cases of a skill; CasesError if there is a file that can't be read."""
    file = find_cases(folder)
    if file is None:
        return CaseFile()
    loaded = load_checked_cases(file, folder=folder)
    data = json.loads(file.read_bytes().decode("utf-8-sig"))
    return CaseFile(file, data, tuple(GoodCase({}, case, checks) for case, checks in loaded))


def require_growable(cases: CaseFile) -> None:
    if not cases.can_grow and cases.file:
        raise CasesError(
            cases.file,
            "cases can only be added to skill_meta.json",
            f"Move these into a {CASES_NAME} beside SKILL.md first.",
        )


def split_of(cases: Sequence[GoodCase]) -> tuple[set[str], set[str]]:
    """The ids that are tagged for learning, and those that are held out, in the file."""
    learn = {one.case.id for one in cases if LEARN in one.case.tags}
    return learn, {one.case.id for one in cases if HOLDOUT in one.case.tags} - learn


def case_file_text(
    old: CaseFile,
    new: Sequence[GoodCase],
    held: set[str] | frozenset[str],
    metadata: Mapping[str, Any],
) -> str:
    """The file in the form that carries metadata, all cases tagged by what they are for."""
    data = old.data if isinstance(old.data, dict) else {}
    key = "cases" if "cases" in data else "tests"
    written = old.data if isinstance(old.data, list) else data.get(key) or []
    kept = [
        {**case, "tags": _tagged(case.get("tags") or [], one.case.id in held)}
        for case, one in zip(written, old.cases, strict=True)
    ]
    added = [{**one.data, "tags": _tagged(one.data["tags"], one.case.id in held)} for one in new]
    before = data.get("metadata")
    known = before if isinstance(before, dict) else {}
    about = {**known, **metadata}
    head = {"metadata": about} if about else {}
    whole = {**data, **head, key: [*kept, *added]}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _tagged(tags: Sequence[str], is_held: bool) -> list[str]:
    if LEARN in tags or HOLDOUT in tags:
        return list(tags)
    return [*tags, HOLDOUT if is_held else LEARN]


_FEW = 6  # from so many cases on, two or more are held out


def held_out(cases: Sequence[tuple[str, tuple[str, ...]]], share: float) -> set[str]:
    """The ids of those held out, of ids with their tags: every kind of question, by its share.

    Only ids and tags decide, so that the same cases are always split the same way.
    """
    wanted = round(share * len(cases))
    if 0 < share < 1:
        wanted = max(wanted, 2 if len(cases) >= _FEW else 1)
        wanted = min(wanted, len(cases) - 2)
    kinds: dict[str, list[str]] = {}
    for case, tags in cases:
        kinds.setdefault(tags[0] if tags else "", []).append(case)
    placed = [
        ((number + 0.5) / len(group), digest(case), case)
        for group in kinds.values()
        for number, case in enumerate(sorted(group, key=digest))
    ]
    return {case for _, _, case in sorted(placed)[: max(0, wanted)]}
