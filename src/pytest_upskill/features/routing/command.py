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
from ...measure.skill_matrix import listing_tokens
from ...measure.study_runner import SkillCases
from ...settings import Gates, Settings
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import USERS_ONLY, Skill, load_skill
from ...skills.suites.json_files import ROUTES_FILE
from .asking import Router
from .catalogue import (
    EXAMPLE,
    Catalogue,
    LoadedRoutes,
    load_routes,
    routes_of_skills,
)
from .results import Routing

_MOST_NAMES: Final = 5
_MOST_BROKEN: Final = 3


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
    skills, broken = _loaded(found.files)
    catalogue = Catalogue.of(skills)
    loaded = _routes(folder, args.tests_file, catalogue)
    notes = [
        *map(_sentence, left_out_lines(found.left_out)),
        *broken,
        *_explicit(catalogue),
    ]
    sizes = {
        f"the list of {counted(len(catalogue.names), 'skill')}": _tokens(catalogue)
    }
    sources = tuple(SkillCases(skill.name, skill, ()) for skill in skills)
    with study_session(args, (), loaded=sources, sizes=sizes) as session:
        router = Router(catalogue, loaded.with_notes(notes), session.runner)
        plans = router.plans(list(session.subjects))
        queries = counted(len(loaded.routes), "query")
        size = f"{counted(len(catalogue.names), 'skill')}, {queries}"
        session.screen.text(f"{size} ({loaded.source}).")
        trials = [item.trial for asked in plans.values() for item in asked]
        if not session.may_ask_for(
            session.runner.estimate_of(trials, free=session.free)
        ):
            return "", 1
        routings = list[Routing]()
        for subject, asked in plans.items():
            routings.append(router.run(subject, asked))
            if routings[-1].interrupted:
                break
    return session.report(sections=routings)


def _routes(folder: Path, file: Path | None, catalogue: Catalogue) -> LoadedRoutes:
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


def _explicit(catalogue: Catalogue) -> list[str]:
    if not catalogue.explicit:
        return []
    names = first_few(list(catalogue.explicit), _MOST_NAMES)
    return [f"Left out, as no model can open them ({USERS_ONLY}): {names}"]


def _sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}"


def _tokens(catalogue: Catalogue) -> int:
    return sum(map(listing_tokens, catalogue.skills))


def _loaded(files: Sequence[Path]) -> tuple[list[Skill], list[str]]:
    """The skills that agents could load, and a sentence about the others;
    SkillError if all are.
    """
    skills, errors = list[Skill](), list[SkillError]()
    for file in files:
        try:
            skills.append(load_skill(file))
        except SkillError as error:
            errors.append(error)
    if not skills:
        raise errors[0]
    names = [f"{error.where} ({one_line(f'{error.problem}', 100)})" for error in errors]
    return skills, (
        [f"Left out, as broken: {first_few(names, _MOST_BROKEN)}"] if errors else []
    )
