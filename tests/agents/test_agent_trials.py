"""A trial from its question to its answer, in a sandbox in memory
and on a simulated clock.
"""

import asyncio
import gc
from pathlib import Path

import pytest

from pytest_upskill.agents.agent import Call
from pytest_upskill.agents.agent_trials import AgentTrials
from pytest_upskill.agents.loop import LoopAgent
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.sandbox import (
    CommandResult,
    Sandbox,
    SandboxError,
    SandboxSpec,
)
from pytest_upskill.agents.snapshot import unpack
from pytest_upskill.agents.task_sandbox import always
from pytest_upskill.errors import NoAnswerError
from pytest_upskill.skills.case import SandboxNeeds, WorkspaceFile
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, Usage
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.trial import Question, Task
from pytest_upskill.trials.written_calls import ADVICE, PROBLEM
from support.agents import ScriptedCall
from support.kit import write_skill
from support.sandboxes import needs_bwrap
from support.trials import (
    Act,
    FakeAgent,
    MemoryKind,
    run_simulated,
    spec_of,
    trial_question,
)

DONE = Answer("Done.", Usage(10, 5, 0))


def carried_out(
    act: Act,
    kind: MemoryKind | None = None,
    call: Call | None = None,
    timeout: float = 20,
    **task: object,
) -> Reply:
    async def run() -> Reply:
        trials = AgentTrials(
            lambda _: FakeAgent(act), always(kind or MemoryKind()), timeout, spec_of
        )
        try:
            return await trials.run(
                trial_question("Go.", "m", **task), call or ScriptedCall(DONE)
            )
        finally:
            await trials.close()

    return run_simulated(run())


async def ends(_sandbox: Sandbox, _call: Call, recorder: Recorder) -> Answer:
    return recorder.answer("end", "Done.")


def test_calls_that_a_server_returned_as_text_are_no_answer() -> None:
    async def act(sandbox: Sandbox, call: Call, recorder: Recorder) -> Answer:
        return await LoopAgent().run(sandbox, call, recorder, spec_of("m"))

    text = '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```'
    written = carried_out(act, call=ScriptedCall(Answer(text)))
    assert written == NoAnswer(f"m: {PROBLEM}. {ADVICE}")
    thought = Answer(
        "", thinking=f"First the files.\n<tool_call>{text[8:-4]}</tool_call>"
    )
    assert carried_out(act, call=ScriptedCall(thought)) == written
    for answer in (Answer(text, stop="refusal"), Answer("I ran bash."), Answer("")):
        reply = carried_out(act, call=ScriptedCall(answer))
        assert isinstance(reply, Answer)
        assert reply.text == answer.text


def test_answer_has_what_differs_in_the_workspace() -> None:
    async def act(sandbox: Sandbox, _call: Call, recorder: Recorder) -> Answer:
        await sandbox.write("new/out.txt", b"hi")
        await sandbox.write("old.txt", b"changed")
        sandbox.files.pop("/workspace/gone.txt")  # type: ignore[attr-defined]
        return recorder.answer("end", "Done.")

    files = [
        WorkspaceFile(name, b"as it was")
        for name in ("old.txt", "gone.txt", "same.txt")
    ]
    answer = carried_out(act, files=tuple(files))
    assert isinstance(answer, Answer)
    assert [(file.path, file.text, file.change) for file in answer.files] == [
        ("gone.txt", None, "deleted"),
        ("new/out.txt", "hi", "made"),
        ("old.txt", "changed", "changed"),
    ]
    kept = {file.path: file.data for file in unpack(answer.workspace).files}
    assert kept == {
        "new/out.txt": b"hi",
        "old.txt": b"changed",
        "same.txt": b"as it was",
    }


def test_skills_are_mounted_read_only_and_setup_does_not_see_them(
    tmp_path: Path,
) -> None:
    folder = write_skill(tmp_path / "gate")
    script = folder / "scripts/open.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    seen = dict[str, int]()

    async def act(_sandbox: Sandbox, _call: Call, recorder: Recorder) -> Answer:
        (skill,) = recorder.skills
        for path in sorted(Path(skill.host).rglob("*")):
            seen[path.relative_to(skill.host).as_posix()] = path.stat().st_mode & 0o777
        assert skill.description == "About a gate."
        return recorder.answer("end", "Done.")

    async def succeeds(_command: str) -> CommandResult:
        return CommandResult(0, b"")

    kind = MemoryKind(succeeds)
    skill = SkillCopy.of("gate", folder)
    answer = carried_out(act, kind, skills=(skill,), tested=("gate",), setup="make it")
    assert isinstance(answer, Answer)
    assert seen == {"SKILL.md": 0o444, "scripts": 0o555, "scripts/open.sh": 0o555}
    (setup_room, _), (room, _) = kind.opened
    assert setup_room.mounts == ()
    assert [mount.inside for mount in room.mounts] == ["/skills/gate"]
    assert not Path(room.mounts[0].host).exists()  # removed with the run
    assert kind.closed == 2


