"""What every sandbox does for an agent, whatever confines it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.agents.sandboxes.container import ContainerSandbox
from pytest_upskill.agents.sandboxes.kinds import kind_of
from pytest_upskill.agents.sandboxes.sandbox import (
    HOME,
    Mount,
    Sandbox,
    SandboxError,
    SandboxLimits,
    SandboxSpec,
)
from pytest_upskill.agents.sandboxes.unconfined import UnconfinedSandbox
from support.fake_docker import forget_programs, use_docker
from support.sandboxes import image_for, require_bwrap

Use = Callable[[Sandbox], Awaitable[None]]
In = Callable[..., None]


@pytest.fixture(params=["bwrap", "none", "docker", "podman", "fake docker"])
def within(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[In]:
    """Use an open sandbox of each kind."""
    name = request.param
    image = image_for(name) if name in ("docker", "podman") else ""
    if name == "bwrap":
        require_bwrap()
    if name == "fake docker":
        require_bwrap()
        if "/usr/src/app" in request.node.name:
            pytest.skip("its /usr is that of this machine")
        state = use_docker(tmp_path_factory.mktemp("docker"), monkeypatch).parent
        name = "docker"
        image = "tool:1"
        (state / "images/tool_1/opt").mkdir(parents=True)
    kind = kind_of(name, image)

    def run(use: Use, room: SandboxSpec | None = None) -> None:
        async def main() -> None:
            sandbox = await kind.open(room or SandboxSpec())
            try:
                await use(sandbox)
            finally:
                await sandbox.close()

        asyncio.run(main())

    yield run
    forget_programs()


def test_a_command_runs_in_the_workspace(within: In) -> None:
    async def use(box: Sandbox) -> None:
        ran = await box.run("pwd; echo wrong >&2; exit 3", timeout=60)
        assert ran.exit == 3
        assert ran.output == f"{box.path('/workspace')}\nwrong\n".encode()

    within(use)


@pytest.mark.parametrize(
    "workdir", ["/root", "/app", "/home/x", "/srv/a/b", "/usr/src/app"]
)
def test_the_workspace_is_where_the_task_expects_it(
    within: In, workdir: str, tmp_path: Path
) -> None:
    (tmp_path / "SKILL.md").write_text("read me")
    tmp_path.chmod(0o755)

    async def use(box: Sandbox) -> None:
        await box.write("in/a.txt", b"a")
        await box.write("/output/b.txt", b"b")
        ran = await box.run("pwd; cat in/a.txt; echo c > c.txt", timeout=60)
        assert ran.output == f"{box.path(workdir)}\na".encode()
        ran = await box.run(
            ["sh", "-c", "echo d > $1", "sh", box.path("/output/d.txt")], timeout=60
        )
        assert ran.exit == 0
        assert await box.read(f"{workdir}/c.txt", 9) == b"c\n"
        assert await box.read(f"{workdir}/skills/pdf/SKILL.md", 100) == b"read me"
        assert [entry.path for entry in await box.tree()] == ["c.txt", "in/a.txt"]
        assert [entry.path for entry in await box.tree("/output")] == ["b.txt", "d.txt"]
        assert (
            await box.run("echo ~", timeout=60)
        ).output == f"{box.path(HOME)}\n".encode()

    mounts = (Mount(str(tmp_path), f"{workdir}/skills/pdf"),)
    within(
        use, SandboxSpec(mounts, workdir=workdir, places=("/output", f"{workdir}/out"))
    )


def test_a_place_around_the_workdir_lists_the_rest_alone(within: In) -> None:
    async def use(box: Sandbox) -> None:
        await box.write("a", b"1")
        await box.write("/app/b/c", b"2")
        assert [entry.path for entry in await box.tree()] == ["a"]
        assert [entry.path for entry in await box.tree("/app")] == ["b/c"]

    within(use, SandboxSpec(workdir="/app/src", places=("/app",)))


@pytest.mark.parametrize(
    "folder",
    [
        *(
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/etc/x",
            "/bin",
            "/proc",
            "/dev",
            "/lib",
            "/lib64/x",
        ),
        *(
            "/skills",
            "/skills/x",
            "/packages",
            "/programs",
            "/home",
            "/home/agent",
        ),
        *("/home/agent/x", "/var", "app", "/app/", "/app/../x", "//app", ""),
    ],
)
def test_no_workspace_hides_the_system(folder: str) -> None:
    with pytest.raises(SandboxError, match="can't be a folder of a task"):
        SandboxSpec(workdir=folder)
    with pytest.raises(SandboxError, match="can't be a folder of a task"):
        SandboxSpec(places=("/app", folder))


def test_all_folders_together_have_the_limit_of_the_disk() -> None:
    disk = SandboxSpec(workdir="/app/src", places=("/app", "/data", "/data/x")).disk
    assert sum(disk.values()) <= SandboxLimits().disk
    assert list(disk) == ["/app", "/app/src", "/data", "/dev/shm", HOME, "/tmp"]
    assert disk["/app/src"] == 2 * disk["/data"]


def test_no_place_takes_more_than_its_part_of_the_disk(within: In) -> None:
    async def use(box: Sandbox) -> None:
        if isinstance(box, UnconfinedSandbox):
            return
        for folder in box.spec.kept:
            ran = await box.run(f"head -c 3M /dev/zero > {folder}/x", timeout=60)
            assert b"No space left" in ran.output
        others = (
            "for f in /x /var/x /run/x /var/tmp/x /srv/x; do mkdir $f && echo WRITTEN;"
            " done"
        )
        assert b"WRITTEN" not in (await box.run(others, timeout=60)).output

    limits = SandboxLimits(disk=4 * 2**20)
    within(
        use, SandboxSpec(limits=limits, workdir="/root", places=("/data", "/srv/a/b"))
    )


def test_a_task_adds_to_the_environment(within: In) -> None:
    async def use(box: Sandbox) -> None:
        ran = await box.run("echo $MODE $HOME ${PATH%%:*} $LANG", timeout=60)
        path, home = box.path("/app/bin"), box.path(HOME)
        assert ran.output.decode().split() == ["dev", home, path, "C.UTF-8"]

    env = {"MODE": "dev", "HOME": "/root", "PATH": "/app/bin"}
    within(use, SandboxSpec(env=env, workdir="/app"))


def test_arguments_are_passed_as_they_are(within: In) -> None:
    async def use(box: Sandbox) -> None:
        ran = await box.run(["printf", "%s|", "a b", "$HOME", ""], timeout=60)
        assert ran.output == b"a b|$HOME||"
        # Another could have a folder that nobody may read: 126
        path = {"PATH": "/usr/bin:/bin"}
        assert (await box.run(["no-such-tool"], timeout=60, env=path)).exit == 127
        assert (await box.run(["echo", "a\0b"], timeout=60)).exit == 126

    within(use)


def test_standard_input_and_environment(within: In) -> None:
    async def use(box: Sandbox) -> None:
        ran = await box.run("cat; echo $A$B", timeout=60, env={"B": "2"}, stdin=b"in ")
        assert ran.output == b"in 12\n"
        assert (await box.run("cat", timeout=60)).output == b""

    within(use, SandboxSpec(env={"A": "1"}))


def test_a_signal_is_a_negative_exit_status(within: In) -> None:
    async def use(box: Sandbox) -> None:
        assert (await box.run("kill -TERM $$", timeout=60)).exit == -15

    within(use)


def test_files_are_written_with_their_folders_and_read_back(within: In) -> None:
    async def use(box: Sandbox) -> None:
        data = bytes(range(256)) * 20_000  # more than one message
        await box.write("a/b.bin", data)
        await box.write("/workspace/run.sh", b"#!/bin/sh\necho hi\n", mode=0o755)
        await box.write(f"{HOME}/note", b"home")
        assert await box.read("a/b.bin", 10**8) == data
        assert await box.read("a/b.bin", 3) == data[:3]
        assert (await box.run("./run.sh; cat ~/note", timeout=60)).output == b"hi\nhome"
        await box.write("a/b.bin", b"short")
        assert await box.read("a/b.bin", 100) == b"short"

    within(use)


def test_many_files_at_once(within: In) -> None:
    modes = {3: 0o755, 4: 0o444}
    files = [
        (f"a/{number}.txt", b"x" * number, modes.get(number, 0o600))
        for number in range(20)
    ]
    files.append(("/output/b/c", b"out", 0o644))

    async def use(box: Sandbox) -> None:
        await box.write_all(files)
        listed = {entry.path: entry.mode for entry in await box.tree()}
        assert listed == {path: mode for path, _, mode in files[:-1]}
        await box.run("ln a/7.txt a/same.txt; mkdir a/folder", timeout=60)
        sizes = dict.fromkeys([path for path, _, _ in files], 100)
        contents = {path: data for path, data, _ in files}
        assert await box.read_all(sizes, 10**6) == contents
        more = {
            **sizes,
            "a/same.txt": 100,
            "a/19.txt": 5,
            "missing": 100,
            "a/folder": 100,
        }
        same = {"a/19.txt": b"x" * 5, "a/same.txt": b"x" * 7}
        assert await box.read_all(more, 10**6) == contents | same
        assert sum(map(len, (await box.read_all(sizes, 50)).values())) > 50

    within(use, SandboxSpec(places=("/output",)))


def test_errors_are_those_of_the_system(within: In) -> None:
    async def use(box: Sandbox) -> None:
        with pytest.raises(FileNotFoundError):
            await box.read("missing", 10)
        with pytest.raises(IsADirectoryError):
            await box.read(".", 10)
        await box.write("file", b"")
        with pytest.raises((NotADirectoryError, FileExistsError)):
            await box.write("file/below", b"")
        with pytest.raises(OSError, match="Invalid"):
            await box.read("a\0b", 10)
        await box.run("mkfifo pipe", timeout=60)
        with pytest.raises(OSError):  # noqa: PT011
            await box.read("pipe", 10)

    within(use)


def test_tree_lists_files_and_links(within: In) -> None:
    async def use(box: Sandbox) -> None:
        assert await box.tree() == []
        await box.write("b/two", b"2")
        await box.write("a", b"1", mode=0o755)
        await box.run(
            "ln -s /etc/passwd link; mkdir empty; mkfifo pipe; ln -s b folder",
            timeout=60,
        )
        one, two, empty, *links = await box.tree()
        assert (empty.path, empty.folder) == ("empty", True)
        assert (one.path, one.size, one.mode, one.link) == ("a", 1, 0o755, None)
        assert (two.path, two.mode) == ("b/two", 0o644)
        assert [(entry.path, entry.link) for entry in links] == [
            ("folder", "b"),
            ("link", "/etc/passwd"),
        ]
        await box.write("a", b"3")
        assert [
            new.path for new in await box.tree() if new not in (one, two, empty, *links)
        ] == ["a"]

    within(use)


def test_output_is_cut_in_the_middle(within: In) -> None:
    async def use(box: Sandbox) -> None:
        ran = await box.run("seq 100000", timeout=60)
        assert ran.output.startswith(b"1\n2\n")
        assert ran.output.endswith(b"\n99999\n100000\n")
        assert f"[… {ran.cut} bytes left out …]".encode() in ran.output
        assert ran.cut == len("".join(f"{one}\n" for one in range(1, 100_001))) - 1000

    within(use, SandboxSpec(limits=replace(SandboxLimits(), output=1000)))


def test_a_command_that_takes_too_long_ends_with_its_children(within: In) -> None:
    async def use(box: Sandbox) -> None:
        for seconds in (1, 60):  # the first may be too short even for an echo
            command = "echo start; (sleep 1000; echo late) & sleep 1000"
            ran = await box.run(command, timeout=seconds)
            assert ran.timed_out
            assert ran.exit == -9
            if ran.output.startswith(b"start"):
                break
        assert (
            ran.output
            == f"start\n[Stopped: it took longer than {seconds} s.]\n".encode()
        )

    within(use)


def test_a_process_in_the_background_blocks_nothing_and_lives_on(within: In) -> None:
    async def use(box: Sandbox) -> None:
        loop = "(until [ -e go ]; do echo .; sleep 0.02; done; touch gone)"
        closed = isinstance(box, ContainerSandbox)  # its output ends with the command
        command = f"{loop} {'> /dev/null 2>&1' if closed else ''} & echo started"
        ran = await box.run(command, timeout=60)
        assert not ran.timed_out
        assert b"started\n" in ran.output
        assert (
            await box.run("touch go; until [ -e gone ]; do :; done", timeout=60)
        ).exit == 0

    within(use)


def test_commands_run_side_by_side(within: In) -> None:
    async def use(box: Sandbox) -> None:
        wait = "touch {0}; until [ -e {1} ]; do sleep 0.01; done; echo {0}"
        both = (wait.format("a", "b"), wait.format("b", "a"))
        ran = await asyncio.gather(*(box.run(one, timeout=60) for one in both))
        assert [one.output for one in ran] == [b"a\n", b"b\n"]

    within(use)


def test_mounts_can_be_read(within: In, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("read me")
    tmp_path.chmod(0o755)

    async def use(box: Sandbox) -> None:
        assert await box.read("/skills/pdf/SKILL.md", 100) == b"read me"
        shown = box.path("/skills/pdf/SKILL.md")
        assert (await box.run(["cat", shown], timeout=60)).output == b"read me"

    within(use, SandboxSpec(mounts=(Mount(str(tmp_path), "/skills/pdf"),)))


def test_a_socket_inside_is_served_outside(within: In) -> None:
    async def use(box: Sandbox) -> None:
        listener = await box.listen(0)
        port = listener.getsockname()[1]

        async def serve() -> None:
            client, _ = await asyncio.get_running_loop().sock_accept(listener)
            with client:
                await asyncio.get_running_loop().sock_sendall(client, b"hello")

        serving = asyncio.create_task(serve())
        ran = await box.run(f"cat < /dev/tcp/127.0.0.1/{port}", timeout=60)
        assert ran.output == b"hello"
        await serving
        listener.close()

    within(use)


def test_a_closed_sandbox_says_so(within: In) -> None:
    async def use(box: Sandbox) -> None:
        await box.close()
        with pytest.raises(SandboxError, match="closed"):
            await box.run("true", timeout=60)
        with pytest.raises(SandboxError, match="closed"):
            await box.read("a", 1)

    within(use)
