"""A skill's cases on disk: read, split into learning and held-out, written back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .._util import grouped
from .._util.files import read_file
from .._util.json_forms import cases_error
from .._util.texts import digest, one_line
from ..checks import CheckedCase, rubric_of, runnable_in, why_agent
from ..errors import CasesError, SettingsError
from ..skills.case import NO_NEEDS, Case
from ..skills.folder import CASES_NAME
from ..skills.suites.beside import is_entry_beside
from ..skills.suites.reading import read_suites
from ..trials.trial import lift_sample_of, start_files
from .case_writing import HOLDOUT, LEARN, UsableCase

_NO_AGENT: Final = "its students are asked plain questions"
_NEEDS: Final = "teaching gives agents no packages, paths or network of their own"
_TWO_HELD_OUT: Final = 6  # from this many cases on, at least two are held out


@dataclass(frozen=True)
class CaseFile:
    """The file's data and its cases; empty if there is no file."""

    file: Path | None = None
    data: Any = None
    cases: tuple[UsableCase, ...] = ()

    @property
    def can_grow(self) -> bool:
        """Cases can't be added to evals.json, which has another format."""
        return self.file is None or self.file.name == CASES_NAME


def read_case_file(folder: Path, *, agents: bool = False) -> CaseFile:
    """The cases of a skill; CasesError if its file can't be read,
    or they are for others.

    ``agents``: whether all students are agents.
    """
    suite = read_suites(folder).cases
    if suite is None or (suite.path.name != CASES_NAME and not suite.has_cases):
        return CaseFile()
    file, loaded = suite.path, runnable_in(suite) if suite.has_cases else []
    unfit = _unfit_for_agents(loaded) if agents else _only_for_agents(loaded)
    if problems := [(case.place, problem) for case, problem in unfit]:
        raise cases_error(file, problems)
    data = json.loads(read_file(file).decode("utf-8-sig"))
    return CaseFile(
        file, data, tuple(UsableCase({}, case, checks) for case, checks in loaded)
    )


def _only_for_agents(cases: Iterable[CheckedCase]) -> Iterator[tuple[Case, str]]:
    for case, checks in cases:
        if reason := why_agent(case, checks):
            yield case, f"{reason}; {_NO_AGENT}"


def _unfit_for_agents(cases: Iterable[CheckedCase]) -> Iterator[tuple[Case, str]]:
    for case, _ in cases:
        if case.sandbox != NO_NEEDS:
            yield case, _NEEDS
            continue
        try:
            start_files(case)
        except ValueError as error:
            yield case, str(error)


def require_judge(cases: Iterable[UsableCase], judge: str | None) -> None:
    """SettingsError if a case needs a judge and there is none: before the first
    call.
    """
    judged = [
        usable.case.id
        for usable in cases
        if rubric_of(usable.checks).texts and not usable.case.skip
    ]
    if judged and not judge:
        problem = f"there are cases that need a judge ({one_line(judged[0], 60)})"
        raise SettingsError("judge", problem, "Name one, for example sonnet.")


def require_growable(cases: CaseFile) -> None:
    if not cases.can_grow and cases.file:
        raise CasesError(
            cases.file,
            "cases can only be added to skill_meta.json",
            f"Move these into a {CASES_NAME} beside SKILL.md first.",
        )


def ids_held_out(cases: Iterable[Case], share: float) -> frozenset[str]:
    """The ids of the held-out cases: as tagged in the file, the others by their share.

    Cases of a group, or that ask the same, stay together: what is learned from one
    helps with the other. Only ids, groups and tags decide, so the same cases are
    always split the same way.
    """
    groups = grouped(sorted(cases, key=lambda case: case.id), lift_sample_of)
    held, untagged = set[str](), dict[str, list[Case]]()
    for group in groups.values():
        tags = {tag for case in group for tag in case.tags}
        if not tags & {LEARN, HOLDOUT}:
            untagged[group[0].id] = group
        elif LEARN not in tags:
            held |= {case.id for case in group}
        else:
            held |= {
                case.id
                for case in group
                if HOLDOUT in case.tags and LEARN not in case.tags
            }
    kinds: dict[str, list[str]] = {}  # of each, the same share is held out
    for name, group in untagged.items():
        kinds.setdefault(group[0].tags[0] if group[0].tags else "", []).append(name)
    placed = sorted(
        ((place + 0.5) / len(names), digest(name), name)
        for names in kinds.values()
        for place, name in enumerate(sorted(names, key=digest))
    )
    number = round(share * len(placed))
    if 0 < share < 1:
        number = max(number, 2 if len(placed) >= _TWO_HELD_OUT else 1)
        number = max(0, min(number, len(placed) - 2))
    return frozenset(
        held | {case.id for *_, name in placed[:number] for case in untagged[name]}
    )


def split_cases(
    cases: Sequence[UsableCase], share: float
) -> tuple[list[UsableCase], list[UsableCase]]:
    """The learning and the held-out cases."""
    held = ids_held_out([usable.case for usable in cases], share)
    learning = [usable for usable in cases if usable.case.id not in held]
    return learning, [usable for usable in cases if usable.case.id in held]


def case_file_text(
    old: CaseFile,
    new: Sequence[UsableCase],
    held: frozenset[str],
    metadata: Mapping[str, Any],
) -> str:
    """The file with the new cases and the metadata,
    every case tagged as learn or holdout.
    """
    data = old.data if isinstance(old.data, dict) else {}
    key, unused = ("tests", "cases") if data.get("tests") else ("cases", "tests")
    data = {name: value for name, value in data.items() if name != unused}
    written = old.data if isinstance(old.data, list) else data.get(key) or []
    old_cases = iter(old.cases)  # without the triggers that may stand among them
    entries = [
        (
            case
            if is_entry_beside(case)
            else {
                **case,
                "tags": _tagged(
                    case.get("tags") or [], next(old_cases).case.id in held
                ),
            }
        )
        for case in written
    ]
    for usable in new:
        tags = _tagged(usable.data["tags"], usable.case.id in held)
        entries.append({**usable.data, "tags": tags})
    before = data.get("metadata")
    about = {**(before if isinstance(before, dict) else {}), **metadata}
    content = {**data, **({"metadata": about} if about else {}), key: entries}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _tagged(tags: Sequence[str], is_held: bool) -> list[str]:
    if LEARN in tags or HOLDOUT in tags:
        return list(tags)
    return [*tags, HOLDOUT if is_held else LEARN]
