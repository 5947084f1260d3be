"""--skill-noise: unrelated skills beside the one under test."""

import json
import re
from typing import Any

import pytest

from pytest_upskill.skills.noise import noise_skills
from support.kit import write_script, write_skill
from support.loopback import Asked, LoopbackServer, Reply
from support.sandboxes import needs_bwrap

NAME = re.compile("<name>(.*)</name>")


def keeper(asked: Asked) -> Reply:
    """Opens the skill if it is there, and knows the answer then."""
    if asked.results:
        return Reply("Type gate up.")
    if "gate" not in NAME.findall(asked.system):
        return Reply("No idea.")
    return Reply(calls=(("skill", {"name": "gate"}),))


def run(pytester: pytest.Pytester, server: LoopbackServer, *args: str) -> pytest.RunResult:
    options = ["--skill", "skills", "--skill-agent", "loop", "--model", "m", *args]
    options += ["--skill-base-url", f"{server.url}/v1", "--skill-json", "out.json"]
    return pytester.runpytest_inprocess(*options)


def listed(server: LoopbackServer) -> dict[bool, list[str]]:
    """The skills of the first requests, by whether the tested one is among them."""
    names = [NAME.findall(asked.system) for asked in server.asked if not asked.results]
    assert len(names) == 2
    return {"gate" in one: one for one in names}


@needs_bwrap
def test_both_arms_have_the_same_unrelated_skills(pytester: pytest.Pytester, workers: str) -> None:
    write_skill(pytester.path / "skills/gate")
    write_skill(pytester.path / "other/boat", [], body="How to row.")
    with LoopbackServer(keeper) as server:
        result = run(
            pytester, server, "-n", workers, "--skill-noise", "20", "--skill-with", "other/boat"
        )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["upskill: with other skills: boat", "upskill: with 20 unrelated skills besides (*"]
    )
    first = [one.name for one in noise_skills()[:20]]
    assert first[0] not in result.stdout.str()
    names = listed(server)
    assert names[False] == sorted([*first, "boat"])
    assert names[True] == sorted([*first, "boat", "gate"])
    records: list[dict[str, Any]] = json.loads((pytester.path / "out.json").read_text())["records"]
    assert {one["arm"]: one["opened"] for one in records} == {"skill": ["gate"], "baseline": []}


@needs_bwrap
def test_another_number_is_asked_again_and_the_same_is_not(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    with LoopbackServer(keeper) as server:
        asked = list[int]()
        for number in ("5", "5", "6", "0"):
            run(pytester, server, "--skill-noise", number).assert_outcomes(passed=1)
            asked.append(len(server.asked))
        assert asked == [3, 3, 6, 9]


@needs_bwrap
def test_a_skill_of_the_same_name_takes_its_place(pytester: pytest.Pytester) -> None:
    first, second = (one.name for one in noise_skills()[:2])
    write_skill(pytester.path / f"skills/{first}")

    with LoopbackServer(lambda _: Reply("gate up")) as server:
        run(pytester, server, "--skill-noise", "1").assert_outcomes(passed=1)
    shown = {tuple(NAME.findall(asked.system)) for asked in server.asked}
    assert shown == {(second,), tuple(sorted([first, second]))}


@pytest.mark.parametrize(
    ("taken", "number", "message"),
    [
        ("gate", "63", "* --skill-noise 63: only 62 unrelated skills come with pytest-upskill*"),
        ("gate", "-1", "*argument --skill-noise: '-1' is not a whole number of 0 or more*"),
        ("gate", "many", "*'many' is not a whole number of 0 or more*"),
        (
            noise_skills()[7].name,
            *("62", "* --skill-noise 62: only 61 of the unrelated skills have names of their own*"),
        ),
    ],
)
def test_more_than_there_are_is_an_error(
    pytester: pytest.Pytester, taken: str, number: str, message: str
) -> None:
    assert len(noise_skills()) == 62
    write_skill(pytester.path / f"skills/{taken}")
    model = write_script(pytester.path / "answers.json")
    options = ["--skill", "skills", "--skill-agent", "loop", "--model", model]
    result = pytester.runpytest_inprocess(*options, "--skill-noise", number, "--co")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_plain_completions_have_none_and_say_so(pytester: pytest.Pytester) -> None:
    write_skill(pytester.path / "skills/gate")
    model = write_script(pytester.path / "answers.json")
    options = ["--skill", "skills", "--model", model, "--skill-noise", "3"]
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["upskill: --skill-noise: only for agents (--skill-agent loop)"])
