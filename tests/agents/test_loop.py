"""Our own agent: what it sends, when it stops."""

import asyncio
import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from pytest_upskill.agents.loop import (
    MOST_CALLS,
    SYSTEM,
    SYSTEM_WITH_USER,
    LoopAgent,
    skill_list,
    tools_for,
)
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.agents.sandboxes.sandbox import CommandResult, SandboxError
from pytest_upskill.agents.skill_content import skill_content
from pytest_upskill.errors import NoAnswerError
from pytest_upskill.trials.answer import Answer, NoAnswer, Usage
from support.agents import (
    BODY,
    MemorySandbox,
    ScriptedCall,
    calls,
    installed,
    recorder_for,
)
from support.trials import SPEC, run_simulated

DONE = Answer("Done.", Usage(200, 5, 100))


def run(
    recorder: Recorder, model: ScriptedCall, sandbox: MemorySandbox | None = None
) -> Answer:
    return asyncio.run(
        LoopAgent().run(sandbox or MemorySandbox(), model, recorder, SPEC)
    )


def test_it_runs_until_an_answer_without_a_call() -> None:
    model = ScriptedCall(
        calls(("write", {"path": "a.txt", "content": "hi"}), text="First a file."),
        calls(("read", {"path": "a.txt"}), thinking="Is it there?", raw='["signed"]'),
        DONE,
    )
    sandbox = MemorySandbox()
    answer = run(recorder_for(), model, sandbox)
    assert (answer.text, answer.stop) == ("Done.", "end")
    assert answer.usage == Usage(400, 25, 200)
    assert sandbox.files == {"/workspace/a.txt": b"hi"}
    assert model.results == [("Wrote 2 bytes to a.txt.", False), ("hi", False)]
    assert model.questions[-1].steps[1].raw == '["signed"]'
    assert [(turn.kind, turn.reply) for turn in answer.transcript] == [
        ("system", 0),
        ("user", 0),
        ("assistant", 1),
        ("call", 1),
        ("result", 1),
        ("thinking", 2),
        ("call", 2),
        ("result", 2),
        ("assistant", 3),
    ]
    assert answer.activity is not None
    assert (answer.activity.turns, answer.activity.tool_calls) == (3, 2)


def test_questions_are_those_of_the_trial() -> None:
    model = ScriptedCall(DONE)
    run(recorder_for(system="Speak Latin."), model)
    (question,) = model.questions
    assert (question.model, question.max_output, question.run) == ("haiku", 1000, 2)
    assert question.messages == (("user", "Open the gate."),)
    assert question.task is None
    assert question.system.endswith("Speak Latin.")


def test_arms_differ_by_the_skill_and_by_nothing_else(tmp_path: Path) -> None:
    other = installed(tmp_path, "boat", body="How to row a boat.", tested=False)
    gate = installed(tmp_path)
    base, skill = ScriptedCall(DONE), ScriptedCall(DONE)
    run(recorder_for(other), base)
    run(recorder_for(other, gate), skill)
    entry = (
        "  <skill>\n    <name>gate</name>\n"
        "    <description>Opens the &lt;gate&gt; &amp; closes it.</description>\n"
        "    <location>/skills/gate/SKILL.md</location>\n  </skill>\n"
    )
    without, with_it = base.questions[0], skill.questions[0]
    assert with_it.system.count(entry) == 1
    assert with_it.system.replace(entry, "") == without.system
    *tools, loader = with_it.tools
    assert json.loads(loader.schema)["properties"]["name"]["enum"] == ["boat", "gate"]
    loader = replace(loader, schema=loader.schema.replace('"boat", "gate"', '"boat"'))
    assert replace(with_it, system=without.system, tools=(*tools, loader)) == without


def test_without_skills_there_is_no_trace_of_any(tmp_path: Path) -> None:
    base, skill = ScriptedCall(DONE), ScriptedCall(DONE)
    run(recorder_for(), base)
    run(recorder_for(installed(tmp_path)), skill)
    without, with_it = base.questions[0], skill.questions[0]
    assert "skill" not in repr((without.system, without.tools)).casefold()
    assert with_it.tools[:-1] == without.tools
    assert with_it.system.startswith(without.system + "\n\n")


