"""The pytest hooks for tests in Python.

Such a test is one item per model with all arms inside, like a case. Its function
runs once for each arm and run: a failing ``assert`` is a failure with the skill,
and just data in other arms. It runs during setup, so that a question without an
answer is an error of the test.
"""

import inspect
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from ..._util.texts import harmless
from ...plugin.failure_lines import link_to, next_lines
from ...plugin.hooks import prompts
from ...plugin.item_reports import ASKED_PROPERTY, NotAnswered, judge_present
from ...plugin.paths import relative
from ...plugin.run import PLANNED, RUN, PlannedTest, Run, is_expected_to_fail
from ...results.planned_cases import planned_case, short_digest
from ...skills.case import Case
from ...trials.arm import SKILL, arms_of
from ...trials.plan import PlannedCase
from ...trials.records import RECORDS_PROPERTY, dump_records
from ...trials.subject import Subject, asks_model
from ...trials.trial import trials_of
from .asking import Ask
from .attempts import NOTHING_ASKED, AskFailed, Attempt, make_attempts
from .marks import MarkedSkill, find_marked_skill

_MODEL: Final = "upskill_model"
_ASK: Final = pytest.StashKey[Ask]()
_FAILURE: Final = pytest.StashKey[BaseException | None]()


class PythonTests:
    """Tests that have the mark ``skill`` and the fixture ``ask``."""

    @pytest.fixture
    def ask(self, request: pytest.FixtureRequest) -> Ask:
        """Ask the model under test, with and without the skill of the mark:
        ``ask("…")``.
        """
        if _ASK not in request.node.stash:
            pytest.fail('ask needs @pytest.mark.skill("path/to/skill")', pytrace=False)
        ask: Ask = request.node.stash[_ASK]
        return ask

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "ask" not in metafunc.fixturenames:
            return
        if not find_marked_skill(metafunc.definition):
            return

        subjects = metafunc.config.stash[RUN].subjects
        labels = []
        for label in subjects.usual:
            if asks_model(subjects.by_label[label].agent):
                labels.append(label)
        metafunc.fixturenames.append(_MODEL)
        metafunc.parametrize(_MODEL, labels, ids=str)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        spec = getattr(item, "callspec", None)
        if not isinstance(item, pytest.Function) or not spec:
            return
        if _MODEL not in spec.params or not (marked := find_marked_skill(item)):
            return

        run = item.config.stash[RUN]
        planned = _plan(item, marked, run.subjects.by_label[spec.params[_MODEL]], run)
        prompt = prompts(item.ihook, item.config, marked.skill)
        item.stash[PLANNED] = PlannedTest(marked.info, planned)
        item.stash[_ASK] = Ask(run, marked, prompt, planned.trials[0])

    @pytest.hookimpl(trylast=True)  # after its fixtures
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if _ASK not in item.stash or not isinstance(item, pytest.Function):
            return
        if not item.config.stash[RUN].asks:
            return
        if inspect.iscoroutinefunction(item.obj):
            pytest.fail("ask does not work in async tests", pytrace=False)

        attempts = _make_attempts(item)
        _attach_records(item, attempts)
        _require_answers(attempts)
        item.stash[_FAILURE] = _judge(item, attempts)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """The function has been called in setup: only its failure is raised."""
        if _FAILURE not in pyfuncitem.stash:
            return None
        if failure := pyfuncitem.stash[_FAILURE]:
            raise failure
        return True


def _plan(
    item: pytest.Function, marked: MarkedSkill, subject: Subject, run: Run
) -> PlannedCase:
    """Without questions: they are known when the test asks them."""
    path, line, _ = item.reportinfo()
    name = _name_case(item, subject.label)
    case = Case(name, "", line=(line or 0) + 1)
    trials = trials_of(
        marked.info.name,
        case,
        subject,
        arms_of(marked.skill, run.settings),
        settings=run.settings,
        runs=range(1, run.settings.runs + 1),
    )
    return planned_case(
        item.nodeid,
        case,
        trials,
        run.settings,
        digest=short_digest(name, inspect.getsource(item.function)),
        folder=marked.folder,
        file=relative(Path(path), item.config.rootpath),
        compared=not is_expected_to_fail(item),
    )


def _name_case(item: pytest.Function, label: str) -> str:
    """The name of a test without its agent and model."""
    path = item.nodeid.partition("::")[2].partition("[")[0]
    name = f"{item.path.stem}::{path}"
    parameters = item.callspec.id.replace(label, "", 1).strip("-")
    return f"{name}[{parameters}]" if parameters else name


def _make_attempts(item: pytest.Function) -> list[Attempt]:
    ask = item.stash[_ASK]
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}

    def call(attempt: Attempt) -> None:
        ask.attempt = attempt
        item.obj(**arguments)

    settings = item.config.stash[RUN].settings
    return make_attempts(item.stash[PLANNED].case, call, settings)


def _attach_records(item: pytest.Item, attempts: Sequence[Attempt]) -> None:
    """Send the records, and what was asked, with the report of the test."""
    records = [attempt.record() for attempt in attempts]
    asked = []
    for attempt in attempts:
        place = (attempt.trial.arm, attempt.trial.run)
        for question in attempt.questions:
            asked.append((*place, question.key, question.messages[-1][1]))

    item.user_properties.append((RECORDS_PROPERTY, dump_records(records)))
    item.user_properties.append((ASKED_PROPERTY, json.dumps(asked)))


def _require_answers(attempts: Sequence[Attempt]) -> None:
    errors = []
    for attempt in attempts:
        if isinstance(attempt.failure, AskFailed):
            errors.append(harmless(str(attempt.failure)))
    if not any(attempt.failure or attempt.answers for attempt in attempts):
        errors.append(NOTHING_ASKED)
    if errors:
        raise NotAnswered("\n".join(dict.fromkeys(errors)), pytrace=False)


def _judge(item: pytest.Function, attempts: Sequence[Attempt]) -> BaseException | None:
    """The failure of a test, if too many runs with the skill failed."""
    settings = item.config.stash[RUN].settings
    planned = item.stash[PLANNED].case
    records = []
    failures = []
    for attempt in attempts:
        record = attempt.record()
        is_with_skill = attempt.trial.arm == SKILL
        if attempt.failure and is_with_skill:
            failures.append(attempt.failure)
        if record.outcome == "errored":
            # It failed before it asked anything, so another arm has no result.
            record = replace(record, outcome="failed")
            if not is_with_skill:
                continue
        records.append(record)

    standing = judge_present(item, settings, planned, records)
    if not standing:
        return None

    # A hook may fail a test that passed.
    failure = failures[0] if failures else pytest.fail.Exception(standing.reason)
    if standing.kind == "regressed":
        failure.add_note(harmless(standing.reason))
    lines = next_lines(item, link_to(planned, settings))
    failure.add_note("\n".join(lines))
    return failure
