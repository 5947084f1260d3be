"""Cases as the tests of a run: what is asked, and digests of it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final

from .._util.texts import digest
from ..settings import Settings
from ..skills.case import Case
from ..skills.folder import read_skill_file
from ..skills.task_files import verifier_files
from ..trials.arm import SKILL
from ..trials.plan import PlannedCase
from ..trials.trial import Trial, of_workspace, sample_of, user_text

DIGITS: Final = 12  # of a digest, enough to see a change
_MAX_DEPTH: Final = 20  # of checks in which files are looked for


def case_digest(case: Case, folder: Path | None = None) -> str:
    """Changes with the question and what is expected of the answer, not with SKILL.md.

    Checks in Python and verifiers change with their files in the skill's ``folder``.
    """
    parts = list(chain.from_iterable(case.earlier))
    parts += [user_text(case), case.system or "", *of_workspace(case)]
    parts += case.invoke or ()
    expected = [case.expected, case.validator]
    parts.append(json.dumps(expected, sort_keys=True, default=str))
    if folder:
        parts += _read_code([case.expected], folder)
    return short_digest(*parts)


def _read_code(expected: Any, folder: Path, depth: int = 0) -> Iterator[str]:
    """The files of checks in Python, and of verifiers."""
    inside = expected.items() if isinstance(expected, dict) else enumerate(expected)
    for name, argument in inside:
        # Collection reports files that can't be read.
        with suppress(ValueError, OSError):
            if name == "python" and isinstance(argument, str):
                yield read_skill_file(folder, argument.partition(":")[0])
            elif name == "verifier" and isinstance(argument, dict):
                for file in verifier_files(folder, str(argument.get("run"))):
                    yield file.digest
            elif isinstance(argument, dict | list) and depth < _MAX_DEPTH:
                yield from _read_code(argument, folder, depth + 1)


def short_digest(*parts: str) -> str:
    return digest(*parts)[:DIGITS]


def planned_case(
    nodeid: str,
    case: Case,
    trials: Sequence[Trial],
    settings: Settings,
    *,
    digest: str = "",
    folder: Path | None = None,
    file: str = "",
    compared: bool = True,
    of: int = 0,
) -> PlannedCase:
    """A case on the model of its trials; a Python test brings its own ``digest``."""
    first = trials[0]
    digest = digest or case_digest(case, folder)
    threshold = case.threshold or settings.case_threshold
    if not case.kind.threshold:
        # At least half of the runs must open it; or less than half may.
        threshold = 0.5 if case.should_open else None

    return PlannedCase(
        nodeid,
        first.skill,
        case=case.id,
        model=first.model,
        trials=tuple(trials),
        digest=digest,
        asked=_asked(trials),
        sample="" if first.is_open else sample_of(case),
        case_group=case.group,
        folder=str(folder or ""),
        file=file,
        line=case.line,
        tags=case.tags,
        threshold=threshold,
        # A skill is not compared with itself, nor what no model was asked.
        compared=compared and not settings.aa and not case.kind.agent,
        of=of,
        agent=first.agent,
        kind=case.kind,
    )


def _asked(trials: Sequence[Trial]) -> str:
    """A digest of all that is sent with the skill, and of who judges it."""
    trial = next((trial for trial in trials if trial.arm == SKILL), trials[0])
    judge = [trial.rubric.judge, str(trial.rubric.votes)] if trial.rubric else []
    return short_digest(trial.question.content, *judge)
