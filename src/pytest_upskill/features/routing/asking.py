"""Routing as a study: all skills of a catalogue installed,
and every query asked once per run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..._util import grouped
from ..._util.texts import counted
from ...checks import KINDS, parse_checks
from ...checks.grading import ToGrade
from ...measure.arm_maker import files_of_cases, own_cases
from ...measure.study_runner import StudyRunner
from ...results.run_notes import listing_notes
from ...trials.arm import SKILL, Arm, SkillCopy
from ...trials.records import Record
from ...trials.subject import Subject
from ...trials.trial import trials_of
from .catalogue import ANY_OPENED, Catalogue, LoadedRoutes
from .results import RoutedQuery, Routing


@dataclass(frozen=True)
class Router:
    """Asks the queries of a catalogue."""

    catalogue: Catalogue
    loaded: LoadedRoutes
    runner: StudyRunner

    def plans(self, subjects: Sequence[Subject]) -> dict[Subject, list[ToGrade]]:
        """The trials of each agent on a model."""
        arm, evaluator = arm_of(self.catalogue), self.runner.evaluator
        settings, runs = evaluator.settings, range(1, evaluator.settings.runs + 1)
        checks = parse_checks(ANY_OPENED, KINDS, ())
        plans = dict[Subject, list[ToGrade]]()
        for subject in subjects:
            version = evaluator.version_of(subject.agent)
            plans[subject] = [
                ToGrade(trial, route.case, checks)
                for route in self.loaded.routes
                for trial in trials_of(
                    "",
                    route.case,
                    subject,
                    [arm],
                    settings=settings,
                    version=version,
                    runs=runs,
                )
            ]
        return plans

    def run(self, subject: Subject, asked: Sequence[ToGrade]) -> Routing:
        """Ask everything at once; after Ctrl-C, what is answered already counts."""
        self.runner.begin(f"{subject.label}: {counted(len(asked), 'trial')}")
        records, interrupted = self.runner.ask(asked)
        routing = self._routing(subject, records, interrupted)
        self.runner.done(
            f"{routing.outcomes.get('right', 0):,} of {len(routing.queries):,} right"
        )
        return routing

    def _routing(
        self, subject: Subject, records: Sequence[Record], interrupted: bool
    ) -> Routing:
        by_case: Mapping[str, list[Record]] = grouped(
            records, lambda record: record.case
        )
        costs = [record.cost for record in records if not record.stored]
        return Routing(
            agent=subject.agent,
            model=subject.model,
            skills=self.catalogue.names,
            queries=tuple(
                RoutedQuery.of(
                    route.case.input,
                    route.expected,
                    route.unwanted,
                    route.place,
                    by_case.get(route.case.id, ()),
                )
                for route in self.loaded.routes
            ),
            source=self.loaded.source,
            notes=(
                *self.loaded.notes,
                *(note.rstrip(".") for note in listing_notes(records)),
            ),
            cost=None if None in costs else sum((usd or 0.0 for usd in costs), 0.0),
            interrupted=interrupted,
        )


def arm_of(catalogue: Catalogue) -> Arm:
    """All skills of a catalogue installed, without the files of their cases."""
    copies = [
        SkillCopy.of(
            skill.name,
            skill.file.parent,
            None,
            files_of_cases(skill, own_cases(skill.file.parent)),
        )
        for skill in catalogue.skills
    ]
    return Arm(SKILL, skills=tuple(copies), tested=catalogue.names)
