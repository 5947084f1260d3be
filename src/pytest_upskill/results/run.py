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
from .._util.texts import counted, message_line, one_line, shortened
from ..options import DAY
from ..registry import section_types
from ..settings import Gates
from ..stats import flakiness, pass_hat_k
from ..trials.answer import AnswerFile
from ..trials.plan import Group, PlannedCase, SkillInfo, Unmatched
from ..trials.records import Record, agents_in
from ..trials.subject import ORACLE, SkillOnSubject
from .causes import Cause, causes_of
from .contrasts import Study
from .gates import gate_reasons, trigger_reasons
from .outcomes import (
    BAD,
    CaseOutcome,
    OutcomeWord,
    Reported,
    count_outcomes,
    failure_words,
    outcome_of,
)
from .regressions import (
    AcceptedComparison,
    ModelDrift,
    Standing,
    compare_all,
    compared,
    unmatched_reasons,
)
from .sections import OneOf, Section
from .summary import BUDGET_ENDED, CaseSummary, Summary, summarize
from .summary_row import SummaryRow, summary_rows
from .trigger_summary import DESCRIBE, TriggerSummary, trigger_summaries
from .verdict import Verdict, first_names, verdicts_of

NOTHING_TESTED: Final = "nothing was tested"
_NO_GATES: Final = Gates()
_LONGEST_FILE: Final = 20_000  # characters of what an agent made
_LONGEST_FILES: Final = 100_000  # of all files of a trial
# Of all transcripts that the history keeps of a run
_LONGEST_TRANSCRIPTS: Final = 50_000_000
_TURN_SIZE: Final = 200  # of a turn beside its text


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
    pass_hat_k: tuple[float, ...]  # for k = 1, 2, …: the chance that k runs all pass
    flakiness: float | None

    @classmethod
    def of(cls, row: Summary, case: CaseSummary) -> "CaseRow":
        baseline, skill = case.arm("baseline"), case.arm("skill")
        passes = round((skill.rate or 0.0) * case.runs)
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
            pass_hat_k=tuple(
                pass_hat_k(passes, case.runs, k + 1) for k in range(case.runs)
            ),
            flakiness=flakiness(passes, case.runs) if case.runs > 1 else None,
        )


# How the fields of a run are written and checked.


