"""Tests in Python: ``@pytest.mark.skill("skills/x")`` and the fixture ``ask``.

Such a test is one item per model with all arms inside, like a case. Its function
runs once for each arm and run: a failing ``assert`` is a failure with the skill,
and just data in other arms. It runs during setup, so that a question without an
answer is an error of the test.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from .._util.json_forms import FormError
from .._util.texts import harmless, one_line
from ..errors import InputError
from ..results.accepted import AcceptedResults, planned_case, read_results, short_digest
from ..results.regressions import next_trial
from ..settings import Settings
from ..skills.case import Case, Role, SandboxNeeds, WorkspaceFile
from ..skills.context import load_for_run
from ..skills.folder import is_skill, skill_file
from ..skills.search import find_skills
from ..skills.skill import Skill
from ..skills.suites.ours import read_messages, sandbox_of
from ..skills.suites.reading import read_suites
from ..trials.answer import Answer, AnswerFile, NoAnswer, joined
from ..trials.answer_times import outdated
from ..trials.arm import arms_of
from ..trials.plan import Count, PlannedCase, SkillInfo
from ..trials.records import (
    RECORDS_PROPERTY,
    Grade,
    Record,
    dump_records,
    errored_record,
    graded_record,
    unanswered_record,
)
from ..trials.subject import CHAT, ORACLE, Subject
from ..trials.transcript import Activity, Transcript
from ..trials.trial import Prompt, Question, Trial, question_of, trials_of
from .case_file import Run
from .display import screen_of
from .hooks import prompts
from .items import (
    ASKED_PROPERTY,
    NotAnswered,
    is_expected_to_fail,
    judge_present,
    link_to,
    next_steps,
)
from .paths import relative
from .pytest_options import message_of
from .run_subjects import require_allowed
from .skill_files import info_of

Messages = tuple[tuple[Role, str], ...]

_MODEL: Final = "upskill_model"
_ASKER: Final = pytest.StashKey["Asker"]()
_FAILURE: Final = pytest.StashKey[BaseException | None]()
_NOTHING_ASKED: Final = "this test never called ask, so it says nothing about the skill"
_EXPECTED_EMPTY: Final = "ask(…, allow_empty=True) returns it, if that is expected"
_HOW: Final = 'Write @pytest.mark.skill("path/to/skill") above the test.'


class AnswerText(str):
    """The text of an answer, for plain asserts; ``answer`` is all of it."""

    __slots__ = ("answer",)
    answer: Answer

    @property
    def files(self) -> dict[str, AnswerFile]:
        """The files that an agent made or changed, by path."""
        files = (file for file in self.answer.files if file.change != "deleted")
        return {file.path: file for file in files}

    @property
    def transcript(self) -> Transcript:
        """The turns of an agent."""
        return self.answer.transcript

    @property
    def activity(self) -> Activity | None:
        """What an agent did, counted."""
        return self.answer.activity


class AskFailed(BaseException):
    """No answer. Not an Exception, so that no ``except`` of a test catches it."""

    def __init__(self, reason: str, *, over_budget: bool = False) -> None:
        super().__init__(reason)
        self.over_budget = over_budget


class Asker:
    """What the fixture ``ask`` gives to a test: it asks the
    agent and model of the item.
    """

    def __init__(
        self,
        run: Run,
        marked: "_MarkedSkill",
        planned: PlannedCase,
        prompt: Prompt,
        config: pytest.Config,
    ) -> None:
        self._config = config
        self.info = marked.info
        self.accepted = marked.accepted
        self.planned = planned
        self.asked: list[tuple[Trial, Question, Answer]] = []
        self._run = run
        self._skill = marked.skill
        self._prompt = prompt
        self._needs = marked.needs
        self._trial = planned.trials[0]
        self._renew = False
        self._failure: BaseException | None = None

    def __call__(
        self,
        question: str | Sequence[Mapping[str, str]],
        *,
        system: str | None = None,
        agent: str | None = None,
        files: Mapping[str, str | bytes] | None = None,
        setup: str = "",
        allow_empty: bool = False,
    ) -> AnswerText:
        """The answer to a question, or to a list of messages (role and content).

        ``agent`` is who answers, in place of that of the run. It finds the
        ``files`` in its workspace, where ``setup`` is a command that runs first; a
        plain completion is shown them. An empty answer or a refusal fails the test,
        unless ``allow_empty`` is set.
        """
        __tracebackhide__ = True
        trial = self._trial
        *earlier, (_, last) = _messages(question)
        texts, exact = _split(files or {})
        case = Case(
            trial.case,
            last,
            earlier=tuple(earlier),
            system=system,
            files=texts,
            exact=exact,
            setup=setup,
            sandbox=self._needs,
        )
        new_question = self._question(case, agent or trial.agent)
        (reply,) = self._run.ask([new_question])
        if isinstance(reply, NoAnswer):
            raise AskFailed(reply.reason, over_budget=reply.over_budget)
        self.asked.append((trial, new_question, reply))
        if reply.why_not_gradable and not allow_empty:
            self._failure = pytest.fail.Exception(
                f"{reply.why_not_gradable} ({_EXPECTED_EMPTY})"
            )
            raise self._failure
        text = AnswerText(reply.text)
        text.answer = reply
        return text

    def _question(self, case: Case, agent: str) -> Question:
        __tracebackhide__ = True
        trial, settings, subjects = self._trial, self._run.settings, self._run.subjects
        try:
            subject = subjects.subject_of(agent, trial.model)
            if subject.agent != CHAT:
                require_allowed({self.info.name: [self._needs]}, settings)
            elif case.exact:
                problem = f"{case.exact[0].path!r} is not text, so it needs an agent"
                raise InputError("ask", problem, 'Add agent="loop".')
            arms = subjects.arm_maker.arms(self._skill, agents=subject.agent != CHAT)
            (arm,) = (arm for arm in arms if arm.name == trial.arm)
            version = subjects.version_of(subject.agent)
            question = question_of(
                case, subject, arm, settings, prompt=self._prompt, version=version
            )
        except InputError as error:
            raise AskFailed(message_of(error, self._config)) from None
        except ValueError as error:
            raise AskFailed(str(error)) from None
        return replace(question, run=trial.question.run, renew=self._renew)

    def __repr__(self) -> str:
        return (
            f"<ask {self._trial.label}, {self._trial.arm} arm of {self._trial.skill}>"
        )

    def try_out(
        self, trial: Trial, function: Callable[[], object], *, renew: bool = False
    ) -> BaseException | None:
        """What a test raises in a trial; a skip, an exit or Ctrl-C passes through.

        With ``renew`` it replaces an earlier try, and uses no stored answer.
        """
        self._trial, self._failure, self._renew = trial, None, renew
        self.asked = [asked for asked in self.asked if asked[0] is not trial]
        try:
            function()
        except (Exception, pytest.fail.Exception, AskFailed) as failure:
            return failure
        return self._failure  # caught by a bare "except" of the test

    def outdated(self, settings: Settings) -> list[Trial]:
        """Trials with answers that are too old to be compared with those of other
        arms.
        """
        if settings.replay_file:
            return []
        times: dict[int, dict[Trial, int]] = {}  # by run
        for trial, _, answer in self.asked:
            if answer.asked_at is not None:
                oldest = times.setdefault(trial.run, {})
                oldest[trial] = min(answer.asked_at, oldest.get(trial, answer.asked_at))
        return [
            trial for run in times.values() for trial in outdated(run, settings.max_age)
        ]

    def record(self, trial: Trial, failure: BaseException | None) -> Record:
        """One record of everything that was asked in a trial."""
        answers = [answer for asked_in, _, answer in self.asked if asked_in is trial]
        if isinstance(failure, AskFailed):
            over_budget = failure.over_budget and not answers  # else the test has begun
            return unanswered_record(
                trial, NoAnswer(str(failure), over_budget=over_budget)
            )
        if not answers:
            return errored_record(trial, _NOTHING_ASKED)
        reason = (
            "all asserts passed" if failure is None else one_line(_reason(failure), 300)
        )
        return graded_record(
            trial, joined(answers), (Grade("assert", failure is None, reason),)
        )


def _split(
    files: Mapping[str, str | bytes],
) -> tuple[tuple[tuple[str, str], ...], tuple[WorkspaceFile, ...]]:
    """Text files by name, and binary files."""
    __tracebackhide__ = True
    for name, data in files.items():
        if not isinstance(data, str | bytes):
            kind = type(data).__name__
            raise TypeError(
                f"ask takes files of text or bytes: {name!r} is of type {kind}"
            )
    workspace_files = [
        WorkspaceFile(name, data.encode() if isinstance(data, str) else data)
        for name, data in files.items()
    ]
    texts = tuple(
        (file.path, file.text) for file in workspace_files if file.text is not None
    )
    return texts, tuple(file for file in workspace_files if file.text is None)


def _messages(question: Any) -> Messages:
    __tracebackhide__ = True
    turns = (
        [{"role": "user", "content": question}]
        if isinstance(question, str)
        else question
    )
    try:
        return read_messages(turns)
    except FormError as error:
        raise TypeError(f"ask takes a string or a list of messages: {error}") from None


def _reason(failure: BaseException) -> str:
    text = str(failure)
    return text if isinstance(failure, AssertionError) and text else repr(failure)


class _MarkedSkill(NamedTuple):
    """A skill that a mark names."""

    skill: Skill
    folder: Path
    info: SkillInfo
    accepted: AcceptedResults
    needs: SandboxNeeds


class MarkedTests:
    """The pytest hooks for tests in Python."""

    def __init__(self, run: Run, label_of: Callable[[Path], str]) -> None:
        self._run = run
        self._label_of = label_of
        self._skills: dict[Path, _MarkedSkill] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "ask" in metafunc.fixturenames and _path_in(metafunc.definition):
            self._skill_of(metafunc.definition)  # raises an error of collection
            metafunc.fixturenames.append(_MODEL)
            subjects = self._run.subjects
            agents = (
                (label, subjects.by_label[label].agent) for label in subjects.usual
            )
            labels = [label for label, agent in agents if agent != ORACLE]
            metafunc.parametrize(_MODEL, labels, ids=str)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        spec = getattr(item, "callspec", None)
        if isinstance(item, pytest.Function) and spec and _MODEL in spec.params:
            marked = self._skill_of(item)
            subject = self._run.subjects.by_label[spec.params[_MODEL]]
            planned = _planned(item, marked, subject, self._run.settings)
            prompt = prompts(item.ihook, item.config, marked.skill)
            item.stash[_ASKER] = Asker(self._run, marked, planned, prompt, item.config)

    @pytest.hookimpl(trylast=True)  # after its fixtures
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        asker = item.stash.get(_ASKER, None)
        if asker and self._run.asks and isinstance(item, pytest.Function):
            if inspect.iscoroutinefunction(item.obj):
                pytest.fail("ask does not work in async tests", pytrace=False)
            item.stash[_FAILURE] = _run_all(item, asker, self._run.settings)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        if _FAILURE not in pyfuncitem.stash:
            return None
        if failure := pyfuncitem.stash[_FAILURE]:
            raise failure
        return True

    def _skill_of(self, node: pytest.Item) -> _MarkedSkill:
        path = Path(_path_in(node) or "")
        places = [node.path.parent / path, node.config.rootpath / path]
        folder = next(
            (place for place in places if place.exists()), places[-1]
        ).resolve()
        if folder not in self._skills:
            try:
                file = _one_skill(folder, path)
                skill = load_for_run(file, self._run.settings)
                accepted = read_results(file.parent)
                needs = sandbox_of(read_suites(file.parent).path)
            except InputError as error:
                reason = f"{node.nodeid}: {message_of(error, node.config)}"
                raise pytest.Collector.CollectError(reason) from None
            path_shown = relative(file.parent, node.config.rootpath)
            info = info_of(
                skill, self._label_of(file.parent), path_shown, self._run.settings
            )
            self._skills[folder] = _MarkedSkill(
                skill, file.parent, info, accepted, needs
            )
        return self._skills[folder]


def asker_of(item: pytest.Item) -> Asker | None:
    """The asker of a test in Python; None for any other test."""
    return item.stash.get(_ASKER, None)


def _one_skill(folder: Path, written: Path) -> Path:
    """The SKILL.md of a mark's path; skills inside a skill don't count."""
    if is_skill(folder):
        return skill_file(folder)
    file, *others_in_folder = find_skills(folder).files
    if others_in_folder:
        raise InputError(
            f"mark skill {written}", "several skills are in this folder", _HOW
        )
    return file


def _path_in(node: pytest.Item) -> str | None:
    mark = node.get_closest_marker("skill")
    return str(mark.args[0]) if mark and mark.args else None


def _case_of(item: pytest.Function, label: str) -> str:
    """The name of a test without its agent and model."""
    parameters = [
        part for part in (item.callspec.id.replace(label, "", 1).strip("-"),) if part
    ]
    outer = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    name = "::".join([item.path.stem, *outer, item.originalname])
    return f"{name}[{parameters[0]}]" if parameters else name


def _planned(
    item: pytest.Function, marked: _MarkedSkill, subject: Subject, settings: Settings
) -> PlannedCase:
    """Its digest is of its source."""
    path, line, _ = item.reportinfo()
    case = Case(_case_of(item, subject.label), "", line=(line or 0) + 1)
    arms, runs = arms_of(marked.skill, settings), settings.runs
    return planned_case(
        item.nodeid,
        case,
        trials_of(
            marked.info.name,
            case,
            subject,
            arms,
            settings=settings,
            runs=range(1, runs + 1),
        ),
        settings,
        digest=short_digest(inspect.getsource(item.function)),
        folder=marked.folder,
        file=relative(Path(path), item.config.rootpath),
        compared=not is_expected_to_fail(item),
        accepted=marked.accepted,
    )


def _run_all(
    item: pytest.Function, asker: Asker, settings: Settings
) -> BaseException | None:
    """Run a test in every arm and run; its failure,
    if too many runs with the skill failed.
    """
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}

    def call() -> object:
        return item.obj(**arguments)

    by_trial = {trial: asker.try_out(trial, call) for trial in asker.planned.trials}
    for trial in asker.outdated(settings):
        by_trial[trial] = asker.try_out(trial, call, renew=True)
    records = [asker.record(trial, failure) for trial, failure in by_trial.items()]
    while extra := next_trial(asker.planned, records):
        by_trial[extra] = asker.try_out(extra, call)
        records.append(asker.record(extra, by_trial[extra]))
    outcomes = list(by_trial.items())
    questions = [
        (trial.arm, trial.run, question.key, question.messages[-1][1])
        for trial, question, _ in asker.asked
    ]
    item.user_properties += [
        (RECORDS_PROPERTY, dump_records(records)),
        (ASKED_PROPERTY, json.dumps(questions)),
    ]
    errors = [str(failure) for _, failure in outcomes if isinstance(failure, AskFailed)]
    if not any(failure for _, failure in outcomes) and not asker.asked:
        errors.append(_NOTHING_ASKED)
    if errors:
        raise NotAnswered(
            "\n".join(dict.fromkeys(map(harmless, errors))), pytrace=False
        )
    with_skill = [failure for trial, failure in outcomes if trial.arm == "skill"]
    failures = [failure for failure in with_skill if failure]
    now = Count(len(with_skill) - len(failures), len(with_skill))
    standing = judge_present(item, settings, asker.planned, now)
    if standing and standing.kind == "regressed":
        failures[0].add_note(harmless(standing.reason))
    if standing:
        link = link_to(asker.planned, settings)
        failures[0].add_note(
            "\n".join(next_steps(item, link, screen_of(item.config).width))
        )
    return failures[0] if standing else None
