"""What matrix, ablate and distill share: arguments, estimate, consent, reports."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final, NamedTuple

from ..agents.roster import subjects_of
from ..checks import rubric_of
from ..errors import Setting, SettingsError, shown
from ..measure.assembly import Assembly, announced
from ..measure.lab import Lab
from ..measure.study import SkillCases, Study, info_of, load_skill_cases
from ..models.prices import FREE, parse_prices
from ..reports.markdown import markdown_summary
from ..reports.terminal.layout import Look
from ..reports.writers import (
    Finished,
    report_paths,
    report_writers,
    require_apart,
    write_all,
    written_line,
)
from ..results.neighbours import Matrix
from ..results.parts import Parts
from ..results.run import RunResults, versions
from ..settings import Settings, settings_of
from ..skills.search import find_skills, labels_of
from ..stats import look_plan
from ..teach.progress_lines import ProgressScreen
from ..trials.subject import CHAT, Subject
from .command_options import Groups, add_options, add_skill, option_values
from .ini_file import ini_lines
from .output import painter, stdout_look, tell, write
from .project import find_skill, root_of_run
from .teaching import Consent, config_here

_DEFAULT_WIDTH: Final = 80
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


class Carried(NamedTuple):
    """What came of studies; they are incomplete if an answer is missing."""

    found: list[Matrix | Parts]
    complete: bool


@dataclass
class Desk:
    """What a command has at hand: skills with their cases, agents on models, and a lab."""

    sources: tuple[SkillCases, ...]
    subjects: dict[Subject, str]  # with the ids of their models
    lab: Lab
    screen: ProgressScreen
    folder: Path  # a temporary one, for changed skills
    free: bool
    notes: list[str]  # trouble with the stored answers
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=monotonic)
    interrupted: bool = False  # by Ctrl-C

    def carry_out(self, studies: Iterable[Study]) -> "Carried":
        """All studies, one after the other, until Ctrl-C."""
        found, complete = list[Matrix | Parts](), True
        for study in studies:
            studied = self.lab.run(study)
            found.append(study.conclude(studied))
            complete &= all(one.state != "incomplete" for one in studied.effects.values())
            if studied.interrupted:
                self.interrupted = True
                return Carried(found, complete=False)
        return Carried(found, complete)

    def results(self, found: Sequence[Matrix | Parts]) -> RunResults:
        infos = [info_of(one, shown(one.skill.file.parent)) for one in self.sources]
        return RunResults(
            started=self.started,
            seconds=monotonic() - self.clock,
            skills=tuple(infos),
            model_ids={subject.label: name for subject, name in self.subjects.items()},
            tests=(),
            records=(),
            matrices=tuple(one for one in found if isinstance(one, Matrix)),
            parts=tuple(one for one in found if isinstance(one, Parts)),
            versions=versions(),
        )


Plan = Callable[[Desk], Sequence[Study]]
Lines = Callable[[RunResults, Look], Sequence[str]]  # of the terminal
Then = Callable[[Desk, RunResults], RunResults]
Status = Callable[[RunResults], int]


def run_studies(
    given: argparse.Namespace,
    plan: Plan,
    lines: Lines,
    then: Then = lambda _desk, found: found,
    status: Status = lambda _found: 0,
    later: Plan = lambda _desk: (),
) -> tuple[str, int]:
    """Plan, estimate, ask for consent, carry out, report; ``then`` may add to the results.

    What ``then`` may ask is like the studies of ``later``, which are only estimated.
    """
    wanted = report_paths(given)
    require_apart(wanted)
    with desk_of(given) as desk:
        studies = plan(desk)
        consent = Consent(given.yes, desk.screen, sys.stdout)
        if not consent(desk.lab.estimate([*studies, *later(desk)], free=desk.free)):
            desk.screen.line("Nothing was asked.")
            return "", 1
        found, complete = desk.carry_out(studies)
        results = desk.results(found)
        if not desk.interrupted:
            results = then(desk, results)
    text = partial(markdown_summary, results, desk.notes, 0)
    done = write_all(report_writers(Finished(results, text, desk.notes), wanted))
    written = [written_line(done.paths)] if done.paths else []
    write("\n".join(["", *lines(results, stdout_look()), *desk.notes, *written]))
    for error in done.problems:
        tell(sys.stderr, f"pytest-upskill: {error.message(given.spell)}\n")
    if desk.interrupted:
        raise KeyboardInterrupt(_HOW_TO_CONTINUE)
    return "", 2 if done.problems else status(results) or int(not complete)


@contextmanager
def desk_of(given: argparse.Namespace) -> Iterator[Desk]:
    """Skills, models, agents and an engine; InputError before the first call if one is missing."""
    stream = sys.stdout
    width = shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns
    live = stream.isatty() and os.environ.get("TERM") != "dumb"
    screen = ProgressScreen(
        partial(tell, stream), width=width, live=live, paint=painter(stream, os.environ)
    )
    settings = _settings(given)
    looks = look_plan(settings.first_runs or settings.runs, settings.runs)
    settings = replace(settings, first_runs=None)  # the looks say when to ask for more
    written = given.skills if given.command == "matrix" else [given.skill]
    sources = _sources(written, settings)
    _require_judge(sources, settings)
    ini_file, prices = ini_lines(Path.cwd(), "skill_prices")
    given.origins["prices"] = f"{shown(ini_file)}: skill_prices"
    models, notes = Assembly(parse_prices(prices)), list[str]()
    subjects = _subjects(models, settings, screen)
    models.add_judge(settings)
    models.require_tools(subjects)
    models.require(announced(screen.line), subjects)
    models.require_prices(settings.max_cost)
    if agents := {one.agent for one in subjects} - {CHAT}:
        from ..agents.sandboxes.kinds import kind_of

        models.roster.find_out(agents)
        kind_of(settings.sandbox)
        if settings.sandbox == "none":
            screen.line("No sandbox: agents can read and change all that you can.")
    hint = ("raise ", Setting("max_cost"), ", and run this again: nothing is asked twice")
    root = root_of_run(Path.cwd())
    engine = models.engine(settings, root, notes.append, spell=given.spell, budget_hint=hint)
    free = all(models.price_of(name) == FREE for name in models.specs)
    lab = Lab(
        *(settings, looks, engine.ask, models.roster.version, models.price_of),
        *(screen.begin, screen.done, engine.close, engine.known_before),
    )
    with TemporaryDirectory(prefix="upskill-study-") as folder:
        try:
            yield Desk(sources, subjects, lab, screen, Path(folder), free, notes)
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
    paths = [find_skill(one, os.environ) for one in written]
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
    names = dict.fromkeys(map(models.roster.named, settings.agents))
    fit, unfit = models.roster.pairs(subjects_of(names, list(specs)).values(), specs)
    if unfit:
        names_of_unfit = ", ".join(one.label for one in unfit)
        screen.line(f"Left out, as agent and model don't fit: {names_of_unfit}")
    return {one: specs[one.model].model_id for one in fit}
