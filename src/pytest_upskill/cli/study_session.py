"""What carries out the commands that are studies: skills with cases, agents on models,
reports.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from .._util.texts import harmless
from ..checks.grading import ToGrade
from ..engine import Engine
from ..errors import Setting
from ..measure.engine_of_run import find_stored, open_engine
from ..measure.estimate import estimate_trials
from ..measure.evaluate import Evaluator
from ..measure.models_of_run import Models, login_line
from ..measure.open_run import AskedSkill, OpenRun, open_run
from ..measure.requirements import (
    announced,
    require,
    require_agents_with_models,
    require_reachable,
    require_sandbox,
)
from ..measure.study_cases import SkillCases
from ..measure.study_runner import StudyPlan, StudyRunner, why_too_few
from ..models.model import NamedBy
from ..reports.terminal.progress_screen import ProgressScreen
from ..reports.terminal.summary_text import results_lines
from ..reports.writers import report_paths, require_apart
from ..results.contrasts import Study
from ..results.run import RunResults, versions
from ..results.sections import Section
from .output import stdout_look, write
from .project import root_of_run
from .shared_steps import (
    Consent,
    prices_here,
    progress_screen,
    write_reports,
)
from .study_skills import load_skills, read_study_settings

_HOW_TO_CONTINUE: Final = "Run it again to continue; nothing is asked twice."


@dataclass
class StudySession:
    """Skills with their cases, a run of agents on models, and what carries out
    studies of them.
    """

    args: argparse.Namespace
    sources: tuple[SkillCases, ...]
    run: OpenRun
    engine: Engine
    runner: StudyRunner
    screen: ProgressScreen
    folder: Path  # a temporary one, for changed skills
    notes: list[str]  # trouble with the stored answers
    recording: Path | None = None  # answers that are used like stored ones
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=monotonic)

    def may_carry_out(self, plans: Sequence[StudyPlan]) -> bool:
        """Estimate what studies take, and ask for consent."""
        asked = [item for plan in plans for item in self.runner.trials(plan)]
        return self.may_ask(asked, why_too_few(plans))

    def may_ask(self, asked: Iterable[ToGrade], warning: str = "") -> bool:
        """Estimate what trials take, and ask for consent.

        SettingsError if a model can't be asked, unless all its answers are stored.
        """
        trials = [item.trial for item in asked]
        stored = find_stored(
            self.run,
            root_of_run(Path.cwd()),
            trials,
            notify=self.notes.append,
            recording=self.recording,
        )
        new = {
            trial.subject for trial in trials if trial.question.key not in stored.trials
        }
        require_reachable(self.run, announced(self.screen.text), new)
        estimate = estimate_trials(trials, self.run.models.price_of, stored)
        consent = Consent(self.args.yes, self.screen, sys.stdout)
        agreed = consent(replace(estimate, warning=warning))
        if not agreed:
            self.screen.line("Nothing was asked.")
        return agreed

    def carry_out(self, plans: Iterable[StudyPlan]) -> list[Study]:
        """All studies, one after the other, until Ctrl-C."""
        studies = []
        for plan in plans:
            study = self.runner.run(plan)
            studies.append(study)
            if study.interrupted:
                break
        return studies

    def report(
        self,
        studies: Sequence[Study] = (),
        sections: Sequence[Section] = (),
    ) -> tuple[str, int]:
        """Show and write what came of it; the exit status is 1 if a study fails."""
        results = self._results(studies, sections)
        # Stored answers are opened for the estimate and for the engine.
        notes = list(dict.fromkeys(self.notes))
        written, status = write_reports(self.args, results, notes)
        lines = results_lines(results, stdout_look(int(self.args.verbose)))
        # The last sentence of a study says why it fails; others
        # have none of their gates.
        failed = [
            f"upskill: {harmless(line)}" for line in results.problems if not studies
        ]
        write("\n".join(["", *lines, *notes, *written, *failed]))
        if results.interrupted:
            raise KeyboardInterrupt(_HOW_TO_CONTINUE)
        return "", status or int(bool(results.problems) or self.engine.not_kept)

    def _results(
        self, studies: Sequence[Study], sections: Sequence[Section]
    ) -> RunResults:
        interrupted = any(study.interrupted for study in studies)
        interrupted = interrupted or any(section.interrupted for section in sections)
        return RunResults(
            started=self.started,
            seconds=monotonic() - self.clock,
            skills=tuple(source.info for source in self.sources),
            model_ids=self.run.model_ids,
            tests=(),
            records=(),
            logins=self.run.settings.logins,
            interrupted="Ctrl-C" if interrupted else None,
            studies=tuple(studies),
            sections=tuple(sections),
            gates=self.run.settings.gates,
            versions=versions(),
        )


@contextmanager
def study_session(
    args: argparse.Namespace,
    skills: Sequence[str],
    *,
    loaded: tuple[SkillCases, ...] = (),
    sizes: Mapping[str, int] | None = None,
    as_one: bool = False,
    tasks: bool = False,
    named: Mapping[str, str] | None = None,
    recording: Path | None = None,
) -> Iterator[StudySession]:
    """Skills, models, agents and an engine; InputError before the
    first call if one is missing.

    ``sizes`` are the tokens of what must fit the context of a model: by default, of
    each skill. With ``as_one``, several skills are a bundle; with ``tasks``, those of
    benchmarks are read, too. ``named`` are models by the settings that name them, in
    place of those of the usual one; keys of theirs are needed only for what is not
    stored. Answers of a ``recording`` are used like stored ones.
    """
    require_apart(report_paths(args))
    screen = progress_screen(sys.stdout)
    settings = read_study_settings(args)
    sources = loaded or load_skills(skills, settings, as_one=as_one, tasks=tasks)

    models = Models(prices_here(args))
    names = [
        models.add_named(name, settings, NamedBy(setting))
        for setting, name in (named or {}).items()
    ]
    tested = [source.tested for source in sources]
    run = open_run(settings, tested, models=models, names=names or None)
    require_agents_with_models(run, screen.text)
    if line := login_line(models, run.settings.logins):
        screen.text(f"Asked {line}.")
    if sizes:
        tested = [
            AskedSkill(label, size=partial(int, size)) for label, size in sizes.items()
        ]
    require(run, tested, screen.text, may_be_stored=bool(named))
    require_sandbox(run, screen.text)
    notes: list[str] = []
    raise_it = ("raise ", Setting("max_cost"))
    engine = open_engine(
        run,
        root_of_run(Path.cwd()),
        notes.append,
        spell=args.spell,
        budget_hint=(*raise_it, ", and run this again: nothing is asked twice"),
        recording=recording,
    )
    evaluator = Evaluator(run.settings, engine.ask, models.price_of, run.version_of)
    runner = StudyRunner(evaluator, screen.begin, screen.done, engine.close)
    with TemporaryDirectory(prefix="upskill-study-") as folder:
        try:
            yield StudySession(
                args,
                sources,
                run,
                engine,
                runner=runner,
                screen=screen,
                folder=Path(folder),
                notes=notes,
                recording=recording,
            )
        finally:
            engine.close()


def add_flags(output: argparse._ArgumentGroup) -> None:
    output.add_argument("-y", "--yes", action="store_true", help="spend without asking")
    output.add_argument("-v", "--verbose", action="store_true", help="show all rows")