def _moment(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone")
    if not 1970 < moment.year < 3000:
        raise ValueError("no time of a run")
    return moment


def _possible_gates(gates: Gates) -> Gates:
    numbers = [
        number for number in vars(gates).values() if isinstance(number, float | int)
    ]
    if not all(abs(number) <= MOST for number in numbers):
        raise ValueError("number too large")
    return gates


def _rows_of_questions(
    questions: Mapping[tuple[str, str], str],
) -> list[dict[str, str]]:
    rows = questions.items()
    return [
        {"skill": skill, "case": case, "question": text} for (skill, case), text in rows
    ]


def _questions_in_rows(rows: Any) -> Any:
    try:
        return {(row["skill"], row["case"]): row["question"] for row in rows}
    except (TypeError, KeyError):
        raise ValueError("must be a list of skill, case and question") from None


def _all_brief(
    records: tuple[Record, ...], info: SerializationInfo
) -> tuple[Record, ...]:
    """Long files are cut. Only the history has transcripts,
    as far as there is room for them.
    """
    room = _LONGEST_TRANSCRIPTS if info.context else 0
    brief = []
    for record in records:
        room -= sum(_TURN_SIZE + len(turn.text) for turn in record.transcript)
        transcript = record.transcript if room >= 0 else ()
        files = tuple(_cut_files(record.files))
        brief.append(replace(record, transcript=transcript, files=files))
    return tuple(brief)


def _cut_files(files: Sequence[AnswerFile]) -> Iterator[AnswerFile]:
    budget = _LONGEST_FILES
    for file in files:
        limit = min(budget, _LONGEST_FILE)
        budget -= min(limit, len(file.text or ""))
        yield replace(
            file, text=file.text and shortened(file.text, limit, saving=1), data=""
        )


Moment = Annotated[datetime, AfterValidator(_moment)]
_Records = Annotated[
    Many[Record], PlainSerializer(_all_brief, return_type=tuple[Record, ...])
]
_Questions = Annotated[
    Mapping[tuple[str, str], str],
    BeforeValidator(_questions_in_rows),
    PlainSerializer(_rows_of_questions, return_type=list[dict[str, str]]),
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
    gates: Annotated[Gates, AfterValidator(_possible_gates)] = _NO_GATES
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

    @computed_field
    @cached_property
    def summary(self) -> tuple[SummaryRow, ...]:
        """One row per skill and model, with the numbers of cases and of triggers."""
        return summary_rows(
            self.verdicts,
            self.trigger_summaries,
            {skill.name: skill.digest for skill in self.skills},
            self._all_cases,
            interrupted=self.interrupted is not None,
            model_ids=self.model_ids,
        )

    @computed_field
    @cached_property
    def by_case(self) -> tuple[CaseRow, ...]:
        return tuple(
            CaseRow.of(row, case) for row in self.summaries for case in row.by_case
        )

    @computed_field
    @cached_property
    def trigger_summaries(self) -> list[TriggerSummary]:
        """One per skill, agent and model with queries."""
        beside = [DESCRIBE["base_url"], self.base_url] if self.base_url else []
        beside += [
            word
            for path in self.with_skills
            for word in (DESCRIBE["with_skills"], path)
        ]
        beside += [DESCRIBE["noise"], str(self.noise)] if self.noise else []
        return trigger_summaries(
            self.triggers,
            self.planned_records_of,
            questions=self.questions,
            missing=self.missing,
            by_outcome=self.selected_to_fail,
            paths={skill.name: skill.path for skill in self.skills},
            beside=tuple(beside),
            bundles={skill.name for skill in self.skills if skill.members},
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
        unmatched = unmatched_reasons(judged(self.unmatched, self.tests))
        gates = self.active_gates
        if not self.comparisons and not gates.any() and not unmatched:
            return Gate(None)
        decided = [section.decides for section in self.sections if not self.tests]
        others = without_gates(gates, frozenset().union(*decided))
        names = [skill.name for skill in self.skills]
        reasons = (
            *gate_reasons(self.verdicts, gates),
            *(self._without_evidence if others.of_cases else ()),
            *(
                reason
                for section in self.sections
                for reason in section.gate_reasons(gates)
            ),
            *trigger_reasons(self.trigger_summaries, others, names),
            *(
                reason
                for comparison in self.comparisons
                for reason in comparison.reasons
            ),
            *unmatched,
            *self.not_tested,
        )
        # Also if only accepted results are compared
        if not reasons and self.budget_ended:
            reasons = (f"can't pass: {self.budget_ended}",)
        return Gate(not reasons, reasons)

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
        tests = grouped(
            filter(self.records_of, self.tests), lambda test: f"{test.pair}"
        )
        return {
            pair: tuple(test.case for test in group) for pair, group in tests.items()
        }

    @cached_property
    def triggers(self) -> tuple[PlannedCase, ...]:
        """The tests that are queries of triggers."""
        return tuple(test for test in self.tests if test.is_trigger)

    @cached_property
    def cases(self) -> tuple[PlannedCase, ...]:
        """The other tests: those that lift and verdicts are of."""
        return tuple(test for test in self.tests if test.in_lift)

    @property
    def _all_cases(self) -> dict[SkillOnSubject, int]:
        """How many cases a lift could have, without those that are
        asked with the skill alone.
        """
        alone = Counter(test.pair for test in self.tests if test.skill_only)
        totals = _totals(self.cases)
        return {of.pair: max(0, total - alone[of.pair]) for of, total in totals.items()}

    @cached_property
    def case_records(self) -> tuple[Record, ...]:
        """The records that lift and verdicts are of."""
        others = {(test.pair, test.case) for test in self.tests if not test.in_lift}
        return tuple(
            record
            for record in self.records
            if (record.pair, record.case) not in others and not record.extra
        )

    @property
    def only_studied(self) -> bool:
        """Whether no test was planned, as for commands that
        compare ways to install skills.
        """
        return not self.tests and bool(self.studies or self.sections)

    # What it lacks.

    @cached_property
    def budget_ended(self) -> str:
        """``the budget ended the run: 4 of 10 tests not finished``;
        empty if it did not.
        """
        tests = {
            (record.pair, record.case) for record in self.records if record.over_budget
        }
        share = f"{len(tests):,} of {counted(len(self.tests), 'test')}"
        return f"{BUDGET_ENDED}: {share} not finished" if tests else ""

    @cached_property
    def missing(self) -> dict[Group, int]:
        """How many cases are in no file of a merged run."""
        counts = incomplete(self.tests) if self.expects_all else {}
        return {group: total - number for group, (number, total) in counts.items()}

    @cached_property
    def subsets(self) -> dict[Group, str]:
        """How many cases ran, where others were deselected, say by -k or --lf."""
        counts = {} if self.expects_all else incomplete(self.tests)
        return {
            group: f"{number:,} of {counted(total, group.noun)}"
            for group, (number, total) in counts.items()
        }

    @cached_property
    def selected_to_fail(self) -> frozenset[Group]:
        """Where --lf or --sw left out cases, because they had passed;
        their rates say nothing.
        """
        if not self.by_outcome:
            return frozenset()
        # Whose number is not known
        of_python = (test.group for test in self.tests if not test.of)
        return frozenset([*of_python, *incomplete(self.tests)])

    @cached_property
    def causes(self) -> list[Cause]:
        """Why answers are missing."""
        return causes_of(
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
            not_run = f"; {lost} did not run" if self.lost else ""
            lines.append(f"interrupted: {one_line(self.interrupted, 200)}{not_run}")
        elif self.lost:
            lines.append(
                f"{lost} collected but never reported, as if their process had died"
            )
        lines += [self.budget_ended] if self.budget_ended else []
        return lines + [
            f"{group.pair}: {counted(number, group.noun)} missing from all files"
            for group, number in self.missing.items()
        ]

    @property
    def withheld(self) -> list[str]:
        """Why there is no verdict though every answer is there."""
        return [
            f"{row.pair}: {row.why_withheld}" for row in self.summaries if row.apart
        ]

    # What came of it.

    @cached_property
    def summaries(self) -> list[Summary]:
        """One per skill and model with records, in the given order."""
        groups = grouped(self.case_records, lambda record: record.pair)
        return [
            summarize(
                groups[pair],
                pair,
                model_id=model_id,
                not_run=self._not_run(pair),
                against=skill.against,
                score=skill.score,
                tests=self._cases_of.get(pair, ()),
                max_age=self.max_age,
                started=self.started,
                by_outcome=Group(pair, of_triggers=False) in self.selected_to_fail
                and pair.subject.agent != ORACLE,
                members=skill.members,
            )
            for skill in self.skills
            for label, model_id in self.model_ids.items()
            for pair in groups
            if (pair.skill, pair.subject.label) == (skill.name, label)
        ]

    def _not_run(self, pair: SkillOnSubject) -> int:
        lost = sum(not self.records_of(test) for test in self._cases_of.get(pair, ()))
        return lost + self.missing.get(Group(pair, of_triggers=False), 0)

    @cached_property
    def _cases_of(self) -> dict[SkillOnSubject, list[PlannedCase]]:
        return grouped(self.cases, lambda test: test.pair)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        verdicts = verdicts_of(self.summaries)
        accepted = {
            run.pair: run.since for run in self.comparisons if not run.of_triggers
        }
        return [
            replace(each, accepted=accepted.get(each.summary.pair)) for each in verdicts
        ]

    @cached_property
    def comparisons(self) -> list[AcceptedComparison]:
        """One for each group of tests with accepted results."""
        return compare_all(self.tests, self.records_of, self.model_ids)

    @computed_field
    @cached_property
    def drifts(self) -> tuple[ModelDrift, ...]:
        """Models that got worse since their results were accepted."""
        return tuple(run.drift for run in self.comparisons if run.drift)

    def standing(self, test: PlannedCase) -> Standing | None:
        """Of a case among the others; None if it has no answer, or an xfail mark."""
        if (key := (test.pair, test.case)) in self._standings:
            return self._standings[key]
        case = compared(test, self.records_of(test))
        return case.alone if case else None

    @cached_property
    def _standings(self) -> dict[tuple[SkillOnSubject, str], Standing]:
        return {
            (case.test.pair, case.test.case): comparison.standing(case)
            for comparison in self.comparisons
            for case in comparison.cases
        }

    @cached_property
    def _outcomes(self) -> dict[str, CaseOutcome]:
        outcomes = {
            test.nodeid: outcome_of(
                test,
                self.records_of(test),
                self.standing(test),
                self.reported.get(test.nodeid),
                self.broken.get(test.nodeid, ""),
            )
            for test in self.tests
        }
        for nodeid, reason in self.broken.items():
            word: OutcomeWord = (
                "failed" if self.reported.get(nodeid) == "failed" else "error"
            )
            outcomes.setdefault(
                nodeid, CaseOutcome(nodeid, word, message_line(reason, 300))
            )
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
        return list(filter(None, problems))

    @cached_property
    def _without_evidence(self) -> list[str]:
        """Why gates can't be evaluated where there is no verdict;
        what was deselected is fine.
        """
        judged_pairs = {row.pair for row in self.summaries}
        not_run = Counter(
            test.pair for test in self.cases if test.pair not in judged_pairs
        )
        reasons = [
            f"{pair}: can't pass: {counted(number, 'case')} not run"
            for pair, number in not_run.items()
        ]
        reasons += [
            f"{names}: can't pass: {reason}"
            for reason, names in self.untested_by_reason
        ]
        if names := self._only_with_triggers:
            reasons.append(
                f"{first_names(names)}: can't pass: only queries were asked, no case"
            )
        beside = any(not test.in_lift for test in self.tests)
        what = "no case was tested" if beside else NOTHING_TESTED
        nothing = [] if judged_pairs or self.broken else [f"can't pass: {what}"]
        return reasons or nothing

    @property
    def _only_with_triggers(self) -> list[str]:
        """Skills and models without a case beside others,
        unless some tests were deselected.
        """
        named = {name for test in self.cases for name in (test.skill, test.label)}
        if not named or self.subsets:
            return []
        tried = dict.fromkeys(
            name for test in self.triggers for name in (test.skill, test.label)
        )
        return [
            name for name in tried if name not in named and name not in self.untested
        ]

    @cached_property
    def problems(self) -> list[str]:
        """Why the run fails, one line each."""
        lines = [
            *failure_words(self.outcome_counts),
            *self.unfinished,
            *self.gate.reasons,
        ]
        lines += self.failed_studies
        lines += self.not_tested if self.gate.passed is None else []
        return lines or ([] if self.records or self.only_studied else [NOTHING_TESTED])

    def outcome(self, failed: int | None = None) -> str:
        """Passed, incomplete, failed or interrupted.

        ``failed`` is the number of failed tests, if others count than those of skills.
        """
        if len(self.failed) if failed is None else failed:
            return "failed"
        if self.interrupted is not None:
            return "interrupted"
        return (
            "failed" if self.problems else "incomplete" if self.withheld else "passed"
        )


def without_gates(gates: Gates, names: Collection[str]) -> Gates:
    unset = {name: value for name, value in vars(_NO_GATES).items() if name in names}
    return replace(gates, **unset)


def without_oracle(results: RunResults) -> RunResults:
    """The results of the others: what the oracle does says nothing about a skill."""
    if ORACLE not in results.model_ids:
        return results
    tests = tuple(test for test in results.tests if test.agent != ORACLE)
    labels = {test.label for test in tests}
    return replace(
        results,
        tests=tests,
        records=tuple(record for record in results.records if record.agent != ORACLE),
        model_ids={
            name: of for name, of in results.model_ids.items() if name in labels
        },
    )


def triggers_as_cases(results: RunResults, tag: str = "") -> RunResults:
    """A run that has only these triggers, as if they were cases;
    all of them without a ``tag``.
    """
    triggers = [test for test in results.triggers if not tag or tag in test.tags]
    return replace(
        results,
        tests=tuple(replace(test, is_trigger=False) for test in triggers),
        records=tuple(
            record for test in triggers for record in results.planned_records_of(test)
        ),
    )


def incomplete(tests: Sequence[PlannedCase]) -> dict[Group, tuple[int, int]]:
    """Where a run left out cases: the number that it has, and the number in the file.

    Python tests belong to no file.
    """
    counts, totals = Counter(test.group for test in tests if test.of), _totals(tests)
    return {of: (counts[of], totals[of]) for of in counts if counts[of] < totals[of]}


def _totals(tests: Iterable[PlannedCase]) -> dict[Group, int]:
    """How many cases the file of a skill has on a model."""
    totals: dict[Group, int] = {}
    for test in tests:
        totals[test.group] = max(totals.get(test.group, 0), test.of)
    return totals


def judged(
    unmatched: Iterable[Unmatched], tests: Iterable[PlannedCase]
) -> list[Unmatched]:
    """Those that a run can judge: one of some cases says nothing
    of what it has no test for.
    """
    counts = Counter(test.group for test in tests if test.of)
    seen = ("skipped", "marked xfail", "changed")
    return [
        accepted
        for accepted in unmatched
        if accepted.why in seen or counts[accepted.group] >= accepted.of
    ]


def versions() -> dict[str, str]:
    return {
        "pytest-upskill": version("pytest-upskill"),
        "pytest": version("pytest"),
        "python": platform.python_version(),
        "platform": platform.system().lower(),
    }
