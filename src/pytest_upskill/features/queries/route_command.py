"""``route``: which skill of a catalogue each query opens."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..._util.texts import counted, first_few, one_line
from ...cli.command_table import add_options
from ...cli.project import find_skill
from ...cli.study_session import add_flags, study_session
from ...errors import InputError, SkillError, shown
from ...measure.study_cases import SkillCases
from ...settings import Gates, Settings
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import USERS_ONLY, Skill, listing_tokens, load_skill
from ...skills.suites.json_files import ROUTES_FILE
from .catalogue import (
    EXAMPLE,
    Catalogue,
    LoadedRoutes,
    load_routes,
    routes_of_skills,
)
from .route_asking import ask_routes, plan_trials
from .routing import Routing

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
            plans[subject] = plan_trials(runner, subject, catalogue, routes)
        session.screen.text(
            f"{number}, {counted(len(routes.routes), 'query')} ({routes.source})."
        )
        if not session.may_ask(item for asked in plans.values() for item in asked):
            return "", 1

        routings: list[Routing] = []
        for subject, asked in plans.items():
            routings.append(ask_routes(runner, subject, asked, catalogue, routes))
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
