"""Accepted results: those without a test, notes on the comparison, and
--skill-accept.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from .._util import grouped
from .._util.texts import counted, first_few, harmless, one_line
from ..errors import InputError, Setting, SettingsError, shown
from ..reports.writers import Writer
from ..results.accepted import (
    DIGITS,
    NOTHING_ACCEPTED,
    RESULTS_NAME,
    AcceptedResults,
    CaseResult,
    ModelResults,
    case_digest,
    case_result,
    read_results,
    write_results,
)
from ..results.regressions import (
    AcceptedComparison,
    CaseState,
    Compared,
    Present,
    unmatched_in,
)
from ..results.row import SELECTED_BY_OUTCOME
from ..results.run import RunResults, judged
from ..results.run_notes import run_notes
from ..settings import Settings
from ..skills.suites.triggers import PREFIX
from ..stats import CasePasses, worsened
from ..trials.plan import PlannedCase, Unmatched
from ..trials.records import agents_in
from ..trials.subject import ORACLE, SkillOnSubject, Subject
from .items import is_skipped
from .ledger import Ledger
from .paths import SkillSource
from .planning import accepted_of, planned_of
from .pytest_options import spell
from .skill_files import SkillFile

_MOST_NAMES: Final = 10


@dataclass(frozen=True)
class _Group:
    """The cases of a skill on a model and their results."""

    pair: SkillOnSubject
    folder: Path
    tests: tuple[PlannedCase, ...]
    results: dict[str, CaseResult]  # by node id; only of cases that were answered
    dropped: tuple[str, ...]  # accepted cases that are gone or skipped

    @property
    def existing(self) -> tuple[str, ...]:
        """The ids of all cases in the skill's file, if they come from there."""
        return max((test.siblings for test in self.tests), key=len, default=())


def _groups(ledger: Ledger) -> list[_Group]:
    planned = (test for test in ledger.planned if test.agent != ORACLE)
    groups = grouped(planned, lambda test: test.pair)
    folders = {pair: tests[0].folder for pair, tests in groups.items()}
    dropped: dict[SkillOnSubject, list[str]] = {}
    for result in judged(ledger.unmatched, ledger.planned):
        if result.why != "changed":
            dropped.setdefault(result.pair, []).append(result.case)
            folders.setdefault(result.pair, result.folder)
    for test in ledger.skipped:
        dropped.setdefault(test.pair, []).append(test.case)
    return [
        _Group(
            pair,
            Path(folder),
            tuple(groups.get(pair, ())),
            _results(ledger, groups.get(pair, ())),
            tuple(dropped.get(pair, ())),
        )
        for pair, folder in folders.items()
    ]


def unmatched_of(
    items: Iterable[pytest.Item],
    files: Iterable[SkillFile],
    without_cases: Iterable[SkillSource],
    subjects: Mapping[str, Subject],
) -> tuple[Unmatched, ...]:
    """The accepted results on these models that no selected test is compared with."""
    by_pair: dict[SkillOnSubject, _AcceptedOfModel] = {}
    for file in files:
        for model in file.accepted.models.keys() & subjects.keys():
            accepted, of = (
                file.accepted.models[model],
                file.runnable.get(model, Counter()),
            )
            pair = SkillOnSubject(file.source.label, subjects[model])
            new = _AcceptedOfModel(
                accepted, file.source.folder, of, bool(file.siblings)
            )
            entry = by_pair.setdefault(pair, new)
            for case in file.own_cases:
                state: CaseState = (
                    "left out" if file.fits(case, model) else "for other models"
                )
                entry.present[case.id] = Present(
                    case_digest(case, file.case_folder), state
                )
            for name in set(file.siblings) - entry.present.keys():
                # broken, which is reported
                entry.present[name] = Present("", "left out")
    for item in items:
        if not (planned := planned_of(item)):
            continue
        if accepted_of_model := accepted_of(item).models.get(planned.label):
            entry = by_pair.setdefault(
                planned.pair, _AcceptedOfModel(accepted_of_model, Path(planned.folder))
            )
            state = "tested" if planned.compared else "marked xfail"
            state = "skipped" if is_skipped(item) else state
            entry.present[planned.case] = Present(planned.digest, state)
    for source in without_cases:
        for model, accepted in _read_if_good(source.folder).models.items():
            if model in subjects:
                pair = SkillOnSubject(source.label, subjects[model])
                entry = by_pair.setdefault(
                    pair, _AcceptedOfModel(accepted, source.folder)
                )
                entry.all_listed = True
    return tuple(
        Unmatched(
            pair.skill,
            pair.subject.model,
            name,
            was.count,
            entry.accepted.date,
            why,
            entry.of[of_triggers],
            str(entry.folder),
            pair.subject.agent,
            of_triggers,
        )
        for pair, entry in by_pair.items()
        for name, why in unmatched_in(
            entry.accepted, entry.present, all_listed=entry.all_listed
        )
        for was, of_triggers in [
            (entry.accepted.cases[name], entry.counts_queries(name))
        ]
    )


