"""Programs of the host, as they are installed in many ways,
and what of them is needed inside.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_upskill.agents.program import find_program, version_of
from pytest_upskill.agents.sandboxes.sandbox import Mount


def made(file: Path, text: str = "#!/usr/bin/env node\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def test_a_single_binary_behind_links(tmp_path: Path, bin_folder: Path) -> None:
    binary = made(tmp_path / "share/agent/versions/2.1", "\x7fELF")
    (tmp_path / "share/agent/current").symlink_to(binary)
    (bin_folder / "agent").symlink_to(tmp_path / "share/agent/current")
    found = find_program("agent")
    assert found
    assert found.path == "/programs/agent/2.1"
    assert found.mounts == (Mount(str(binary), "/programs/agent/2.1"),)


def test_a_package_of_npm_with_the_node_beside_it(
    tmp_path: Path, bin_folder: Path
) -> None:
    """As nvm installs it."""
    script = made(tmp_path / "lib/node_modules/@maker/agent/bin/agent.js")
    (bin_folder / "agent").symlink_to(script)
    node = made(bin_folder / "node", "\x7fELF")
    found = find_program("agent")
    assert found
    assert found.path == "/programs/agent/node_modules/@maker/agent/bin/agent.js"
    assert found.folders == ("/programs/agent/bin",)
    assert found.mounts == (
        Mount(str(tmp_path / "lib/node_modules"), "/programs/agent/node_modules"),
        Mount(str(node), "/programs/agent/bin/node"),
    )


@pytest.mark.parametrize(
    "line", ["env -S my-node --flag", "env -S X=1 my-node", "env my-node"]
)
def test_an_interpreter_by_name(bin_folder: Path, line: str) -> None:
    made(bin_folder / "agent", f"#!/usr/bin/{line}\n")
    node = made(bin_folder / "my-node", "\x7fELF")
    found = find_program("agent")
    assert found
    assert found.mounts[1:] == (Mount(str(node), "/programs/agent/bin/my-node"),)


def test_an_interpreter_by_path_is_there_inside(
    tmp_path: Path, bin_folder: Path
) -> None:
    node = made(tmp_path / "home/node/bin/node", "\x7fELF")
    made(bin_folder / "agent", f"#!{node}\n")
    found = find_program("agent")
    assert found
    assert Mount(str(node), str(node)) in found.mounts


def test_a_wrapper_of_pnpm_is_followed(tmp_path: Path, bin_folder: Path) -> None:
    script = made(tmp_path / "global/5/.pnpm/agent@1/node_modules/agent/cli.js")
    basedir = '#!/bin/sh\nbasedir=$(dirname "$0")\n'
    target = os.path.relpath(script, bin_folder)
    made(bin_folder / "agent", f'{basedir}exec node  "$basedir/{target}" "$@"\n')
    found = find_program("agent")
    assert found
    assert found.path == "/programs/agent/.pnpm/agent@1/node_modules/agent/cli.js"


def test_a_shim_is_told(tmp_path: Path, bin_folder: Path) -> None:
    (bin_folder / "agent").symlink_to(made(tmp_path / "volta-shim", "\x7fELF"))
    with pytest.raises(ValueError, match="is a shim of volta"):
        find_program("agent")
    made(
        bin_folder / "other",
        '#!/usr/bin/env bash\n# plugin: nodejs\nexec asdf exec "other" "$@"\n',
    )
    with pytest.raises(ValueError, match="is a shim of asdf"):
        find_program("other")


def test_a_program_of_the_system_needs_no_mount() -> None:
    found = find_program("sh")
    assert found
    assert found.mounts == ()
    assert find_program("no-such-agent") is None


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[int]:
    """The end of ``tmp_path/pipe`` that is read from."""
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    yield end
    os.close(end)


def test_the_version_of_a_program_that_leaves_a_process_behind(
    tmp_path: Path, pipe: int
) -> None:
    leaves = f"#!/bin/sh\n(echo >&3; exec sleep 1000) 3>{tmp_path}/pipe &\n"
    program = made(tmp_path / "agent", f"{leaves}echo 1.2.3\n")
    assert version_of(str(program)) == "1.2.3"
    assert_closed(pipe)


def test_much_output_fills_neither_the_disk_nor_the_memory(tmp_path: Path) -> None:
    """The program may write only small files, so it would fail
    if its output went to one.
    """
    script = "#!/bin/sh\nulimit -f 8\necho 1.2.3\nyes 4.5.6 | head -c 1000000\n"
    assert version_of(str(made(tmp_path / "agent", script))) == "1.2.3"


def test_a_program_that_never_ends_leaves_nothing(
    tmp_path: Path, pipe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_upskill.agents.program._SECONDS", 1.0)
    script = f"#!/bin/sh\nexec 3>{tmp_path}/pipe\necho >&3\nyes 1.2.3 | cat\n"
    program = made(tmp_path / "agent", script)
    with pytest.raises(ValueError, match="it did not end in 1 seconds"):
        version_of(str(program))
    assert_closed(pipe)


def assert_closed(pipe: int) -> None:
    """Nobody has the other end any more; the kernel may take a moment."""
    for _ in range(6000):
        try:
            if not os.read(pipe, 1000):
                return
        except BlockingIOError:
            time.sleep(0.01)
    pytest.fail("a process was left behind")