def test_checks_have_the_large_files_of_the_case_but_none_of_a_setup() -> None:
    large = WorkspaceFile("large.bin", bytes(2**21))
    changed = WorkspaceFile("small.txt", b"small")

    async def change(_command: str) -> CommandResult:
        (_, sandbox), *_ = kind.opened
        sandbox.files["/workspace/small.txt"] = b"x" * 2**21
        return CommandResult(0, b"")

    kind = MemoryKind(change)
    answer = carried_out(ends, kind, files=(large, changed), setup="change it")
    assert isinstance(answer, Answer)
    assert [file.path for file in unpack(answer.workspace).files] == ["small.txt"]
    kept = unpack(answer.workspace, (large, changed)).files
    assert {file.path: len(file.data) for file in kept} == {
        "small.txt": 2**21,
        "large.bin": 2**21,
    }


@pytest.mark.parametrize(("asked", "taken"), [(None, 50), (20, 50), (8192, 8192)])
def test_a_trial_takes_the_memory_that_its_task_asks_for(
    asked: int | None, taken: int
) -> None:
    trials = AgentTrials(lambda _: FakeAgent(ends), always(MemoryKind()), 60, spec_of)
    assert trials.memory_of(Task("fake", needs=SandboxNeeds(memory_mb=asked))) == taken


def test_a_skill_that_changed_meanwhile_is_no_answer(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    skill = SkillCopy.of("gate", folder)
    write_skill(folder, body="Something else.")
    assert carried_out(ends, skills=(skill,)) == NoAnswer(
        "the skill gate has changed since the run began"
    )


@pytest.mark.parametrize(
    ("ran", "reason"),
    [
        (
            CommandResult(1, b"first\nlast \x1b[1mline\n"),
            "setup failed: exit 1: first last ",
        ),
        (CommandResult(-9, b""), "setup failed: signal 9"),
        (CommandResult(-9, b"", timed_out=True), "setup failed: no end within 20 s"),
    ],
)
def test_a_setup_that_fails_is_no_answer(ran: CommandResult, reason: str) -> None:
    async def fails(_command: str) -> CommandResult:
        return ran

    reply = carried_out(ends, MemoryKind(fails), setup="make it")
    assert isinstance(reply, NoAnswer)
    assert reply.reason.startswith(reason)
    assert "\x1b" not in reply.reason


def test_setup_runs_once_for_all_trials_that_start_alike() -> None:
    commands = list[str]()

    async def makes(command: str) -> CommandResult:
        commands.append(command)
        return CommandResult(0, b"")

    async def run() -> None:
        kind = MemoryKind(makes)
        trials = AgentTrials(lambda _: FakeAgent(ends), always(kind), 20, spec_of)
        asked = [trial_question(text, setup="make it") for text in "abc"]
        await asyncio.gather(*(trials.run(one, ScriptedCall(DONE)) for one in asked))
        await trials.run(trial_question("d", setup="make more"), ScriptedCall(DONE))
        await trials.close()

    run_simulated(run())
    assert commands == ["make it", "make more"]


def raising(error: BaseException) -> Act:
    async def act(_sandbox: Sandbox, _call: Call, _recorder: Recorder) -> Answer:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SandboxError("gone"), "fake: gone"),
        (NoAnswerError("m: wrong key"), "m: wrong key"),
        (ZeroDivisionError("by 0"), "fake: the agent raised ZeroDivisionError('by 0')"),
    ],
)
def test_what_an_agent_raises_is_no_answer(error: Exception, reason: str) -> None:
    kind = MemoryKind()
    assert carried_out(raising(error), kind) == NoAnswer(reason)
    assert kind.closed == 1


def test_at_the_time_limit_the_answer_is_what_there_is() -> None:
    async def never_ends(sandbox: Sandbox, call: Call, recorder: Recorder) -> Answer:
        reply = await call(recorder.question)
        assert isinstance(reply, Answer)
        recorder.reply(Answer(reply.text, reply.usage), 0.0)
        await sandbox.write("half.txt", b"so far")
        await asyncio.sleep(3600)
        raise AssertionError

    answer = carried_out(never_ends, timeout=1)
    assert isinstance(answer, Answer)
    assert (answer.stop, answer.text) == ("time", "Done.")
    assert answer.why_not_gradable == "the agent stopped at its time limit of 1 s"
    assert [file.path for file in answer.files] == ["half.txt"]
    assert answer.usage == DONE.usage


def test_the_wait_for_a_place_among_the_calls_is_not_the_agents() -> None:
    async def waits(question: Question, send: object = None) -> Reply:  # noqa: ARG001
        await asyncio.sleep(0.6)
        return Answer("Done.", seconds=0.01)

    async def act(_sandbox: Sandbox, call: Call, recorder: Recorder) -> Answer:
        await call(recorder.question)
        await call(recorder.question)
        await asyncio.sleep(0.1)  # the time limit is looked at
        return recorder.answer("end", "Done.")

    answer = carried_out(act, call=waits, timeout=1)
    assert isinstance(answer, Answer)
    assert answer.stop == "end"


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_start_files_stay_in_the_workspace(path: str) -> None:
    reply = carried_out(ends, files=(WorkspaceFile(path, b""),))
    assert isinstance(reply, NoAnswer)
    assert "leads out of the workspace" in reply.reason


