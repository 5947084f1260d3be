"""What is known of a skill without asking a model: its files, cases and last results."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from ..errors import InputError, NoCasesError, SkillError
from ..lint import runnable_cases
from ..settings import Score
from ..skills.case import Case
from ..skills.case_loading import find_cases
from ..skills.context import FilesOnDisk
from ..skills.folder import contents_of
from ..skills.references import files_named
from ..skills.skill import Skill, estimated_tokens, load_skill, name_of
from .accepted import DIGITS, read_results

_SCHEMA: Final = re.compile(r"(?:.*/)?(?:schemas/.*|[^/]*\.(?:xsd|dtd|rng|schema\.json))", re.I)


@dataclass(frozen=True)
class ListedFile:
    """A file of a skill; ``tokens`` is None if it is not a text.

    ``on_demand`` says that SKILL.md sends an agent to it: no licence and no schema.
    """

    path: str
    size: int
    tokens: int | None
    on_demand: bool = False


class SkillTokens(NamedTuple):
    """Estimates of what a skill takes of an agent's context."""

    always: int  # its name and description, in every session
    used: int  # the body of SKILL.md, when the skill is used
    on_demand: int  # the text files that it refers to

    def __str__(self) -> str:
        return " + ".join(f"{number:,}" for number in self) + " tokens"


@dataclass(frozen=True)
class LastResult:
    """The last results of a skill on a model."""

    model: str
    rate: float
    baseline_rate: float | None
    date: str
    edited_since: bool  # the skill has changed
    kind: str = "accepted"
    cases: int = 0  # that ran
    of: int = 0  # cases that the skill had; 0 is not known
    score: Score = "pass"  # what its verdict is on
    checks: float | None = None  # the share of checks passed; accepted results have none
    baseline_checks: float | None = None


@dataclass(frozen=True)
class SkillOverview:
    """A skill in a list; a broken one has errors and lacks the rest."""

    folder: Path
    name: str
    skill: Skill | None = None
    files: tuple[ListedFile, ...] = ()
    cases_file: Path | None = None
    cases: tuple[Case, ...] = ()
    results: tuple[LastResult, ...] = ()
    errors: tuple[InputError, ...] = ()

    @property
    def tokens(self) -> SkillTokens:
        """What an agent reads of it; nothing of a broken one."""
        if not self.skill:
            return SkillTokens(0, 0, 0)
        always = estimated_tokens(f"{self.skill.name}: {self.skill.description}")
        on_demand = sum(file.tokens or 0 for file in self.files if file.on_demand)
        return SkillTokens(always, self.skill.tokens, on_demand)


def overview(file: Path) -> SkillOverview:
    """The skill of a SKILL.md; a broken part does not hide the others."""
    folder, errors = file.parent, list[InputError]()
    try:
        skill = load_skill(file)
        files = tuple(_files(skill))
    except SkillError as error:
        return SkillOverview(folder, name_of(file), errors=(error,))
    except OSError as error:
        unreadable = SkillError(file, f"unreadable: {error}")
        return SkillOverview(folder, name_of(file), errors=(unreadable,))
    cases_file, cases, results = find_cases(folder), list[Case](), list[LastResult]()
    try:
        if cases_file:
            loaded = runnable_cases(cases_file, folder)
            cases = [case for case, _ in loaded.cases]
            errors += [broken.error for broken in loaded.broken]
    except NoCasesError:
        cases_file = None
    except InputError as error:
        errors.append(error)
    try:
        results = accepted_results(skill)
    except InputError as error:
        errors.append(error)
    return SkillOverview(
        folder, skill.name, skill, files, cases_file, tuple(cases), tuple(results), tuple(errors)
    )


def accepted_results(skill: Skill) -> list[LastResult]:
    """Its accepted results by model."""
    found = []
    for model, accepted in read_results(skill.file.parent).models.items():
        counts = list(accepted.cases.values())
        if not counts:
            continue
        baselines = [
            count.baseline_passes / count.runs
            for count in counts
            if count.baseline_passes is not None
        ]
        found.append(
            LastResult(
                model=model,
                rate=fmean(count.count.share for count in counts),
                baseline_rate=fmean(baselines) if len(baselines) == len(counts) else None,
                date=accepted.date,
                cases=len(counts),
                edited_since=accepted.skill_digest != skill.digest[:DIGITS],
            )
        )
    return found


def _files(skill: Skill) -> Iterator[ListedFile]:
    """SKILL.md first, with the tokens a model reads; then what it refers to, then the rest."""
    root = skill.file.parent
    on_disk = FilesOnDisk(root)
    yield ListedFile(skill.file.name, skill.file.stat().st_size, skill.tokens)
    others = {path.relative_to(root).as_posix(): None for path in contents_of(root).files}
    named = [path for path in files_named(on_disk, skill.body.split("\n")) if path in others]
    for path in dict.fromkeys([*named, *others]):
        if path != skill.file.name:
            tokens = _tokens(on_disk, path)
            on_demand = path in named and tokens is not None and not _SCHEMA.fullmatch(path)
            yield ListedFile(path, (root / path).stat().st_size, tokens, on_demand)


def _tokens(files: FilesOnDisk, path: str) -> int | None:
    try:
        text = files.text(path)
    except ValueError:
        return None
    return estimated_tokens(text) if text else 0
