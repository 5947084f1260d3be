"""The fixture ``ask``: a test asks the agent and the model of its item."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ..._util.json_forms import FormError
from ...errors import InputError
from ...measure.open_run import AskedSkill
from ...measure.sandboxes import require_allowed
from ...plugin.pytest_options import message_of
from ...plugin.run import Run
from ...skills.case import Case, Role, WorkspaceFile
from ...skills.suites.ours import read_messages
from ...trials.answer import Answer, AnswerFile, NoAnswer
from ...trials.subject import CHAT
from ...trials.transcript import Activity, Transcript
from ...trials.trial import Prompt, Question, Trial, question_of
from .attempts import AskFailed, Attempt
from .marks import MarkedSkill


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


class Ask:
    """What the fixture ``ask`` is: it asks the agent and the model of its item, in the
    arm and run of the present attempt.
    """

    def __init__(
        self, run: Run, marked: MarkedSkill, prompt: Prompt, trial: Trial
    ) -> None:
        self.attempt = Attempt(trial)
        self._run = run
        self._marked = marked
        self._prompt = prompt

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
        attempt = self.attempt
        *earlier, (_, last) = _read_messages(question)
        texts, exact = _split_files(files or {})
        case = Case(
            attempt.trial.case,
            last,
            earlier=tuple(earlier),
            system=system,
            files=tuple(texts),
            exact=tuple(exact),
            setup=setup,
            sandbox=self._marked.needs,
        )
        new_question = self._make_question(case, agent or attempt.trial.agent)
        (reply,) = self._run.asking.ask([new_question])
        if isinstance(reply, NoAnswer):
            raise AskFailed(reply.reason, over_budget=reply.over_budget)

        attempt.questions.append(new_question)
        attempt.answers.append(reply)
        if reply.why_not_gradable and not allow_empty:
            hint = "ask(…, allow_empty=True) returns it, if that is expected"
            # Kept, since a test may catch it.
            attempt.failure = pytest.fail.Exception(
                f"{reply.why_not_gradable} ({hint})"
            )
            raise attempt.failure

        text = AnswerText(reply.text)
        text.answer = reply
        return text

    def _make_question(self, case: Case, agent: str) -> Question:
        __tracebackhide__ = True
        marked = self._marked
        settings = self._run.settings
        subjects = self._run.subjects
        trial = self.attempt.trial
        try:
            subject = subjects.subject_of(agent, trial.model)
            is_agent = subject.agent != CHAT
            if is_agent:
                require_allowed(
                    [AskedSkill(marked.info.name, [(Path(), case)])], settings
                )
            elif case.exact:
                problem = f"{case.exact[0].path!r} is not text, so it needs an agent"
                raise InputError("ask", problem, 'Add agent="loop".')

            arms = subjects.arm_maker.arms(marked.skill, agents=is_agent)
            (arm,) = (arm for arm in arms if arm.name == trial.arm)
            version = subjects.version_of(subject.agent)
            question = question_of(
                case, subject, arm, settings, prompt=self._prompt, version=version
            )
        except InputError as error:
            raise AskFailed(message_of(error, self._run.config)) from None
        except ValueError as error:
            raise AskFailed(str(error)) from None
        return replace(question, run=trial.question.run, renew=self.attempt.renew)

    def __repr__(self) -> str:
        trial = self.attempt.trial
        return f"<ask {trial.label}, {trial.arm} arm of {trial.skill}>"


def _read_messages(question: Any) -> tuple[tuple[Role, str], ...]:
    __tracebackhide__ = True
    if isinstance(question, str):
        question = [{"role": "user", "content": question}]
    try:
        return read_messages(question)
    except FormError as error:
        raise TypeError(f"ask takes a string or a list of messages: {error}") from None


def _split_files(
    files: Mapping[str, str | bytes],
) -> tuple[list[tuple[str, str]], list[WorkspaceFile]]:
    """Text files by name, and binary files."""
    __tracebackhide__ = True
    texts = []
    binary = []
    for path, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        if not isinstance(data, bytes):
            kind = type(data).__name__
            raise TypeError(
                f"ask takes files of text or bytes: {path!r} is of type {kind}"
            )
        file = WorkspaceFile(path, data)
        if file.text is None:
            binary.append(file)
        else:
            texts.append((file.path, file.text))

    return texts, binary
