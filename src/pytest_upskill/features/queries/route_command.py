"""``route``: which skill of a catalogue each query opens.

All skills of the catalogue are installed, and every query is asked once per run.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..._util import grouped
from ..._util.texts import counted, first_few, one_line
from ...checks import KINDS, parse_checks
from ...checks.grading import ToGrade
from ...cli.command_table import add_options
from ...cli.project import find_skill
from ...cli.study_session import add_flags, study_session
from ...errors import InputError, SkillError, shown
from ...measure.arm_maker import files_of_cases, own_cases
from ...measure.study_cases import SkillCases
from ...measure.study_runner import StudyRunner
from ...results.run_notes import listing_notes
from ...settings import Gates, Settings
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import USERS_ONLY, Skill, listing_tokens, load_skill
from ...skills.suites.json_files import ROUTES_FILE
from ...trials.arm import SKILL, Arm, SkillCopy
from ...trials.subject import Subject
from ...trials.trial import trials_of
from .catalogue import (
    ANY_OPENED,
    EXAMPLE,
    Catalogue,
    LoadedRoutes,
    load_routes,
    routes_of_skills,
)
from .routing import RoutedQuery, Routing

_MAX_NAMES: Final = 5
_MAX_BROKEN: Final = 3


def add_route_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FOLDER [options]"
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help="a folder of skills; its queries are in evals/routes.json",
    )
    add_flags(add_options(parser, "route", Settings, Gates)["reports"])


def run_route(args: argparse.Namespace) -> tuple[str, int]:
    folder = find_skill(args.folder, os.environ)
    found = find_skills(folder)
    skills, broken = _load_skills(found.files)
    catalogue = Catalogue.of(skills)
    routes = _load_routes(folder, args.tests_file, catalogue)
    notes = [f"{line[:1].upper()}{line[1:]}" for line in left_out_lines(found.left_out)]
    if broken:
        notes.append(f"Left out, as broken: {first_few(broken, _MAX_BROKEN)}")
    if catalogue.explicit:
        names = first_few(list(catalogue.explicit), _MAX_NAMES)
        notes.append(f"Left out, as no model can open them ({USERS_ONLY}): {names}")
    routes = routes.with_notes(notes)

    number = counted(len(catalogue.skills), "skill")
    sizes = {f"the list of {number}": sum(map(listing_tokens, catalogue.skills))}
    sources = tuple(SkillCases(skill.name, skill, ()) for skill in skills)
    with study_session(args, (), loaded=sources, sizes=sizes) as session:
        runner = session.runner
        plans = {}
        for subject in session.run.subjects:
            plans[subject] = _plan(runner, subject, catalogue, routes)
        session.screen.text(
            f"{number}, {counted(len(routes.routes), 'query')} ({routes.source})."
        )
        if not session.may_ask(item for asked in plans.values() for item in asked):
            return "", 1

        routings: list[Routing] = []
        for subject, asked in plans.items():
            routings.append(_ask(runner, subject, asked, catalogue, routes))
            if routings[-1].interrupted:
                break
    return session.report(sections=routings)


def _load_skills(files: Sequence[Path]) -> tuple[list[Skill], list[str]]:
    """The skills that agents could load, and what is wrong with the others;
    SkillError if all are.
    """
    skills = []
    errors = []
    for file in files:
        try:
            skills.append(load_skill(file))
        except SkillError as error:
            errors.append(error)
    if not skills:
        raise errors[0]
    return skills, [
        f"{error.where} ({one_line(f'{error.problem}', 100)})" for error in errors
    ]


def _load_routes(folder: Path, file: Path | None, catalogue: Catalogue) -> LoadedRoutes:
    """Of a file, else of the catalogue's own, else of its skills;
    InputError without any.
    """
    own = folder / ROUTES_FILE
    if file or own.is_file():
        loaded = load_routes(file or own, catalogue)
    else:
        loaded = routes_of_skills(catalogue)
    if not loaded.routes:
        hint = (
            f"Write queries and the skills that they should open to {shown(own)}, "
            f"for example:\n{EXAMPLE}"
        )
        raise InputError(
            shown(folder), "no query to route, and no skill has triggers", hint
        )
    return loaded


def _plan(
    runner: StudyRunner, subject: Subject, catalogue: Catalogue, routes: LoadedRoutes
) -> list[ToGrade]:
    """The trials of an agent on a model."""
    # All skills of the catalogue are installed, without the files of their cases.
    copies = []
    for skill in catalogue.skills:
        folder = skill.file.parent
        files = files_of_cases(skill, own_cases(folder))
        copies.append(SkillCopy.of(skill.name, folder, None, files))
    arm = Arm(SKILL, skills=tuple(copies), tested=catalogue.names)

    settings = runner.evaluator.settings
    checks = parse_checks(ANY_OPENED, KINDS, ())
    asked = []
    for route in routes.routes:
        trials = trials_of(
            "",
            route.case,
            subject,
            [arm],
            settings=settings,
            version=runner.evaluator.version_of(subject.agent),
            runs=range(1, settings.runs + 1),
        )
        asked += [ToGrade(trial, route.case, checks) for trial in trials]
    return asked


def _ask(
    runner: StudyRunner,
    subject: Subject,
    asked: Sequence[ToGrade],
    catalogue: Catalogue,
    routes: LoadedRoutes,
) -> Routing:
    """Ask everything at once; after Ctrl-C, what is answered already counts."""
    runner.begin(f"{subject.label}: {counted(len(asked), 'trial')}")
    records, interrupted = runner.ask(asked)
    by_case = grouped(records, lambda record: record.case)
    queries = []
    for route in routes.routes:
        query = RoutedQuery.of(
            route.case.input,
            route.expected,
            route.unwanted,
            route.place,
            by_case.get(route.case.id, ()),
        )
        queries.append(query)
    costs = [record.cost for record in records if not record.stored]
    notes = [note.rstrip(".") for note in listing_notes(records)]
    routing = Routing(
        agent=subject.agent,
        model=subject.model,
        skills=catalogue.names,
        queries=tuple(queries),
        source=routes.source,
        notes=(*routes.notes, *notes),
        cost=None if None in costs else sum((usd or 0.0 for usd in costs), 0.0),
        interrupted=interrupted,
    )
    right = f"{routing.outcomes.get('right', 0):,}"
    runner.done(f"{right} of {len(routing.queries):,} right")
    return routing
