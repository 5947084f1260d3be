"""The results of a run, as plain data: what reports show and what goes to disk."""

import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from typing import Final

from .._util.git import Commit
from .._util.texts import counted, one_line
from ..errors import Spell
from ..settings import Gates
from ..skills.case import EDIT_ME
from ..stats import LEVEL, plan_level
from ..trials.answer import STOPPED
from ..trials.plan import PlannedCase, SkillInfo, Unmatched
from ..trials.records import Record, agents_in
from ..trials.subject import CHAT
from .causes import Cause, causes_of
from .hints import DESCRIBE
from .neighbours import Matrix
from .parts import Parts
from .regressions import AcceptedComparison, Standing, compare_all, compared
from .rerun import Rerun
from .summarizing import summarize
from .summary import Summary, repeat_notes
from .summary_row import SummaryRow, summary_rows
from .triggers import TriggerSummary, trigger_reasons, trigger_summaries
from .triggers import repeat_notes as repeat_notes_of_triggers
from .unmatched import unmatched_reasons
from .unseen import unseen_notes
from .verdict import Verdict, gate_reasons, some_names, verdicts_of

Pair = tuple[str, str]  # the names of a skill and of a model

NOTHING_TESTED: Final = "nothing was tested"
_NO_GATES: Final = Gates()
_NO_OPTIONS: Final = Rerun()
_MOST_CAUSES: Final = 3
_LONGEST_CAUSE: Final = 300


def failed_words(number: int) -> list[str]:
    """``3 tests failed or had errors``, if any did."""
    return [f"{counted(number, 'test')} failed or had errors"] if number else []


def incomplete(tests: Sequence[PlannedCase]) -> dict[Pair, tuple[int, int]]:
    """Where a run left out cases: by skill and model, the number it has and the number in the file.

    Python tests belong to no file.
    """
    from_file = [test for test in tests if test.of]
    have = Counter(test.pair for test in from_file)
    whole: dict[Pair, int] = {}
    for test in from_file:
        whole[test.pair] = max(whole.get(test.pair, 0), test.of)
    return {pair: (have[pair], whole[pair]) for pair in have if have[pair] < whole[pair]}


def judged(found: Iterable[Unmatched], tests: Iterable[PlannedCase]) -> list[Unmatched]:
    """Those that a run can judge: one of some cases says nothing of what it has no test for."""
    have = Counter((test.pair, test.should_trigger is not None) for test in tests if test.of)
    here = ("skipped", "marked xfail", "changed")
    return [one for one in found if one.why in here or have[one.pair, one.trigger] >= one.of]