def test_the_version_is_raised_with_what_a_model_sees(tmp_path: Path) -> None:
    skills = [installed(tmp_path)]
    box = MemorySandbox()
    of_skills = (
        skill_list(skills, box),
        tools_for(skills),
        skill_content(skills[0], box),
    )
    seen = repr((SYSTEM, SYSTEM_WITH_USER, *of_skills))
    shown = sha256(seen.encode()).hexdigest()[:16]
    # If this fails, raise VERSION in agents/loop.py: answers of the old
    # form must not be reused.
    assert (LoopAgent().version(), shown) == ("1", "9e4a469418544098")


def test_a_skill_is_loaded(tmp_path: Path) -> None:
    model = ScriptedCall(calls(("skill", {"name": "gate"})), DONE)
    answer = run(recorder_for(installed(tmp_path)), model)
    assert model.results == [
        (
            (
                f'<skill_content name="gate">\n{BODY.strip()}\n\nSkill directory:'
                " /skills/gate\nPaths in the skill are relative to this"
                " directory.\n\n<skill_resources>\n "
                " <file>references/codes.md</file>\n "
                " <file>scripts/open.sh</file>\n</skill_resources>\n</skill_content>"
            ),
            False,
        )
    ]
    assert answer.activity is not None
    assert answer.activity.activated is True
    assert answer.activity.opened == ("gate",)


@pytest.mark.parametrize(
    ("name", "opened"),
    [("gate", ("gate",)), ("skill:Gate", ("gate",)), ("gates", ()), ("bash", ())],
)
def test_a_skill_called_as_if_it_were_a_tool_is_chosen(
    tmp_path: Path, name: str, opened: tuple[str, ...]
) -> None:
    skills = (
        installed(tmp_path),
        installed(tmp_path, "bash", body="Of shells.", tested=False),
    )
    model = ScriptedCall(calls((name, {})), DONE)
    answer = run(recorder_for(*skills), model)
    [(result, failed)] = model.results
    assert failed
    assert ('call skill with name "gate"' in result) is bool(opened)
    assert answer.activity
    assert (answer.activity.opened, answer.activity.activated) == (opened, bool(opened))
    finding = "called the skill gate as if it were a tool"
    assert (finding in answer.activity.findings) is bool(opened)


def test_it_stops_at_the_limit_of_turns() -> None:
    model = ScriptedCall(calls(("list", {}), text="Again."))
    answer = run(recorder_for(max_turns=4), model)
    assert (answer.text, answer.stop) == ("Again.", "max_turns")
    assert len(model.questions) == 4


def test_an_answer_in_the_last_turn_is_an_answer() -> None:
    model = ScriptedCall(calls(("list", {})), DONE)
    assert run(recorder_for(max_turns=2), model).stop == "end"


def test_a_cut_off_text_is_the_answer() -> None:
    answer = run(recorder_for(), ScriptedCall(Answer("The gate is", stop="length")))
    assert (answer.text, answer.stop) == ("The gate is", "length")


def test_a_cut_off_call_is_not_run() -> None:
    half = calls(("list", {}), ("write", '{"path": "a.txt", "conte'), stop="length")
    model = ScriptedCall(half, DONE)
    assert run(recorder_for(), model).stop == "end"
    (listed, failed), (told, not_run) = model.results
    assert (listed, failed, not_run) == ("[no files]", False, True)
    assert "cut off by the limit on output" in told


def test_a_refusal_ends_it() -> None:
    refusal = calls(("list", {}), text="I won't.", stop="refusal")
    model = ScriptedCall(refusal)
    answer = run(recorder_for(), model)
    assert (answer.text, answer.refused, len(model.questions)) == ("I won't.", True, 1)


def test_an_empty_final_text_is_an_empty_answer() -> None:
    answer = run(
        recorder_for(), ScriptedCall(calls(("list", {}), text="I look."), Answer(""))
    )
    assert (answer.text, answer.why_not_gradable) == (
        "",
        "the agent's final answer is empty",
    )


def test_a_model_that_gives_no_answer_is_an_error() -> None:
    model = ScriptedCall(calls(("list", {})), NoAnswer("out of budget"))
    with pytest.raises(NoAnswerError, match="out of budget"):
        run(recorder_for(), model)


