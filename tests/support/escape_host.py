"""A host that must stay out of reach, and how an attempt to reach
it from a sandbox is made.
"""

import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_upskill.agents.sandboxes.bwrap import Bwrap
from pytest_upskill.agents.sandboxes.sandbox import (
    WORKSPACE,
    Mount,
    Sandbox,
    SandboxError,
    SandboxLimits,
    SandboxSpec,
)

MB = 2**20
SMALL = SandboxLimits(
    memory=300 * MB, processes=60, disk=32 * MB, files=2000, file_size=8 * MB
)
SECRET = "sk-" + "of-the-host"
SECONDS = 60.0


@dataclass(frozen=True)
class Host:
    """What must stay out of reach."""

    folder: Path
    name: str  # of this host, in all that can be found by a name
    tcp: socket.socket
    udp: socket.socket
    victim: "subprocess.Popen[bytes]"

    @property
    def values(self) -> dict[str, str]:
        return {
            "secret": str(self.folder / "secret"),
            "outside": str(self.folder / "outside"),
            "socket": str(self.folder / "socket"),
            "shm": self.name,
            "abstract": self.name,
            "tcp": str(self.tcp.getsockname()[1]),
            "udp": str(self.udp.getsockname()[1]),
            "pid": str(self.victim.pid),
            "mark": self.name,
            "home": str(Path.home()),
        }

    def harmed(self) -> str:
        """What has happened to it, empty if nothing."""
        if self.victim.poll() is not None:
            return "a process of the host was ended"
        if os.listdir(self.folder / "outside"):  # noqa: PTH208
            return "a file was written outside"
        if (self.folder / "skill" / "SKILL.md").read_text() != "the skill":
            return "the skill was changed"
        for name, door in (("TCP", self.tcp), ("UDP", self.udp)):
            try:
                door.accept() if door is self.tcp else door.recv(10)
            except BlockingIOError:
                continue
            return f"the host was reached by {name}"
        return ""

    def left(self) -> str:
        """A process that is still there."""
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = process.read_bytes().split(b"\0")
            except OSError:
                continue
            if f"{self.name}.left".encode() in words:
                return f"a process lives on: {words}"
        return ""


@contextmanager
def host() -> Iterator[Host]:
    top_folder = "/var/tmp"  # since /tmp can be written inside, where it is another
    with tempfile.TemporaryDirectory(dir=top_folder) as top, socket.socket() as tcp:
        folder, name = Path(top), f"host-{secrets.token_hex(6)}"
        folder.chmod(0o755)
        (folder / "secret").write_text(SECRET)
        (folder / "outside").mkdir()
        (folder / "outside").chmod(0o777)
        (folder / "skill").mkdir()
        (folder / "skill" / "SKILL.md").write_text("the skill")
        shm = Path("/dev/shm", name)
        shm.write_text(SECRET)
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        doors = [tcp, udp]
        for address in (str(folder / "socket"), f"\0{name}"):
            doors.append(socket.socket(socket.AF_UNIX))
            doors[-1].bind(address)
            doors[-1].listen()
        for door in doors:
            door.settimeout(0)
        opened = os.open(folder / "secret", os.O_RDONLY)
        os.set_inheritable(opened, True)
        os.environ["ANTHROPIC_API_KEY"] = SECRET
        victim = subprocess.Popen(["sleep", "1000"])
        try:
            yield Host(folder, name, tcp, udp, victim)
        finally:
            victim.kill()
            victim.wait()
            os.close(opened)
            shm.unlink()
            for door in doors:
                door.close()
            del os.environ["ANTHROPIC_API_KEY"]


Use = Callable[[Sandbox, Host], Awaitable[str]]


@dataclass(frozen=True)
class Attempt:
    """A script for bash, or a program for Python; ``says`` must be in the output of
    it.
    """

    name: str
    bash: str = ""
    python: str = ""
    use: Use | None = None  # in place of both
    says: str = ""
    limits: SandboxLimits = field(default=SMALL)
    timeout: float = SECONDS

    async def make(self, host: Host, workdir: str = WORKSPACE) -> str:
        """How it succeeded; empty if it failed, and the sandbox and its host are
        well.
        """
        mounts = (Mount(str(host.folder / "skill"), "/skills/pdf"),)
        spec = SandboxSpec(
            mounts, limits=self.limits, workdir=workdir, places=("/data",)
        )
        sandbox = await Bwrap().open(spec)
        try:
            problem = await (self.use or self._run)(sandbox, host)
            if not problem:
                ran = await sandbox.run("echo alive", timeout=SECONDS)
                problem = "" if ran.output == b"alive\n" else f"afterwards: {ran}"
        except SandboxError as error:
            problem = f"the sandbox broke: {error}"
        finally:
            await sandbox.close()
        return problem or host.harmed() or host.left()

    async def _run(self, sandbox: Sandbox, host: Host) -> str:
        text = self.bash or self.python
        for name, value in {**host.values, "workdir": sandbox.spec.workdir}.items():
            text = text.replace(f"<{name}>", value)
        command = text if self.bash else ["python3", "-c", text]
        ran = await sandbox.run(command, timeout=self.timeout)
        said = ran.output.decode(errors="replace")
        if "ESCAPED" in said or SECRET in said:
            return f"it escaped: {said[:500]}"
        return "" if self.says in said else f"it says: {said[-500:]}"
