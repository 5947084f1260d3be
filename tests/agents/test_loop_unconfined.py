"""Our own agent without a sandbox: paths are those of the host,
for files and for commands.
"""

import asyncio
import os
import re
from pathlib import Path

import pytest

from pytest_upskill.agents.agent_trials import AgentTrials
from pytest_upskill.agents.loop import LoopAgent
from pytest_upskill.agents.run_folder import remove
from pytest_upskill.agents.sandboxes import unconfined
from pytest_upskill.agents.sandboxes.sandbox import PACKAGES, Mount, SandboxSpec
from pytest_upskill.agents.sandboxes.unconfined import Unconfined
from pytest_upskill.agents.task_sandbox import always
from pytest_upskill.trials.answer import Answer, Reply
from pytest_upskill.trials.arm import SkillCopy
from pytest_upskill.trials.trial import Question, Task
from support.agents import BODY, CODES, SCRIPT, ScriptedCall, calls, write_files
from support.trials import spec_of


def test_a_skill_is_where_the_list_says(tmp_path: Path) -> None:
    files = {"SKILL.md": BODY, "references/codes.md": CODES, "scripts/open.sh": SCRIPT}
    write_files(tmp_path / "gate", files)
    (tmp_path / "gate/scripts/open.sh").chmod(0o755)

    def first(question: Question) -> Reply:
        found = re.search("<location>(.*)/SKILL.md</location>", question.system)
        assert found
        folder = found[1]
        return calls(
            ("skill", {"name": "gate"}),
            ("read", {"path": f"{folder}/references/codes.md"}),
            ("bash", {"command": f"{folder}/scripts/open.sh 4 | tee gate.txt"}),
            ("list", {"path": folder}),
        )

    model = ScriptedCall(first, calls(("read", {"path": "gate.txt"})), Answer("Done."))

    async def run() -> Reply:
        trials = AgentTrials(lambda _: LoopAgent(), always(Unconfined()), 60, spec_of)
        gate = SkillCopy.of("gate", tmp_path / "gate")
        task = Task("loop", "1", skills=(gate,), tested=("gate",))
        try:
            return await trials.run(
                Question("m", "", (("user", "Go."),), 9, 1, task=task), model
            )
        finally:
            await trials.close()

    answer = asyncio.run(run())
    assert isinstance(answer, Answer), answer
    assert answer.activity is not None
    assert answer.activity.activated is True
    assert answer.activity.read == ("references/codes.md",)
    assert answer.activity.scripts == ("scripts/open.sh",)
    assert model.results[-1] == ("The gate is open, said the motor to 4.\n", False)
    assert model.results[3][0].startswith("SKILL.md (")


def test_path_has_the_folders_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/tmp/tools:/workspace/.venv/bin:/bin:/usr/bin")

    async def run() -> bytes:
        box = await Unconfined().open(SandboxSpec((Mount(str(tmp_path), PACKAGES),)))
        try:
            return (await box.run("echo $PATH $PYTHONPATH", timeout=60)).output
        finally:
            await box.close()

    path = f"/tmp/tools:/workspace/.venv/bin:/bin:/usr/bin:{tmp_path}/bin"
    assert asyncio.run(run()).decode() == f"{path} {tmp_path}\n"


def test_a_folder_that_is_mounted_where_it_is_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    same, other = (
        Mount(f"{tmp_path}/tools", f"{tmp_path}/{name}") for name in ("tools", "other")
    )

    async def run() -> list[str]:
        box = await Unconfined().open(
            SandboxSpec((same, other), places=(str(tmp_path),))
        )
        try:
            return [box.path(mount.inside) for mount in (same, other)]
        finally:
            await box.close()

    used, copied = asyncio.run(run())
    assert used == same.host
    assert copied not in (other.host, other.inside)


def test_a_cancelled_command_has_ended_before_its_folder_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "pid"
    ended = []

    def look_and_remove(folder: Path) -> None:
        try:
            os.kill(int(started.read_text()), 0)
        except ProcessLookupError:  # not even a zombie is left
            ended.append(True)
        remove(folder)

    async def run() -> None:
        box = await Unconfined().open(SandboxSpec())
        command = (
            f"echo $$ > {started}.part; mv {started}.part {started}; exec sleep 600"
        )
        task = asyncio.create_task(box.run(command, timeout=600))
        while not started.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        await box.close()

    monkeypatch.setattr(unconfined, "remove", look_and_remove)
    asyncio.run(run())
    assert ended == [True]
