"""A helper in the hands of an attacker: whatever it sends, the host stays well."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_upskill.agents.sandboxes.inside import packed, unpacked
from pytest_upskill.agents.sandboxes.sandbox import (
    SandboxError,
    SandboxLimits,
    SandboxSpec,
    TreeEntry,
)
from pytest_upskill.agents.sandboxes.served import ServedSandbox

Use = Callable[[ServedSandbox], Awaitable[object]]
DIGEST = b"a" * 64


def asked(use: Use, *replies: bytes, passed: tuple[int, ...] = ()) -> object:
    """What comes of a request, the first one, if these are the replies."""

    async def main() -> object:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(["sleep", "1000"])
        box = ServedSandbox(process, ours, SandboxSpec(limits=SandboxLimits(files=3)))
        theirs.settimeout(0)
        try:
            asking = asyncio.ensure_future(use(box))
            request = await loop.sock_recv(theirs, 2**16)
            assert unpacked(request[4:])[0] == b"1"
            for reply in replies:
                if passed:
                    socket.send_fds(theirs, [reply], passed)
                else:
                    await loop.sock_sendall(theirs, reply)
            if not replies:
                theirs.close()
            return await asyncio.wait_for(asking, 60)
        finally:
            theirs.close()
            process.kill()
            await box.close()

    return asyncio.run(main())


def reply(*fields: bytes) -> bytes:
    return packed(b"1", *fields)


def run(box: ServedSandbox) -> Awaitable[object]:
    return box.run("true", timeout=60)


def tree(box: ServedSandbox) -> Awaitable[object]:
    return box.tree()


def entry(
    path: bytes = b"a", size: bytes = b"1", digest: bytes = DIGEST, mode: bytes = b"420"
) -> bytes:
    return reply(b"entries", path, size, digest, mode, b"")


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 4,  # four gigabytes
        b"\0\0\0\x04" + b"\0\0\0\x09",  # a field beyond its message
        packed(b"one", b"ran"),
        packed(b"9" * 5000, b"ran"),
        packed(),
        reply(b"done"),
        reply(b"ran"),
        reply(b"ran", b"0", b"0", b"0", b"0"),
        reply(b"ran", b"x", b"0", b"0", b"0", b""),
        reply(b"ran", b"0", b"0", b"0", b"0", b"", b"more"),
    ],
)
def test_what_is_no_result_breaks_the_sandbox_alone(sent: bytes) -> None:
    with pytest.raises(SandboxError, match="The sandbox is gone"):
        asked(run, sent)


def test_a_helper_that_hangs_up_is_gone() -> None:
    with pytest.raises(SandboxError, match="it ended"):
        asked(run)


def test_replies_that_nobody_waits_for_are_dropped() -> None:
    others = [packed(str(number).encode(), b"ran") for number in range(2, 50)]
    good = reply(b"ran", b"3", b"0", b"7", b"1000000", b"said")
    ran = asked(run, *others, good)
    assert (ran.exit, ran.output, ran.cut, ran.seconds) == (3, b"said", 7, 1.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "sent",
    [
        entry(b"../outside"),
        entry(b"/etc/passwd"),
        entry(b"a//b"),
        entry(b"."),
        entry(b"a\0b"),
        entry(b""),
        entry(size=b"-1"),
        entry(size=b"many"),
        entry(digest=b"../x"),
        entry(digest=b"\xff" * 64),
        entry(mode=b"x"),
        reply(b"entries", b"a", b"1"),
        reply(b"ran"),
    ],
)
def test_a_list_of_files_is_checked(sent: bytes) -> None:
    with pytest.raises(SandboxError):
        asked(tree, sent)


def test_more_files_than_there_can_be_are_refused() -> None:
    with pytest.raises(SandboxError, match="more files"):
        asked(tree, *[entry(b"%d" % number) for number in range(4)])


def test_a_good_list_is_sorted() -> None:
    found = asked(tree, entry(b"b"), entry(b"a"), reply(b"done"))
    assert found == [TreeEntry("a", 1, "a" * 64), TreeEntry("b", 1, "a" * 64)]


@pytest.mark.parametrize("number", [b"2", b"0", b"-5", b"100000", b"x", b""])
def test_errors_are_those_of_a_system(number: bytes) -> None:
    with pytest.raises(OSError, match="file"):
        asked(lambda box: box.read("file", 10), reply(b"error", number, b"\x1b[2J"))


@pytest.mark.parametrize(
    "what", ["none", "file", "unix", "silent", "other port", "udp"]
)
def test_only_the_socket_that_was_asked_for_is_taken(what: str, tmp_path: Path) -> None:
    kind = socket.SOCK_DGRAM if what == "udp" else socket.SOCK_STREAM
    family = socket.AF_UNIX if what == "unix" else socket.AF_INET
    with (
        socket.socket(family, kind) as listener,
        (tmp_path / "file").open("wb") as file,
    ):
        listener.bind(str(tmp_path / "socket") if what == "unix" else ("127.0.0.1", 0))
        if what in ("unix", "other port"):
            listener.listen()
        port = 1 if what == "other port" else 0
        passed = {"none": (), "file": (file.fileno(),)}.get(what, (listener.fileno(),))
        with pytest.raises(SandboxError, match="socket"):
            asked(lambda box: box.listen(port), reply(b"socket"), passed=passed)
        assert [descriptors_of(number) for number in passed] == [1] * len(passed)


def descriptors_of(file: int) -> int:
    """How often this process has the same file or socket open."""
    count = 0
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):  # the one that lists them
            count += os.path.sameopenfile(int(number), file)
    return count


def test_files_that_are_passed_unasked_are_closed(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        good = reply(b"ran", b"0", b"0", b"0", b"0", b"")
        asked(run, *[packed(b"9", b"x")] * 40, good, passed=(file.fileno(),) * 3)
        assert descriptors_of(file.fileno()) == 1
