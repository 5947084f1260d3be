"""What a run is going to ask: its tests, and the lines that say
so before the first call.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

import pytest

from .._util.texts import counted, first_few, harmless, one_line
from ..measure.assembly import Assembly
from ..measure.estimate import cost_bound, outdated_line
from ..results.accepted import NOTHING_ACCEPTED, AcceptedResults
from ..results.row import repeat_words
from ..settings import Settings
from ..skills.case import EDIT_ME
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Plan, PlannedCase, SkillInfo
from ..trials.subject import CHAT, ORACLE
from ..trials.trial import Trial
from .display import fitted_lines
from .functions import asker_of
from .items import CaseItem, ItemOfFile, Unrunnable, is_beside_lift, is_skipped
from .pytest_options import FLAGS, cli_value
from .skill_files import SkillFile


def plan_of(items: Sequence[pytest.Item]) -> Plan:
    """The tests that ask a model."""
    by_item = [(item, _of_skill(item)) for item in items]
    planned = [test for item, test in by_item if test and not is_skipped(item)]
    skills: dict[str, SkillInfo] = {}
    for skill, _ in planned:
        # A test in Python does not know how its skill's cases are scored.
        if skill.name not in skills or skill.score == "checks":
            skills[skill.name] = skill
    nodeids = tuple(
        item.nodeid for item, test in by_item if test or isinstance(item, ItemOfFile)
    )
    tests = tuple(test for _, test in planned)
    return Plan(tuple(skills.values()), tests, nodeids=nodeids)


def _of_skill(item: pytest.Item) -> tuple[SkillInfo, PlannedCase] | None:
    asker = asker_of(item)
    if isinstance(item, CaseItem):
        info, planned = item.parent.info, item.planned
    elif asker:
        info, planned = asker.info, asker.planned
    else:
        return None
    if planned.nodeid != item.nodeid:  # xdist's loadgroup changes them
        planned = replace(planned, nodeid=item.nodeid)
    return info, planned


ALL_SKIPPED: Final = "all cases are skipped"
NO_REFERENCE: Final = "no case has a reference that the oracle could carry out"
_GATES: Final = {  # by whether they are of triggers
    False: ("min_lift", "min_pass_rate", "max_token_growth", "no_worse"),
    True: ("min_recall", "max_false_alarms"),
}


def idle_gates(
    collected: Iterable[pytest.Item],
    items: Iterable[pytest.Item],
    config: pytest.Config,
) -> tuple[str, ...]:
    """Gates of the ini file about tests that were all deselected, as by -m trigger."""
    before, after = (
        {planned.is_trigger for item in tests if (planned := planned_of(item))}
        for tests in (collected, items)
    )
    idle = [gate for of_triggers in before - after for gate in _GATES[of_triggers]]
    return tuple(gate for gate in idle if cli_value(config, gate) is None)


def selected_by_outcome(items: Iterable[pytest.Item], config: pytest.Config) -> bool:
    """Whether --lf or --sw chose from the tests, by how they ended the last time."""
    # An option is missing if its plugin is disabled
    if config.getoption("stepwise", default=False):
        return True
    if not config.getoption("lf", default=False) or not config.cache:
        return False
    failed = config.cache.get("cache/lastfailed", {})
    return all(
        item.nodeid in failed for item in items if not isinstance(item, Unrunnable)
    )


class _Labels(NamedTuple):
    skill: str
    model: str | None  # None if it is on no model: a broken case, or a broken skill


def _labels(item: pytest.Item) -> _Labels | None:
    """The skill and model that a test is for; None for any other test."""
    if planned := _of_skill(item):
        return _Labels(planned[0].name, planned[1].label)
    return (
        _Labels(item.parent.source.label, None)
        if isinstance(item, ItemOfFile)
        else None
    )


def untested(
    collected: Sequence[pytest.Item],
    items: Sequence[pytest.Item],
    files: Sequence[SkillFile],
    without: Mapping[str, str],
    models: Iterable[str],
) -> dict[str, str]:
    """Skills and models that get no verdict, and why,
    unless the user selected some tests.

    ``items`` are what is left of those collected, ``without`` the skills that have no
    cases in files. Triggers are no evidence for a verdict.
    """
    cases = [item for item in items if not is_beside_lift(item)]
    skipped = _all_skipped(cases)
    counts = Counter(item.parent for item in collected)
    narrowed = len(items) < len(collected) or any(
        # --lf leaves out files, and tests of a file.
        file.collected is None or counts[file] < file.collected or file.source.picks
        for file in files
    )
    if narrowed:
        return skipped
    unfit = {file.source.label: file.unfit for file in files if file.unfit}
    return {**without, **unfit, **_without_cases(cases, models), **skipped}


def _without_cases(
    items: Iterable[pytest.Item], models: Iterable[str]
) -> dict[str, str]:
    """The models that no case is for, with that as the reason;
    none if no model has cases.
    """
    used = {labels.model for labels in map(_labels, items) if labels and labels.model}
    unused = [model for model in models if model not in used] if used else []
    return dict.fromkeys(unused, "no case is for this model")


def _all_skipped(items: Iterable[pytest.Item]) -> dict[str, str]:
    """The skills whose tests are all skipped, else the models, with that as the
    reason.
    """
    skills, models = dict[str, bool](), dict[str, bool]()
    edited, others = set[str | None](), set[str | None]()
    reasons = dict[str | None, dict[str, None]]()
    for item in items:
        if labels := _labels(item):
            if not item.get_closest_marker(EDIT_ME):
                edited |= {labels.skill, labels.model}
            reason = item.case.skip if isinstance(item, CaseItem) else None
            planned = planned_of(item)
            if reason or not planned or planned.agent != ORACLE:
                others |= {labels.skill, labels.model}
            for name in labels:
                if reason:
                    reasons.setdefault(name, {})[one_line(reason, 250)] = None
            asks = not is_skipped(item)
            skills[labels.skill] = skills.get(labels.skill, False) or asks
            if labels.model:
                models[labels.model] = models.get(labels.model, False) or asks
    named = {**skills, **models} if any(models.values()) else skills
    examples = (
        f"its cases are examples: edit them, then remove skip and the tag {EDIT_ME}"
    )
    return {
        name: (
            (_skipped_words(reasons.get(name, ())) if name in others else NO_REFERENCE)
            if name in edited
            else examples
        )
        for name, any_asked in named.items()
        if not any_asked
    }


def _skipped_words(reasons: Iterable[str]) -> str:
    return ": ".join(filter(None, [ALL_SKIPPED, first_few([*reasons], 1)]))


def planned_of(item: pytest.Item) -> PlannedCase | None:
    """The test of a skill, also one that is skipped; None for any other test."""
    planned = _of_skill(item)
    return planned[1] if planned else None


def accepted_of(item: pytest.Item) -> AcceptedResults:
    """The accepted results of the skill that a test is for."""
    asker = asker_of(item)
    if isinstance(item, CaseItem):
        return item.parent.accepted
    return asker.accepted if asker else NOTHING_ACCEPTED


class Announcement:
    """The lines about calls: after collection, or with xdist when a
    worker has sent its plan.
    """

    def __init__(
        self,
        config: pytest.Config,
        models: Assembly,
        settings: Settings,
        notify: Callable[[str], None],
        *,
        asks: bool,
    ) -> None:
        self._config = config
        self._models = models
        self._settings = settings
        self._notify = notify
        self._asks = asks
        self._kept: list[str] = []

    def lines(self, plan: Plan) -> list[str]:
        cost, again = ["", ""], list[str]()
        if not self._settings.replay_file:
            cost, again = self._cost(plan)
        lines = collected_lines(plan, asks=self._asks, cost=cost)
        return [*lines, *again, *repeat_lines(plan)]

    def _cost(self, plan: Plan) -> tuple[list[str], list[str]]:
        """What is stored and what the others cost, and the line on what is too old."""
        trials = [
            trial
            for test in plan.tests
            for trial in test.all_trials
            if not trial.is_open
        ]
        settings, root = self._settings, self._config.rootpath
        models = self._models
        price_of = cache(models.price_of)
        stored, outdated = models.stored_trials(settings, root, trials, self._notify)
        bound = cost_bound(trials, stored, price_of)
        words = bound.words(
            limit=settings.max_cost,
            suggest=FLAGS["max_cost"] if self._is_seen else "",
            python=any(test.trials[0].is_open for test in plan.tests),
        )
        if not outdated:
            return words, []
        line = outdated_line(trials, outdated, settings.max_age, price_of)
        return words, [f"upskill: {line}"]

    @property
    def _is_seen(self) -> bool:
        """Whether someone may be reading: on a terminal."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        return bool(reporter and reporter.isatty)

    def keep(self, plan: Plan) -> None:
        """Keep the lines in xdist's controller, which collects nothing;
        on a thread of the link.
        """
        if self._config.get_verbosity() >= -1:
            self._kept += self.lines(plan)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Write kept lines from the main thread, but not into a row of dots."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if (
            self._kept
            and reporter
            and not self._config.get_terminal_writer().width_of_current_line
        ):
            lines, self._kept = self._kept, []
            for line in fitted_lines(self._config, lines):
                reporter.write_line(line)


