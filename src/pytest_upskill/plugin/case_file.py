"""What a test knows of the file of its case, and of its run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import pytest

from ..results.accepted import NOTHING_ACCEPTED
from ..results.regressions import Standing
from ..settings import Settings
from ..trials.answer import Reply
from ..trials.plan import SkillInfo
from ..trials.trial import Question
from .paths import SkillSource
from .run_subjects import RunSubjects


class Decisions(Protocol):
    """What is decided over all cases of a skill on a model."""

    def ask_further(self) -> None: ...
    def regression_of(self, nodeid: str) -> Standing | None: ...


class Run(Protocol):
    """What tests and their files need of a run, which is a `SkillSession`."""

    settings: Settings
    subjects: RunSubjects
    asks: bool
    warned: Counter[str]  # files, by the kind of their first problem

    @property
    def groups(self) -> Decisions: ...
    def ask(self, questions: Sequence[Question]) -> list[Reply]: ...
    def load_conftests(self, source: SkillSource) -> Path | None: ...


class CaseFile(pytest.File):
    """The file of a skill's cases, as its tests know it."""

    source: SkillSource
    run: Run
    info: SkillInfo
    accepted = NOTHING_ACCEPTED
    siblings: tuple[str, ...] = ()  # ids of all cases in the skill's own files
    # By label: how many of its cases, and of its triggers, are not skipped.
    runnable: dict[str, Counter[bool]]
    printable_path: Path
    # Cases that the oracle skips, and why
    not_played: Mapping[str, str] = MappingProxyType({})

    @property
    def case_folder(self) -> Path:
        """The folder whose files its cases name."""
        return self.source.case_folder
