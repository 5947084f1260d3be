"""An agent that asks, and a user who answers: by our own agent,
and by one that is a program.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.loop import SYSTEM, SYSTEM_WITH_USER, LoopAgent
from pytest_upskill.agents.recorder import Recorder
from pytest_upskill.engine.budget import Budget
from pytest_upskill.errors import NoAnswerError
from pytest_upskill.models.prices import Price
from pytest_upskill.trials.answer import Answer, NoAnswer, Reply, SideCalls, Usage
from pytest_upskill.trials.trial import Question
from pytest_upskill.trials.user import END, User
from support import loopback
from support.agents import MemorySandbox, ScriptedCall, calls, installed, recorder_for
from support.endpoints import KEY
from support.loopback import Asked, LoopbackServer
from support.tiny_trials import BARE, IN_SESSION, carried_out
from support.trials import SPEC

FACTS = User(("The code is 4711.", "It is a gate of oak."), most=6, model="cheap")
ASKS = Answer("Hm.\n\nWhat is the code?", Usage(100, 10, 0), raw='["as it came"]')
DONE = Answer("Done.", Usage(200, 5, 0))


def with_user(recorder: Recorder, user: User | None) -> Recorder:
    task = recorder.question.task
    assert task
    return Recorder(
        replace(recorder.question, task=replace(task, user=user)),
        recorder.skills,
        recorder.price,
    )


class Talk:
    """The replies of the agent's model and of the user's, in turn;
    the last again and again.
    """

    def __init__(self, agent: list[Reply], user: list[Reply | str]) -> None:
        self.agent = ScriptedCall(*agent)
        spoken = [
            Answer(one, Usage(50, 3, 0)) if isinstance(one, str) else one
            for one in user
        ]
        self.user = ScriptedCall(*spoken)

    async def __call__(self, question: Question, send: object = None) -> Reply:
        assert send is None
        return await (self.user if question.model == "cheap" else self.agent)(question)


def run(talk: Talk, user: User | None = FACTS, max_turns: int = 30) -> Answer:
    recorder = with_user(recorder_for(max_turns=max_turns), user)
    return asyncio.run(LoopAgent().run(MemorySandbox(), talk, recorder, SPEC))


def test_a_user_answers_from_facts() -> None:
    talk = Talk(
        [ASKS, calls(("bash", {"command": "open 4711"})), DONE], ["It is 4711."]
    )
    answer = run(talk)
    assert (answer.text, answer.stop) == ("Done.", "end")
    (asked,) = talk.user.questions
    assert (asked.model, asked.max_output, asked.tools, asked.task) == (
        "cheap",
        4096,
        (),
        None,
    )
    assert "- The code is 4711.\n" in asked.system
    ((role, shown),) = asked.messages
    assert role == "user"
    assert "Open the gate." in shown
    assert "What is the code?" in shown
    step = talk.agent.questions[1].steps[0]
    assert (step.text, step.answer, step.raw) == (ASKS.text, "It is 4711.", ASKS.raw)
    assert [(turn.kind, turn.reply) for turn in answer.transcript[2:]] == [
        *[("assistant", 1), ("answer", 1), ("call", 2), ("result", 2), ("assistant", 3)]
    ]
    assert answer.usage == Usage(400, 25, 50)  # of the agent alone
    assert answer.user == SideCalls("cheap", 1, Usage(50, 3, 0))


def test_all_that_a_user_says_is_in_the_transcript() -> None:
    talk = Talk([ASKS, ASKS, DONE], ["I don't know."])
    answer = run(talk)
    assert [turn.text for turn in answer.transcript if turn.kind == "answer"] == [
        *["I don't know."] * 2
    ]
    assert answer.user == SideCalls("cheap", 2, Usage(100, 6, 0))


def test_fixed_replies_come_in_order_until_they_are_used_up() -> None:
    talk = Talk([ASKS], [])
    answer = run(talk, User(replies=("One.", "Two."), most=2))
    assert [step.answer for step in talk.agent.questions[-1].steps] == ["One.", "Two."]
    assert (answer.text, answer.stop, answer.user) == (ASKS.text, "end", None)


def test_no_more_answers_than_allowed() -> None:
    talk = Talk([ASKS], ["I don't know."])
    answer = run(talk, replace(FACTS, most=3))
    assert (len(talk.user.questions), len(talk.agent.questions)) == (3, 4)
    assert answer.text == ASKS.text


def test_the_limit_of_turns_is_for_the_whole_conversation() -> None:
    answer = run(Talk([ASKS], ["I don't know."]), max_turns=2)
    assert (answer.stop, answer.activity and answer.activity.turns) == ("max_turns", 2)


@pytest.mark.parametrize(
    "reply",
    [DONE, replace(ASKS, stop="refusal"), Answer("```\nWhich?\n```")],
    ids=["a statement", "a refusal", "code"],
)
def test_nobody_answers_what_is_no_question(reply: Answer) -> None:
    talk = Talk([reply], ["It is 4711."])
    assert run(talk).text == reply.text
    assert not talk.user.questions


def test_a_user_may_leave_an_offer_alone() -> None:
    answer = run(Talk([Answer("Done. Shall I paint it, too?")], [END]))
    assert answer.text == "Done. Shall I paint it, too?"
    assert answer.user == SideCalls("cheap", 1, Usage(50, 3, 0))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            NoAnswer("cheap: 401 wrong key"),
            "the user gave no answer: cheap: 401 wrong key",
        ),
        (Answer("<think>hm"), "the user (cheap) said nothing"),
        (Answer("I can't.", stop="refusal"), "the user (cheap) refused"),
    ],
)
def test_a_user_who_does_not_answer_is_an_error(reply: Reply, reason: str) -> None:
    with pytest.raises(
        NoAnswerError, match=reason.replace("(", r"\(").replace(")", r"\)")
    ):
        run(Talk([ASKS], [reply]))


def test_arms_get_the_same_user(tmp_path: Path) -> None:
    talks = []
    for skills in ([], [installed(tmp_path)]):
        talk = Talk([ASKS, DONE], ["It is 4711."])
        recorder = with_user(recorder_for(*skills), FACTS)
        asyncio.run(LoopAgent().run(MemorySandbox(), talk, recorder, SPEC))
        talks.append(talk)
    without, with_skill = talks
    assert without.user.questions == with_skill.user.questions
    assert without.agent.questions[0].system == SYSTEM_WITH_USER
    assert with_skill.agent.questions[0].system.startswith(f"{SYSTEM_WITH_USER}\n\n")


def test_without_a_user_our_agent_is_told_that_nobody_answers() -> None:
    talk = Talk([ASKS], [])
    assert run(talk, None).text == ASKS.text
    assert talk.agent.questions[0].system == SYSTEM


def test_what_a_user_quotes_of_a_skill_does_not_open_it(tmp_path: Path) -> None:
    skill = installed(tmp_path)
    talk = Talk([ASKS, DONE], [skill.body])
    recorder = with_user(recorder_for(skill), FACTS)
    answer = asyncio.run(LoopAgent().run(MemorySandbox(), talk, recorder, SPEC))
    assert answer.activity
    assert answer.activity.activated is False


# A program.


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def talk_of(*replies: str) -> Callable[[Asked], loopback.Reply]:
    """A server that plays the agent's model, with these replies, and the user,
    who is asked without tools.
    """
    left = list(replies)

    def script(asked: Asked) -> loopback.Reply:
        if not asked.tools:
            return loopback.Reply("It is 4711.", input_tokens=50, output_tokens=3)
        return loopback.Reply(left.pop(0), input_tokens=100, output_tokens=10)

    return script


def test_a_program_goes_on_with_its_session() -> None:
    asks = "What is the code?"
    with LoopbackServer(talk_of(asks, asks, "Done.")) as server:
        answer = carried_out(
            server.url, "messages", script=IN_SESSION, sandbox="none", user=FACTS
        )
    assert isinstance(answer, Answer)
    assert (answer.text, answer.stop) == ("Done.", "end")
    assert [(turn.kind, turn.text) for turn in answer.transcript] == [
        ("user", "Open the gate."),
        *[("assistant", asks), ("answer", "It is 4711.")] * 2,
        ("assistant", "Done."),
    ]
    assert answer.activity
    assert (answer.activity.turns, answer.activity.findings) == (3, ())
    assert (answer.usage.input, answer.usage.output) == (300, 30)
    assert answer.user
    assert (answer.user.calls, answer.user.usage.tokens) == (2, 106)


def test_turns_of_a_program_are_counted_over_all_its_starts() -> None:
    with LoopbackServer(talk_of(*["What is the code?"] * 9)) as server:
        answer = carried_out(
            server.url,
            "messages",
            script=IN_SESSION,
            sandbox="none",
            user=FACTS,
            max_turns=2,
        )
    assert isinstance(answer, Answer)
    assert (answer.stop, answer.activity and answer.activity.turns) == ("max_turns", 2)


def test_a_program_that_can_not_go_on_is_an_error() -> None:
    script = BARE.replace(
        b"\nsaid", b"\nif sys.argv[3] != 'Open the gate.': sys.exit(3)\nsaid"
    )
    with LoopbackServer(talk_of("What is the code?")) as server:
        reply = carried_out(
            server.url, "messages", script=script, sandbox="none", user=FACTS
        )
    assert isinstance(reply, NoAnswer)
    assert "tiny did not go on with the user's answer" in reply.reason
    assert "3" in reply.reason


def test_a_user_is_paid_at_its_own_price() -> None:
    prices = {"m": Price(1.0, 1.0, 1.0), "cheap": Price(1000.0, 1000.0, 1000.0)}
    budget = Budget(most_cost=1_000_000.0, price_of=prices.__getitem__)
    with LoopbackServer(talk_of("What is the code?", "Done.")) as server:
        carried_out(
            server.url,
            "messages",
            script=IN_SESSION,
            sandbox="none",
            user=FACTS,
            budget=budget,
        )
    tokens, usd = budget.spent
    assert tokens >= 2 * 110 + 53
    assert usd > 53 * 1000 / 10**6
