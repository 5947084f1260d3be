"""Real agents go on with their session when a user answers them."""

from typing import Final

import pytest

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.user import User
from real_agents.packages import HOW, PACKAGES, is_there, path_for
from real_agents.trying import PROMPT, Tried, agent_named, plays, tried
from support.loopback import Asked, Reply
from support.sandboxes import needs_bwrap

pytestmark = needs_bwrap
NAMES: Final = [
    name for name in PACKAGES if name in AGENTS and AGENTS[name]().takes_answers
]
USER: Final = User(("The code is 4711.",), most=3, model="cheap")
QUESTION: Final = "One thing is open.\n\nWhat is the code?"
ANSWER: Final = "It is 4711."


class Keeper:
    """Looks around, asks twice, writes a file, and ends; the user always says the
    same.
    """

    def __init__(self) -> None:
        self.looks = plays(
            ScriptStep("shell", "echo looked > looked.txt"), ScriptStep("say", "…")
        )
        self.replies = 0

    def __call__(self, asked: Asked) -> Reply:
        if "play a person" in asked.system:
            return Reply(ANSWER, input_tokens=1000, output_tokens=7)
        if not asked.tools:
            return Reply("A title")  # beside the conversation
        self.replies += 1
        if self.replies == 1:
            reply = self.looks(asked)
            assert isinstance(reply, Reply)
            return reply
        return Reply(QUESTION if self.replies < 4 else "The gate is open.")


def run(
    name: str, monkeypatch: pytest.MonkeyPatch, max_turns: int = 20
) -> tuple[Answer, Tried]:
    if not is_there(name, PACKAGES[name]["npm"]):
        pytest.skip(f"{name} is not installed. {HOW}")
    monkeypatch.setenv("PATH", path_for(name))
    protocol = agent_named(name).protocols[0]
    done = tried(name, protocol, Keeper(), user=USER, max_turns=max_turns)
    assert done.answer, done.told
    return done.answer, done


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_goes_on_with_what_its_user_says(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, done = run(name, monkeypatch)
    assert (answer.text, answer.stop) == ("The gate is open.", "end"), done.told
    spoken = [
        turn
        for turn in answer.transcript
        if turn.kind in ("assistant", "answer", "call")
    ]
    kinds = [turn.kind for turn in spoken]
    assert kinds == ["call", *("assistant", "answer") * 2, "assistant"], done.told
    assert [turn.text for turn in answer.transcript if turn.text.strip() == PROMPT] == [
        PROMPT
    ]
    assert answer.activity
    assert answer.activity.turns == 4
    assert (answer.usage.input, answer.usage.output) == (40, 20)
    assert answer.user
    assert (answer.user.calls, answer.user.usage.input) == (2, 2000)
    assert [file.path for file in answer.files] == ["looked.txt"]
    asked, _ = (one for one in done.asked if "play a person" in one.system)
    assert QUESTION in asked.question


@pytest.mark.parametrize("name", NAMES)
def test_turns_are_counted_over_the_whole_conversation(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, done = run(name, monkeypatch, max_turns=2)
    assert answer.stop == "max_turns", done.told
    assert answer.activity
    assert answer.activity.turns == 2
