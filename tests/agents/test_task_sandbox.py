"""Which sandbox a task gets, or why it can't run."""

import asyncio
import shutil
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
    missing_packages,
    sandbox_for,
)
from pytest_upskill.skills.case import BuildContext, SandboxNeeds, WorkspaceFile
from support.sandboxes import image_for

MAKE = "Dockerfile:3: RUN make"
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
            images,
            "why_no_program",
            lambda name: "" if name in names else problem.format(name),
        )

    monkeypatch.setattr(task_sandbox, "_installed", lambda: frozenset({"bash", "curl"}))
    monkeypatch.setattr(images, "images_here", lambda _: set())
    use()
    yield use
    choose_sandbox.cache_clear()


def task(
    *others: str, image: str = "", packages: tuple[str, ...] = (), without: str = ""
) -> SandboxNeeds:
    build = BuildContext(
        f"{others} {packages} {without}", others=others, without=without
    )
    return SandboxNeeds(image=image, build=build, packages=packages)


def test_files_and_installed_packages_need_no_image(working: Working) -> None:
    working("bwrap", "docker")
    assert choose_sandbox(task(packages=("curl",))) == SandboxChoice("bwrap")
    assert choose_sandbox(task(image="bench/task:1")) == SandboxChoice("bwrap")


def test_what_only_an_image_can_do(working: Working) -> None:
    working("bwrap", "podman")
    tag = images.tag_of(BuildContext(f"{(MAKE,)} () "))
    assert choose_sandbox(task(MAKE)) == SandboxChoice("podman", tag, MAKE)
    missing = choose_sandbox(task(packages=("curl", "ffmpeg", "nodejs:arm64")))
    assert (missing.kind, missing.reason) == (
        "podman",
        "not installed: ffmpeg, nodejs:arm64",
    )
    named = SandboxNeeds(image="bench/task:1")
    assert choose_sandbox(named) == SandboxChoice(
        "podman", "bench/task:1", "bench/task:1 has no Dockerfile"
    )


def test_docker_is_tried_first(working: Working) -> None:
    working("docker", "podman")
    assert choose_sandbox(task(MAKE)).kind == "docker"
    assert choose_sandbox(task(MAKE), "podman").kind == "podman"


def test_without_bubblewrap_all_tasks_are_in_their_images(working: Working) -> None:
    working("docker")
    assert choose_sandbox(task()).kind == "docker"
    assert choose_sandbox(task()).reason == "no bwrap."


def test_the_message_says_what_to_install(working: Working) -> None:
    working("bwrap")
    place = choose_sandbox(task(MAKE))
    assert place.kind == ""
    assert (
        f"needs an image ({MAKE}), but docker was not found; podman was not"
        in place.reason
    )
    assert "apt install podman" in place.reason
    with pytest.raises(SandboxError, match="apt install podman"):
        sandbox_for(task(MAKE))


def test_a_sandbox_that_has_no_images(working: Working) -> None:
    working("bwrap", "docker")
    assert choose_sandbox(task(), "bwrap") == SandboxChoice("bwrap")
    reason = f"needs an image, which bwrap has not: {MAKE}"
    assert choose_sandbox(task(MAKE), "bwrap") == SandboxChoice("", reason=reason)


def test_a_task_is_not_let_loose_on_folders_of_this_machine(working: Working) -> None:
    working("bwrap", "docker")
    choice = choose_sandbox(task()._replace(workdir="/root"), "none")
    assert choice.kind == ""
    assert "works in /root" in choice.reason


def test_a_container_that_is_named_uses_the_image_of_each_task(
    working: Working,
) -> None:
    working("bwrap", "podman")
    assert choose_sandbox(task(), "podman").image.startswith(images.BUILT)
    assert choose_sandbox(task(), "docker").kind == ""


def test_an_image_of_the_user_replaces_that_of_the_task(working: Working) -> None:
    working("podman")
    assert choose_sandbox(task(MAKE), "auto", "tool:1") == SandboxChoice(
        "podman", "tool:1"
    )


def test_cases_without_an_image_run_where_the_run_does(working: Working) -> None:
    assert choose_sandbox(SandboxNeeds()) == SandboxChoice("auto")
    assert choose_sandbox(SandboxNeeds(), "none") == SandboxChoice("none")
    working("bwrap", "podman")
    assert choose_sandbox(SandboxNeeds()) == SandboxChoice("bwrap")


def test_a_named_image_has_the_skills_so_the_dockerfile_is_built(
    working: Working,
) -> None:
    working("podman")
    assert choose_sandbox(task(MAKE, image="bench/task:1")).image == "bench/task:1"
    assert choose_sandbox(
        task(MAKE, image="bench/task:1", without="skills")
    ).image.startswith(images.BUILT)


