"""What a run says before its first call: how many calls it makes, and their cost."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pytest

from .._util.texts import counted
from ..agents.task_sandbox import SandboxChoice, choose_sandbox, has_own_image
from ..measure.engine_of_run import find_stored
from ..measure.estimate import WORST, estimate_trials, outdated_line
from ..skills.kinds import CASE
from ..trials.arm import BASELINE, SKILL
from ..trials.plan import Plan, PlannedCase
from ..trials.subject import CHAT
from ..trials.trial import Trial
from .case_needs import why_unplayed
from .items import CaseItem
from .planning import make_plan
from .run import Run, is_skipped


def announce_tests(run: Run, items: Iterable[pytest.Item]) -> list[str]:
    """The lines after collection."""
    items = list(items)
    plan = make_plan(run, items)
    cases = [item for item in items if isinstance(item, CaseItem)]
    lines = announce(run, plan)
    if not run.asks:
        lines += _skipped_lines(cases, plan)
    lines += _unplayed_lines(run, cases)
    for option, number in run.lacking.items():
        lines.append(f"upskill: {counted(number, 'case')} would need {option}")
    if run.subjects.agents:
        lines += _sandbox_lines(run, cases)
    return lines


def announce(run: Run, plan: Plan) -> list[str]:
    """How many calls a plan makes, and trials of agents; how many are stored, what the
    rest costs.

    If there are several lines, the cost is of all of them together.
    """
    stored = price = ""
    outdated_lines: list[str] = []
    if not run.settings.replay_file:
        stored, price, outdated_lines = _describe_cost(run, plan)

    sizes = _describe_sizes(plan)
    prefix = "upskill: " if run.asks else "upskill: a run would make "
    if len(sizes) == 1:
        calls, colon, size = sizes[0].partition(": ")
        calls += f" ({stored})" if stored else ""
        calls += f", {price}" if price else ""
        return [f"{prefix}{calls}{colon}{size}", *outdated_lines]

    lines = [f"{prefix}{size}" for size in sizes]
    if stored or price:
        total = ", ".join(filter(None, (stored, price)))
        lines.append(f"upskill: in all {total}")
    return lines + outdated_lines


class _Cost(NamedTuple):
    stored: str
    price: str
    outdated_lines: list[str]  # on stored answers that are too old


def _describe_cost(run: Run, plan: Plan) -> _Cost:
    trials = []
    for test in plan.tests:
        trials += [trial for trial in test.all_trials if not trial.is_open]
    settings = run.settings
    price_of = cache(run.subjects.models.price_of)
    stored = find_stored(run.subjects, run.config.rootpath, trials, run.note)
    estimate = estimate_trials(trials, price_of, stored, WORST)
    has_python_tests = any(test.trials[0].is_open for test in plan.tests)
    words = estimate.bound_words(limit=settings.max_cost, python=has_python_tests)
    lines = []
    if stored.outdated:
        line = outdated_line(stored.outdated, settings.max_age)
        lines.append(f"upskill: {line}")
    return _Cost(*words, lines)


def _describe_sizes(plan: Plan) -> list[str]:
    """A line for plain completions, for agents and for those without a model, of cases
    and of queries.
    """
    in_python = 0
    groups: dict[tuple[bool, bool, bool], list[PlannedCase]] = {}
    for test in plan.tests:
        if test.trials[0].is_open:
            in_python += 1
        else:
            by = (test.agent != CHAT, bool(test.kind.agent))
            groups.setdefault((_is_query(test), *by), []).append(test)

    lines = []
    for _, tests in sorted(groups.items()):
        describe = _describe_calls if tests[0].agent == CHAT else _describe_trials
        lines.append(describe(tests))
    if in_python:
        words = f"the calls of {counted(in_python, 'test')} in Python"
        lines[:1] = [", and ".join([*lines[:1], words])]
    return lines


def _is_query(test: PlannedCase) -> bool:
    return test.kind.noun != CASE.noun


def _describe_calls(tests: Sequence[PlannedCase]) -> str:
    """How many calls are made without an agent."""
    trials = _trials_of(tests)
    judged = _count_judging(trials)
    calls = counted(len(trials) + judged, "call")
    words = f"up to {calls}{_size_words(tests, trials)}"
    return f"{words}, and {judged:,} by the judge" if judged else words


def _describe_trials(tests: Sequence[PlannedCase]) -> str:
    """How many trials are carried out by agents."""
    trials = _trials_of(tests)
    words = counted(len(trials), "trial")
    tasks = [trial.question.task for trial in trials if trial.question.task]
    agents = ", ".join(dict.fromkeys(test.agent for test in tests))
    # Said even without a header: the ini file of a project may have chosen it.
    login = " on your login" if any(trial.question.login for trial in trials) else ""
    by = f" by {agents}{login}"
    if tests[0].kind.agent:
        by += ", which asks no model"
    else:
        words = f"up to {words}"
        turns = max(task.max_turns for task in tasks)
        by += f", each of up to {counted(turns, 'turn')}"
    words += _size_words(tests, trials, by)

    if judged := _count_judging(trials):
        words += f", and {counted(judged, 'call')} by the judge"
    users = 0
    for task in tasks:
        if task.user and task.user.model:
            users += task.user.most
    if users:
        words += f", and up to {counted(users, 'call')} by the user"
    return words


def _size_words(
    tests: Sequence[PlannedCase], trials: Iterable[Trial], by: str = ""
) -> str:
    """Tests × runs × versions, after what may come on top if cases fail that used to
    pass.
    """
    noun = "query" if _is_query(tests[0]) else "test"
    words = f" for triggers{by}" if noun == "query" else by
    extra = 0
    for test in tests:
        extra += len(test.extra_trials) + _count_judging(test.extra_trials)
    if extra:
        words += f", and up to {extra:,} to confirm regressions"

    runs = _range({test.trials[-1].run for test in tests}, "run")
    words += f": {counted(len(tests), noun)} × {runs}"
    arms = {trial.arm for trial in trials}
    if arms == {BASELINE, SKILL}:
        return f"{words}, with and without the skill"
    return f"{words} × {counted(len(arms), 'version')}" if len(arms) > 1 else words


def _trials_of(tests: Iterable[PlannedCase]) -> list[Trial]:
    trials: list[Trial] = []
    for test in tests:
        trials += test.trials
    return trials


def _count_judging(trials: Iterable[Trial]) -> int:
    """A judge is asked once per answer and vote; repairs of its replies come on top."""
    return sum(trial.rubric.votes for trial in trials if trial.rubric)


def _range(numbers: Collection[int], word: str) -> str:
    most = counted(max(numbers), word)
    return most if len(numbers) == 1 else f"{min(numbers):,} to {most}"


# Before a run: what would not be asked.


def _skipped_lines(cases: Sequence[CaseItem], plan: Plan) -> Iterator[str]:
    skipped = sum(is_skipped(case) for case in cases)
    if skipped and not plan.tests:
        yield "upskill: a run would make no calls: all of these tests are skipped"
    elif skipped:
        yield f"upskill: {skipped:,} of {counted(len(cases), 'test')} would be skipped"


def _unplayed_lines(run: Run, cases: Iterable[CaseItem]) -> Iterator[str]:
    """How many cases are skipped by agents without a model, by the reason."""
    reasons = Counter[str]()
    for item in cases:
        if reason := why_unplayed(item.case, item.checks, run.settings):
            reasons[f"{item.planned.agent}: {reason}"] += 1
    for reason, number in reasons.items():
        yield f"upskill: {counted(number, 'case')} skipped by the {reason}"


def _sandbox_lines(run: Run, items: Iterable[CaseItem]) -> list[str]:
    """Where the tasks run; each of them before a run."""
    settings = run.settings
    choices = {}
    for item in items:
        case = item.case
        if case.is_task or has_own_image(case.sandbox):
            choice = SandboxChoice("", reason=case.skip or "")
            if not case.skip:
                image = settings.image or ""
                choice = choose_sandbox(case.sandbox, settings.sandbox, image)
            choices[case.id] = choice
    if not choices or settings.cluster:
        return []

    from ..reports.terminal.sandbox_table import sandbox_counts, sandbox_table

    line = f"upskill: {sandbox_counts(choices)}"
    if not run.asks:
        return [line, *sandbox_table(choices)]
    if not all(choice.kind for choice in choices.values()):
        line += " (--collect-only says why)"
    return [line]