@dataclass(frozen=True)
class RunResults:
    """What was asked in a run and what came of it; everything else is derived."""

    started: datetime
    seconds: float
    skills: tuple[SkillInfo, ...]
    model_ids: Mapping[str, str]  # by the names that the user gave, in their order
    tests: tuple[PlannedCase, ...]
    records: tuple[Record, ...]
    questions: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by skill and case
    gates: Gates = _NO_GATES
    looks: tuple[int, ...] = ()  # of frugal runs
    commit: Commit | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    bundled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # skills, by agent
    missing: Mapping[Pair, int] = field(default_factory=dict)  # cases in no shard of a run
    missing_queries: Mapping[Pair, int] = field(default_factory=dict)  # of triggers, likewise
    broken: Mapping[str, str] = field(default_factory=dict)  # node ids not tested, and why
    unmatched: tuple[Unmatched, ...] = ()  # accepted results
    untested: Mapping[str, str] = field(default_factory=dict)  # skills and models, and why
    lost: tuple[str, ...] = ()  # node ids that were collected and never reported
    interrupted: str | None = None  # what stopped the run before its end
    # Queries of triggers are tests with one arm. They have no lift, so they are kept apart.
    triggers: tuple[PlannedCase, ...] = ()
    trigger_records: tuple[Record, ...] = ()
    matrices: tuple[Matrix, ...] = ()  # one per agent and model
    parts: tuple[Parts, ...] = ()  # one per skill, agent and model
    with_skills: tuple[str, ...] = ()  # paths of others that were installed in all arms
    noise: int = 0  # unrelated skills, likewise
    rerun: Rerun = _NO_OPTIONS  # how to run one test again
    judge: str | None = None  # the model that graded rubrics, by the name that the user gave
    prompt_cache_saved: float = 0.0  # USD that the providers' caches saved in this run

    @cached_property
    def by_test(self) -> dict[tuple[str, str, str], list[Record]]:
        """The records of each skill, case and model."""
        return _by_test(self.records)

    @cached_property
    def _by_trigger(self) -> dict[tuple[str, str, str], list[Record]]:
        return _by_test(self.trigger_records)

    def records_of(self, test: PlannedCase) -> list[Record]:
        known = self.by_test if test.should_trigger is None else self._by_trigger
        return known.get((test.skill, test.case, test.label), [])

    @property
    def all_tests(self) -> tuple[PlannedCase, ...]:
        """Cases and queries of triggers."""
        return (*self.tests, *self.triggers)

    @property
    def all_records(self) -> tuple[Record, ...]:
        return (*self.records, *self.trigger_records)

    @cached_property
    def trigger_summaries(self) -> list[TriggerSummary]:
        """One per skill, agent and model with queries."""
        paths = {skill.name: skill.path for skill in self.skills}
        others = [word for path in self.with_skills for word in (DESCRIBE["with_skills"], path)]
        beside = (*others, *((DESCRIBE["noise"], str(self.noise)) if self.noise else ()))
        known = (self.questions, self.missing_queries, paths, beside)
        return trigger_summaries(self.triggers, self.records_of, *known)

    @cached_property
    def summaries(self) -> list[Summary]:
        """One per skill and model with records, in the given order."""
        groups: dict[Pair, list[Record]] = {}
        for record in self.records:
            groups.setdefault((record.skill, record.label), []).append(record)
        return [
            summarize(
                groups[skill.name, model],
                skill.name,
                model,
                model_id=model_id,
                not_run=self._not_run(skill.name, model),
                against=skill.against,
                score=skill.score,
                looks=self.looks,
                samples=self._samples.get((skill.name, model), {}),
                own_runs=self._own_runs.get((skill.name, model), ()),
            )
            for skill in self.skills
            for model, model_id in self.model_ids.items()
            if (skill.name, model) in groups
        ]

    @cached_property
    def summary(self) -> tuple[SummaryRow, ...]:
        """One row per skill and model, with the numbers of cases and of triggers."""
        all_cases: dict[Pair, int] = {}
        for test in self.tests:
            all_cases[test.pair] = max(all_cases.get(test.pair, 0), test.of)
        return summary_rows(
            self.verdicts,
            self.trigger_summaries,
            {skill.name: skill.digest for skill in self.skills},
            all_cases,
            interrupted=self.interrupted is not None,
            model_ids=self.model_ids,
        )

    @cached_property
    def agents(self) -> dict[str, str]:
        """The agents of the run and their versions."""
        return agents_in(self.all_records)

    @cached_property
    def causes(self) -> list[Cause]:
        """Why answers are missing."""
        named = ((f"{one.skill}::{one.case}[{one.label}]", one) for one in self.all_records)
        return causes_of(named)

    @property
    def agent_lines(self) -> list[str]:
        """Who carried out the cases, with what skills of their own."""
        named = ", ".join(f"{name} {version}".rstrip() for name, version in self.agents.items())
        lines = [f"carried out by {one_line(named, 200)}"] if named else []
        return lines + [
            f"{name} has skills of its own in all arms: {one_line(', '.join(skills), 200)}"
            for name, skills in self.bundled.items()
        ]

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return verdicts_of(self.summaries, plan_level(self.looks) if self.looks else LEVEL)

    @cached_property
    def comparisons(self) -> list[AcceptedComparison]:
        """One per skill and model with accepted results; those of triggers follow the cases."""
        found = (compare_all(tests, self.records_of) for tests in (self.tests, self.triggers))
        return [one for group in found for one in group]

    def standing(self, test: PlannedCase) -> Standing | None:
        """Of a case among the others; None if it has no answer, or an xfail mark."""
        if (key := _key(test)) in self._standings:
            return self._standings[key]
        found = compared(test, self.records_of(test))
        return found.alone if found else None

    @cached_property
    def _standings(self) -> dict[tuple[str, str, str, bool], Standing]:
        return {
            _key(case.test): found.standing(case)
            for found in self.comparisons
            for case in found.cases
        }

    @cached_property
    def failed(self) -> list[PlannedCase]:
        """Tests that failed or had errors, without expected failures."""
        return [test for test in self.all_tests if self._is_failed(test)]

    @cached_property
    def gate(self) -> list[str] | None:
        """Why the run fails, by its gates and accepted results; None if it has neither."""
        unmatched = unmatched_reasons(judged(self.unmatched, self.all_tests))
        if not self.comparisons and not self.gates.any() and not unmatched:
            return None
        regressions = [reason for found in self.comparisons for reason in found.reasons]
        unproven = self._without_evidence if self.gates.of_cases else []
        names = [skill.name for skill in self.skills]
        reasons = [
            *gate_reasons(self.verdicts, self.gates),
            *unproven,
            *trigger_reasons(self.trigger_summaries, self.gates, names),
        ]
        return [*reasons, *regressions, *unmatched, *self.not_tested]

    @cached_property
    def _without_evidence(self) -> list[str]:
        """Why gates can't be evaluated where there is no verdict; what was deselected is fine."""
        known = {(row.skill, row.model) for row in self.summaries}
        lacking = Counter(test.pair for test in self.tests if test.pair not in known)
        reasons = [
            f"{skill} on {model}: can't pass: {counted(number, 'case')} not run"
            for (skill, model), number in lacking.items()
        ]
        reasons += [f"{names}: can't pass: {why}" for why, names in self._untested]
        nothing = [] if known or self.broken else [f"can't pass: {NOTHING_TESTED}"]
        return reasons or nothing

    @cached_property
    def problems(self) -> list[str]:
        """Why the run fails, one line each."""
        found = [*failed_words(len(self.failed)), *self.unfinished, *(self.gate or ())]
        found += self.not_tested if self.gate is None else []
        return found or ([] if self.all_records or self.only_studied else [NOTHING_TESTED])

    @property
    def only_studied(self) -> bool:
        """Whether no test was planned, as for commands that compare ways to install skills."""
        return not (self.tests or self.triggers) and bool(self.matrices or self.parts)

    @cached_property
    def unfinished(self) -> list[str]:
        """What the run lacks, one line each."""
        lost = f"{len(self.lost):,} of {counted(self._collected, 'test')}"
        found = []
        if self.interrupted is not None:
            rest = f"; {lost} did not run" if self.lost else ""
            found.append(f"interrupted: {one_line(self.interrupted, 200)}{rest}")
        elif self.lost:
            found.append(f"{lost} collected but never reported, as if their process had died")
        return found + [
            f"{skill} on {model}: {counted(number, what)} missing from all files"
            for what, lacking in (("case", self.missing), ("query", self.missing_queries))
            for (skill, model), number in lacking.items()
        ]

    def outcome(self, failed: int | None = None) -> str:
        """Passed, failed or interrupted; ``failed`` tests, if others count than those of skills."""
        if len(self.failed) if failed is None else failed:
            return "failed"
        if self.interrupted is not None:
            return "interrupted"
        return "failed" if self.problems else "passed"

    @property
    def _collected(self) -> int:
        return len({test.nodeid for test in self.all_tests}.union(self.lost, self.broken))

    @property
    def not_tested(self) -> list[str]:
        """Tests that could not be asked, and why."""
        return [f"not tested: {one_line(why, 200)}" for why in self.broken.values()]

    @cached_property
    def subsets(self) -> dict[Pair, str]:
        """How many cases ran, where others were deselected, say by -k or --lf."""
        return {
            pair: f"{have:,} of {counted(whole, 'case')}"
            for pair, (have, whole) in incomplete(self.tests).items()
            if pair not in self.missing
        }

    @cached_property
    def query_subsets(self) -> dict[Pair, str]:
        """The same of queries."""
        return {
            pair: f"{have:,} of {counted(whole, 'query')}"
            for pair, (have, whole) in incomplete(self.triggers).items()
            if pair not in self.missing_queries
        }

    @property
    def subset_notes(self) -> list[str]:
        return [
            f"{skill} on {model}: ran only {share}."
            for subsets in (self.subsets, self.query_subsets)
            for (skill, model), share in subsets.items()
        ]

    @property
    def _untested(self) -> list[tuple[str, str]]:
        """Why there is no verdict, and the skills and models of which there is none."""
        names: dict[str, list[str]] = {}
        for name, why in self.untested.items():
            names.setdefault(why, []).append(name)
        return [(why, some_names(own)) for why, own in names.items()]

    @property
    def untested_notes(self) -> list[str]:
        return [f"No verdict on {names}: {why}." for why, names in self._untested]

    @cached_property
    def _samples(self) -> dict[Pair, dict[str, str]]:
        """What each case asks, by skill and model."""
        found: dict[Pair, dict[str, str]] = {}
        for test in self.tests:
            found.setdefault(test.pair, {})[test.case] = test.sample
        return found

    @cached_property
    def _own_runs(self) -> dict[Pair, set[str]]:
        """The cases that say themselves how often they are asked, by skill and model."""
        found: dict[Pair, set[str]] = {}
        for test in self.tests:
            if test.own_runs:
                found.setdefault(test.pair, set()).add(test.case)
        return found

    def notes(self, spell: Spell | None = None) -> list[str]:
        """What a reader must know to trust the numbers; with ``spell``, also what to set."""
        return [
            *self.untested_notes,
            *self._example_notes,
            *self._version_notes,
            *self._cause_notes,
            *self._limit_notes(spell),
            *self.subset_notes,
            *repeat_notes(self.summaries),
            *repeat_notes_of_triggers(self.trigger_summaries),
            *self._unseen_notes(spell),
        ]

    @property
    def _example_notes(self) -> list[str]:
        """Cases that came with init: whatever they show, it is not what users ask."""
        examples: dict[str, set[str]] = {}
        for test in self.tests:
            if EDIT_ME in test.tags:
                examples.setdefault(test.skill, set()).add(test.case)
        return [
            f"{counted(len(cases), 'case')} of {skill} with the tag {EDIT_ME}: examples, which say "
            "nothing about the skill. Edit them, then remove the tag."
            for skill, cases in examples.items()
        ]

    @property
    def _version_notes(self) -> list[str]:
        """Agents that have another version than those of the accepted results."""
        rows: list[Summary | TriggerSummary] = [*self.trigger_summaries, *self.summaries]
        now = {(row.skill, row.model): row for row in rows}
        found = dict[str, None]()
        for test in self.all_tests:
            row, was = now.get(test.pair), test.expected.version if test.expected else ""
            if row and was and row.agent_version not in ("", was):
                what = f"{row.agent} was {one_line(was, 60)} when results were accepted"
                found[f"{what}, and is now {one_line(row.agent_version, 60)}."] = None
        return list(found)

    @property
    def _cause_notes(self) -> list[str]:
        """Why several trials of an agent came to nothing, once for each cause: say, its sandbox."""
        causes = Counter(
            (record.label, one_line(record.error, _LONGEST_CAUSE))
            for record in self.records
            if record.agent != CHAT and record.error
        )
        often = [(model, why, n) for (model, why), n in causes.most_common() if n > 1]
        notes = [f"{model}: {n:,} trials without a result: {why}" for model, why, n in often]
        more = [f"{counted(len(notes) - _MOST_CAUSES, 'more cause')} of missing results."]
        return notes[:_MOST_CAUSES] + (more if len(notes) > _MOST_CAUSES else [])

    def _limit_notes(self, spell: Spell | None) -> list[str]:
        """Agents that were stopped: a low limit looks like a skill that is of no use."""
        trials = Counter(one.label for one in self.records if one.activity)
        stopped = Counter(
            one.label
            for one in self.records
            if one.activity and any(grade.reason.startswith(STOPPED) for grade in one.checks)
        )
        how = f" ({spell('max_turns')}, {spell('timeout')})" if spell else ""
        return [
            f"{model}: {n:,} of {counted(trials[model], 'trial')} stopped at the limit of turns or "
            f"time{how}, which counts as failed."
            for model, n in stopped.items()
        ]

    def _unseen_notes(self, spell: Spell | None) -> list[str]:
        """An agent has all files of a skill, also one that only a test in Python asks."""
        plain = {test.skill for test in self.tests if not self._is_of_agent(test)}
        skills = [skill for skill in self.skills if skill.name in plain]
        mixed = any(map(self._is_of_agent, self.tests))
        return unseen_notes(skills, spell, "plain completions" if mixed else "the model")

    def _is_of_agent(self, test: PlannedCase) -> bool:
        return test.agent != CHAT or any(record.activity for record in self.records_of(test))

    def is_errored(self, test: PlannedCase) -> bool:
        """Whether an answer is missing."""
        return any(record.outcome == "errored" for record in self.records_of(test))

    def _is_failed(self, test: PlannedCase) -> bool:
        if self.is_errored(test):
            return True
        found = self.standing(test)
        return found is not None and found.kind in ("failed", "regressed")

    def _not_run(self, skill: str, model: str) -> int:
        planned = [test for test in self.tests if test.pair == (skill, model)]
        lost = sum(not self.records_of(test) for test in planned)
        return lost + self.missing.get((skill, model), 0)


def _by_test(records: Iterable[Record]) -> dict[tuple[str, str, str], list[Record]]:
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.skill, record.case, record.label), []).append(record)
    return found


def _key(test: PlannedCase) -> tuple[str, str, str, bool]:
    return (*test.pair, test.case, test.should_trigger is not None)


def versions() -> dict[str, str]:
    return {
        "pytest-upskill": version("pytest-upskill"),
        "pytest": version("pytest"),
        "python": platform.python_version(),
        "platform": platform.system().lower(),
    }
