"""What carries out the commands that are studies: skills with cases, agents on models,
reports.
"""

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from .._util.texts import harmless
from ..checks import rubric_of
from ..engine import Engine
from ..errors import DEFAULT, Setting, SettingsError, shown
from ..measure.arm_maker import ArmMaker
from ..measure.assembly import Assembly
from ..measure.bundle_ablation import load_bundle_cases
from ..measure.case_users import use_users
from ..measure.estimate import Estimate
from ..measure.evaluate import Evaluator
from ..measure.study_runner import SkillCases, StudyPlan, StudyRunner, load_skill_cases
from ..measure.task_set_cases import load_task_set_cases
from ..models.model import NamedBy
from ..reports.terminal.progress_screen import ProgressScreen
from ..reports.terminal.summary_text import results_lines
from ..reports.writers import report_paths, require_apart
from ..results.contrasts import Study
from ..results.run import RunResults, versions
from ..results.sections import Section
from ..settings import Gates, Settings, settings_of
from ..skills.bundle import bundle_root, entry_in, entry_name, skill_files_in
from ..skills.folder import is_skill
from ..skills.search import find_skills, labels_of
from ..skills.task_folders import tasks_at
from ..trials.subject import Subject
from ..trials.trial import Trial
from .command_table import option_values
from .output import stdout_look, write
from .project import config_here, find_skill, root_of_run
from .shared_steps import (
    Consent,
    prices_here,
    progress_screen,
    user_model_here,
    write_reports,
)

_HOW_TO_CONTINUE: Final = "Run it again to continue; nothing is asked twice."


