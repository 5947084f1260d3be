"""A skill's cases on disk: read, split into learning and held-out, written back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .._util.files import read_file
from .._util.json_forms import cases_error
from .._util.texts import digest, one_line
from ..checks import CheckedCase, load_checked_cases, rubric_of, why_agent
from ..errors import CasesError, SettingsError
from ..skills.case import Case
from ..skills.case_loading import find_cases, has_cases
from ..skills.evals import is_trigger
from ..skills.folder import CASES_NAME
from ..trials.outfit import start_files
from ..trials.trial import sample_of
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
    """The cases of a skill; CasesError if its file can't be read, or they are for others.

    ``agents``: whether all students are agents.
    """
    file = find_cases(folder)
    if file is None or (file.name != CASES_NAME and not has_cases(file)):
        return CaseFile()
    loaded = load_checked_cases(file, folder=folder).whole() if has_cases(file) else []
    found = _why_not_agents(loaded) if agents else _for_agents(loaded)
    if problems := [(case.place, why) for case, why in found]:
        raise cases_error(file, problems)
    data = json.loads(read_file(file).decode("utf-8-sig"))
    return CaseFile(file, data, tuple(UsableCase({}, case, checks) for case, checks in loaded))


def _for_agents(cases: Iterable[CheckedCase]) -> Iterator[tuple[Case, str]]:
    for case, checks in cases:
        if why := why_agent(case, checks):
            yield case, f"{why}; {_NO_AGENT}"


def _why_not_agents(cases: Iterable[CheckedCase]) -> Iterator[tuple[Case, str]]:
    for case, _ in cases:
        if any(case.sandbox):
            yield case, _NEEDS
            continue
        try:
            start_files(case)
        except ValueError as error:
            yield case, str(error)


def require_judge(cases: Iterable[UsableCase], judge: str | None) -> None:
    """SettingsError if a case can't be graded for want of a judge: found before the first call."""
    judged = [one.case.id for one in cases if rubric_of(one.checks).texts and not one.case.skip]
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


def split_of(cases: Sequence[UsableCase]) -> tuple[set[str], set[str]]:
    """The ids that are tagged for learning, and those that are tagged as held out."""
    return _tagged_in([one.case for one in cases])


def _tagged_in(cases: Iterable[Case]) -> tuple[set[str], set[str]]:
    tags = {case.id: case.tags for case in cases}
    learn = {name for name, own in tags.items() if LEARN in own}
    return learn, {name for name, own in tags.items() if HOLDOUT in own} - learn


def ids_held_out(cases: Iterable[Case], share: float) -> frozenset[str]:
    """The ids of the held-out cases: as tagged in the file, the others by their share.

    Cases that ask the same stay together: what is learned from one tells of the other.
    """
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(sample_of(case), []).append(case)
    held, others = set[str](), dict[str, list[Case]]()
    for own in groups.values():
        learn, rest = _tagged_in(own)
        held |= rest if learn else {case.id for case in own if rest}
        if not learn and not rest:
            others[min(case.id for case in own)] = own
    tags = [(case.id, case.tags) for own in others.values() for case in own if case.id in others]
    chosen = held_out(tags, share)
    return frozenset(held | {case.id for name in chosen for case in others[name]})


def held_out(cases: Sequence[tuple[str, tuple[str, ...]]], share: float) -> set[str]:
    """The ids to hold out, given ids and tags: the same share of every kind of question.

    Only ids and tags decide, so the same cases are always split the same way.
    """
    wanted = round(share * len(cases))
    if 0 < share < 1:
        wanted = max(wanted, 2 if len(cases) >= _TWO_HELD_OUT else 1)
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


def case_file_text(
    old: CaseFile,
    new: Sequence[UsableCase],
    held: set[str] | frozenset[str],
    metadata: Mapping[str, Any],
) -> str:
    """The file with the new cases and the metadata, every case tagged as learn or holdout."""
    data = old.data if isinstance(old.data, dict) else {}
    key, unused = ("tests", "cases") if data.get("tests") else ("cases", "tests")
    data = {name: value for name, value in data.items() if name != unused}
    written = old.data if isinstance(old.data, list) else data.get(key) or []
    known = iter(old.cases)  # without queries of triggers that stand among them
    kept = [
        case
        if is_trigger(case)
        else {**case, "tags": _tagged(case.get("tags") or [], next(known).case.id in held)}
        for case in written
    ]
    added = [{**one.data, "tags": _tagged(one.data["tags"], one.case.id in held)} for one in new]
    before = data.get("metadata")
    about = {**(before if isinstance(before, dict) else {}), **metadata}
    whole = {**data, **({"metadata": about} if about else {}), key: [*kept, *added]}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _tagged(tags: Sequence[str], is_held: bool) -> list[str]:
    if LEARN in tags or HOLDOUT in tags:
        return list(tags)
    return [*tags, HOLDOUT if is_held else LEARN]
