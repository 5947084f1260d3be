"""Trials that end once it is decided whether the skill is opened: our own agent,
and a command.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.loop import LoopAgent
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.trials.answer import Answer, NoAnswer, Usage
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.transcript import GIVEN
from support.agents import (
    BODY,
    MemorySandbox,
    ScriptedCall,
    calls,
    installed,
    recorder_for,
)
from support.endpoints import KEY
from support.kit import write_skill
from support.loopback import Asked, Fault, LoopbackServer
from support.loopback import Reply as Said
from support.sandboxes import needs_bwrap
from support.tiny_trials import BARE, EACH_WAY, carried_out, steps
from support.trials import SPEC

DONE = Answer("Done.", Usage(200, 5, 100))
BOAT = "# Boats\n\nCoil the mooring line clockwise before you cast off.\n"
OPEN, OTHER = ("skill", {"name": "gate"}), ("skill", {"name": "boat"})
LIST: tuple[str, Any] = ("list", {})


def looped(folder: Path, *replies: Answer, max_turns: int = 5) -> tuple[Answer, int]:
    """What came of a trial of our own agent, and how often its model was asked."""
    skills = [
        installed(folder),
        installed(folder, "boat", body=BOAT, files={}, tested=False),
    ]
    recorder = recorder_for(*skills, max_turns=max_turns)
    task = recorder.question.task
    assert task
    question = replace(recorder.question, task=replace(task, until_opened=True))
    model = ScriptedCall(*replies)
    recorder = Recorder(question, skills)
    answer = asyncio.run(LoopAgent().run(MemorySandbox(), model, recorder, SPEC))
    return answer, len(model.questions)


@pytest.mark.parametrize(
    ("replies", "asked", "stop", "opened"),
    [
        ([calls(OPEN)], 1, "decided", ("gate",)),
        ([DONE], 1, "end", ()),
        ([calls(OTHER, OPEN)], 1, "decided", ("boat", "gate")),
        ([calls(OTHER), calls(OPEN)], 2, "decided", ("boat", "gate")),
        ([calls(OTHER), calls(LIST)], 2, "decided", ("boat",)),
        ([calls(OTHER), DONE], 2, "end", ("boat",)),
        ([calls(LIST), calls(LIST), calls(OPEN)], 3, "decided", ("gate",)),
        ([*[calls(LIST)] * 4, calls(OPEN)], 5, "decided", ("gate",)),
        ([calls(LIST)] * 5, 5, "max_turns", ()),
        ([calls(("skill", {"name": "gates"})), DONE], 2, "end", ()),
        ([replace(calls(OPEN), stop="refusal")], 1, "refusal", ()),
        ([calls(("gate", {}))], 1, "decided", ("gate",)),  # as if it were a tool
        ([calls(("boat", {})), calls(("gate", {}))], 2, "decided", ("boat", "gate")),
        ([calls(("boat", {})), calls(LIST)], 2, "decided", ("boat",)),
    ],
)
def test_our_agent_ends_once_it_is_decided(
    tmp_path: Path,
    replies: list[Answer],
    asked: int,
    stop: str,
    opened: tuple[str, ...],
) -> None:
    answer, times = looped(tmp_path, *replies, DONE)
    assert (times, answer.stop) == (asked, stop)
    activity = answer.activity
    assert activity
    assert (activity.opened, activity.activated) == (opened, "gate" in opened)
    assert activity.turns == asked


def test_what_was_spent_and_said_is_kept(tmp_path: Path) -> None:
    answer, _ = looped(tmp_path, calls(OPEN, text="Let me see."), DONE)
    assert answer.usage == Usage(100, 10, 50)
    assert [turn.kind for turn in answer.transcript[-3:]] == [
        "assistant",
        "call",
        "result",
    ]
    assert BODY.strip() in answer.transcript[-1].text


# The same by a command with a shell: it ends without its model, and without the seconds
# that an agent has to end by itself.
STUCK = BARE.replace(
    b"said = [", b"import signal; signal.signal(15, signal.SIG_IGN)\nsaid = [", 1
)
FIRST = BARE.replace(
    b"sys.argv[3]}]", b"sys.argv[3] + open('/skills/gate/SKILL.md').read()}]", 1
)
CAT, CAT_BOAT = "cat /skills/gate/SKILL.md", "cat /skills/boat/SKILL.md"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def both(folder: Path) -> tuple[SkillCopy, ...]:
    gate = SkillCopy.of("gate", write_skill(folder / "gate", body=BODY))
    return gate, SkillCopy.of("boat", write_skill(folder / "boat", body=BOAT))


def tried(
    folder: Path,
    script: Callable[[Asked], Any],
    agent: bytes | None = BARE,
    way: str = "messages",
    query: str = "Open the gate.",
) -> tuple[Any, int]:
    """What came of a trial of a command, and how often its model was asked."""
    with LoopbackServer(script) as server:
        reply = carried_out(
            server.url,
            way,
            script=agent,
            prompt=query,
            skills=both(folder),
            tested=("gate",),
            max_turns=5,
            until_opened=True,
        )
    return reply, len(server.asked)


@needs_bwrap
@pytest.mark.parametrize(
    ("commands", "asked", "stop", "opened"),
    [
        ([CAT], 1, "decided", ("gate",)),
        ([], 1, "end", ()),
        ([CAT_BOAT, CAT], 2, "decided", ("boat", "gate")),
        ([CAT_BOAT, "ls"], 2, "decided", ("boat",)),
        (["ls /"] * 5, 5, "max_turns", ()),
    ],
)
def test_a_command_is_ended_once_it_is_decided(
    tmp_path: Path, commands: list[str], asked: int, stop: str, opened: tuple[str, ...]
) -> None:
    answer, times = tried(tmp_path, steps(*commands))
    assert (times, answer.stop) == (asked, stop)
    activity = answer.activity
    assert activity
    assert (set(activity.opened), activity.activated) == (set(opened), "gate" in opened)
    assert activity.turns == asked
    assert (answer.files, answer.workspace) == ((), b"")


@needs_bwrap
@EACH_WAY
def test_a_title_does_not_decide(tmp_path: Path, way: str) -> None:
    answer, times = tried(tmp_path, steps(CAT), None, way)  # it asks for a title first
    assert times == 2
    assert answer.stop == "decided"
    assert answer.activity
    assert (answer.activity.turns, answer.activity.activated) == (1, True)
    assert answer.activity.findings == (
        "model calls beside the conversation: 1 (103 tokens)",
    )
    told = [turn.kind for turn in answer.transcript]
    assert told[-2:] == ["call", "result"]
    assert "then pull" in answer.transcript[-1].text or BODY.split("\n")[0] in str(
        answer.transcript
    )
    assert answer.usage.input is not None


@needs_bwrap
def test_an_agent_that_does_not_want_to_end_is_ended_at_once(tmp_path: Path) -> None:
    answer, times = tried(tmp_path, steps(CAT), STUCK)
    assert (times, answer.stop) == (1, "decided")
    assert answer.seconds is not None
    assert answer.activity
    assert answer.activity.findings == ()  # it asked for nothing in vain


@needs_bwrap
def test_a_skill_called_as_if_it_were_a_tool_is_chosen(tmp_path: Path) -> None:
    call = Said(calls=(("gate", {"command": "true"}),))
    answer, times = tried(tmp_path, lambda _: call)
    assert (times, answer.stop) == (1, "decided")
    assert answer.activity
    assert (answer.activity.activated, answer.activity.opened) == (True, ("gate",))


@needs_bwrap
def test_a_skill_that_stands_in_the_first_request_is_opened_by_its_agent(
    tmp_path: Path,
) -> None:
    answer, times = tried(tmp_path, steps(), FIRST)
    assert (times, answer.stop) == (0, "decided")
    activity = answer.activity
    assert activity
    assert (activity.activated, activity.opened, activity.turns) == (True, ("gate",), 0)
    assert activity.findings == (GIVEN,)


@needs_bwrap
def test_a_query_that_quotes_the_skill_does_not_open_it(tmp_path: Path) -> None:
    answer, times = tried(tmp_path, steps(), query=f"Check this: {BODY}")
    assert (times, answer.stop) == (1, "end")
    assert answer.activity
    assert answer.activity.activated is False
    assert GIVEN not in answer.activity.findings
    # A query that names a skill tells nobody that it is there
    assert answer.activity.untold


@needs_bwrap
def test_a_model_that_fails_is_an_error(tmp_path: Path) -> None:
    reply, _ = tried(tmp_path, lambda _: Fault("status", 401))
    assert isinstance(reply, NoAnswer)
    assert "Check ANTHROPIC_API_KEY" in reply.reason


@needs_bwrap
@pytest.mark.parametrize("first", [(), (("bash", {"command": "ls /"}),)])
@pytest.mark.parametrize("last", [Said(""), Said("", thinking="Hm.", stop="length")])
def test_a_model_that_says_nothing_went_without_the_skill(
    tmp_path: Path, first: tuple[Any, ...], last: Said
) -> None:
    run = Said(calls=first) if first else last
    answer, times = tried(tmp_path, lambda asked: last if asked.results else run)
    assert (times, answer.stop) == (1 + bool(first), last.stop)
    assert answer.activity
    assert answer.activity.activated is False


@needs_bwrap
@pytest.mark.parametrize("body", ["42\n", "!!! ---> ...\n"])
def test_a_skill_without_words_is_an_error_before_any_call(
    tmp_path: Path, body: str
) -> None:
    gate = SkillCopy.of("gate", write_skill(tmp_path / "gate", body=body))
    task: dict[str, Any] = {
        "skills": (gate,),
        "tested": "gate",
        "max_turns": 5,
        "until_opened": True,
    }
    with LoopbackServer(steps(CAT)) as server:
        reply = carried_out(server.url, "messages", script=BARE, **task)
    assert isinstance(reply, NoAnswer)
    assert "no words" in reply.reason
    assert not server.asked
