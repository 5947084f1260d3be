"""What a run says before its first call: how many calls it makes, and their cost."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

import pytest

from .._util.texts import counted, harmless
from ..checks import rubric_of, why_agent
from ..measure.engine_of_run import find_stored
from ..measure.estimate import WORST, estimate_trials, outdated_line
from ..skills.case import EDIT_ME
from ..skills.kinds import CASE
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Plan, PlannedCase
from ..trials.subject import CHAT, ORACLE
from ..trials.trial import Trial
from .items import CaseItem
from .marks import is_skipped
from .planning import make_plan
from .pytest_options import FLAGS
from .run import Run
from .skill_files import TaskFile


def announce_tests(run: Run, items: Iterable[pytest.Item]) -> list[str]:
    """The lines after collection."""
    items = list(items)
    plan = make_plan(run, items)
    cases = [item for item in items if isinstance(item, CaseItem)]
    lines = announce(run, plan)
    if not run.asks:
        lines += _skipped_lines(cases, plan)
    lines += _oracle_lines(cases)
    lines += _lacking_lines(run, cases)
    lines += _uncompared_lines(cases)
    if run.subjects.agents:
        from .sandbox_choices import sandbox_lines

        lines += sandbox_lines(
            [item.case for item in cases], run.settings, asks=run.asks
        )
    return lines


def announce(run: Run, plan: Plan) -> list[str]:
    """The lines about the calls of a plan."""
    trials = []
    for test in plan.tests:
        trials += [trial for trial in test.all_trials if not trial.is_open]

    words = ["", ""]
    outdated_lines = []
    if not run.settings.replay_file:
        settings = run.settings
        price_of = cache(run.subjects.models.price_of)
        root = run.config.rootpath
        stored = find_stored(run.subjects, root, trials, run.note)
        words = estimate_trials(trials, price_of, stored, WORST).bound_words(
            limit=settings.max_cost,
            suggest=FLAGS["max_cost"] if _may_be_read(run.config) else "",
            python=any(test.trials[0].is_open for test in plan.tests),
        )
        if stored.outdated:
            line = outdated_line(trials, stored.outdated, settings.max_age, price_of)
            outdated_lines = [f"upskill: {line}"]
    lines = collected_lines(plan, asks=run.asks, cost=words)
    return [*lines, *outdated_lines, *_repeat_lines(plan)]


def _may_be_read(config: pytest.Config) -> bool:
    """Whether someone may be reading: on a terminal."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    return bool(reporter and reporter.isatty)


def collected_lines(
    plan: Plan, *, asks: bool, cost: Sequence[str] = ("", "")
) -> list[str]:
    """How many calls a run makes, and trials of agents; how many are stored,
    what the rest costs.

    If there are several lines, the cost is of all of them together.
    """
    lines = _size_lines(plan)
    prefix = "upskill: " if asks else "upskill: a run would make "
    stored, price = cost
    if len(lines) == 1:
        calls, colon, sizes = lines[0].partition(": ")
        if stored:
            calls += f" ({stored})"
        if price:
            calls += f", {price}"
        return [f"{prefix}{calls}{colon}{sizes}"]

    lines = [f"{prefix}{line}" for line in lines]
    if total := ", ".join(filter(None, cost)):
        lines.append(f"upskill: in all {total}")
    return lines


def _size_lines(plan: Plan) -> list[str]:
    cases: dict[str, list[PlannedCase]] = {}  # by agent
    chat_queries = []
    agent_queries = []
    in_python = 0
    for test in plan.tests:
        if test.trials[0].is_open:
            in_python += 1
        elif test.kind.noun == CASE.noun:
            cases.setdefault(test.agent, []).append(test)
        elif test.agent == CHAT:
            chat_queries.append(test)
        else:
            agent_queries.append(test)

    parts = []
    if CHAT in cases:
        parts.append(_describe_calls(cases.pop(CHAT)))
    if in_python:
        parts.append(f"the calls of {counted(in_python, 'test')} in Python")
    lines = [", and ".join(parts)] if parts else []

    by_size: dict[str, list[str]] = {}  # agents with the same number of trials
    for agent, tests in cases.items():
        by_size.setdefault(_describe_trials(tests, [""]), []).append(agent)
    for agents in by_size.values():
        lines.append(_describe_trials(cases[agents[0]], agents))
    for queries in (chat_queries, agent_queries):
        if queries:
            lines.append(_describe_queries(queries))
    return lines


