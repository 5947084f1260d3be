"""--skill-noise: unrelated skills beside the one under test."""

import argparse
import re

import pytest

from pytest_upskill.plugin.pytest_options import OPTIONS
from pytest_upskill.skills.noise import noise_skills
from support.kit import write_script, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.runs import SkillRun, run_skills
from support.sandboxes import needs_bwrap

NAME = re.compile("<name>(.*)</name>")


def keeper(asked: Asked) -> Reply:
    """Opens the skill if it is there, and knows the answer then."""
    if asked.results:
        return Reply("Type gate up.")
    if "gate" not in NAME.findall(asked.system):
        return Reply("No idea.")
    return Reply(calls=(("skill", {"name": "gate"}),))


def by_agent(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> SkillRun:
    run = run_skills(pytester, server, "--skill-agent", "loop", *args)
    assert run.outcomes == {"passed": 1}
    return run


@needs_bwrap
def test_both_arms_have_the_same_unrelated_skills(
    pytester: pytest.Pytester, workers: str
) -> None:
    write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / "other/boat", [], body="How to row.")
    others = ("--skill-noise", "20", "--skill-with", "other/boat")
    with LoopbackServer(keeper) as server:
        run = by_agent(pytester, server, "-n", workers, *others)
    header = [
        line for line in run.screen.splitlines() if line.startswith("upskill: with ")
    ]
    assert [
        word for line in header for word in line.split() if word in ("boat", "20")
    ] == [
        "boat",
        "20",
    ]
    unrelated = [skill.name for skill in noise_skills()[:20]]
    assert unrelated[0] not in run.screen
    listed = [NAME.findall(asked.system) for asked in server.asked if not asked.results]
    assert sorted(listed, key=len) == [
        sorted([*unrelated, "boat"]),
        sorted([*unrelated, "boat", "gate"]),
    ]
    opened = {record["arm"]: record["activity"]["opened"] for record in run.records}
    assert opened == {"skill": ["gate"], "baseline": []}


@needs_bwrap
def test_another_number_is_asked_again_and_the_same_is_not(
    pytester: pytest.Pytester,
) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(keeper) as server:
        asked = list[int]()
        for number in ("5", "5", "6"):
            by_agent(pytester, server, "--skill-noise", number)
            asked.append(len(server.asked))
        assert asked == [3, 3, 6]


@needs_bwrap
def test_a_skill_of_the_same_name_takes_its_place(pytester: pytest.Pytester) -> None:
    first, second = (skill.name for skill in noise_skills()[:2])
    write_skill(pytester.path / f"skills/{first}")

    with LoopbackServer(lambda _: Reply("gate up")) as server:
        by_agent(pytester, server, "--skill-noise", "1")
    shown = {tuple(NAME.findall(asked.system)) for asked in server.asked}
    assert shown == {(second,), tuple(sorted([first, second]))}


@pytest.mark.parametrize(
    ("taken", "number", "most"),
    [("gate", "63", 62), (noise_skills()[7].name, "62", 61)],
)
def test_more_than_there_are_is_an_error(
    pytester: pytest.Pytester, taken: str, number: str, most: int
) -> None:
    write_skill(pytester.path / f"skills/{taken}")
    model = write_script(pytester.path / "answers.json")
    run = run_skills(
        pytester, model, "--skill-agent", "loop", "--skill-noise", number, "--co"
    )
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert f"--skill-noise {number}: only {most} " in run.screen


@pytest.mark.parametrize("text", ["-1", "many", "1.5"])
def test_the_number_is_a_whole_one(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="whole number of 0 or more"):
        OPTIONS["noise"].kind.parse(text)


def test_plain_completions_have_none_and_say_so(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "answers.json")
    run = run_skills(pytester, model, "--skill-noise", "3")
    assert run.outcomes == {"passed": 1}
    assert "upskill: --skill-noise: only for agents" in run.screen
