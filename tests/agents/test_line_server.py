"""Programs in a sandbox are answered line by line, if they know the token."""

import asyncio

from pytest_upskill.agents.line_server import LineAddress, answering
from pytest_upskill.agents.sandboxes.sandbox import SandboxSpec
from pytest_upskill.agents.sandboxes.unconfined import Unconfined


async def shout(line: bytes) -> bytes:
    if line == b"bad\n":
        raise ValueError(line)
    return line.upper()


async def talk(address: LineAddress, sent: bytes) -> bytes:
    """All that comes back until the server hangs up, or a program has heard enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
    writer.write(sent)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:  # it hung up before all was sent
        return b""
    finally:
        writer.close()


def replies(*lines: str) -> list[bytes]:
    """What comes back for each text; TOKEN stands for the token."""

    async def main() -> list[bytes]:
        sandbox = await Unconfined().open(SandboxSpec())
        try:
            async with answering(sandbox, shout) as address:
                texts = [line.replace("TOKEN", address.token) for line in lines]
                return [await talk(address, text.encode()) for text in texts]
        finally:
            await sandbox.close()

    return asyncio.run(main())


def test_lines_are_answered_in_order() -> None:
    assert replies("TOKEN\na\nb\n") == [b"A\nB\n"]


def test_nobody_is_answered_without_the_token() -> None:
    assert replies("a\nb\n", "TOKENx\na\n", "\n", "é\na\n") == [b"", b"", b"", b""]


def test_connection_with_a_bad_line_ends_and_others_go_on() -> None:
    huge = "x" * (2**20 + 2**17)
    found = replies("TOKEN\na\nbad\nb\n", f"TOKEN\n{huge}\nb\n", "TOKEN\nc\n")
    assert found == [b"A\n", b"", b"C\n"]


def test_too_many_connections_are_refused_and_all_end_with_the_block() -> None:
    async def main() -> tuple[int, bytes]:
        sandbox = await Unconfined().open(SandboxSpec())
        waiting: list[asyncio.StreamWriter] = []
        async with answering(sandbox, shout) as address:
            for _ in range(64):
                _, writer = await asyncio.open_connection("127.0.0.1", address.port)
                waiting.append(writer)
            refused = await talk(address, f"{address.token}\na\n".encode())
        await sandbox.close()
        for writer in waiting:
            writer.close()
        return len(waiting), refused

    assert asyncio.run(asyncio.wait_for(main(), 60)) == (64, b"")
