"""``route``: which skill of a catalogue each query opens."""

import argparse
import os
from pathlib import Path

from ..._util.texts import counted, first_few
from ...errors import InputError, shown
from ...measure.routing import Router
from ...measure.skill_matrix import listing_tokens
from ...measure.study_runner import SkillCases
from ...results.routing import Routing
from ...settings import Gates, Settings
from ...skills.routes import (
    EXAMPLE,
    ROUTES_FILE,
    Catalogue,
    LoadedRoutes,
    load_routes,
    routes_of_skills,
)
from ...skills.search import find_skills, left_out_lines
from ...skills.skill import load_skill
from ..command_table import add_options
from ..project import find_skill
from .study_commands import add_flags, study_session

_MOST_NAMES = 5


def add_route_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FOLDER [options]"
    parser.add_argument(
        "folder", metavar="FOLDER", help="a folder of skills; its queries are in evals/routes.json"
    )
    add_flags(add_options(parser, "route", Settings, Gates)["reports"])


def run_route(args: argparse.Namespace) -> tuple[str, int]:
    folder = find_skill(args.folder, os.environ)
    found = find_skills(folder)
    catalogue = Catalogue.of(map(load_skill, found.files))
    loaded = _routes(folder, args.tests_file, catalogue)
    notes = [*map(_sentence, left_out_lines(found.left_out)), *_explicit(catalogue)]
    sizes = {f"the list of {counted(len(catalogue.names), 'skill')}": _tokens(catalogue)}
    with study_session(args, [args.folder], _without_cases, sizes) as session:
        router = Router(catalogue, loaded.with_notes(notes), session.runner)
        plans = router.plans(list(session.subjects))
        queries = counted(len(loaded.routes), "query")
        skills = counted(len(catalogue.names), "skill")
        session.screen.text(f"{skills}, {queries} ({loaded.source}).")
        trials = [item.trial for asked in plans.values() for item in asked]
        if not session.may_ask_for(session.runner.estimate_of(trials, free=session.free)):
            return "", 1
        routings = list[Routing]()
        for subject, asked in plans.items():
            routings.append(router.run(subject, asked))
            if routings[-1].interrupted:
                break
    return session.report(routings=routings)


def _routes(folder: Path, file: Path | None, catalogue: Catalogue) -> LoadedRoutes:
    """Of a file, else of the catalogue's own, else of its skills; InputError without any."""
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
        raise InputError(shown(folder), "no query to route, and no skill has triggers", hint)
    return loaded


def _explicit(catalogue: Catalogue) -> list[str]:
    if not catalogue.explicit:
        return []
    names = first_few(list(catalogue.explicit), _MOST_NAMES)
    return [f"Left out, as no model can open them (disable-model-invocation): {names}"]


def _sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}"


def _tokens(catalogue: Catalogue) -> int:
    return sum(map(listing_tokens, catalogue.skills))


def _without_cases(file: Path, label: str, _: Settings) -> SkillCases:
    return SkillCases(label, load_skill(file), ())
