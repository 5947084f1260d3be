"""Hosts that are asked for in a sandbox without a network are counted,
and there are none.
"""

import asyncio
import socket
import struct
from contextlib import suppress

import pytest

from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.hosts import AskedHosts
from pytest_upskill.agents.sandboxes.sandbox import CommandResult, SandboxSpec
from support.sandboxes import needs_bwrap


async def asked(hosts: AskedHosts, data: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(str(hosts.folder / "socket"))
    try:
        async with asyncio.timeout(20):
            writer.write(data)
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def request(what: int, host: bytes) -> bytes:
    return struct.pack("3i", 2, what, len(host) + 1) + host + b"\0"


def findings_after(*requests: bytes) -> tuple[list[bytes], tuple[str, ...]]:
    async def run() -> tuple[list[bytes], tuple[str, ...]]:
        hosts = AskedHosts()
        await hosts.open()
        try:
            return [await asked(hosts, one) for one in requests], hosts.findings
        finally:
            await hosts.close()
            assert not hosts.folder.exists()

    return asyncio.run(run())


def test_no_host_is_known_and_each_is_counted() -> None:
    twice = request(14, b"api.example.com")
    replies, findings = findings_after(twice, request(4, b"old.example.com"), twice)
    assert replies[0] == struct.pack("6i", 2, 0, 0, 0, 0, 1)
    assert replies[1] == struct.pack("8i", 2, 0, 0, 0, 0, 0, 0, 1)
    assert findings == (
        "asked for host api.example.com (2 times)",
        "asked for host old.example.com",
    )


def test_its_own_names_and_other_questions_are_nobodys_business() -> None:
    (own, user), findings = findings_after(
        request(14, b"localhost"), request(1, b"1000")
    )
    assert own == struct.pack("6i", 2, 1, 1, 4, 0, 0) + bytes((127, 0, 0, 1, 2))
    assert user == b""
    assert findings == ()


@pytest.mark.parametrize(
    "odd",
    [
        struct.pack("3i", 2, 14, -1),
        struct.pack("3i", 2, 14, 2**30),
        struct.pack("3i", 2, 999, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_dropped(odd: bytes) -> None:
    assert findings_after(odd) == ([b""], ())


def test_a_name_of_any_form_is_told_as_one_harmless_line() -> None:
    _, findings = findings_after(request(14, b"\x1b[31m\xff\n" + b"a" * 900))
    assert findings[0].isprintable()
    assert len(findings[0]) < 130


def test_a_flood_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_upskill.agents.sandboxes.hosts._MOST_REQUESTS", 30)
    many = [request(14, b"h%d.example.com" % number) for number in range(30)]
    _, findings = findings_after(*many)
    assert len(findings) == 21
    assert findings[-1] == "asked for other hosts (10 times)"

    async def too_many() -> None:
        hosts = AskedHosts()
        await hosts.open()
        for one in many:
            await asked(hosts, one)
        # Nobody listens any more
        with pytest.raises((ConnectionError, FileNotFoundError)):
            await asked(hosts, many[0])
        await hosts.close()

    asyncio.run(too_many())


def test_whoever_still_asks_at_the_end_is_hung_up_on() -> None:
    async def asks() -> None:
        hosts = AskedHosts()
        await hosts.open()
        reader, writer = await asyncio.open_unix_connection(hosts.folder / "socket")
        while not hosts._open:
            await asyncio.sleep(0)
        await hosts.close()
        assert not hosts._open
        assert await reader.read() == b""
        writer.close()

    asyncio.run(asks())


def test_a_connection_that_comes_while_it_closes_is_closed_too() -> None:
    async def run() -> bytes:
        hosts = AskedHosts()
        await hosts.open()
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(hosts.folder / "socket"))
        await asyncio.sleep(0)  # it is accepted,
        await asyncio.sleep(0)  # and gets its protocol in the next step
        await hosts.close()
        client.settimeout(60)
        with client, suppress(ConnectionResetError):
            return await asyncio.to_thread(client.recv, 1)
        return b""

    assert asyncio.run(run()) == b""


@needs_bwrap
@pytest.mark.parametrize("network", [False, True])
def test_what_a_program_asks_for_in_a_sandbox(network: bool) -> None:
    look = "import socket; socket.getaddrinfo('localhost', 80); "
    look += (
        "socket.gethostbyname_ex('localhost');"
        " print(socket.gethostbyname('localhost')); "
    )
    look += "socket.create_connection(('api.example.invalid', 443))"

    async def run() -> tuple[CommandResult, tuple[str, ...]]:
        sandbox = await Bwrap().open(SandboxSpec(network=network))
        try:
            ran = await sandbox.run(["python3", "-c", look], timeout=60)
            return ran, sandbox.findings
        finally:
            await sandbox.close()

    ran, findings = asyncio.run(run())
    assert b"127.0.0.1" in ran.output
    assert b"gaierror" in ran.output
    if network or b"Name or service not known" not in ran.output:
        assert findings == ()  # it has no glibc, or one without nscd
    else:
        assert findings == ("asked for host api.example.invalid",)
