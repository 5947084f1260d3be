"""What is known of a skill without asking a model: its files, cases and last results."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ..errors import InputError, SkillError
from ..lint import runnable_cases
from ..skills.case import Case
from ..skills.folder import contents_of, find_cases
from ..skills.skill import Skill, estimated_tokens, load_skill
from .accepted import DIGITS, read_results


@dataclass(frozen=True)
class SkillFile:
    """A file of a skill; ``tokens`` is None if it is not a text."""

    path: str
    size: int
    tokens: int | None


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


@dataclass(frozen=True)
class SkillOverview:
    """A skill in a list; a broken one has errors and lacks the rest."""

    folder: Path
    skill: Skill | None = None
    files: tuple[SkillFile, ...] = ()
    cases_file: Path | None = None
    cases: tuple[Case, ...] = ()
    results: tuple[LastResult, ...] = ()
    errors: tuple[InputError, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(file.tokens or 0 for file in self.files)


def overview(file: Path) -> SkillOverview:
    """The skill of a SKILL.md; a broken part does not hide the others."""
    folder, errors = file.parent, list[InputError]()
    try:
        skill = load_skill(file)
        files = tuple(_files(skill))
    except SkillError as error:
        return SkillOverview(folder, errors=(error,))
    except OSError as error:
        return SkillOverview(folder, errors=(SkillError(file, f"unreadable: {error}"),))
    cases_file, cases, results = find_cases(folder), list[Case](), list[LastResult]()
    try:
        if cases_file:
            loaded = runnable_cases(cases_file, folder)
            cases = [case for case, _ in loaded.cases]
            errors += [broken.error for broken in loaded.broken]
    except InputError as error:
        errors.append(error)
    try:
        results = accepted_results(skill)
    except InputError as error:
        errors.append(error)
    return SkillOverview(
        folder, skill, files, cases_file, tuple(cases), tuple(results), tuple(errors)
    )


def accepted_results(skill: Skill) -> list[LastResult]:
    """Its accepted results by model."""
    found = []
    for model, accepted in read_results(skill.file.parent).items():
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


def _files(skill: Skill) -> Iterator[SkillFile]:
    """SKILL.md first, with the tokens a model reads; then its other files."""
    root = skill.file.parent
    yield SkillFile(skill.file.name, skill.file.stat().st_size, skill.tokens)
    for path in contents_of(root).files:
        if path != skill.file:
            yield _file(path, path.relative_to(root).as_posix())


def _file(path: Path, shown_as: str) -> SkillFile:
    data = path.read_bytes()
    try:
        tokens = None if b"\0" in data else estimated_tokens(data.decode("utf-8")) if data else 0
    except UnicodeDecodeError:
        tokens = None
    return SkillFile(shown_as, len(data), tokens)