def repeat_lines(plan: Plan) -> list[str]:
    """Skills with cases that ask the same, or that name a group:
    they count as one case.
    """
    samples: dict[str, dict[str, str]] = {}
    for test in plan.tests:
        if test.lift_sample and test.in_lift:
            samples.setdefault(test.skill, {})[test.case] = test.lift_sample
    return [
        f"upskill: {harmless(repeat_words(skill, len(cases), groups))}"
        for skill, cases in samples.items()
        if (groups := len(set(cases.values()))) < len(cases)
    ]


def collected_lines(
    plan: Plan, *, asks: bool, cost: Sequence[str] = ("", "")
) -> list[str]:
    """How many calls a run makes, and trials of agents; how many are stored,
    what the rest costs.

    If there are several lines, the cost is of all of them together.
    """
    cases: dict[str, list[PlannedCase]] = {}
    for test in plan.tests:
        if not test.trials[0].is_open and not test.is_trigger:
            cases.setdefault(test.agent, []).append(test)
    parts = [_sizes(tests) for tests in [cases.pop(CHAT, [])] if tests]
    by_size: dict[str, list[str]] = {}  # agents with the same number of trials
    for agent, tests in cases.items():
        by_size.setdefault(_sizes(tests, _BY), []).append(agent)
    if in_python := sum(test.trials[0].is_open for test in plan.tests):
        parts.append(f"the calls of {counted(in_python, 'test')} in Python")
    lines = [", and ".join(parts)] if parts else []
    prefix = "" if asks else "a run would make "
    for line, agents in by_size.items():
        by = "by"
        for_whom = line
        if len(agents) > 1:
            by = "each by"
            for who in ("judge", "user"):
                for_whom = for_whom.replace(f"by the {who}", f"by the {who} for each")
        lines.append(for_whom.replace(_BY, f"{by} {', '.join(agents)}"))
    queries = [test for test in plan.tests if test.is_trigger]
    lines += _queries([test for test in queries if test.agent == CHAT])
    lines += _queries([test for test in queries if test.agent != CHAT])
    stored, price = cost
    if len(lines) == 1:
        calls, colon, sizes = lines[0].partition(": ")
        calls += f" ({stored})" if stored else ""
        return [f"upskill: {prefix}{calls}{', ' if price else ''}{price}{colon}{sizes}"]
    total = ", ".join(filter(None, cost))
    return [f"upskill: {prefix}{line}" for line in lines] + [
        f"upskill: in all {total}"
    ] * bool(total)


