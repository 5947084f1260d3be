"""Our own agent: a model, six tools, and the skills in the form of agentskills.io."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..errors import NoAnswerError
from ..models import ModelSpec
from ..skills.folder import SKILL_NAMES
from ..trials import choice
from ..trials.answer import Answer, NoAnswer
from ..trials.choice import Listed, skill_tool
from ..trials.transcript import Step, Tool, ToolCall, ToolResult
from ..trials.trial import Question
from .agent import Agent, Call
from .loop_tools import LONGEST_TRIAL, TOOLS, Toolbox
from .part import PartTool
from .recorder import Recorder
from .sandboxes.sandbox import Sandbox
from .skill_content import invoked_skill, skill_content
from .staging import InstalledSkill
from .user_turns import UserTurns

# Raise it with any change of what the model sees; a test fails otherwise
VERSION: Final = "1"
MOST_CALLS: Final = 32  # of a turn that are run
_SYSTEM: Final = (
    "You are an agent with tools. Commands run in your workspace, the folder with the"
    " files of the task, and paths are relative to it. {user} Work with the tools until"
    " the task is done, then give your answer as text, without a tool call."
)
SYSTEM: Final = _SYSTEM.format(
    user="Nobody can answer questions, so decide for yourself."
)
SYSTEM_WITH_USER: Final = _SYSTEM.format(
    user=(
        "If only the user can tell you what you need to know, end your reply with a"
        " question, without a tool call: the user will answer."
    )
)
_NOT_RUN: Final = (
    f"Not run: only the first {MOST_CALLS} calls of a turn are. Call it again."
)
_CUT_OFF: Final = (
    "Not run: this call was cut off by the limit on output. Call again with less in one"
    " call."
)


class LoopAgent(Agent):
    """Asks its model, runs the tools that it calls, and asks again,
    until it calls none.
    """

    name = "loop"
    mcp = True
    takes_answers = True

    def version(self) -> str:
        return VERSION

    async def run(
        self,
        sandbox: Sandbox,
        call: Call,
        recorder: Recorder,
        spec: ModelSpec,  # noqa: ARG002
    ) -> Answer:
        question = recorder.question
        skills = [skill for skill in recorder.skills if not skill.users_only]
        part_tools: list[PartTool] = []
        for prepared in recorder.prepared:
            part_tools += prepared.tools
        tools = (*tools_for(skills), *(offered.tool for offered in part_tools))
        ask = replace(_first_request(recorder, skills, sandbox), tools=tools)
        recorder.offer.add_tools(tools)
        recorder.system(ask.system)
        for role, text in ask.messages:
            recorder.message(role, text)
        box, user = Toolbox(sandbox, skills, part_tools), UserTurns(recorder, call)
        max_turns = question.task.max_turns if question.task else 1
        until_opened = bool(question.task and question.task.until_opened)
        for remaining in reversed(range(max_turns)):
            before = recorder.opened
            reply = await _ask(call, ask, recorder)
            if reply.refused or not reply.calls:
                if not (said := await user.answer_to(reply)):
                    return recorder.answer(reply.stop)
                recorder.message("user", said)
                step = Step(reply.text, (), (), reply.raw, said)
                ask = replace(ask, steps=(*ask.steps, step))
                continue
            if not remaining and not until_opened:
                break
            results = await _results(box, reply, recorder)
            if until_opened and recorder.is_decided(before):
                return recorder.answer("decided")
            _record_limits(recorder, reply, box)
            step = Step(reply.text, reply.calls, results, reply.raw)
            ask = replace(ask, steps=(*ask.steps, step))
        return recorder.answer("max_turns")


async def _ask(call: Call, question: Question, recorder: Recorder) -> Answer:
    clock = asyncio.get_running_loop().time
    asked_at = clock()
    reply = await call(question)
    if isinstance(reply, NoAnswer):
        raise NoAnswerError(reply.reason)

    seconds = clock() - asked_at if reply.seconds is None else reply.seconds
    recorder.reply(reply, seconds)
    return reply


def _first_request(
    recorder: Recorder, skills: Sequence[InstalledSkill], sandbox: Sandbox
) -> Question:
    question = recorder.question
    task = question.task
    base = SYSTEM_WITH_USER if task and task.user else SYSTEM
    parts = [base, question.system, skill_list(skills, sandbox)]
    request = replace(question, system="\n\n".join(filter(None, parts)), task=None)
    if task and (invoked := invoked_skill(question, recorder.skills)):
        content = skill_content(invoked, sandbox, task.invoke)
        request = replace(request, messages=(*request.messages[:-1], ("user", content)))
    return request


def _record_limits(recorder: Recorder, reply: Answer, box: Toolbox) -> None:
    skipped = len(reply.calls) - MOST_CALLS
    if skipped > 0:
        recorder.add_finding(
            f"calls of one turn that were not run: {skipped} of {len(reply.calls)}"
        )
    if box.is_full:
        recorder.add_finding(
            f"results of tools were cut after {LONGEST_TRIAL:,} characters"
        )


def tools_for(skills: Sequence[InstalledSkill]) -> tuple[Tool, ...]:
    """The tools, with one that opens skills if there are any."""
    if not skills:
        return TOOLS
    return (*TOOLS, skill_tool([skill.name for skill in skills]))


def skill_list(skills: Sequence[InstalledSkill], sandbox: Sandbox) -> str:
    """The skills with the paths of their files."""
    return choice.skill_list(
        [
            Listed(
                skill.name,
                skill.description,
                f"{sandbox.path(skill.inside)}/{_file_of(skill)}",
            )
            for skill in skills
        ]
    )


def _file_of(skill: InstalledSkill) -> str:
    return next((name for name in SKILL_NAMES if name in skill.files), SKILL_NAMES[0])


async def _results(
    box: Toolbox, reply: Answer, recorder: Recorder
) -> tuple[ToolResult, ...]:
    """Run the calls of a reply in parallel, but each after earlier writes."""
    clock = asyncio.get_running_loop().time
    tasks = list[asyncio.Task[ToolResult]]()
    writing = list[asyncio.Task[ToolResult]]()

    async def run(
        call: ToolCall, earlier: Sequence[asyncio.Task[ToolResult]]
    ) -> ToolResult:
        if earlier:
            await asyncio.wait(earlier)
        started = clock()
        result = await box.run(call, min(len(reply.calls), MOST_CALLS))
        recorder.result(call, result.text, result.failed, clock() - started)
        return result

    async def refuse(call: ToolCall, reason: str) -> ToolResult:
        recorder.result(call, reason, failed=True)
        return ToolResult(call.id, reason, failed=True)

    for number, call in enumerate(reply.calls):
        if reply.stop == "length" and number == len(reply.calls) - 1:
            task = asyncio.create_task(refuse(call, _CUT_OFF))
        elif number >= MOST_CALLS:
            task = asyncio.create_task(refuse(call, _NOT_RUN))
        else:
            task = asyncio.create_task(run(call, tuple(writing)))
        tasks.append(task)
        if box.writes(call):
            writing.append(task)
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()  # the others, if one failed