@dataclass
class _AcceptedOfModel:
    """The accepted results of a skill on a model, and the cases that it has now."""

    accepted: ModelResults
    folder: Path
    # tests, by whether they are triggers
    of: Counter[bool] = field(default_factory=Counter)
    all_listed: bool = False
    present: dict[str, Present] = field(default_factory=dict)

    def counts_queries(self, name: str) -> bool:
        """Whether a run that judges this result has all queries, not all cases.

        Where none of its own kind is left, that is told by the other.
        """
        is_trigger = name.startswith(PREFIX)
        return is_trigger if self.of[is_trigger] else not is_trigger


def _read_if_good(folder: Path) -> AcceptedResults:
    """The accepted results of a skill that is not tested;
    errors are reported once it is.
    """
    try:
        return read_results(folder)
    except InputError:
        return NOTHING_ACCEPTED


def _results(ledger: Ledger, tests: Sequence[PlannedCase]) -> dict[str, CaseResult]:
    by_nodeid = {
        test.nodeid: case_result(ledger.records_of(test.nodeid), test.digest)
        for test in tests
        if test.compared
    }
    return {nodeid: result for nodeid, result in by_nodeid.items() if result}


def acceptance_writer(
    settings: Settings, ledger: Ledger, results: RunResults, notes: list[str]
) -> Iterator[Writer]:
    """Accept the results, if --skill-accept is given, and add a note for each skill."""

    def write() -> list[Path]:
        withheld = {row.pair: row.why_withheld for row in results.rows if row.is_apart}
        withheld |= {
            group.pair: SELECTED_BY_OUTCOME for group in results.selected_to_fail
        }
        groups = [group for group in _groups(ledger) if group.pair not in withheld]
        acceptances = list(_accept(groups, ledger, lower=settings.accept_lower))
        notes.extend(
            acceptance.note for acceptance in acceptances if acceptance.changes
        )
        refused = [text for acceptance in acceptances if (text := acceptance.refused)]
        hint = (
            ("To accept that as well: ", Setting("accept_lower"), ".")
            if refused
            else ""
        )
        if refused or withheld:
            nothing = [
                f"nothing accepted of {pair}: {why}" for pair, why in withheld.items()
            ]
            raise SettingsError("accept", f"{'; '.join([*nothing, *refused])}.", hint)
        return []

    if settings.accept:
        yield "accept", write


