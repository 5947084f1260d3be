"""Agents by name: which models they fit, and their versions, asked for once."""

import threading
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.agents.agent import Agent
from pytest_upskill.agents.roster import AGENTS, Roster, subjects_of
from pytest_upskill.errors import InputError, SettingsError
from pytest_upskill.features.reference import ORACLE
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.model import ModelName, ProtocolName
from pytest_upskill.models.providers import resolve
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.subject import Subject


class Known(Agent):
    """An agent that just tells its version."""

    def __init__(
        self,
        name: str,
        *protocols: ProtocolName,
        version: Callable[[], Any] = lambda: "1.2",
    ) -> None:
        self.name = name
        self.protocols = protocols or ("chat",)
        self._version = version
        self.asked = 0

    def version(self) -> str:
        self.asked += 1
        told: str = self._version()
        return told

    def how_to_install(self, version: str) -> str:
        return f"get {self.name}@{version}"

    async def run(self, *_: object) -> Answer:
        raise NotImplementedError


def roster(*agents: Agent) -> Roster:
    return Roster({agent.name: lambda agent=agent: agent for agent in agents})  # type: ignore[misc]


ANT = Known("ant", "messages")
BEE = Known("bee", "responses")


def specs(*names: str) -> dict[str, ModelSpec]:
    named = (ModelName(name, "http://127.0.0.1:9/v1") for name in names)
    return {one.name: resolve(one, {}) for one in named}


def pairs(models: list[str], *agents: Agent, named: tuple[Subject, ...] = ()) -> Any:
    subjects = subjects_of(
        ["chat", *(agent.name for agent in agents)][bool(agents) :], models
    )
    good, bad = roster(*agents).pairs(subjects.values(), specs(*models), named)
    return [one.label for one in good], [one.label for one in bad]


def test_pairs_that_do_not_fit_are_left_out() -> None:
    found = pairs(["haiku", "openai:gpt-5.4-mini", "mine"], ANT, BEE)
    assert found == (
        ["ant/haiku", "ant/mine", "bee/openai:gpt-5.4-mini", "bee/mine"],
        ["ant/openai:gpt-5.4-mini", "bee/haiku"],
    )


def test_an_agent_that_fits_no_model_is_told_which_would() -> None:
    with pytest.raises(SettingsError) as caught:
        pairs(["openai:gpt-5.4-mini", "gemini:x"], ANT)
    told = caught.value.message(lambda setting: f"--{setting}")
    assert told.startswith(
        "--agents ant: it speaks Anthropic Messages, and openai:gpt-5.4-mini and"
        " gemini:x do not\n  Fitting models: haiku, sonnet, opus, anthropic:ID, "
    )
    assert "ollama:ID" in told
    assert told.endswith(", any name at --base_url")
    assert "openai:ID" not in told


def test_a_model_that_fits_no_agent_is_told_which_would() -> None:
    with pytest.raises(
        SettingsError, match="haiku: it speaks Anthropic Messages, and bee does n"
    ):
        pairs(["openai:gpt-5.4-mini", "haiku"], BEE)
    both = roster(ANT, BEE)
    subjects = [Subject("bee", "haiku"), Subject("bee", "mine")]
    with pytest.raises(SettingsError, match=r"Fitting agents: chat, loop, ant$"):
        both.pairs(subjects, specs("haiku", "mine"))


def test_a_pair_that_was_named_is_never_left_out() -> None:
    one = Subject("bee", "haiku")
    models = ["haiku", "openai:gpt-5.4-mini"]
    assert pairs(models, ANT, BEE)[1] == ["ant/openai:gpt-5.4-mini", "bee/haiku"]
    with pytest.raises(
        InputError, match=r"^bee/haiku: bee speaks OpenAI Responses, and haiku does"
    ):
        pairs(models, ANT, BEE, named=(one,))


def test_every_agent_of_ours_can_ask_some_model() -> None:
    ours = Roster()
    for name in AGENTS.keys() - {ORACLE}:
        agent = ours.agent(name)
        assert agent.name == name
        assert (
            pairs(["mine"], agent)[0] == [f"{name}/mine"] or "gemini" in agent.protocols
        )


def test_versions_are_asked_for_once_and_at_the_same_time() -> None:
    meet = threading.Barrier(2, timeout=30)

    def version() -> str:
        meet.wait()
        return "1.2"

    agents = Known("ant", version=version), Known("bee", version=version)
    known = roster(*agents)
    known.look_up_versions(["ant", "bee"])
    assert known.version("ant") == "1.2"
    assert known.versions == {"ant": "1.2", "bee": "1.2"}
    assert [agent.asked for agent in agents] == [1, 1]


def test_nobody_is_asked_for_a_version_that_is_known() -> None:
    ant = Known("ant")
    known = roster(ant)
    known.set_versions({"ant": "7"})
    assert (known.version("ant"), ant.asked) == ("7", 0)


def test_a_pin_must_be_the_version() -> None:
    known = roster(Known("ant"))
    assert known.parse("ant@1.2") == "ant"
    assert known.version("ant") == "1.2"
    other = roster(Known("ant"))
    other.parse("ant@1.3")
    with pytest.raises(SettingsError) as caught:
        other.version("ant")
    assert (
        str(caught.value)
        == "agents ant@1.3: ant 1.2 is installed\n  Install it: get ant@1.3"
    )
    with pytest.raises(SettingsError, match=r"answers\.jsonl has answers of ant 1\.1"):
        other.set_versions({"ant": "1.1"}, "answers.jsonl")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["ant@"], "ant@: no version to ask for"),
        (["chat@1"], "chat@1: no version to ask for"),
        (["nat"], "no such agent"),
        (["ant@1.2", "ant@1.3"], "ant@1.3: ant@1.2 is asked for, too"),
    ],
)
def test_what_can_not_be_named(names: list[str], told: str) -> None:
    known = roster(ANT)
    with pytest.raises(SettingsError) as caught:
        [known.parse(name) for name in names]
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (lambda: 1 // 0, "agent ant: its version() raised ZeroDivisionError: *"),
        (lambda: Path("x"), "agent ant: its version is *Path('x'), not a string"),
    ],
)
def test_a_broken_agent_is_one_line(version: Callable[[], Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        roster(Known("ant", version=version)).version("ant")
    assert fnmatch(str(caught.value), told)