def test_a_broken_sandbox_is_an_error() -> None:
    async def gone(_: str) -> CommandResult:
        raise SandboxError("the sandbox is gone")

    async def slow(command: str) -> CommandResult:
        return await (
            gone(command)
            if command == "a"
            else asyncio.sleep(3600, CommandResult(0, b""))
        )

    model = ScriptedCall(calls(("bash", {"command": "b"}), ("bash", {"command": "a"})))
    with pytest.raises(SandboxError):
        run(recorder_for(), model, MemorySandbox(command=slow))


def test_what_there_is_at_the_deadline_can_be_used(tmp_path: Path) -> None:
    async def never(_: str) -> CommandResult:
        return await asyncio.sleep(3600, CommandResult(0, b""))

    recorder = recorder_for(installed(tmp_path))
    first = calls(("skill", {"name": "gate"}), text="I load it.")
    model = ScriptedCall(first, calls(("bash", {"command": "yes"}), ("list", {})))

    async def trial() -> None:
        async with asyncio.timeout(60):
            await LoopAgent().run(MemorySandbox(command=never), model, recorder, SPEC)

    with pytest.raises(TimeoutError):
        run_simulated(trial())
    answer = recorder.answer("time")
    assert answer.usage == Usage(200, 20, 100)
    assert answer.activity is not None
    assert answer.activity.activated is True
    last = [(turn.kind, turn.tool) for turn in answer.transcript[-3:]]
    assert last == [("call", "bash"), ("call", "list"), ("result", "list")]


def test_calls_of_a_turn_run_side_by_side_and_keep_their_order() -> None:
    both = asyncio.Event()
    running = list[str]()

    async def together(command: str) -> CommandResult:
        running.append(command)
        if len(running) == 2:
            both.set()
        await both.wait()  # alone, neither would come back
        return CommandResult(0, command.encode())

    model = ScriptedCall(
        calls(("bash", {"command": "a"}), ("bash", {"command": "b"})), DONE
    )
    run(recorder_for(), model, MemorySandbox(command=together))
    assert model.results == [
        ("a\n[exit status 0]", False),
        ("b\n[exit status 0]", False),
    ]


def test_what_a_turn_writes_is_there_for_its_later_calls() -> None:
    class Slow(MemorySandbox):
        async def write(
            self, path: str, data: bytes, *, mode: int | None = None
        ) -> None:
            await asyncio.sleep(0.01)
            await super().write(path, data, mode=mode)

    async def cat(_: str) -> CommandResult:
        return CommandResult(0, sandbox.files["/workspace/a.txt"])

    sandbox = Slow(command=cat)
    model = ScriptedCall(
        calls(
            ("write", {"path": "a.txt", "content": "one two"}),
            ("edit", {"path": "a.txt", "old": "one", "new": "1"}),
            ("edit", {"path": "a.txt", "old": "two", "new": "2"}),
            ("bash", {"command": "cat a.txt"}),
        ),
        DONE,
    )
    run(recorder_for(), model, sandbox)
    assert model.results[-1] == ("1 2\n[exit status 0]", False)


def test_a_turn_has_a_limit_of_calls() -> None:
    wanted = calls(*(("bash", {"command": str(number)}) for number in range(100)))
    model, sandbox = ScriptedCall(wanted, DONE), MemorySandbox()
    answer = run(recorder_for(), model, sandbox)
    assert len(sandbox.commands) == MOST_CALLS == 32
    assert len(model.results) == 100
    assert "only the first 32 calls of a turn are" in model.results[32][0]
    assert all(failed for _, failed in model.results[32:])
    assert answer.activity is not None
    assert answer.activity.tool_calls == 100
    assert answer.activity.findings == (
        "calls of one turn that were not run: 68 of 100",
    )


def test_a_trial_that_reads_too_much_says_so() -> None:
    async def long(_: str) -> CommandResult:
        return CommandResult(0, b"x" * 100_000)

    model = ScriptedCall(*[calls(("bash", {"command": "x"}))] * 16, DONE)
    answer = run(recorder_for(), model, MemorySandbox(command=long))
    assert answer.activity is not None
    assert answer.activity.findings == (
        "results of tools were cut after 400,000 characters",
    )
    assert len(model.results[-1][0]) < 2_100