def _describe_calls(tests: Sequence[PlannedCase]) -> str:
    """How many calls cases make without an agent."""
    trials = _trials_of(tests)
    judged = _count_judging(trials)
    most = counted(len(trials) + judged, "call")
    judge = f", and {judged:,} by the judge" if judged else ""
    return f"up to {most}{_extra_words(tests)}: {_size_words(tests)}{judge}"


def _describe_trials(tests: Sequence[PlannedCase], agents: Sequence[str]) -> str:
    """How many trials of cases are carried out by agents, with as many for each."""
    trials = _trials_of(tests)
    by = "by"
    for_each = ""
    if len(agents) > 1:
        by = "each by"
        for_each = " for each"
    words = f"{counted(len(trials), 'trial')} {by} {', '.join(agents)}"
    words += _login_words(trials)
    if tests[0].agent == ORACLE:
        words += ", which asks no model"
    else:
        words = f"up to {words}, each of up to {_turn_words(trials)}"
        words += _extra_words(tests)
    words += f": {_size_words(tests)}"

    if judged := _count_judging(trials):
        words += f", and {counted(judged, 'call')} by the judge{for_each}"
    users = 0
    for trial in trials:
        user = trial.question.task.user if trial.question.task else None
        if user and user.model:
            users += user.most
    if users:
        words += f", and up to {counted(users, 'call')} by the user{for_each}"
    return words


def _describe_queries(tests: Sequence[PlannedCase]) -> str:
    """What the queries of triggers ask for: calls of models, or trials of agents."""
    trials = _trials_of(tests)
    words = f"{counted(len(trials), 'call')} for triggers"
    if trials[0].question.task:
        agents = ", ".join(dict.fromkeys(test.agent for test in tests))
        words = f"{counted(len(trials), 'trial')} for triggers by {agents}"
        words += f"{_login_words(trials)}, each of up to {_turn_words(trials)}"
    runs = _range({len(test.trials) for test in tests}, "run")
    size = f"{counted(len(tests), 'query')} × {runs}"
    return f"up to {words}{_extra_words(tests)}: {size}"


def _trials_of(tests: Iterable[PlannedCase]) -> list[Trial]:
    trials: list[Trial] = []
    for test in tests:
        trials += test.trials
    return trials


def _count_judging(trials: Iterable[Trial]) -> int:
    """A judge is asked once per answer and vote; repairs of its replies come on top."""
    return sum(trial.rubric.votes for trial in trials if trial.rubric)


def _turn_words(trials: Iterable[Trial]) -> str:
    tasks = (trial.question.task for trial in trials)
    return counted(max(task.max_turns for task in tasks if task), "turn")


def _size_words(tests: Sequence[PlannedCase]) -> str:
    runs = _range({test.trials[-1].run for test in tests}, "run")
    words = f"{counted(len(tests), 'test')} × {runs}"
    arms = {trial.arm for trial in _trials_of(tests)}
    if arms == {BASELINE, SKILL}:
        return f"{words}, with and without the skill"
    if len(arms) > 1:
        return f"{words} × {counted(len(arms), 'version')}"
    return words


def _extra_words(tests: Iterable[PlannedCase]) -> str:
    """How many calls or trials may come on top if cases fail that used to pass."""
    extra = 0
    for test in tests:
        extra += len(test.extra_trials) + _count_judging(test.extra_trials)
    return f", and up to {extra:,} to confirm regressions" if extra else ""


