"""Which sandbox a task gets, or why it can't run."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_upskill._util.texts import digest
from pytest_upskill.agents import images, task_sandbox
from pytest_upskill.agents.needs import spec_for
from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.sandbox import SandboxError
from pytest_upskill.agents.snapshot import Snapshot, fill, tree_of
from pytest_upskill.agents.task_sandbox import (
    SandboxChoice,
    TaskSandbox,
    choose_sandbox,
    sandbox_for,
)
from pytest_upskill.skills.case import BuildContext, SandboxNeeds, WorkspaceFile
from support.sandboxes import image_for

Working = Callable[..., None]


@pytest.fixture
def working(monkeypatch: pytest.MonkeyPatch) -> Iterator[Working]:
    """The programs that work: none until they are named."""
    choose_sandbox.cache_clear()

    def use(*names: str) -> None:
        choose_sandbox.cache_clear()
        monkeypatch.setattr(
            Bwrap, "why_not", lambda *_: None if "bwrap" in names else "no bwrap."
        )
        problem = "{0} was not found"
        monkeypatch.setattr(
            task_sandbox,
            "why_no_program",
            lambda name: "" if name in names else problem.format(name),
        )

    use()
    yield use
    choose_sandbox.cache_clear()


def task(image: str = "", without: str = "") -> SandboxNeeds:
    return SandboxNeeds(image=image, build=BuildContext(f"d{without}", without=without))


def test_a_task_with_an_image_runs_in_docker_or_podman(working: Working) -> None:
    working("bwrap", "docker", "podman")
    tag = images.tag_of(BuildContext("d"))
    assert choose_sandbox(task()) == SandboxChoice("docker", tag)
    assert choose_sandbox(task(), "podman") == SandboxChoice("podman", tag)
    named = SandboxNeeds(image="bench/task:1")
    assert choose_sandbox(named) == SandboxChoice("docker", "bench/task:1")
    working("podman")
    assert choose_sandbox(named) == SandboxChoice("podman", "bench/task:1")


def test_without_a_program_for_images_the_reason_says_what_to_install(
    working: Working,
) -> None:
    working("bwrap")
    choice = choose_sandbox(task())
    assert (choice.kind, choice.image) == ("", "")
    for words in ("docker or podman", "docker was not found", "apt", "install podman"):
        assert words in choice.reason
    with pytest.raises(SandboxError, match="install podman"):
        sandbox_for(task())


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
def test_a_sandbox_without_images_runs_no_task_that_has_one(
    working: Working, sandbox: str
) -> None:
    working("bwrap", "docker")
    choice = choose_sandbox(task(), sandbox)
    assert choice.kind == ""
    assert f"the sandbox is {sandbox}" in choice.reason


def test_a_container_that_is_named_uses_the_image_of_each_task(
    working: Working,
) -> None:
    working("bwrap", "podman")
    assert choose_sandbox(task(), "podman").image.startswith(images.BUILT)
    assert choose_sandbox(task(), "docker").kind == ""


def test_an_image_of_the_user_replaces_that_of_the_task(working: Working) -> None:
    working("podman")
    assert choose_sandbox(task(), "auto", "tool:1") == SandboxChoice("podman", "tool:1")


def test_cases_without_an_image_run_where_the_run_does(working: Working) -> None:
    assert choose_sandbox(SandboxNeeds()) == SandboxChoice("auto")
    assert choose_sandbox(SandboxNeeds(), "none") == SandboxChoice("none")
    working("bwrap", "podman")
    assert choose_sandbox(SandboxNeeds()) == SandboxChoice("bwrap")


def test_a_named_image_has_the_skills_so_the_dockerfile_is_built(
    working: Working,
) -> None:
    working("podman")
    assert choose_sandbox(task("bench/task:1")).image == "bench/task:1"
    with_skills = task("bench/task:1", without="skills")
    assert choose_sandbox(with_skills).image.startswith(images.BUILT)


def test_an_image_is_prepared_for_trials(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    working("podman")
    asked = list[tuple[object, ...]]()

    def prepare(*arguments: object) -> str:
        asked.append(arguments)
        return "built:1"

    monkeypatch.setattr(images, "prepare", prepare)
    needs = task("bench/task:1")
    sandbox = sandbox_for(needs)
    assert (sandbox.kind.name, sandbox.image, sandbox.is_own) == (
        "podman",
        "built:1",
        True,
    )
    sandbox_for(task("bench/task:1", without="skills"))
    assert [arguments[:2] for arguments in asked] == [
        ("podman", "bench/task:1"),
        ("podman", ""),
    ]


def test_the_start_has_what_the_image_has_and_what_the_case_adds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Snapshot((WorkspaceFile("made", b"1"), WorkspaceFile("old", b"1")))
    monkeypatch.setattr(images, "files_of_image", lambda *_: there)
    needs = SandboxNeeds(python=("numpy",), env=(("A", "1"),), build=BuildContext("d"))
    sandbox = TaskSandbox(Bwrap(), "built:1")
    start = sandbox.start(needs, (WorkspaceFile("old", b"2"),))
    assert {file.path: file.data for file in start.files} == {"made": b"1", "old": b"2"}
    inside = sandbox.needs_inside(needs)
    assert (inside.python, inside.env) == ((), ())
    assert TaskSandbox(Bwrap()).needs_inside(needs) == needs


def test_only_an_image_may_have_files_in_the_root(
    working: Working,
) -> None:
    working("bwrap", "podman")
    reason = "/etc can't be a folder of a task: the system is there"
    assert choose_sandbox(SandboxNeeds(workdir="/etc")) == SandboxChoice(
        "", reason=reason
    )
    assert choose_sandbox(SandboxNeeds(places=("/",))).kind == ""
    needs = task()._replace(places=("/", "/data"))
    assert choose_sandbox(needs).kind == "podman"
    assert TaskSandbox(Bwrap(), "built:1").needs_inside(needs).places == ("/data",)


def test_a_place_around_the_workdir_has_its_files_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = ("a", "/app/src/a", "/app/b")
    image = Snapshot(tuple(WorkspaceFile(path, b"") for path in paths))
    monkeypatch.setattr(images, "files_of_image", lambda *_: image)
    needs = task()._replace(workdir="/app/src", places=("/app",))
    start = TaskSandbox(Bwrap(), "built:1").start(needs, ())
    assert [file.path for file in start.files] == ["a", "/app/b"]


@pytest.mark.nightly
@pytest.mark.parametrize("program", ["docker", "podman"])
def test_a_task_in_its_own_image(program: str, tmp_path: Path) -> None:
    """With a real program: the files, the environment and the
    tools are those of the image.
    """
    base = image_for(program)
    lines = [
        *(
            f"FROM {base}",
            "ENV GREETING=hello",
            "WORKDIR /app",
            "COPY . /app/",
            "RUN rm Dockerfile",
        ),
        (
            "RUN mkdir -p /output/made && chmod 700 /root && touch /root/tool && ln -s"
            " data.csv link"
        ),
    ]
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    (tmp_path / "data.csv").write_text("1\n")
    name = digest(str(tmp_path))
    build = BuildContext(name, "Dockerfile", str(tmp_path))
    needs = SandboxNeeds(workdir="/app", places=("/output",), build=build)
    sandbox = sandbox_for(needs, program)

    async def use() -> None:
        opened = await sandbox.kind.open(spec_for(sandbox.needs_inside(needs)))
        try:
            await fill(opened, sandbox.start(needs, ()))
            paths = [entry.path for entry in await tree_of(opened)]
            assert paths == ["data.csv", "link", "/output/made"]
            ran = await opened.run(
                "pwd; echo $GREETING; id -u; ls /root; cat link", timeout=60
            )
            where, greeting, user, tool, data = ran.output.decode().split()
            assert (where, greeting, tool, data) == ("/app", "hello", "tool", "1")
            assert user != "0"
            assert (
                await opened.run("touch data.csv /output/new", timeout=60)
            ).exit == 0
            assert (await opened.run("touch /etc/new", timeout=60)).exit != 0
        finally:
            await opened.close()

    try:
        asyncio.run(use())
    finally:
        subprocess.run(
            [program, "rmi", "--force", sandbox.image], capture_output=True, check=False
        )