@dataclass(frozen=True)
class _Acceptance:
    """What accepting the results of a skill on a model does,
    and what it needs =lower for.
    """

    group: _Group
    cases: Mapping[str, CaseResult]  # to be written
    lowered: Sequence[str]  # with both counts
    dropped: Sequence[str]
    lower: bool  # whether it may do these two

    @property
    def changes(self) -> bool:
        return bool(self.cases or self.lower or not self.refused)

    @property
    def note(self) -> str:
        group, cases = self.group, self.cases
        nouns = Counter(test.group.noun for test in group.tests if test.case in cases)
        counts = [counted(number, noun) for noun, number in nouns.items()] or [
            "0 cases"
        ]
        parts = [
            f"accepted {' and '.join(counts)} in {shown(group.folder / RESULTS_NAME)}"
        ]
        unanswered = [
            test.case for test in group.tests if test.nodeid not in group.results
        ]
        parts += [f"not accepted: {_names(unanswered)}"] if unanswered else []
        parts += self._losses if self.lower else []
        return f"{group.pair}: {'; '.join(parts)}"

    @property
    def refused(self) -> str:
        if self.lower or not self._losses:
            return ""
        kept = (
            "accepted cases are kept as they were"
            if self.lowered
            else "accepted cases are kept"
        )
        return f"{self.group.pair}: {kept}; {'; '.join(self._losses)}"

    @property
    def _losses(self) -> list[str]:
        verbs = (
            ("lowered", "dropped")
            if self.lower
            else ("would be lowered", "would be dropped")
        )
        losses = zip(verbs, (self.lowered, self.dropped), strict=True)
        return [f"{verb}: {_names(cases)}" for verb, cases in losses if cases]


def _accept(
    groups: Iterable[_Group], ledger: Ledger, *, lower: bool
) -> Iterator[_Acceptance]:
    """Write the results beside the skills.

    Unless they may be lowered, accepted results of a skill on a model stay as they are
    if any of them would fall. To take only those that rose would choose the lucky ones:
    soon the unchanged skill would look worse than what was accepted.
    """
    by_folder = sorted(groups, key=lambda group: str(group.folder))
    for folder, in_folder in groupby(by_folder, key=lambda group: group.folder):
        before = results = read_results(folder)
        for group in in_folder:
            label, now = group.pair.subject.label, _now(group, ledger)
            accepted = results.models.get(label, replace(now, cases={}))
            known = {
                test.case: was
                for test in group.tests
                if (was := accepted.result_of(test.case, test.digest))
                or (was := accepted.cases.get(test.case))  # it was edited
            }
            cases = _pooled(group, accepted, now, ledger)
            lowered = [
                f"{one_line(case, 60)} ({known[case].count} to {result.count})"
                for case, result in cases.items()
                if case in known and result.count.share < known[case].count.share
            ]
            dropped = [case for case in group.dropped if case in accepted.cases]
            if lowered and not lower:  # what is kept is still of its date and model
                now = accepted
                cases = {
                    case: result for case, result in cases.items() if case not in known
                }
            gone = dropped if lower else []
            present = replace(now if cases else accepted, cases=cases)
            results = results.update(label, present, group.existing, gone)
            yield _Acceptance(group, cases, lowered, dropped, lower)
        if results != before:
            write_results(folder, results)


def _now(group: _Group, ledger: Ledger) -> ModelResults:
    """What this run has of a skill on a model; empty if nothing was answered."""
    if not group.results:
        return ModelResults("", "", "", {})
    (digest,) = {
        skill.digest for skill in ledger.skills if skill.name == group.pair.skill
    }
    version = ledger.version_of(group.tests)
    model_id = ledger.model_ids[group.pair.subject.label]
    now = ModelResults(model_id, ledger.date, digest[:DIGITS], {}, version)
    answered = [test for test in group.tests if test.nodeid in group.results]
    cases = {
        test.case: replace(group.results[test.nodeid], setup=now.setup_of(test))
        for test in answered
    }
    return replace(now, cases=cases)


def _pooled(
    group: _Group, accepted: ModelResults, now: ModelResults, ledger: Ledger
) -> Mapping[str, CaseResult]:
    """The results of this run, with accepted runs of what has not changed since.

    These are more of the same, unless present runs show that they are not.
    """
    unchanged = [
        (test, was)
        for test in group.tests
        if test.case in now.cases
        and (was := accepted.result_of(test.case, test.digest))
        and was.setup == now.setup_of(test)
    ]
    counts = [
        CasePasses(was.count, now.cases[test.case].count, test.sample)
        for test, was in unchanged
    ]
    if worsened([counts])[0].found:
        return now.cases
    pooled = {
        test.case: was.pool(ledger.records_of(test.nodeid)) for test, was in unchanged
    }
    return {**now.cases, **pooled}


