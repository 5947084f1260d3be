"""Studies from the command line: arguments, models, estimate, consent, reports."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from ..agents.roster import subjects_of
from ..checks import rubric_of
from ..errors import Setting, SettingsError, shown
from ..measure.arm_maker import ArmMaker
from ..measure.assembly import Assembly, announced
from ..measure.evaluate import Evaluator
from ..measure.study_runner import SkillCases, StudyPlan, StudyRunner, load_skill_cases
from ..models.prices import FREE
from ..reports.terminal.study_lines import study_lines
from ..reports.writers import report_paths, require_apart
from ..results.run import RunResults, versions
from ..results.study import Study
from ..settings import Settings, settings_of
from ..skills.search import find_skills, labels_of
from ..stats import look_plan
from ..teach.progress_lines import ProgressScreen
from ..trials.subject import CHAT, Subject
from .command_options import Groups, add_options, add_skill, option_values
from .output import stdout_look, write
from .project import config_here, find_skill, root_of_run
from .shared_steps import Consent, prices_here, progress_screen, write_reports

_HOW_TO_CONTINUE: Final = "Run it again to continue; nothing is asked twice."


def add_study_arguments(parser: argparse.ArgumentParser, command: str, *tables: type) -> Groups:
    """The arguments of a study, with the settings of these tables beside those of a run."""
    if command == "matrix":
        parser.usage = "%(prog)s SKILLS [options]"
        parser.add_argument(
            "skills",
            metavar="SKILLS",
            nargs="+",
            help="a skill: its folder, its SKILL.md, or its name in skills_dir; or a folder of "
            "skills",
        )
    else:
        parser.usage = "%(prog)s SKILL [options]"
        add_skill(parser)
    groups = add_options(parser, command, Settings, *tables)
    groups["output"].add_argument("-y", "--yes", action="store_true", help="spend without asking")
    return groups


@dataclass
class StudySession:
    """Skills with their cases, agents on models, a runner, and what its studies came to."""

    sources: tuple[SkillCases, ...]
    subjects: dict[Subject, str]  # with the ids of their models
    runner: StudyRunner
    screen: ProgressScreen
    maker: ArmMaker
    folder: Path  # a temporary one, for changed skills
    free: bool
    notes: list[str]  # trouble with the stored answers
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=monotonic)

    def carry_out(self, plans: Iterable[StudyPlan]) -> list[Study]:
        """All studies, one after the other, until Ctrl-C."""
        studies = list[Study]()
        for plan in plans:
            studies.append(self.runner.run(plan))
            if studies[-1].interrupted:
                break
        return studies

    def results(self, studies: Sequence[Study]) -> RunResults:
        infos = [source.info(shown(source.skill.file.parent)) for source in self.sources]
        return RunResults(
            started=self.started,
            seconds=monotonic() - self.clock,
            skills=tuple(infos),
            model_ids={subject.label: name for subject, name in self.subjects.items()},
            tests=(),
            records=(),
            studies=tuple(studies),
            versions=versions(),
        )


class StudyCommand:
    """A command that plans studies and reports what came of them."""

    def plan(self, session: StudySession) -> Sequence[StudyPlan]:
        raise NotImplementedError

    def follow_ups(self) -> Sequence[StudyPlan]:
        """Like what ``follow_up`` may ask, for the estimate."""
        return ()

    def follow_up(self, session: StudySession, studies: list[Study]) -> list[Study]:  # noqa: ARG002
        """All studies, perhaps with more that follow from these."""
        return studies

    def passes(self, studies: Sequence[Study]) -> bool:
        """Whether the exit status is 0 if no answer is missing."""
        raise NotImplementedError


def run_studies(args: argparse.Namespace, command: StudyCommand) -> tuple[str, int]:
    """Plan, estimate, ask for consent, carry out, report."""
    require_apart(report_paths(args))
    with _session(args) as session:
        plans = command.plan(session)
        consent = Consent(args.yes, session.screen, sys.stdout)
        planned = [*plans, *command.follow_ups()]
        if not consent(session.runner.estimate(planned, free=session.free)):
            session.screen.line("Nothing was asked.")
            return "", 1
        studies = session.carry_out(plans)
        if not any(study.interrupted for study in studies):
            studies = command.follow_up(session, studies)
    written, status = write_reports(args, session.results(studies), session.notes)
    lines = study_lines(studies, stdout_look())[1:]
    write("\n".join(["", *lines, *session.notes, *written]))
    if any(study.interrupted for study in studies):
        raise KeyboardInterrupt(_HOW_TO_CONTINUE)
    complete = all(study.complete for study in studies)
    return "", status or int(not (complete and command.passes(studies)))


@contextmanager
def _session(args: argparse.Namespace) -> Iterator[StudySession]:
    """Skills, models, agents and an engine; InputError before the first call if one is missing."""
    screen = progress_screen(sys.stdout)
    settings = _settings(args)
    looks = look_plan(settings.first_runs or settings.runs, settings.runs)
    # The looks say when to ask for more, and studies have their own arms.
    settings = replace(settings, first_runs=None, baseline=True, against=None)
    written = args.skills if args.command == "matrix" else [args.skill]
    sources = _sources(written, settings)
    _require_judge(sources, settings)
    models, notes = Assembly(prices_here(args)), list[str]()
    subjects = _subjects(models, settings, screen)
    models.add_judge(settings)
    models.require_tools(subjects)
    models.require(announced(screen.line), subjects)
    models.require_prices(settings.max_cost)
    if agents := {subject.agent for subject in subjects} - {CHAT}:
        from ..agents.sandboxes.kinds import kind_of

        models.roster.look_up_versions(agents)
        kind_of(settings.sandbox)
        if settings.sandbox == "none":
            screen.line("No sandbox: agents can read and change all that you can.")
    hint = ("raise ", Setting("max_cost"), ", and run this again: nothing is asked twice")
    root = root_of_run(Path.cwd())
    engine = models.engine(settings, root, notes.append, spell=args.spell, budget_hint=hint)
    free = all(models.price_of(name) == FREE for name in models.specs)
    evaluator = Evaluator(settings, engine.ask, models.price_of, models.roster.version)
    runner = StudyRunner(
        evaluator, looks, screen.begin, screen.done, engine.close, engine.known_before
    )
    with TemporaryDirectory(prefix="upskill-study-") as folder:
        try:
            maker = ArmMaker(settings)
            yield StudySession(sources, subjects, runner, screen, maker, Path(folder), free, notes)
        finally:
            engine.close()


def _settings(args: argparse.Namespace) -> Settings:
    config = config_here()
    settings = settings_of(option_values(args, config, Settings))
    if settings.models:
        return replace(settings, models_folder=Path.cwd())
    return replace(
        settings,
        models=config.eval_models,
        models_folder=Path.cwd(),
        models_file=config.file,
    )


def _sources(written: Sequence[str], settings: Settings) -> tuple[SkillCases, ...]:
    paths = [find_skill(text, os.environ) for text in written]
    files = list(dict.fromkeys(file for path in paths for file in find_skills(path).files))
    labels = labels_of(files)
    return tuple(load_skill_cases(file, labels[file], settings) for file in files)


def _require_judge(sources: Sequence[SkillCases], settings: Settings) -> None:
    for source in sources:
        judged = [case.id for case, checks in source.cases if rubric_of(checks).texts]
        if judged and not settings.judge:
            problem = f"{source.label} has cases that need a judge ({judged[0]})"
            raise SettingsError("judge", problem, "Name one, for example sonnet.")


def _subjects(models: Assembly, settings: Settings, screen: ProgressScreen) -> dict[Subject, str]:
    specs = models.add_models(settings)
    names = dict.fromkeys(map(models.roster.parse, settings.agents))
    fit, unfit = models.roster.pairs(subjects_of(names, list(specs)).values(), specs)
    if unfit:
        labels = ", ".join(subject.label for subject in unfit)
        screen.line(f"Left out, as agent and model don't fit: {labels}")
    return {subject: specs[subject.model].model_id for subject in fit}
