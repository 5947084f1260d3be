"""Ask the queries of a catalogue, with all of its skills installed."""

from collections.abc import Sequence

from ..._util import grouped
from ..._util.texts import counted
from ...checks import parse_checks
from ...checks.grading import ToGrade
from ...checks.kinds import KINDS
from ...measure.arm_maker import files_of_cases, own_cases
from ...measure.study_runner import StudyRunner
from ...results.run_notes import listing_notes
from ...trials.arm import SKILL, Arm, SkillCopy
from ...trials.subject import Subject
from ...trials.trial import trials_of
from .catalogue import ANY_OPENED, Catalogue, LoadedRoutes
from .routing import RoutedQuery, Routing


def plan_trials(
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


def ask_routes(
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
