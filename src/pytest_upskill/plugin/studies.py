"""Studies of a run (--skill-matrix, --skill-ablate): after its last test, in the controller."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from ..checks import CheckedCase, load_checked_cases
from ..errors import InputError, SettingsError
from ..measure.study import SkillCases, Study
from ..measure.study_runner import StudyRunner
from ..models.prices import FREE
from ..results.neighbours import Matrix
from ..results.part_effects import Parts
from ..results.run import RunResults
from ..settings import STUDY_RUNS, Settings
from ..skills.context import load_for_run
from ..stats import look_plan
from ..trials.plan import PlannedCase, score_of
from ..trials.subject import CHAT, Subject
from .hooks import prompts, registered_checks
from .items import Run
from .ledger import Ledger
from .paths import Selected, SkillSource
from .pytest_options import cli_value, is_of_ini_file, message_of, spell

_AGAIN: Final = "Run again: nothing is asked twice"


def wanted_studies(settings: Settings) -> list[str]:
    """The settings that ask for a study."""
    return [name for name in ("matrix", "ablate") if getattr(settings, name)]


def require_studies(settings: Settings, selected: Selected, subjects: Iterable[Subject]) -> None:
    """SettingsError if a matrix is impossible with these skills and agents."""
    if not settings.matrix:
        return
    if len(selected.all) < 2:
        problem = f"a matrix needs at least two skills, and here is {len(selected.all)}"
        raise SettingsError("matrix", problem, "Name more skills, or a folder of skills.")
    if all(subject.agent == CHAT for subject in subjects):
        problem = "a plain completion sees one skill only, so no other can change its answers"
        raise SettingsError("matrix", problem, f"Choose an agent: {spell('agents')} loop.")


def looks_of_studies(settings: Settings, config: pytest.Config) -> tuple[int, ...]:
    """The numbers of runs at which to look: those of the tests, if the user set them."""
    if cli_value(config, "runs") or is_of_ini_file(config, "runs"):
        return look_plan(settings.first_runs or settings.runs, settings.runs)
    return look_plan(*STUDY_RUNS)


@dataclass
class Studies:
    """The studies of a run; ``runner_of`` takes the numbers of runs at which to look."""

    run: Run
    selected: Selected
    config: pytest.Config
    runner_of: Callable[[tuple[int, ...]], StudyRunner]
    matrices: list[Matrix] = field(default_factory=list)
    parts: list[Parts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = ", ".join(map(spell, wanted_studies(self.run.settings)))
        self.notes = [f"{self._names}: not run, as the run was stopped. {_AGAIN}."]

    @property
    def _study_runner(self) -> StudyRunner:
        return self.runner_of(looks_of_studies(self.run.settings, self.config))

    def lines(self, session: pytest.Session, tests: Sequence[PlannedCase] | None) -> list[str]:
        """The estimate before the run; ``tests`` is None if the tests are not known."""
        if tests is not None and not tests:
            return []
        try:
            with TemporaryDirectory(prefix="upskill-study-") as folder:
                return self._estimated(self._planned(session, tests, Path(folder)))
        except InputError as error:
            return [f"upskill: {self._names}: {message_of(error, self.config)}"]

    def _estimated(self, studies: Sequence[Study]) -> list[str]:
        models = {study.subject.model for study in studies}
        runner = self._study_runner
        guess = runner.estimate(studies, free=all(runner.price_of(name) == FREE for name in models))
        moment = "after the tests, " if self.run.asks else "a run would make after the tests "
        lines = [f"upskill: {self._names}: {moment}{guess}"]
        return [*lines, f"upskill: {guess.warning}"] if guess.warning else lines

    def carry_out(self, session: pytest.Session, ledger: Ledger) -> None:
        """Run the studies, unless there is a reason not to; passes KeyboardInterrupt on."""
        if reason := self._why_not(session, ledger):
            self.notes = [f"{self._names}: not run, as {reason}"]
            return
        self.notes = []
        with TemporaryDirectory(prefix="upskill-study-") as folder:
            try:
                studies = self._planned(session, list(ledger.planned), Path(folder))
                runner = self._study_runner
                for study in studies:
                    studied = runner.run(study)
                    conclusion = study.conclude(studied)
                    if isinstance(conclusion, Matrix):
                        self.matrices.append(conclusion)
                    else:
                        self.parts.append(conclusion)
                    if studied.interrupted:
                        self.notes = [f"{self._names}: stopped before the end. {_AGAIN}."]
                        raise KeyboardInterrupt
            except InputError as error:
                self.notes = [f"{self._names}: not run: {message_of(error, self.config)}"]

    def added_to(self, results: RunResults) -> RunResults:
        return replace(results, matrices=tuple(self.matrices), parts=tuple(self.parts))

    def _why_not(self, session: pytest.Session, ledger: Ledger) -> str:
        if session.shouldstop or session.shouldfail:
            return f"the run was stopped. {_AGAIN}."
        if not ledger.has_plan:
            return "no case was asked."
        if ledger.has_errors:
            return f"tests errored. {_AGAIN}."
        if self.run.settings.replay_file:
            return "a recording has no answers for it."
        return ""

    def _planned(
        self, session: pytest.Session, tests: Sequence[PlannedCase] | None, folder: Path
    ) -> list[Study]:
        """The studies of the run's skills, with the cases that it asks."""
        asked_cases = None if tests is None else {(test.skill, test.case) for test in tests}
        sources = [self._source(session, source, asked_cases) for source in self.selected.all]
        subjects = {
            subject: self.run.subjects.model_ids[label]
            for label, subject in self.run.subjects.by_label.items()
        }
        settings, studies = self.run.settings, list[Study]()
        looks = looks_of_studies(settings, self.config)
        if settings.matrix:
            from ..measure.skill_matrix import matrix_studies

            agents = {subject: name for subject, name in subjects.items() if subject.agent != CHAT}
            studies += matrix_studies(sources, agents, looks)
        if settings.ablate:
            from ..measure.ablation import ablation_studies

            studies += ablation_studies(sources, subjects, folder, settings)
        return studies

    def _source(
        self, session: pytest.Session, source: SkillSource, asked_cases: set[tuple[str, str]] | None
    ) -> SkillCases:
        if source.conftests:
            self.run.load_conftests(source.conftests)
        ihook = session.gethookproxy(source.conftests) if source.conftests else session.ihook
        settings = self.run.settings
        cases = tuple(
            (case, checks)
            for case, checks in self._cases(source, ihook)
            if asked_cases is None or (source.label, case.id) in asked_cases
        )
        score = score_of(settings.score, [case for case, _ in cases])
        skill = load_for_run(source.skill_file, settings)
        return SkillCases(source.label, skill, cases, score, prompts(ihook, self.config))

    def _cases(self, source: SkillSource, ihook: object) -> Iterator[CheckedCase]:
        if source.has_cases and source.cases_file:
            yield from load_checked_cases(
                source.cases_file,
                registered_checks(ihook, self.config),
                folder=source.folder,
                allow_code=self.run.settings.allow_code,
                allowed_by=spell("allow_code"),
            ).cases
