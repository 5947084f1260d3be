"""The results of a run: what was asked, what came of it,
and all that follows from that.

`RunResults` is also the file of --skill-json: its fields are read back, what is
computed is only written.
"""

import platform
import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainSerializer,
    SerializationInfo,
    computed_field,
)

from .._util import grouped
from .._util.git import Commit
from .._util.json_forms import MOST, Amount, Flag, Many, Number, Seconds, Whole
from .._util.keys import shown_words
from .._util.texts import counted, first_few, message_line, one_line, plural, shortened
from ..options import DAY
from ..registry import comparing, kind_section_types, section_types
from ..settings import Gates
from ..skills.kinds import CASE
from ..trials.answer import AnswerFile
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Group, PlannedCase, SkillInfo, Unmatched
from ..trials.records import Record, agents_in
from ..trials.subject import SkillOnSubject, asks_model
from .causes import BUDGET_ENDED, Cause, find_causes
from .contrasts import Study
from .gates import gate_reasons, unmatched_reasons
from .outcomes import (
    BAD,
    CaseOutcome,
    OutcomeWord,
    Reported,
    count_outcomes,
    failure_words,
    find_outcome,
)
from .row import CaseSummary, Row
from .sections import KindSection, OneOf, Section
from .signals import Signal
from .standings import AcceptedComparison, Standing
from .summary import RowFacts, summarize
from .verdict import Verdict, judge_rows, judge_skills

NOTHING_TESTED: Final = "nothing was tested"
_MAX_NAMES: Final = 5
_NO_GATES: Final = Gates()
# Characters of what an agent made, and of all files of a trial
_MAX_FILE_LENGTH: Final = 20_000
_MAX_FILES_LENGTH: Final = 100_000
# Of all transcripts that the history keeps of a run, and of a turn beside its text
_MAX_TRANSCRIPTS_LENGTH: Final = 50_000_000
_TURN_LENGTH: Final = 200


@dataclass(frozen=True)
class Rerun:
    """What a command needs besides a node id, to ask and grade as the run did.

    Paths in ``options`` are relative to the folder that pytest was called in,
    and so is ``root``, the rootdir. ``models`` are for tests in Python: other
    node ids name their model.
    """

    options: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    root: str = ""
    replay: tuple[str, ...] = ()  # the option that replays what this run recorded

    def command(self, nodeid: str) -> str:
        """For a shell; credentials are left out."""
        return " ".join(self.words(nodeid))

    def words(self, nodeid: str) -> list[str]:
        """The words of this command, quoted."""
        file, colons, name = nodeid.partition("::")
        place = posixpath.normpath(posixpath.join(self.root, file)) + colons + name
        models = self.models if file.endswith(".py") else ()
        return shown_words(["pytest", "-vv", place, *models, *self.options])


_NO_OPTIONS: Final = Rerun()


@dataclass(frozen=True)
class Gate:
    """Whether the run passes its gates and accepted results; None if it has neither."""

    passed: bool | None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class CaseRow:
    """A case on a model that has a complete run."""

    skill: str
    model: str
    agent: str
    case: str
    runs: int  # complete ones
    baseline_rate: float | None
    skill_rate: float | None
    baseline_score: float | None
    skill_score: float | None
    signal: Signal | None
    signal_shown: bool

    @classmethod
    def of(cls, row: Row, case: CaseSummary) -> "CaseRow":
        baseline = case.arm(BASELINE)
        skill = case.arm(SKILL)
        return cls(
            skill=row.skill,
            model=row.model,
            agent=row.agent,
            case=case.case,
            runs=case.runs,
            baseline_rate=baseline.rate,
            skill_rate=skill.rate,
            baseline_score=baseline.score,
            skill_score=skill.score,
            signal=case.signal,
            signal_shown=case.signal_shown,
        )


# How the fields of a run are written and checked.


