"""What a run is going to ask: its plan, made of the tests that pytest collected."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import pytest

from .._util.texts import first_few, one_line
from ..skills.case import EDIT_ME
from ..skills.kinds import CASE, CaseKind
from ..trials.plan import Plan, SkillInfo
from .items import CaseItem, ItemOfFile, Unrunnable
from .pytest_options import cli_value
from .run import PLANNED, Run, is_skipped, planned_of
from .untested import NO_CASES

ALL_SKIPPED: Final = "all cases are skipped"
_MAX_REASON_LENGTH: Final = 250


def make_plan(run: Run, items: Sequence[pytest.Item]) -> Plan:
    """All that a run is going to ask: the tests that are left of those collected."""
    skills: dict[str, SkillInfo] = {}
    tests = []
    nodeids = []
    for item in items:
        planned = planned_of(item)
        if planned or isinstance(item, ItemOfFile):
            nodeids.append(item.nodeid)
        if not planned or is_skipped(item):
            continue
        tests.append(planned)
        skill = item.stash[PLANNED].skill
        # A test in Python does not know how its skill's cases are scored.
        if skill.name not in skills or skill.score == "checks":
            skills[skill.name] = skill
    return Plan(
        tuple(skills.values()),
        tuple(tests),
        nodeids=tuple(nodeids),
        untested=_find_untested(run, items),
        unmatched=run.unmatched,
        idle_gates=_find_idle_gates(run, items),
        by_outcome=_is_by_outcome(run.config, items),
    )


def _find_idle_gates(run: Run, items: Iterable[pytest.Item]) -> tuple[str, ...]:
    """Gates of the ini file about tests that were all deselected, as by -m trigger."""
    idle = []
    for gate in _find_gates(run.collected) - _find_gates(items):
        if cli_value(run.config, gate) is None:
            idle.append(gate)
    return tuple(sorted(idle))


def _find_gates(items: Iterable[pytest.Item]) -> set[str]:
    """The gates that are about the kinds of cases among tests of skills."""
    gates = set[str]()
    for item in items:
        if planned := planned_of(item):
            gates.update(planned.kind.gates)
    return gates


def _is_by_outcome(config: pytest.Config, items: Iterable[pytest.Item]) -> bool:
    """Whether --lf or --sw chose from the tests, by how they ended the last time."""
    # An option is missing if its plugin is disabled.
    if config.getoption("stepwise", default=False):
        return True
    if not config.getoption("lf", default=False) or not config.cache:
        return False
    failed = config.cache.get("cache/lastfailed", {})
    return all(
        item.nodeid in failed for item in items if not isinstance(item, Unrunnable)
    )


def _find_untested(run: Run, items: Sequence[pytest.Item]) -> dict[str, str]:
    """Skills and models that get no verdict, and why,
    unless the user selected some tests.

    Tests that are asked with the skill alone are no evidence for a verdict.
    """
    # Broken cases are on no model.
    skills: dict[str, list[pytest.Item]] = {}
    models: dict[str, list[pytest.Item]] = {}
    for item in items:
        planned = planned_of(item)
        if planned and (planned.kind.in_lift or planned.kind.agent):
            skills.setdefault(planned.skill, []).append(item)
            models.setdefault(planned.label, []).append(item)
        elif not planned and isinstance(item, ItemOfFile):
            skills.setdefault(item.skill, []).append(item)

    untested = {} if _is_narrowed(run, items) else _find_without_tests(run, models)
    if all(all(map(is_skipped, tests)) for tests in models.values()):
        models = {}
    for name, tests in {**skills, **models}.items():
        if all(map(is_skipped, tests)):
            untested[name] = _describe_skipped(tests)
    return untested


def _find_without_tests(run: Run, used: Collection[str]) -> dict[str, str]:
    """Skills without a test, and models that are not ``used``."""
    untested = {source.label: NO_CASES for source in run.selected.without_cases}
    for file in run.files:
        if file.unfit:
            untested[file.source.label] = file.unfit
    for model in run.subjects.model_ids:
        if used and model not in used:
            untested[model] = "no case is for this model"
    return untested


def _is_narrowed(run: Run, items: Sequence[pytest.Item]) -> bool:
    """Whether the user selected some of the tests.

    --lf leaves out files, and tests of a file.
    """
    if len(items) < len(run.collected):
        return True
    counts = Counter(item.parent for item in run.collected)
    for file in run.files:
        if file.collected is None or counts[file] < file.collected or file.source.picks:
            return True
    return False


def why_none_played(kind: CaseKind) -> str:
    """Why nothing was tested if all cases of a kind without a model are skipped."""
    return f"no case has a {kind.name} that the {kind.agent} could carry out"


def _describe_skipped(items: Iterable[pytest.Item]) -> str:
    """Why all of these tests are skipped."""
    are_examples = True
    kinds: set[CaseKind] = set()
    reasons: dict[str, None] = {}
    for item in items:
        planned = planned_of(item)
        reason = item.case.skip if isinstance(item, CaseItem) else None
        if not item.get_closest_marker(EDIT_ME):
            are_examples = False
        kinds.add(planned.kind if planned and not reason else CASE)
        if reason:
            reasons[one_line(reason, _MAX_REASON_LENGTH)] = None

    if are_examples:
        return (
            f"its cases are examples: edit them, then remove skip and the tag {EDIT_ME}"
        )
    if all(kind.agent for kind in kinds):
        return why_none_played(kinds.pop())
    first = first_few([*reasons], 1)
    return f"{ALL_SKIPPED}: {first}" if first else ALL_SKIPPED
