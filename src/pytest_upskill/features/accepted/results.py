"""Accepted results: the file beside SKILL.md, and how a run stands beside it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import ConfigDict

from ..._util import grouped
from ..._util.files import replace_file
from ..._util.json_forms import form_of, read_json_form
from ..._util.texts import first_few, one_line, plural
from ...errors import AcceptedError, Setting
from ...results.comparison import CasePair, Fallen, find_fallen
from ...results.outcomes import count_passes, reaches
from ...results.row import SinceAccepted
from ...results.standings import AcceptedComparison, Standing
from ...skills.kinds import CASE
from ...trials.arm import BASELINE
from ...trials.plan import Count, Expectation, Group, PlannedCase
from ...trials.records import Record

if TYPE_CHECKING:
    from ...results.run import RunResults

RESULTS_NAME: Final = "skill_results.json"
MAX_NAMES: Final = 10
_HINT: Final = ("Restore it, or delete it and run pytest with ", Setting("accept"), ".")


# The file.


@dataclass(frozen=True, kw_only=True)
class Accepted(Expectation):
    """What a case reached on a model; ``setup`` is a digest of all that its answers
    depend on.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    case: str
    skill_digest: str
    setup: str

    def is_as_good_as(self, now: "Accepted") -> bool:
        """Whether other runs of the same add nothing."""
        return self.setup == now.setup and self.was.runs >= now.was.runs


# By model and the digest of the case, so that one with another id is the same.
Models = dict[str, dict[str, Accepted]]


def read_results(folder: Path) -> Models:
    """The accepted results of a skill; empty if there is no file."""
    file = folder / RESULTS_NAME
    if not file.exists():
        return {}
    models: Models = read_json_form(file, form_of(Models), AcceptedError, _HINT)
    return models


class AcceptedFiles:
    """The accepted results of skills, each read once."""

    def __init__(self) -> None:
        self._models: dict[str, Models] = {}

    def find(self, test: PlannedCase) -> Accepted | None:
        """That of a case; None if it is new or has changed since."""
        folder = test.folder
        if folder not in self._models:
            self._models[folder] = read_results(Path(folder))
        return self._models[folder].get(test.label, {}).get(test.digest)


def write_results(folder: Path, models: Models) -> None:
    """Write a line for each case, by name, so that a diff shows what changed; without
    models that have no case.
    """
    values = form_of(Models).dump_python(models, mode="json", exclude_defaults=True)
    blocks = []
    for label, cases in sorted(values.items()):
        lines = []
        for key, case in sorted(cases.items(), key=lambda item: item[1]["case"]):
            named = {"case": case["case"], **case}
            lines.append(f"\n  {json.dumps(key)}: {json.dumps(named)}")
        if lines:
            blocks.append(f"\n {json.dumps(label)}: {{{','.join(lines)}\n }}")
    replace_file(folder / RESULTS_NAME, f"{{{','.join(blocks)}\n}}\n")


# How the cases of a run compare with it, alone and together.


class Compared(NamedTuple):
    """A case with its accepted result and what came of it."""

    test: PlannedCase
    expected: Expectation
    passes: CasePair
    baseline: CasePair | None
    planned: Count  # without extra runs
    standing: Standing  # what it shows without the other cases
    words: str


def compare_case(test: PlannedCase, records: Sequence[Record]) -> Compared | None:
    """None without an accepted result, or without all answers."""
    expected = test.expected
    now = count_passes(records)
    planned = count_passes(record for record in records if not record.extra)
    if not expected or not now or not planned or not test.compared:
        return None

    passes = CasePair(test.case, expected.was, now, test.sample)
    baseline = None
    answered = count_passes(records, BASELINE)
    if expected.baseline and answered:
        baseline = passes._replace(before=expected.baseline, now=answered)
    words = f"{now} passed (accepted: {expected.was}, {expected.date})"
    was_good = reaches(expected.was, test.threshold)
    if passes.is_regression:
        standing = Standing("regressed", f"regression: {words}")
    elif reaches(now, test.threshold):
        standing = Standing("passed" if was_good else "better")
    elif was_good:
        standing = Standing("could be chance", f"{words}; could be chance")
    else:
        reason = f"accepted as failing on {expected.date} ({expected.was})"
        standing = Standing("accepted as failing", reason)
    return Compared(
        test,
        expected,
        passes,
        baseline,
        planned,
        standing,
        words=f"{one_line(test.case, 80)}: {words}",
    )