def _login_words(trials: Iterable[Trial]) -> str:
    """Said even without a header: the ini file of a project may have chosen it."""
    return " on your login" if any(trial.question.login for trial in trials) else ""


def _range(numbers: Collection[int], word: str) -> str:
    most = counted(max(numbers), word)
    return most if len(numbers) == 1 else f"{min(numbers):,} to {most}"


def _repeat_lines(plan: Plan) -> Iterator[str]:
    """Skills with cases that ask the same, or that name a group:
    they count as one case.
    """
    samples: dict[str, dict[str, str]] = {}
    for test in plan.tests:
        if test.lift_sample and test.kind.in_lift:
            samples.setdefault(test.skill, {})[test.case] = test.lift_sample
    for skill, cases in samples.items():
        groups = len(set(cases.values()))
        if groups < len(cases):
            from ..results.row import repeat_words

            yield f"upskill: {harmless(repeat_words(skill, len(cases), groups))}"


# Before a run: what would not be asked.


def _skipped_lines(cases: Sequence[CaseItem], plan: Plan) -> Iterator[str]:
    skipped = sum(is_skipped(case) for case in cases)
    if skipped and not plan.tests:
        yield "upskill: a run would make no calls: all of these tests are skipped"
    elif skipped:
        yield f"upskill: {skipped:,} of {counted(len(cases), 'test')} would be skipped"
    examples = sum(case.get_closest_marker(EDIT_ME) is not None for case in cases)
    if examples:
        yield (
            f"upskill: {counted(examples, 'test')} from examples: edit them, then"
            f" remove skip and the tag {EDIT_ME}"
        )


def _oracle_lines(cases: Iterable[CaseItem]) -> Iterator[str]:
    """How many cases the oracle skips, by the reason."""
    reasons = Counter[str]()
    for item in cases:
        if item.planned.agent == ORACLE and (reason := item.why_not_played):
            reasons[reason] += 1
    for reason, number in reasons.items():
        yield f"upskill: {counted(number, 'case')} skipped by the oracle: {reason}"


def _lacking_lines(run: Run, cases: Iterable[CaseItem]) -> Iterator[str]:
    """How many tests need another option, which in a run makes them broken."""
    judge = "--skill-judge MODEL"
    loop = "--skill-agent loop"
    user_model = "skill_user_model in the ini file"
    numbers = {judge: 0, loop: 0, user_model: 0}
    for item in cases:
        agent = item.planned.agent
        if agent == ORACLE:
            continue
        if rubric_of(item.checks).texts and not run.settings.judge:
            numbers[judge] += 1
        user = item.case.user
        if agent == CHAT:
            numbers[loop] += bool(why_agent(item.case, item.checks))
        elif user and user.facts and not run.settings.model_of_users:
            numbers[user_model] += 1
    for option, number in numbers.items():
        if number:
            yield f"upskill: {number:,} of these tests would need {option}"

    if any(subject.agent == CHAT for subject in run.subjects.by_label.values()):
        for file in run.files:
            # The tasks of a set share these.
            if file is file.tasks[0] and file.tested and file.tested.for_agents:
                names = counted(len(file.tested.for_agents), "case")
                label = file.source.label
                yield f"upskill: {label}: {names} for agents, not for chat"


def _uncompared_lines(cases: Iterable[CaseItem]) -> Iterator[str]:
    """How many tasks have no skills, so that nothing is compared."""
    tasks = {}
    for item in cases:
        in_set = isinstance(item.parent, TaskFile) and item.case.is_task
        if in_set and item.planned.agent != ORACLE:
            tasks[item.case.id] = item.case
    without = sum(not case.skills and not case.skip for case in tasks.values())
    if without:
        share = f"{without:,} of {counted(len(tasks), 'task')}"
        yield f"upskill: no skills to compare in {share}: pass rate only"