@dataclass
class StudySession:
    """Skills with their cases, agents on models, and what carries out studies of
    them.
    """

    args: argparse.Namespace
    sources: tuple[SkillCases, ...]
    subjects: dict[Subject, str]  # with the ids of their models
    runner: StudyRunner
    engine: Engine
    screen: ProgressScreen
    maker: ArmMaker
    folder: Path  # a temporary one, for changed skills
    free: bool
    notes: list[str]  # trouble with the stored answers
    logins: tuple[str, ...]  # labels of subjects that are asked on a login
    require: Callable[[Collection[Subject]], None]  # what it takes to ask them
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=monotonic)

    def require_asked(self, trials: Sequence[Trial]) -> None:
        """SettingsError if a model can't be asked, unless all its answers are
        stored.
        """
        stored = self.runner.stored([trial.question for trial in trials]).used
        self.require(
            {trial.subject for trial in trials if trial.question.key not in stored}
        )

    def may_ask(self, plans: Sequence[StudyPlan]) -> bool:
        """Estimate what it takes, and ask for consent."""
        return self.may_ask_for(self.runner.estimate(plans, free=self.free))

    def may_ask_for(self, estimate: Estimate) -> bool:
        """Ask for consent to what it takes."""
        agreed = Consent(self.args.yes, self.screen, sys.stdout)(estimate)
        if not agreed:
            self.screen.line("Nothing was asked.")
        return agreed

    def carry_out(self, plans: Iterable[StudyPlan]) -> list[Study]:
        """All studies, one after the other, until Ctrl-C."""
        studies = list[Study]()
        for plan in plans:
            studies.append(self.runner.run(plan))
            if studies[-1].interrupted:
                break
        return studies

    def report(
        self,
        studies: Sequence[Study] = (),
        sections: Sequence[Section] = (),
    ) -> tuple[str, int]:
        """Show and write what came of it; the exit status is 1 if a study fails."""
        results = self._results(studies, sections)
        written, status = write_reports(self.args, results, self.notes)
        lines = results_lines(results, stdout_look(int(self.args.verbose)))
        # The last sentence of a study says why it fails; others
        # have none of their gates.
        failed = [
            f"upskill: {harmless(line)}" for line in results.problems if not studies
        ]
        write("\n".join(["", *lines, *self.notes, *written, *failed]))
        if results.interrupted:
            raise KeyboardInterrupt(_HOW_TO_CONTINUE)
        return "", status or int(bool(results.problems) or self.engine.not_kept)

    def _results(
        self,
        studies: Sequence[Study],
        sections: Sequence[Section],
    ) -> RunResults:
        stopped = [study.interrupted for study in studies]
        stopped += [section.interrupted for section in sections]
        infos = [source.info(shown(source.skill.folder)) for source in self.sources]
        return RunResults(
            started=self.started,
            seconds=monotonic() - self.clock,
            skills=tuple(infos),
            model_ids={subject.label: name for subject, name in self.subjects.items()},
            tests=(),
            records=(),
            logins=self.logins,
            interrupted="Ctrl-C" if any(stopped) else None,
            studies=tuple(studies),
            sections=tuple(sections),
            gates=self.runner.evaluator.settings.gates,
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
    place of those of the usual one; what they need is left to `require_asked`. Answers
    of a ``recording`` are used like stored ones.
    """
    require_apart(report_paths(args))
    screen = progress_screen(sys.stdout)
    settings = replace(_settings(args), user_model=user_model_here(args))
    settings = replace(settings, baseline=True, against=None)
    bundles = _bundles(skills, settings) if as_one else ()
    sources = loaded or bundles or _sources(skills, settings, tasks=tasks)
    _require_judge(sources, settings)
    models, notes = Assembly(prices_here(args)), list[str]()
    names = [
        name
        for setting, written in (named or {}).items()
        for name in models.add_named(written, settings, NamedBy(setting))
    ]
    names = names or list(models.add_models(settings))
    subjects = models.subjects(settings.agents, names, screen.text)
    models.add_judge(settings)
    settings = models.with_limits(models.use_logins(settings, subjects))
    cases = ((source.path, case) for source in sources for case, _ in source.cases)
    use_users(models, cases, subjects, settings)
    for source in sources:
        agents = dict.fromkeys(subject.agent for subject in subjects)
        models.roster.require_mcp(
            agents, source.label, (case for case, _ in source.cases)
        )
    if line := models.login_line(settings.logins):
        screen.text(f"Asked {line}.")
    sizes = sizes or {source.label: source.skill.tokens for source in sources}
    models.require_room(settings, subjects, sizes, screen.text)
    models.require_all(settings, subjects, screen.text, stored=bool(named))
    hint = (
        "raise ",
        Setting("max_cost"),
        ", and run this again: nothing is asked twice",
    )
    engine = models.engine(
        settings,
        root_of_run(Path.cwd()),
        notes.append,
        spell=args.spell,
        budget_hint=hint,
        recording=recording,
    )
    evaluator = Evaluator(settings, engine.ask, models.price_of, models.roster.version)
    runner = StudyRunner(
        evaluator,
        settings.runs,
        screen.begin,
        screen.done,
        engine.close,
        engine.known_before,
    )
    with TemporaryDirectory(prefix="upskill-study-") as folder:
        try:
            yield StudySession(
                *(args, sources, subjects, runner, engine, screen, ArmMaker(settings)),
                *(Path(folder), models.is_free, notes, settings.logins),
                partial(models.require_asked, settings, subjects, screen.text),
            )
        finally:
            engine.close()


def _settings(args: argparse.Namespace) -> Settings:
    config = config_here()
    settings = settings_of(option_values(args, config, Settings, Gates))
    if settings.models:
        return replace(settings, models_folder=Path.cwd())
    args.origins["models"] = config.origin("eval_models") or DEFAULT
    return replace(
        settings,
        models=config.eval_models,
        models_folder=Path.cwd(),
        models_file=config.file,
    )


def _sources(
    written: Sequence[str], settings: Settings, *, tasks: bool
) -> tuple[SkillCases, ...]:
    paths = [find_skill(text, os.environ) for text in written]
    sets = [path for path in paths if tasks and not is_skill(path) and tasks_at(path)]
    others = (path for path in paths if path not in sets)
    files = list(
        dict.fromkeys(file for path in others for file in find_skills(path).files)
    )
    labels = labels_of(files)
    of_tasks = (
        source for path in sets for source in load_task_set_cases(path, settings)
    )
    return (
        *(load_skill_cases(file, labels[file], settings) for file in files),
        *of_tasks,
    )


def _bundles(written: Sequence[str], settings: Settings) -> tuple[SkillCases, ...]:
    """A plugin, or a folder, that has several skills; nothing if it has not."""
    path = find_skill(written[0], os.environ)
    entry = (
        entry_in(path, bundle=len(find_skills(path).files) > 1)
        if path.is_dir()
        else None
    )
    if (
        entry is None
        or (root := bundle_root(entry)) is None
        or len(skill_files_in(entry)) < 2
    ):
        return ()
    return (load_bundle_cases(root, entry_name(entry), settings),)


def _require_judge(sources: Sequence[SkillCases], settings: Settings) -> None:
    for source in sources:
        judged = [case.id for case, checks in source.cases if rubric_of(checks).texts]
        if judged and not settings.judge:
            problem = f"{source.label} has cases that need a judge ({judged[0]})"
            raise SettingsError("judge", problem, "Name one, for example sonnet.")


def add_flags(output: argparse._ArgumentGroup) -> None:
    output.add_argument("-y", "--yes", action="store_true", help="spend without asking")
    output.add_argument("-v", "--verbose", action="store_true", help="show all rows")