def excuse_failure(test: PlannedCase, records: Sequence[Record]) -> Standing | None:
    """How a case ends that fails in a run to accept; None if it passes."""
    now = count_passes(records)
    if now and reaches(now, test.threshold):
        return None
    return Standing("accepted as failing", f"failing, in a run to accept ({now})")


def find_new(results: "RunResults") -> list[PlannedCase]:
    """Cases without an accepted result that others of their skill have."""
    pairs = {test.pair for test in results.tests if test.expected}
    new = []
    for test in results.tests:
        if test.pair in pairs and test.compared and not test.expected:
            new.append(test)
    return new


def compare(results: "RunResults") -> Iterator[AcceptedComparison]:
    """One for each group of tests with accepted results.

    They are judged together: the more there are, the more evidence it takes.
    """
    groups: dict[Group, list[Compared]] = {}
    for test in results.tests:
        if test.expected:
            groups.setdefault(test.group, [])
        if case := compare_case(test, results.records_of(test)):
            groups[test.group].append(case)
    new = grouped(find_new(results), lambda test: test.group)
    for group in new:
        groups.setdefault(group, [])

    passes = {}
    baselines = {}
    for group, cases in groups.items():
        passes[group] = [case.passes for case in cases]
        baselines[group] = [case.baseline for case in cases if case.baseline]
    fallen = find_fallen(passes)
    without_skill = find_fallen(baselines)
    for group, cases in groups.items():
        names = [one_line(test.case, 60) for test in new.get(group, ())]
        yield _compare_group(
            group, cases, fallen[group], without_skill=without_skill[group], new=names
        )


def _compare_group(
    group: Group,
    cases: Sequence[Compared],
    fallen: Fallen | None,
    *,
    without_skill: Fallen | None,
    new: Sequence[str],
) -> AcceptedComparison:
    of_cases: list[str] = []
    of_group: list[str] = []
    better = []
    chance = []
    regressed = []
    alone = [pair.case for pair in fallen.alone] if fallen else []
    for case in cases:
        kind = case.standing.kind
        has_fallen = fallen and case.test.case in fallen.names
        if has_fallen:
            regressed.append(case.passes)
        if case.test.case in alone:
            reasons = of_cases if kind == "regressed" else of_group
            reasons.append(f"{group.pair}: regression: {case.words}")
        elif kind == "better":
            better.append(case.words)
        elif kind == "could be chance" and not has_fallen:
            chance.append(case.words)

    if fallen and fallen.together:
        whole = "the skill as a whole"
        if alone or group.noun != CASE.noun:
            others = "the other" if alone else "all"
            whole = f"{others} {plural(group.noun)} together"
        reason = f"regression of {whole}: {fallen.together_words('accepted')}"
        if without_skill and without_skill.together:
            reason += "; the model got worse, too: without the skill, "
            reason += without_skill.together_words("accepted")
        of_group.append(f"{group.pair}: {reason}")

    notes = []
    for title, texts in (
        ("better than accepted", better),
        ("no accepted result yet", new),
        ("below accepted; could be chance", chance),
    ):
        if texts:
            notes.append(f"{group.pair}: {title}: {first_few(texts, MAX_NAMES, '; ')}.")
    since = None
    if cases:
        since = SinceAccepted(
            rate=fmean(case.expected.was.share for case in cases),
            now=fmean(case.planned.share for case in cases),
            date=max(case.expected.date for case in cases),
            worse=len(regressed),
        )
    return AcceptedComparison(
        skill=group.pair.skill,
        model=group.pair.subject.model,
        agent=group.pair.subject.agent,
        noun=group.noun,
        standings={case.test.case: case.standing for case in cases},
        regressed=tuple(regressed),
        since=since,
        case_reasons=tuple(of_cases),
        group_reasons=tuple(of_group),
        notes=tuple(notes),
    )