def test_calls_side_by_side_do_not_stretch_the_time() -> None:
    """Each of these waits for nearly all of its time,
    as if the engine had no place for it.
    """

    asked = list[Question]()

    async def call(question: Question, send: object = None) -> Reply:  # noqa: ARG001
        asked.append(question)
        assert len(asked) < 1000
        await asyncio.sleep(0.02)
        return Answer("", Usage(1, 1, 0), seconds=0.0)

    async def act(_sandbox: Sandbox, call: Call, recorder: Recorder) -> Answer:
        async def ask_for_ever() -> None:
            while True:
                await call(recorder.question)

        await asyncio.gather(*(ask_for_ever() for _ in range(4)))
        return recorder.answer("end")

    answer = carried_out(act, call=call, timeout=0.3)
    assert isinstance(answer, Answer)
    assert answer.stop == "time"


def test_a_sandbox_is_closed_even_if_its_trial_is_cancelled_twice() -> None:
    class SlowToClose(MemoryKind):
        async def open(self, room: SandboxSpec) -> Sandbox:
            sandbox = await super().open(room)
            close = sandbox.close

            async def slowly() -> None:
                await asyncio.sleep(0.05)
                await close()

            sandbox.close = slowly  # type: ignore[method-assign]
            return sandbox

    async def hangs(_sandbox: Sandbox, _call: Call, _recorder: Recorder) -> Answer:
        await asyncio.sleep(3600)
        raise AssertionError

    async def run() -> int:
        kind = SlowToClose()
        trials = AgentTrials(lambda _: FakeAgent(hangs), always(kind), 20, spec_of)
        trial = asyncio.create_task(trials.run(trial_question("a"), ScriptedCall(DONE)))
        await asyncio.sleep(1)
        assert kind.opened
        for _ in range(2):
            trial.cancel()
            await asyncio.sleep(0.02)
        await asyncio.gather(trial, return_exceptions=True)
        await trials.close()
        return kind.closed

    assert run_simulated(run()) == 1


def test_what_an_agent_raises_when_a_run_is_stopped_is_told_nobody() -> None:
    async def raises_at_its_end(
        _sandbox: Sandbox, _call: Call, _recorder: Recorder
    ) -> Answer:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise NoAnswerError("it asked nothing") from None
        raise AssertionError

    async def run() -> list[object]:
        told = list[object]()
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: told.append(context)
        )
        kind = MemoryKind()
        trials = AgentTrials(
            lambda _: FakeAgent(raises_at_its_end), always(kind), 20, spec_of
        )
        trial = asyncio.create_task(trials.run(trial_question("a"), ScriptedCall(DONE)))
        await asyncio.sleep(1)
        assert kind.opened
        trial.cancel()
        await asyncio.gather(trial, return_exceptions=True)
        await trials.close()
        del trial
        gc.collect()
        return told

    assert run_simulated(run()) == []


@needs_bwrap
def test_arms_start_alike_in_a_real_sandbox(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "gate")
    script = folder / "scripts/open.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho opened\n")
    script.chmod(0o755)
    setup = "mkdir empty; ln -s data.txt link; ls / > root.txt; date +%N > now.txt; "
    setup += "touch run; chmod +x run"
    look = (
        "cat root.txt now.txt; find . | sort; ls -l run link | cut -c 1-10; cat"
        " data.txt"
    )
    use = (
        "/skills/gate/scripts/open.sh > out.txt; echo more >> data.txt; rm now.txt;"
        " touch /skills/x"
    )
    said = list[str]()

    async def act(sandbox: Sandbox, _call: Call, recorder: Recorder) -> Answer:
        said.append((await sandbox.run(look, timeout=60)).output.decode())
        ran = await sandbox.run(use, timeout=60)
        return recorder.answer("end", ran.output.decode() or "quiet")

    async def run() -> list[Reply]:
        trials = AgentTrials(lambda _: FakeAgent(act), always(Bwrap()), 60, spec_of)
        files = (WorkspaceFile("data.txt", b"data\n"),)
        skill = SkillCopy.of("gate", folder)
        replies = [
            await trials.run(
                trial_question(
                    "Go.",
                    files=files,
                    setup=setup,
                    skills=skills,
                    tested=("gate",) if skills else (),
                ),
                ScriptedCall(DONE),
            )
            for skills in ((), (skill,))
        ]
        await trials.close()
        return replies

    base, own = asyncio.run(run())
    assert isinstance(base, Answer)
    assert isinstance(own, Answer)
    assert said[0] == said[1]  # also the time of the setup
    assert "skills" not in said[0]
    assert "./empty" in said[0]
    changes = {file.path: (file.change, file.text) for file in own.files}
    assert changes == {
        "data.txt": ("changed", "data\nmore\n"),
        "now.txt": ("deleted", None),
        "out.txt": ("made", "opened\n"),
    }
    assert "Read-only" in own.text
    kept = unpack(own.workspace)
    assert ([link.path for link in kept.links], kept.folders) == (["link"], ("empty",))
    assert [file.path for file in kept.files if file.is_executable] == ["run"]
