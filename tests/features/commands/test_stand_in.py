"""The stand-in for a command, in each kind of sandbox."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.agents.sandboxes.kinds import kind_of
from pytest_upskill.agents.sandboxes.sandbox import (
    CommandResult,
    SandboxKind,
    SandboxSpec,
)
from pytest_upskill.agents.sandboxes.unconfined import Unconfined
from pytest_upskill.features.commands.answers import BY_COMMAND, AnswerForm
from pytest_upskill.features.commands.part import Commands
from pytest_upskill.trials.answer import Answer
from pytest_upskill.trials.transcript import Activity, CommandCall
from support.fake_docker import forget_programs, use_docker
from support.sandboxes import image_for, require_bwrap

ANSWERS = {
    "gh": [
        AnswerForm(args="pr view *", stdout="é\n", stderr="old\n", exit=7),
        AnswerForm(args="clone", files={"site/a.txt": "a\n", "b.txt": "b"}),
        AnswerForm(args="create -", stdout="made"),
    ],
    "kube-ctl.2": [AnswerForm(stdout="x" * 200_000)],
}


@pytest.fixture(params=["bwrap", "none", "docker", "podman", "fake docker"])
def kind(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SandboxKind]:
    name = request.param
    image = image_for(name) if name in ("docker", "podman") else ""
    if name in ("bwrap", "fake docker"):
        require_bwrap()
    if name == "fake docker":
        state = use_docker(tmp_path, monkeypatch).parent
        (state / "images/tool_1/opt").mkdir(parents=True)
        name = "docker"
        image = "tool:1"
    yield kind_of(name, image)
    forget_programs()


def run(kind: SandboxKind, *lines: str) -> tuple[list[CommandResult], Activity]:
    """Run command lines in a sandbox with the commands."""
    part = Commands(BY_COMMAND.dump_json(ANSWERS).decode())

    async def main() -> tuple[list[CommandResult], Activity]:
        sandbox = await kind.open(SandboxSpec(env={"PATH": part.path}))
        try:
            async with part.around(sandbox) as prepared:
                ran = [await sandbox.run(line, timeout=60) for line in lines]
            activity = prepared.add_to(Answer("", activity=Activity(turns=2))).activity
            assert activity
            return ran, activity
        finally:
            await sandbox.close()

    return asyncio.run(main())


def test_command_prints_returns_and_makes_its_answer(
    kind: SandboxKind,
) -> None:
    (viewed, cloned, *_), activity = run(
        kind,
        "gh pr view 12 2>err.txt; echo $?; cat err.txt",
        "mkdir in; cd in; gh clone; cat site/a.txt b.txt",
    )
    assert viewed.output.decode() == "é\n7\nold\n"
    assert cloned.output == b"a\nb"
    assert activity.turns == 2
    assert activity.commands == (
        CommandCall(("gh", "pr", "view", "12"), 7),
        CommandCall(("gh", "clone"), 0),
    )


def test_call_that_nothing_fits_fails_in_one_line_and_is_told() -> None:
    (ran,), activity = run(Unconfined(), "gh 'a b' c")
    assert (ran.exit, ran.output) == (1, b"gh: no answer to: 'a b' c\n")
    assert activity.findings == ("no answer of evals/commands fits: gh 'a b' c",)


def test_command_behaves_as_others_do_in_a_shell() -> None:
    (made, loop, cut, login), activity = run(
        Unconfined(),
        "printf 123 | gh create -",
        "printf 'a\\nb\\n' | while read line; do gh clone; echo $line; done",
        "set -o pipefail; kube-ctl.2 | head -c 1",
        "bash -lc 'gh create -' < /dev/null; env -i sh -c \"$(command -v gh) clone\"",
    )
    assert made.output == b"made"
    assert loop.output == b"a\nb\n"
    assert cut.output == b"x"
    assert login.output == b"made"
    assert [call.stdin for call in activity.commands] == [3, 0, 0, 0, 0, 0]


def test_secrets_and_floods_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_upskill.features.commands.part._MAX_CALLS", 2)
    key = "sk-ant-api03-" + "a1B2" * 20
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    (_, _, last), activity = run(
        Unconfined(), f"gh clone {key}", "gh clone", "gh clone"
    )
    assert last.exit == 0
    assert len(activity.commands) == 2
    assert key not in str(activity)
    assert "only the first 2 calls of commands are kept" in activity.findings