def lacking_lines(
    items: Iterable[pytest.Item], files: Iterable[SkillFile]
) -> list[str]:
    """How many tests need another option; ``files`` are those that chat is asked
    about.
    """
    cases = [item for item in items if isinstance(item, CaseItem)]
    needed = {
        "--skill-judge MODEL": sum(case.lacks_judge for case in cases),
        "--skill-agent loop": sum(case.lacks_agent for case in cases),
        "skill_user_model in the ini file": sum(case.lacks_user for case in cases),
    }
    return [
        *_skipped_by_oracle(cases),
        *(
            f"upskill: {number:,} of these tests would need {option}"
            for option, number in needed.items()
            if number
        ),
        *dict.fromkeys(
            f"upskill: {file.source.label}: {counted(len(file.for_agents), 'case')} for"
            " agents, not for chat"
            for file in files
            if file.for_agents
        ),
    ]


def _skipped_by_oracle(items: Iterable[CaseItem]) -> list[str]:
    """How many cases the oracle skips, by the reason."""
    reasons = Counter(
        reason
        for item in items
        if item.planned.agent == ORACLE
        and (reason := item.parent.not_played.get(item.case.id))
    )
    return [
        f"upskill: {counted(number, 'case')} skipped by the oracle: {reason}"
        for reason, number in reasons.items()
    ]