def test_an_image_that_is_here_for_another_machine(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    working("podman")
    problem = "the image x is for s390x, and this machine is arm64"
    monkeypatch.setattr(images, "why_other_machine", lambda *_: problem)
    names = {choose_sandbox(task(MAKE)).image}
    monkeypatch.setattr(images, "images_here", lambda _: names)
    choose_sandbox.cache_clear()
    assert choose_sandbox(task(MAKE)) == SandboxChoice("", reason=problem)


def test_a_build_that_lacks_a_file_is_not_tried(working: Working) -> None:
    working("bwrap", "podman")
    missing = ("Dockerfile:2: COPY film.mp4: no such file",)
    build = BuildContext("lacks a film", others=missing, missing=missing)
    assert choose_sandbox(SandboxNeeds(build=build)) == SandboxChoice(
        "", reason=missing[0]
    )
    assert (
        choose_sandbox(SandboxNeeds(image="bench/task:1", build=build)).image
        == "bench/task:1"
    )


def test_tools_of_a_terminal_are_not_needed(working: Working) -> None:
    working("bwrap")
    assert choose_sandbox(task(packages=("sudo", "asciinema", "nano"))).kind == "bwrap"


def test_an_image_is_prepared_for_trials(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    working("podman")
    asked = list[tuple[object, ...]]()

    def prepare(*arguments: object) -> str:
        asked.append(arguments)
        return "built:1"

    monkeypatch.setattr(images, "prepare", prepare)
    needs = task(MAKE, image="bench/task:1")
    sandbox = sandbox_for(needs)
    assert (sandbox.kind.name, sandbox.image, sandbox.is_own) == (
        "podman",
        "built:1",
        True,
    )
    sandbox_for(task(MAKE, image="bench/task:1", without="skills"))
    assert [arguments[:2] for arguments in asked] == [
        ("podman", "bench/task:1"),
        ("podman", ""),
    ]


def test_an_image_is_used_if_there_are_no_wheels(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_wheels(_: object) -> None:
        raise SandboxError("no wheels for this Python")

    monkeypatch.setattr(task_sandbox, "python_packages", no_wheels)
    monkeypatch.setattr(task_sandbox, "kind_of", lambda *_: Bwrap())
    monkeypatch.setattr(images, "prepare", lambda *_: "built:1")
    needs = task()._replace(python=("numpy==1.20",))
    working("bwrap", "podman")
    assert sandbox_for(needs).image == "built:1"
    assert sandbox_for(needs, "bwrap").kind.name == "bwrap"
    working("bwrap")
    # Whose trials then say what is missing
    assert sandbox_for(needs).kind.name == "bwrap"


def test_the_start_has_what_the_image_left_and_what_the_case_adds(
    working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build may have removed a file that it copied: the case must not bring it
    back.
    """
    working("podman")
    there = Snapshot((WorkspaceFile("made", b"1"), WorkspaceFile("old", b"1")))
    monkeypatch.setattr(images, "files_of_image", lambda *_: there)
    build = BuildContext("d", copied=("/workspace/script.py",))
    needs = SandboxNeeds(python=("numpy",), env=(("A", "1"),), build=build)
    sandbox = TaskSandbox(Bwrap(), "built:1", is_own=True)
    files = (WorkspaceFile("script.py", b"2"), WorkspaceFile("old", b"2"))
    start = sandbox.start(needs, files)
    assert {file.path: file.data for file in start.files} == {"made": b"1", "old": b"2"}
    inside = sandbox.needs_inside(needs)
    assert (inside.python, inside.env) == ((), ())
    assert TaskSandbox(Bwrap()).needs_inside(needs) == needs


def test_without_dpkg_programs_stand_for_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_sandbox, "_installed", lambda: None)
    there = ("gcc", "jq")
    monkeypatch.setattr(shutil, "which", lambda name: name if name in there else None)
    assert missing_packages(("build-essential", "jq", "ffmpeg")) == ["ffmpeg"]


def test_folders_that_hide_the_system_are_refused_unless_in_an_image(
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
    assert TaskSandbox(Bwrap(), "built:1", is_own=True).needs_inside(needs).places == (
        "/data",
    )


def test_a_place_around_the_workdir_has_its_files_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = ("a", "/app/src/a", "/app/b")
    image = Snapshot(tuple(WorkspaceFile(path, b"") for path in paths))
    monkeypatch.setattr(images, "files_of_image", lambda *_: image)
    needs = task()._replace(workdir="/app/src", places=("/app",))
    start = TaskSandbox(Bwrap(), "built:1", is_own=True).start(needs, ())
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
    build = BuildContext(name, "Dockerfile", str(tmp_path), others=(MAKE,))
    needs = SandboxNeeds(workdir="/app", places=("/output",), build=build)
    sandbox = sandbox_for(needs, program)

    async def use() -> None:
        opened = await sandbox.kind.open(
            await spec_for(sandbox.needs_inside(needs), sandbox.image)
        )
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