def acceptance_notes(results: RunResults) -> list[str]:
    """How the results compare with the accepted ones."""
    lines = run_notes(results, spell)
    for comparison in results.comparisons:
        changed = {
            result.case
            for result in results.unmatched
            if result.pair == comparison.pair
        }
        better = comparison.of_kind("better")
        unknown = [case for case in comparison.unknown if case.test.case not in changed]
        if better:
            lines.append(
                f"{comparison.pair}: better than accepted: {_descriptions(better)}."
            )
        lines += worse_notes([comparison])
        if unknown:
            names = _names([case.test.case for case in unknown])
            lines.append(f"{comparison.pair}: no accepted result yet: {names}.")
    return lines


def something_to_accept(results: RunResults) -> bool:
    """Whether results are new, or better after a change, none fell,
    is gone or of another day.

    Cases that were selected because they failed are the unlucky ones,
    or by now the lucky ones.
    """
    comparisons = results.comparisons
    news = any(comparison.unknown for comparison in comparisons) or is_better(results)
    fallen = any(case.fell for comparison in comparisons for case in comparison.cases)
    unmatched = {result.why for result in judged(results.unmatched, results.tests)}
    unfit = fallen or results.withheld or results.selected_to_fail
    return bool(news or unmatched) and unmatched <= {"changed"} and not unfit


def is_better(results: RunResults) -> bool:
    """Whether a case is, after a change.

    What is better without one is luck: to accept it would make the skill look worse
    later. After a change it may be luck, too, so that other answers should be
    accepted than those that say so.
    """
    return any(
        _changed(case, results)
        for comparison in results.comparisons
        for case in comparison.of_kind("better")
    )


def _changed(case: Compared, results: RunResults) -> bool:
    """Whether the case is asked in another way, or another skill or model,
    than was accepted.
    """
    test = case.test
    digest = {skill.name: skill.digest for skill in results.skills}[test.skill]
    records = (record for record in results.records if record.pair == test.pair)
    version = agents_in(records).get(test.agent, "")
    now = ModelResults(results.model_ids[test.label], "", digest[:DIGITS], {}, version)
    return case.expected is not None and case.expected.setup != now.setup_of(test)


def worse_notes(comparisons: Sequence[AcceptedComparison]) -> list[str]:
    """Models that got worse, and cases that did, which could be chance."""
    lines = []
    for comparison in comparisons:
        if (drift := comparison.drift) and not drift.explains:
            lines.append(f"{comparison.pair}: {drift.words}.")
        if chance := comparison.of_kind("could be chance"):
            lines.append(
                f"{comparison.pair}: below accepted; could be chance:"
                f" {_descriptions(chance)}."
            )
    return lines


def _descriptions(cases: Sequence[Compared]) -> str:
    return first_few([case.numbers for case in cases], _MOST_NAMES, "; ")


def _names(cases: Sequence[str]) -> str:
    return first_few([one_line(case, 60) for case in cases], _MOST_NAMES)


def fail_late(ledger: Ledger, config: pytest.Config) -> None:
    """Report tests as failed that passed or xfailed before their regression was known.

    These are tests in Python, and cases of a run with some. A second report
    of a test is what pytest makes of a teardown that fails: terminal,
    JUnit, IDEs and --lf know it.
    """
    late = [
        (report, harmless(comparison.standing(case).reason))
        for comparison in ledger.comparisons()
        for case in comparison.regressed
        if (report := ledger.report_to_fail(case.test.nodeid))
    ]
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if late and reporter:
        reporter.ensure_newline()
    for first, reason in late:
        for reports in reporter.stats.values() if reporter else ():
            if first in reports:
                reports.remove(first)  # a test is counted once
        report = copy(first)
        report.outcome, report.user_properties = "failed", []  # its records are known
        report.longrepr = "\n\n".join(filter(None, [reason, first.longreprtext]))
        vars(report).pop("wasxfail", None)
        config.hook.pytest_runtest_logreport(report=report)