def skipped_lines(items: Iterable[pytest.Item], plan: Plan) -> list[str]:
    """Before a run: how many tests would ask nothing, and how many are examples."""
    cases = [item for item in items if isinstance(item, CaseItem)]
    skipped = sum(map(is_skipped, cases))
    examples = sum(item.get_closest_marker(EDIT_ME) is not None for item in cases)
    lines = list[str]()
    if skipped and not plan.tests:
        lines.append(
            "upskill: a run would make no calls: all of these tests are skipped"
        )
    elif skipped:
        lines.append(
            f"upskill: {skipped:,} of {counted(len(cases), 'test')} would be skipped"
        )
    if examples:
        lines.append(
            f"upskill: {counted(examples, 'test')} from examples: edit them, then"
            f" remove skip and the tag {EDIT_ME}"
        )
    return lines


def _queries(tests: Sequence[PlannedCase]) -> list[str]:
    """What the queries of triggers ask for: calls of models, or trials of agents."""
    trials = [trial for test in tests for trial in test.trials]
    if not trials:
        return []
    turns = [trial.question.task.max_turns for trial in trials if trial.question.task]
    calls = counted(len(trials), "trial" if turns else "call")
    agents = ", ".join(dict.fromkeys(test.agent for test in tests))
    agents += _on_login(trials)
    each = f" by {agents}, each of up to {counted(max(turns), 'turn')}" if turns else ""
    runs = _range({len(test.trials) for test in tests}, "run")
    size = f"{counted(len(tests), 'query')} × {runs}"
    return [f"up to {calls} for triggers{each}{_extra(tests)}: {size}"]


_BY: Final = "{by}"


def _sizes(tests: Sequence[PlannedCase], by: str = "") -> str:
    """How many calls tests make, or how many trials ``by`` an agent."""
    trials = [trial for test in tests for trial in test.trials]
    # A judge is asked once per answer and vote; repairs of its replies come on top.
    judged = sum(trial.rubric.votes for trial in trials if trial.rubric)
    runs = {test.trials[-1].run for test in tests}
    sizes = f"{counted(len(tests), 'test')} × {_range(runs, 'run')}{_versions(trials)}"
    judge = f", and {judged:,} by the judge" if judged else ""
    most = counted(len(trials) + judged, "call")
    tasks = [trial.question.task for trial in trials if trial.question.task]
    is_oracle = tests[0].agent == ORACLE
    if by:
        turns = counted(max(task.max_turns for task in tasks), "turn")
        each = "which asks no model" if is_oracle else f"each of up to {turns}"
        most = f"{counted(len(trials), 'trial')} {by}{_on_login(trials)}, {each}"
        judge = f", and {counted(judged, 'call')} by the judge" if judged else ""
        users = sum(task.user.most for task in tasks if task.user and task.user.model)
        judge += f", and up to {counted(users, 'call')} by the user" if users else ""
    most = most if is_oracle else f"up to {most}{_extra(tests)}"
    return f"{most}: {sizes}{judge}"


def _versions(trials: Sequence[Trial]) -> str:
    """What each test is asked with, if that is more than the skill."""
    arms = {trial.arm for trial in trials}
    if arms == {BASELINE, SKILL}:
        return ", with and without the skill"
    return f" × {counted(len(arms), 'version')}" if len(arms) > 1 else ""


def _extra(tests: Sequence[PlannedCase]) -> str:
    """How many calls or trials may come on top if cases fail that used to pass."""
    extra = 0
    for test in tests:
        for trial in test.extra_trials:
            extra += 1 + (trial.rubric.votes if trial.rubric else 0)
    return f", and up to {extra:,} to confirm regressions" if extra else ""


def _on_login(trials: Iterable[Trial]) -> str:
    """Said even without a header: the ini file of a project may have chosen it."""
    return " on your login" if any(trial.question.login for trial in trials) else ""


def _range(numbers: Collection[int], word: str) -> str:
    fewest, most = min(numbers), max(numbers)
    return (
        counted(most, word)
        if fewest == most
        else f"{fewest:,} to {counted(most, word)}"
    )