def _require_zone(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    if not 1970 < moment.year < 3000:
        raise ValueError("no time of a run")
    return moment


def _require_possible(gates: Gates) -> Gates:
    for limit in vars(gates).values():
        if isinstance(limit, float | int) and abs(limit) > MOST:
            raise ValueError("number too large")
    return gates


def _list_questions(questions: Mapping[tuple[str, str], str]) -> list[dict[str, str]]:
    return [
        {"skill": skill, "case": case, "question": text}
        for (skill, case), text in questions.items()
    ]


def _read_questions(rows: Any) -> Any:
    try:
        return {(row["skill"], row["case"]): row["question"] for row in rows}
    except (TypeError, KeyError):
        raise ValueError("must be a list of skill, case and question") from None


def _shorten_records(
    records: tuple[Record, ...], info: SerializationInfo
) -> tuple[Record, ...]:
    """Long files are cut. Only the history has transcripts, as far as there is room for
    them.
    """
    room = _MAX_TRANSCRIPTS_LENGTH if info.context else 0
    shorter = []
    for record in records:
        room -= sum(_TURN_LENGTH + len(turn.text) for turn in record.transcript)
        files = tuple(_cut_files(record.files))
        transcript = record.transcript if room >= 0 else ()
        shorter.append(replace(record, transcript=transcript, files=files))
    return tuple(shorter)


def _cut_files(files: Sequence[AnswerFile]) -> Iterator[AnswerFile]:
    room = _MAX_FILES_LENGTH
    for file in files:
        limit = min(room, _MAX_FILE_LENGTH)
        room -= min(limit, len(file.text or ""))
        text = file.text and shortened(file.text, limit, saving=1)
        yield replace(file, text=text, data="")


Moment = Annotated[datetime, AfterValidator(_require_zone)]
_Records = Annotated[
    Many[Record], PlainSerializer(_shorten_records, return_type=tuple[Record, ...])
]
_Questions = Annotated[
    Mapping[tuple[str, str], str],
    BeforeValidator(_read_questions),
    PlainSerializer(_list_questions, return_type=list[dict[str, str]]),
]
_Sections = Many[Annotated[Section, OneOf(section_types())]]


@dataclass(frozen=True, kw_only=True)
class RunResults:
    """What was asked in a run and what came of it; everything else is derived."""

    schema: Literal[1] = 1
    started: Moment
    seconds: Seconds
    skills: Many[SkillInfo]
    records: _Records
    tests: Many[PlannedCase]
    model_ids: Mapping[str, str]  # by the names that the user gave, in their order
    questions: _Questions = field(default_factory=dict)  # by skill and case
    gates: Annotated[Gates, AfterValidator(_require_possible)] = _NO_GATES
    idle_gates: Many[str] = ()  # that don't apply to what was selected
    # Whether tests were selected by how they ended (--lf, --sw)
    by_outcome: Flag = False
    commit: Commit | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    # skills, by agent
    bundled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    logins: Many[str] = ()  # labels of agents on models that were asked on a login
    # Cases that no shard of a merged run has are missing; else they were deselected.
    expects_all: bool = False
    # Node ids not tested, and why
    broken: Mapping[str, str] = field(default_factory=dict)
    # By node id, pytest's word
    reported: Mapping[str, Reported] = field(default_factory=dict)
    unmatched: Many[Unmatched] = ()  # accepted results
    # Skills and models, and why
    untested: Mapping[str, str] = field(default_factory=dict)
    lost: Many[str] = ()  # node ids that were collected and never reported
    interrupted: str | None = None  # what stopped the run before its end
    studies: Many[Study] = ()  # one or more per agent and model
    sections: _Sections = ()  # what features found beside the tests
    # The server for names of models that no provider knows, safe to show
    base_url: str = ""
    with_skills: Many[str] = ()  # paths of others that were installed in all arms
    noise: Whole = 0  # unrelated skills, likewise
    rerun: Rerun = _NO_OPTIONS  # how to run one test again
    # The model that graded rubrics, by the name that the user gave
    judge: str | None = None
    prompt_cache_saved: Number = 0.0  # USD that the providers' caches saved in this run
    max_age: Amount = DAY  # seconds between the answers of arms that can be compared
    # How often the SKILL.md of a skill was measured on these models, by skill
    looks: Mapping[str, Whole] = field(default_factory=dict)
    # Cases that failed in the last run and are not in this one, by skill
    gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @computed_field
    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each skill, over its models."""
        return judge_skills(self.rows, self.looks, self._why_no_verdict)

    @computed_field
    @cached_property
    def summary(self) -> tuple[Row, ...]:
        """One row per skill and model, with the numbers of all kinds of cases."""
        rows = {row.pair: row for row in self.rows}
        for section in self.kind_sections:
            section.add_to(rows)
        return tuple(rows.values())

    @cached_property
    def kind_sections(self) -> list[KindSection]:
        """What is told of kinds of cases that no lift is of."""
        return [section(self) for section in kind_section_types()]

    @computed_field
    @cached_property
    def by_case(self) -> tuple[CaseRow, ...]:
        return tuple(
            CaseRow.of(row, case) for row in self.summary for case in row.by_case
        )

    @computed_field
    @cached_property
    def outcomes(self) -> tuple[CaseOutcome, ...]:
        """How each test ended, also those that could not be
        asked or were never reached.
        """
        return tuple(self._outcomes.values())

    @computed_field
    @cached_property
    def outcome_counts(self) -> dict[OutcomeWord, int]:
        return count_outcomes(self.outcomes)

    @computed_field
    @cached_property
    def agents(self) -> dict[str, str]:
        """The agents of the run and their versions."""
        return agents_in(self.records)

    @computed_field
    @cached_property
    def gate(self) -> Gate:
        """Why the run fails, by its gates and accepted results."""
        gates = self.active_gates
        unmatched = unmatched_reasons(self.unmatched)
        if not self.comparisons and not gates.any() and not unmatched:
            return Gate(None)

        reasons = gate_reasons(self.rows, gates)
        # What sections decide needs no test.
        others = gates
        for section in self.sections:
            if not self.tests:
                others = without_gates(others, section.decides)
        if others.of_cases:
            reasons += self._without_evidence
        for section in self.sections:
            reasons += section.gate_reasons(gates)
        for kind_section in self.kind_sections:
            reasons += kind_section.gate_reasons(others)
        for comparison in self.comparisons:
            reasons += comparison.reasons
        reasons += unmatched
        reasons += self.not_tested
        # Also if only accepted results are compared
        if not reasons and self.budget_ended:
            reasons.append(f"can't pass: {self.budget_ended}")
        return Gate(not reasons, tuple(reasons))

    @cached_property
    def active_gates(self) -> Gates:
        """The gates without those that are idle."""
        return without_gates(self.gates, self.idle_gates)

    # Records and tests.

    @cached_property
    def by_test(self) -> dict[tuple[SkillOnSubject, str], list[Record]]:
        """The records of each skill, case and model."""
        return grouped(self.records, lambda record: (record.pair, record.case))

    def records_of(self, test: PlannedCase) -> list[Record]:
        return self.by_test.get((test.pair, test.case), [])

    def planned_records_of(self, test: PlannedCase) -> list[Record]:
        """Without those of extra trials, which rates would be biased by."""
        return [record for record in self.records_of(test) if not record.extra]

    @cached_property
    def tested(self) -> dict[str, tuple[str, ...]]:
        """The cases and queries that ran, by skill and model."""
        tested: dict[str, tuple[str, ...]] = {}
        for test in self.tests:
            if self.records_of(test):
                pair = str(test.pair)
                tested[pair] = (*tested.get(pair, ()), test.case)
        return tested

    @cached_property
    def no_cases(self) -> tuple[PlannedCase, ...]:
        """The tests that are called otherwise, such as queries."""
        return tuple(test for test in self.tests if test.kind.noun != CASE.noun)

    @cached_property
    def cases(self) -> tuple[PlannedCase, ...]:
        """The tests that lift and verdicts are of."""
        return tuple(test for test in self.tests if test.kind.in_lift)

    @cached_property
    def cases_apart(self) -> Counter[SkillOnSubject]:
        """How many cases are asked with the skill alone, so that no lift has them."""
        return Counter(test.pair for test in self.tests if test.kind.is_case_apart)

    @cached_property
    def case_records(self) -> tuple[Record, ...]:
        """The records that lift and verdicts are of."""
        others = {
            (test.pair, test.case) for test in self.tests if not test.kind.in_lift
        }
        return tuple(
            record
            for record in self.records
            if (record.pair, record.case) not in others and not record.extra
        )

    @property
    def only_studied(self) -> bool:
        """Whether no test was planned, as for commands that compare ways to install
        skills.
        """
        return not self.tests and bool(self.studies or self.sections)

    # What it lacks.

    @cached_property
    def budget_ended(self) -> str:
        """``the budget ended the run: 4 of 10 tests not finished``; empty if it did
        not.
        """
        tests = {
            (record.pair, record.case) for record in self.records if record.over_budget
        }
        if not tests:
            return ""
        share = f"{len(tests):,} of {counted(len(self.tests), 'test')}"
        return f"{BUDGET_ENDED}: {share} not finished"

    @cached_property
    def missing(self) -> dict[Group, int]:
        """How many cases are in no file of a merged run."""
        if not self.expects_all:
            return {}
        counts = incomplete(self.tests)
        return {group: total - number for group, (number, total) in counts.items()}

    @cached_property
    def subsets(self) -> dict[Group, str]:
        """How many cases ran, where others were deselected, say by -k or --lf."""
        if self.expects_all:
            return {}
        return {
            group: f"{number:,} of {counted(total, group.noun)}"
            for group, (number, total) in incomplete(self.tests).items()
        }

    @cached_property
    def selected_to_fail(self) -> frozenset[Group]:
        """Where --lf or --sw left out cases, because they had passed; their rates say
        nothing.
        """
        if not self.by_outcome:
            return frozenset()
        # Of tests in Python, the number is not known.
        of_python = [test.group for test in self.tests if not test.of]
        return frozenset([*of_python, *incomplete(self.tests)])

    @cached_property
    def causes(self) -> list[Cause]:
        """Why answers are missing."""
        return find_causes(
            (f"{record.skill}::{record.case}[{record.label}]", record)
            for record in self.records
        )

    @property
    def not_tested(self) -> list[str]:
        """Tests that could not be asked, and why."""
        return [
            f"not tested: {message_line(reason, 200)}"
            for reason in self.broken.values()
        ]

    @property
    def untested_by_reason(self) -> list[tuple[str, str]]:
        """Why there is no verdict, and the skills and models of which there is none."""
        names: dict[str, list[str]] = {}
        for name, reason in self.untested.items():
            names.setdefault(reason, []).append(name)
        return [(reason, first_names(group)) for reason, group in names.items()]

    @cached_property
    def unfinished(self) -> list[str]:
        """What the run lacks, one line each."""
        collected = {test.nodeid for test in self.tests}.union(self.lost, self.broken)
        lost = f"{len(self.lost):,} of {counted(len(collected), 'test')}"
        lines = []
        if self.interrupted is not None:
            line = f"interrupted: {one_line(self.interrupted, 200)}"
            lines.append(f"{line}; {lost} did not run" if self.lost else line)
        elif self.lost:
            lines.append(
                f"{lost} collected but never reported, as if their process had died"
            )
        if self.budget_ended:
            lines.append(self.budget_ended)
        for group, number in self.missing.items():
            cases = counted(number, group.noun)
            lines.append(f"{group.pair}: {cases} missing from all files")
        return lines

    @property
    def withheld(self) -> list[str]:
        """Why there is no verdict though every answer is there."""
        return [f"{row.pair}: {row.why_withheld}" for row in self.rows if row.is_apart]

    # What came of it.

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One per skill and model with records of cases, in the given order."""
        rows = self.summarize(self.cases, self.case_records)
        accepted = {
            comparison.pair: comparison.since
            for comparison in self.comparisons
            if comparison.noun == CASE.noun
        }
        judged_rows = judge_rows(rows, self._why_no_verdict)
        return tuple(
            replace(row, accepted=accepted.get(row.pair)) for row in judged_rows
        )

    def summarize(
        self, tests: Iterable[PlannedCase], records: Iterable[Record]
    ) -> list[Row]:
        """The numbers of these tests: one row per skill and model with records of
        them, in the given order.
        """
        tests_by_pair = grouped(tests, lambda test: test.pair)
        groups = grouped(records, lambda record: record.pair)
        rows = []
        for skill in self.skills:
            for label in self.model_ids:
                for pair, of_pair in groups.items():
                    if (pair.skill, pair.subject.label) == (skill.name, label):
                        facts = self._find_facts(
                            pair, skill, tests_by_pair.get(pair, ())
                        )
                        rows.append(summarize(of_pair, pair, facts))
        return rows

    def _find_facts(
        self, pair: SkillOnSubject, skill: SkillInfo, tests: Sequence[PlannedCase]
    ) -> RowFacts:
        cases = Group(pair)
        asks = asks_model(pair.subject.agent)
        all_cases = max((test.of for test in tests), default=0)
        not_run = sum(not self.records_of(test) for test in tests)
        return RowFacts(
            model_id=self.model_ids[pair.subject.label],
            not_run=not_run + self.missing.get(cases, 0),
            all_cases=max(0, all_cases - self.cases_apart[pair]),
            against=skill.against,
            score=skill.score,
            tests={test.case: test for test in tests},
            max_age=self.max_age,
            by_outcome=asks and cases in self.selected_to_fail,
            members=skill.members,
            skill_digest=skill.digest,
            interrupted=self.interrupted is not None,
        )

    @cached_property
    def _why_no_verdict(self) -> dict[str, str]:
        """Skills of which only a part was asked, or whose failing cases are gone.

        What is left out may have been chosen by how it ends.
        """
        reasons = {}
        for skill, cases in self.gone.items():
            verb = "is" if len(cases) == 1 else "are"
            reasons[skill] = (
                f"no verdict: {counted(len(cases), 'case')} that failed last time"
                f" {verb} gone; ask the others afresh"
            )
        for group, share in self.subsets.items():
            if group.noun == CASE.noun and asks_model(group.pair.subject.agent):
                reasons[group.pair.skill] = f"{share}: no verdict for a part"
        return reasons

    @cached_property
    def comparisons(self) -> list[AcceptedComparison]:
        """One for each group of tests with accepted results."""
        return [found for compare in comparing() for found in compare(self)]

    @cached_property
    def _standings(self) -> dict[tuple[SkillOnSubject, str], Standing]:
        standings = {}
        for comparison in self.comparisons:
            for case, standing in comparison.standings.items():
                standings[comparison.pair, case] = standing
        return standings

    @cached_property
    def _outcomes(self) -> dict[str, CaseOutcome]:
        outcomes = {}
        for test in self.tests:
            outcomes[test.nodeid] = find_outcome(
                test,
                self.records_of(test),
                self._standings.get((test.pair, test.case)),
                reported=self.reported.get(test.nodeid),
                broken=self.broken.get(test.nodeid, ""),
            )
        for nodeid, reason in self.broken.items():
            has_failed = self.reported.get(nodeid) == "failed"
            word: OutcomeWord = "failed" if has_failed else "error"
            outcome = CaseOutcome(nodeid, word, message_line(reason, 300))
            outcomes.setdefault(nodeid, outcome)
        for nodeid in self.lost:
            outcomes.setdefault(nodeid, CaseOutcome(nodeid, "not run"))
        return outcomes

    def outcome_of(self, test: PlannedCase) -> CaseOutcome:
        return self._outcomes[test.nodeid]

    @cached_property
    def failed(self) -> list[PlannedCase]:
        """Tests that failed or had errors, without accepted failures."""
        return [test for test in self.tests if self.outcome_of(test).outcome in BAD]

    @property
    def failed_studies(self) -> list[str]:
        problems = [study.problem for study in self.studies]
        problems += [section.problem(self.active_gates) for section in self.sections]
        return [problem for problem in problems if problem]

    @cached_property
    def _without_evidence(self) -> list[str]:
        """Why gates can't be evaluated where there is no verdict; what was deselected
        is fine.
        """
        judged_pairs = {row.pair for row in self.rows}
        not_run = Counter(
            test.pair for test in self.cases if test.pair not in judged_pairs
        )
        reasons = []
        for pair, number in not_run.items():
            reasons.append(f"{pair}: can't pass: {counted(number, 'case')} not run")
        for reason, names in self.untested_by_reason:
            reasons.append(f"{names}: can't pass: {reason}")
        for noun, without_case in self._without_case.items():
            what = f"only {plural(noun)} were asked, no case"
            reasons.append(f"{first_names(without_case)}: can't pass: {what}")
        if reasons or judged_pairs or self.broken:
            return reasons

        if any(not test.kind.in_lift for test in self.tests):
            return ["can't pass: no case was tested"]
        return [f"can't pass: {NOTHING_TESTED}"]

    @property
    def _without_case(self) -> dict[str, list[str]]:
        """Skills and models without a case beside others, by the noun of what they
        have, unless some tests were deselected.
        """
        of_cases = _name_all(self.cases)
        if not of_cases or self.subsets:
            return {}
        known = {*of_cases, *self.untested}
        without = {}
        for noun, tests in grouped(self.no_cases, lambda test: test.kind.noun).items():
            if names := [name for name in _name_all(tests) if name not in known]:
                without[noun] = names
        return without

    @cached_property
    def problems(self) -> list[str]:
        """Why the run fails, one line each."""
        lines = failure_words(self.outcome_counts)
        lines += self.unfinished
        lines += self.gate.reasons
        lines += self.failed_studies
        if self.gate.passed is None:
            lines += self.not_tested
        if not lines and not self.records and not self.only_studied:
            return [NOTHING_TESTED]
        return lines

    def outcome(self, failed: int | None = None) -> str:
        """Passed, incomplete, failed or interrupted.

        ``failed`` is the number of failed tests, if others count than those of skills.
        """
        if len(self.failed) if failed is None else failed:
            return "failed"
        if self.interrupted is not None:
            return "interrupted"
        if self.problems:
            return "failed"
        return "incomplete" if self.withheld else "passed"


def without_gates(gates: Gates, names: Collection[str]) -> Gates:
    unset = {name: value for name, value in vars(_NO_GATES).items() if name in names}
    return replace(gates, **unset)


def incomplete(tests: Sequence[PlannedCase]) -> dict[Group, tuple[int, int]]:
    """Where a run left out cases: the number that it has, and the number in the file.

    Python tests belong to no file.
    """
    counts = Counter(test.group for test in tests if test.of)
    totals = _count_all(tests)
    return {
        group: (number, totals[group])
        for group, number in counts.items()
        if number < totals[group]
    }


def _count_all(tests: Iterable[PlannedCase]) -> dict[Group, int]:
    """How many cases the file of a skill has on a model."""
    totals: dict[Group, int] = {}
    for test in tests:
        totals[test.group] = max(totals.get(test.group, 0), test.of)
    return totals


def _name_all(tests: Iterable[PlannedCase]) -> list[str]:
    """The skills and models of tests."""
    names: dict[str, None] = {}
    for test in tests:
        names[test.skill] = None
        names[test.label] = None
    return list(names)


def first_names(cases: Sequence[str]) -> str:
    """The first few of many."""
    return first_few([one_line(case, 60) for case in cases], _MAX_NAMES)


def versions() -> dict[str, str]:
    return {
        "pytest-upskill": version("pytest-upskill"),
        "pytest": version("pytest"),
        "python": platform.python_version(),
        "platform": platform.system().lower(),
    }
