"""An agent without a model, which carries out the reference of a case, or does
nothing.
"""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from ..._util.keys import without_keys
from ..._util.texts import end_of, plain
from ...agents.agent import Agent, Call
from ...agents.recorder import Recorder
from ...agents.sandboxes.sandbox import SOLUTION, CommandResult, Sandbox
from ...agents.snapshot import Snapshot, TooLargeError, is_safe, pack
from ...errors import NoAnswerError
from ...models import ModelSpec
from ...skills.case import NO_NEEDS, CaseReference
from ...trials.answer import Answer, AnswerFile, Usage
from ...trials.transcript import Activity
from ...trials.trial import Task
from . import ORACLE

VERSION: Final = "1"
_UNLIMITED: Final = 10.0**6  # seconds; the trial has a limit
_MARGIN: Final = 2.0  # seconds before the end of a trial in which a script is stopped
_LONGEST_OUTPUT: Final = 20_000  # characters of a script's output, from its end
_SHOWN: Final = 300
_NO_TOKENS: Final = Usage(0, 0, 0)
_NOTHING: Final = Answer("", _NO_TOKENS, activity=Activity(activated=False))


class Oracle(Agent):
    name = ORACLE
    protocols = ()

    def version(self) -> str:
        return VERSION

    def answer_at_once(self, task: Task) -> Answer | None:
        """The answer, unless commands have to be run, or the
        workspace is not only files.
        """
        reference = task.reference or CaseReference()
        needs = task.needs._replace(python=(), paths=(), network=False)
        start = {file.path: file for file in task.files}
        end = start | {file.path: file for file in reference.files}
        is_plain = needs == NO_NEEDS and all(map(is_safe, end))
        if task.setup or reference.run or not is_plain:
            return None
        try:
            workspace = pack(Snapshot(tuple(end.values())))
        except TooLargeError:
            return None
        files = [
            replace(
                AnswerFile.of(path, file.data),
                change="changed" if path in start else "made",
            )
            for path, file in sorted(end.items())
            if file != start.get(path)
        ]
        answer = _answer(reference.text) if task.reference else _NOTHING
        return replace(answer, files=tuple(files), workspace=workspace)

    async def run(
        self,
        sandbox: Sandbox,
        call: Call,  # noqa: ARG002
        recorder: Recorder,
        spec: ModelSpec,  # noqa: ARG002
    ) -> Answer:
        task = recorder.question.task
        assert task
        if not (reference := task.reference):
            return _NOTHING
        if reference.run:
            return await _run_script(sandbox, reference, task.timeout)
        for file in reference.files:
            try:
                await sandbox.write(file.path, file.data, mode=file.mode)
            except OSError as error:
                problem = f"{file.path!r} of the reference can't be written: {error}"
                raise NoAnswerError(problem) from None
        return _answer(reference.text)


async def _run_script(
    sandbox: Sandbox, reference: CaseReference, timeout: float | None
) -> Answer:
    """Whatever its exit status, the checks decide."""
    script = f"{SOLUTION}/{reference.run}"
    limit = _UNLIMITED if timeout is None else max(1.0, timeout - _MARGIN)
    ran = await sandbox.run(
        ["bash", sandbox.path(script)], timeout=limit, env=dict(reference.env)
    )
    output = without_keys(ran.output.decode("utf-8", "replace"))
    answer = _answer(output[-_LONGEST_OUTPUT:])
    if not (problem := _problem(ran, limit)):
        return answer
    end = end_of(output, _SHOWN)
    finding = (
        f"{PurePosixPath(script).name}: {problem}{f'; it said: {end}' if end else ''}"
    )
    return replace(answer, activity=Activity(findings=(finding,)))


def _problem(ran: CommandResult, limit: float) -> str:
    if ran.timed_out:
        return f"no end within {plain(limit)} s"
    return ran.problem or (ran.status if ran.exit else "")


def _answer(text: str) -> Answer:
    return Answer(text, _NO_TOKENS, activity=Activity())
