"""The helper that runs as the first process of a sandbox: commands, files, limits.

One file that needs nothing but a Python, with few imports, as each trial waits for its
start. It serves the host over a socket that no other process of the sandbox can reach.
Messages are frames of byte strings (``packed``); a request has an id, and each reply
has the id of its request.
"""

import _signal as signal  # type: ignore[import-not-found]  # without its enums: they take 4 ms
import errno
import os
import select
import stat
import sys
import time
from collections.abc import Generator, Iterator

FRAME = 4  # bytes of a length
PART = 4 * 2**20  # bytes of a file in one message
ROWS = 500  # entries of a tree in one message
_TICK = 0.05  # seconds between checks of the limits
_GLANCE = 0.01  # and of the number of new processes, which nothing else limits for root
_SLICE = 0.02  # seconds for a long request before it is the turn of others
_DRAINED = 64  # pipes of background processes that are kept empty
# share, or bytes, of the machine's memory that must stay available
_SCARCE = 0.03, 512 * 2**20


def packed(*fields: bytes) -> bytes:
    """A message as a frame."""
    body = b"".join(len(field).to_bytes(FRAME, "big") + field for field in fields)
    return len(body).to_bytes(FRAME, "big") + body


def unpacked(body: bytes) -> list[bytes]:
    """The fields of a message. ValueError if it is none."""
    fields, at = list[bytes](), 0
    while at < len(body):
        end = at + FRAME + int.from_bytes(body[at : at + FRAME], "big")
        if end > len(body):
            raise ValueError("a field is longer than its message")
        fields.append(body[at + FRAME : end])
        at = end
    return fields


class ProcessLimits:
    """What all processes together may use."""

    def __init__(self, fields: list[bytes]) -> None:
        numbers = [int(field) for field in fields[:6]]
        (
            self.memory,
            self.processes,
            self.disk,
            self.files,
            self.file_size,
            self.output,
        ) = numbers
        self.page = os.sysconf("SC_PAGE_SIZE")
        total, _, self.shared_at_start = _machine_memory()
        self.scarce = min(int(total * _SCARCE[0]), _SCARCE[1])
        self.folders = [os.fsdecode(field) for field in fields[6:]]
        self.files_before, self.files_at_start = 0, self._files()
        self.of_a_process = self._of_a_process()
        self.last_pid = 1

    def broken(self) -> tuple[str, bool]:
        """Which limit is exceeded, empty if none is; and whether any process is
        left.
        """
        tasks = memory = 0
        pids = _pids()
        # Before a look at each, which is slower than they fork
        if len(pids) > self.processes:
            return f"it had more than {self.processes} processes and threads", True
        for pid in pids:
            if status := _status_of(pid):
                tasks += int(status[17])
                memory += int(status[21]) * self.page
        if tasks > self.processes:
            return f"it had more than {self.processes} processes and threads", True
        _, available, shared = _machine_memory()
        suspect = (
            shared - self.shared_at_start > self.memory
            and self._shared(pids) > self.memory
        )
        if suspect or (memory > self.memory and self._precise(pids) > self.memory):
            return f"it used more than {_size(self.memory)} of memory", True
        if pids and 0 <= available < self.scarce:
            return "this machine has almost no memory left", True
        files, before = self._files() - self.files_at_start, self.files_before
        self.files_before = files
        if files > self.files and files > before:
            return f"it made more than {self.files} files", True
        return "", bool(pids)

    def accept_files(self) -> None:
        """A stopped command may have made some before it died:
        the next is not to blame.
        """
        self.files_before = self._files() - self.files_at_start

    def hurry(self) -> bool:
        """Whether so many processes were started since the last
        call that a check is due.
        """
        last_pid = int(_read("/proc/loadavg").split()[-1])  # of this sandbox
        before, self.last_pid = self.last_pid, last_pid
        return last_pid - before > self.processes // 4

    def _precise(self, pids: list[int]) -> int:
        """Memory with shared pages counted once."""
        total = 0
        for pid in pids:
            rows = _read(f"/proc/{pid}/smaps_rollup").split(b"\n")
            shares = [row for row in rows if row.startswith(b"Pss:")]
            if shares:
                total += int(shares[0].split()[1]) * 1024
            elif status := _status_of(pid):  # it hides its maps
                total += int(status[21]) * self.page
        return total

    def _shared(self, pids: list[int]) -> int:
        """An upper bound of shared memory, which may be no process's own."""
        sizes = dict[bytes, int]()
        for pid in pids:
            maps = _read(f"/proc/{pid}/maps")
            if not maps and (status := _status_of(pid)):  # it hides them
                sizes[b"%d" % pid] = int(status[20])
            for row in maps.split(b"\n"):
                columns = row.split(None, 5)
                if len(columns) == 6 and columns[5].startswith(
                    (b"/dev/zero", b"/SYSV")
                ):
                    start, end = (
                        int(address, 16) for address in columns[0].split(b"-")
                    )
                    sizes[columns[4]] = max(sizes.get(columns[4], 0), end - start)
        segments = [row.split() for row in _read("/proc/sysvipc/shm").split(b"\n")[1:]]
        return sum(sizes.values()) + sum(
            int(row[14]) for row in segments if len(row) > 14
        )

    def _files(self) -> int:
        statuses = [os.statvfs(folder) for folder in self.folders]
        return sum(status.f_files - status.f_ffree for status in statuses)

    def _of_a_process(self) -> list[tuple[int, int]]:
        import resource

        limits = {
            resource.RLIMIT_DATA: self.memory,
            resource.RLIMIT_FSIZE: self.file_size,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_NOFILE: 4096,
        }
        if _counts_by_namespace():
            limits[resource.RLIMIT_NPROC] = self.processes
        hard = {kind: resource.getrlimit(kind)[1] for kind in limits}
        return [
            (
                kind,
                most if hard[kind] == resource.RLIM_INFINITY else min(most, hard[kind]),
            )
            for kind, most in limits.items()
        ]

    def apply(self) -> None:
        """Limit this process and its children, before it becomes a command."""
        import resource

        for kind, most in self.of_a_process:
            resource.setrlimit(kind, (most, most))


class CappedOutput:
    """The start and the end of an output that may be endless."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        free = max(self.most - self.most // 2 - len(self.head), 0)
        self.head += data[:free]
        self.tail += data[free:]
        if len(self.tail) > self.most + 2**16:
            del self.tail[: len(self.tail) - self.most // 2]

    def result(self, note: str = "") -> tuple[bytes, int]:
        """The output, with a line for the cut and one for the note, and the bytes
        cut.
        """
        ending = min(self.total - len(self.head), self.most // 2)
        cut = self.total - len(self.head) - ending
        text = bytes(self.head)
        if cut:
            text += f"\n[… {cut} bytes left out …]\n".encode()
        text += bytes(self.tail[len(self.tail) - ending :])
        if note:
            text += (
                (b"\n" if text and not text.endswith(b"\n") else b"")
                + note.encode()
                + b"\n"
            )
        return text, cut


def too_slow(timeout: float) -> str:
    return f"[Stopped: it took longer than {timeout:g} s.]"


class RunningCommand:
    """A command that runs."""

    def __init__(
        self, request: bytes, pid: int, pipe: int, timeout: float, keep: int
    ) -> None:
        self.request = request
        self.pid = pid
        self.pipe = pipe
        self.started = time.monotonic()
        self.timeout = timeout
        self.kept = CappedOutput(keep)
        self.timed_out = False
        self.note = ""

    def result(self, status: int) -> bytes:
        code = os.waitstatus_to_exitcode(status)
        if not self.note and code in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
            self.note = "[A file grew beyond the limit.]"
        output, cut = self.kept.result(self.note)
        seconds = time.monotonic() - self.started
        numbers = (code, int(self.timed_out), cut, int(seconds * 1e6))
        return packed(
            self.request, b"ran", *(str(number).encode() for number in numbers), output
        )


class Helper:
    """Serves the host until it hangs up."""

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.received = bytearray()
        self.unsent = bytearray()
        self.commands = dict[int, RunningCommand]()  # by process
        self.pipes = dict[int, RunningCommand | None]()  # None: of a background process
        # Long requests that have begun
        self.slow = list[tuple[bytes, Iterator[None]]]()
        self.watching = False
        self.next_look = 0.0
        self.wake, wake = os.pipe()
        for end in (self.wake, wake, channel):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        while True:
            poll = select.poll()  # a new one: pipes are closed in many places
            for end in (self.channel, self.wake, *self.pipes):
                poll.register(end, select.POLLIN)
            if self.unsent:
                poll.register(self.channel, select.POLLIN | select.POLLOUT)
            for end, event in poll.poll(self._pause()):
                if end == self.channel:
                    if event & ~select.POLLOUT:
                        self._receive()
                elif end == self.wake:
                    os.read(self.wake, 2**16)
                elif not self._drain(end):
                    os.close(end)
                    del self.pipes[end]
            self._reap()
            self._look()
            self._go_on()
            self._send()

    def _pause(self) -> int | None:
        """Milliseconds until the next deadline."""
        if self.slow:
            return 0
        now = time.monotonic()
        running = (
            command for command in self.commands.values() if not command.timed_out
        )
        due = [command.started + command.timeout for command in running]
        if self.watching:
            due.append(min(self.next_look, now + _GLANCE))
        return max(0, int((min(due) - now) * 1000) + 1) if due else None

    def _receive(self) -> None:
        try:
            data = os.read(self.channel, 2**18)
        except BlockingIOError:
            return
        if not data:
            os._exit(0)  # and with this process the whole sandbox
        self.received += data
        while len(self.received) >= FRAME:
            size = FRAME + int.from_bytes(self.received[:FRAME], "big")
            if len(self.received) < size:
                return
            fields = unpacked(bytes(self.received[FRAME:size]))
            del self.received[:size]
            self._do(fields[0], fields[1], fields[2:])

    def _send(self) -> None:
        try:
            while self.unsent:
                del self.unsent[: os.write(self.channel, self.unsent[: 2**18])]
        except BlockingIOError:
            pass

    def _do(self, request: bytes, kind: bytes, fields: list[bytes]) -> None:
        try:
            if kind == b"tree":
                self.slow.append((request, self._tree(request, fields[0])))
                return
            reply = getattr(self, "do_" + kind.decode())(request, fields)
        except (OSError, ValueError) as error:
            self._refuse(request, error)
        else:
            self.unsent += reply

    def _refuse(self, request: bytes, error: Exception) -> None:
        number = (
            error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        )
        self.unsent += packed(
            request, b"error", str(number).encode(), str(error).encode()
        )

    def do_start(self, request: bytes, fields: list[bytes]) -> bytes:
        """The limits with the writable folders, the workdir first;
        then the environment.
        """
        count = 7 + int(fields[6])
        self.limits = ProcessLimits(fields[:6] + fields[7:count])
        self.workdir = self.limits.folders[0]
        self.env = dict(zip(fields[count::2], fields[count + 1 :: 2], strict=True))
        self.proc = os.stat("/proc").st_dev
        return packed(request, b"done")

    def do_run(self, request: bytes, fields: list[bytes]) -> bytes:
        """Seconds, standard input, the number of arguments, these, and the
        environment.
        """
        timeout, stdin, count = float(fields[0]), fields[1], 3 + int(fields[2])
        arguments = fields[3:count]
        env = {
            **self.env,
            **dict(zip(fields[count::2], fields[count + 1 :: 2], strict=True)),
        }
        if not arguments[0]:  # a line for a shell
            shells = [b"/bin/bash", b"/usr/bin/bash", b"/bin/sh"]
            shell = next((path for path in shells if os.path.exists(path)), shells[-1])
            arguments = [shell, b"-c", arguments[1]]
        source = _as_file(stdin)
        ours, theirs = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            for end in (source, theirs, ours):
                os.close(end)
            raise
        if not pid:
            self._become(arguments, env, source, theirs)
        os.close(source)
        os.close(theirs)
        os.set_blocking(ours, False)
        command = RunningCommand(request, pid, ours, timeout, self.limits.output)
        self.commands[pid] = self.pipes[ours] = command
        self.watching, self.next_look = True, time.monotonic() + _TICK
        return b""

    def _become(
        self, arguments: list[bytes], env: dict[bytes, bytes], source: int, output: int
    ) -> None:
        """Turn this new process into a command. It never returns."""
        try:
            os.setsid()
            os.dup2(source, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.closerange(3, 2**16)
            for number in (
                signal.SIGPIPE,
                signal.SIGXFSZ,
                signal.SIGINT,
                signal.SIGCHLD,
            ):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(self.workdir)
            os.nice(5)  # the helper has priority
            self.limits.apply()
            os.execvpe(arguments[0], arguments, env)
        except FileNotFoundError:
            os.write(2, arguments[0] + b": command not found\n")
            os._exit(127)
        except BaseException as error:
            os.write(2, b"%s: %s\n" % (arguments[0][:200], str(error).encode()))
            os._exit(126)

    def do_read(self, request: bytes, fields: list[bytes]) -> bytes:
        """A path, the offset, and how much."""
        file = self._open(self._path(fields[0]), os.O_RDONLY)
        try:
            return packed(
                request, b"data", os.pread(file, int(fields[2]), int(fields[1]))
            )
        finally:
            os.close(file)

    def do_write(self, request: bytes, fields: list[bytes]) -> bytes:
        """A path, the offset, a mode or nothing, and data."""
        path, at, data = self._path(fields[0]), int(fields[1]), fields[3]
        os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
        file = self._open(path, os.O_WRONLY | os.O_CREAT)
        try:
            if not at:
                os.ftruncate(file, 0)
            if at + len(data) > self.limits.file_size:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            while data:
                written = os.pwrite(file, data, at)
                data, at = data[written:], at + written
            if fields[2]:
                os.fchmod(file, int(fields[2]))
        finally:
            os.close(file)
        return packed(request, b"done")

    def do_listen(self, request: bytes, fields: list[bytes]) -> bytes:
        """A port: the socket itself travels with the first byte of the reply."""
        import socket

        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", int(fields[0])))
            listener.listen(128)
            os.set_blocking(self.channel, True)
            try:
                while self.unsent:
                    del self.unsent[: os.write(self.channel, self.unsent)]
                with socket.socket(fileno=os.dup(self.channel)) as channel:
                    reply = packed(request, b"socket")
                    number = listener.fileno().to_bytes(4, sys.byteorder)
                    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, number)
                    sent = channel.sendmsg([reply], [rights])
                    channel.sendall(reply[sent:])
            finally:
                os.set_blocking(self.channel, False)
        return b""

    def _path(self, field: bytes) -> str:
        return os.path.join(self.workdir, os.fsdecode(field))

    def _open(self, path: str, flags: int) -> int:
        """A regular file, and none of /proc: this process has rights
        there that commands lack.
        """
        file = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o644)
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode) and status.st_dev != self.proc:
            return file
        os.close(file)
        number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EACCES
        raise OSError(number, os.strerror(number))

    def _tree(self, request: bytes, top: bytes) -> Iterator[None]:
        """Entries in several messages: path, size, digest, flags and target of each."""
        start = self._path(top)
        entries = list[bytes]()
        limits = self.limits.files, self.limits.disk
        for fields in tree_rows(start, os.stat(start).st_dev, *limits):
            if fields:
                entries += fields
            if len(entries) >= 5 * ROWS:
                self.unsent += packed(request, b"entries", *entries)
                entries = []
            yield
        self.unsent += packed(request, b"entries", *entries) + packed(request, b"done")

    def _go_on(self) -> None:
        until = time.monotonic() + _SLICE
        while self.slow and time.monotonic() < until:
            request, steps = self.slow[0]
            try:
                next(steps)
            except StopIteration:
                del self.slow[0]
            except OSError as error:
                del self.slow[0]
                self._refuse(request, error)

    def _drain(self, pipe: int) -> bool:
        """Whether the pipe may have more."""
        command = self.pipes[pipe]
        for _ in range(8):  # then it is the turn of other pipes
            try:
                data = os.read(pipe, 2**16)
            except BlockingIOError:
                return True
            if not data:
                return False
            if command:
                command.kept.add(data)
        return True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if command := self.commands.pop(pid, None):
                if command.note:
                    self.limits.accept_files()
                self._finish(command, status)

    def _finish(self, command: RunningCommand, status: int) -> None:
        """Send its result. Its processes in the background may live on, and write."""
        if command.pipe in self.pipes:
            for _ in range(4):  # as much as a pipe holds; others may write for ever
                before = command.kept.total
                if not self._drain(command.pipe) or command.kept.total == before:
                    break
            self.pipes[command.pipe] = None
        self.unsent += command.result(status)
        background = [pipe for pipe, owner in self.pipes.items() if owner is None]
        for pipe in background[:-_DRAINED]:
            os.close(pipe)
            del self.pipes[pipe]

    def _look(self) -> None:
        """End what exceeds a limit."""
        now = time.monotonic()
        for command in self.commands.values():
            if not command.timed_out and now > command.started + command.timeout:
                command.timed_out = True
                command.note = too_slow(command.timeout)
                self._end_session(command.pid)
        if self.watching and (self.limits.hurry() or now >= self.next_look):
            broken, self.watching = self.limits.broken()
            self.next_look = time.monotonic() + _TICK
            if broken:
                self._end_all()
                for command in self.commands.values():
                    command.note = (
                        command.note or f"[The sandbox stopped the command: {broken}.]"
                    )

    def _end_session(self, session: int) -> None:
        session_id = str(session).encode()
        ended, new = set[int](), list[int]()
        for _ in range(100):
            alive = [
                pid
                for pid in _pids()
                if (status := _status_of(pid))
                and status[3] == session_id
                and status[0] not in b"ZX"
            ]
            if not alive:
                return
            new = [pid for pid in alive if pid not in ended]
            for pid in new:
                _kill(pid)
            ended.update(new)
            if not new:
                # They are dying, which takes a while on a busy machine
                time.sleep(0.001)
        if new:
            self._end_all()  # it forks faster than they can be ended

    def _end_all(self) -> None:
        _kill(-1)  # at once: none can fork in between


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _pids() -> list[int]:
    """All processes but this one."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _status_of(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name; empty if the process is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(2**20) or b""
    except OSError:
        return b""


def _machine_memory() -> tuple[int, int, int]:
    """Bytes in all, available and shared, by /proc/meminfo; -1 for what it doesn't
    say.
    """
    rows = dict(
        row.split(b":", 1) for row in _read("/proc/meminfo").split(b"\n") if b":" in row
    )
    names = (b"MemTotal", b"MemAvailable", b"Shmem")
    total, available, shared = (
        int(rows[name].split()[0]) * 1024 if name in rows else -1 for name in names
    )
    return total, available, shared


def _counts_by_namespace() -> bool:
    """Whether processes are counted per user namespace,
    not with all others of the user.
    """
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int("".join(filter(str.isdigit, minor)) or 0)) >= (5, 14)


def _size(count: int) -> str:
    return f"{count // 2**20} MB" if count >= 2**20 else f"{count} bytes"


def _as_file(data: bytes) -> int:
    """A file descriptor to read the data from, which never blocks."""
    if not data:
        return os.open("/dev/null", os.O_RDONLY)
    file = os.open("/tmp", os.O_RDWR | os.O_TMPFILE, 0o600)
    try:
        remaining = data
        while remaining:
            remaining = remaining[os.write(file, remaining) :]
        os.lseek(file, 0, os.SEEK_SET)
    except OSError:
        os.close(file)
        raise
    return file


def tree_rows(
    top: str, device: int, most: int, most_hashed: int
) -> Iterator[list[bytes]]:
    """The fields of each file, link and empty folder on this device, of ``most`` in
    all; [] after each step.
    """
    import hashlib

    folders, count, hashed = [""], 0, 0
    digests = dict[int, bytes]()  # by inode: hard links are read once
    while folders and count < most:
        folder = folders.pop()
        try:
            children = sorted(
                _listed(os.path.join(top, folder)), key=lambda child: child.name
            )
        except OSError:  # gone, or too deep for a path
            continue
        if not children and folder:
            yield [
                os.fsencode(folder),
                b"0",
                hashlib.sha256().hexdigest().encode(),
                b"d",
                b"",
            ]
            count += 1
        for child in children:
            path = os.path.join(folder, child.name)
            yield []
            try:
                status = child.stat(follow_symlinks=False)
                if status.st_dev != device:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    folders.append(path)
                    continue
                target = (
                    os.fsencode(os.readlink(child.path)) if child.is_symlink() else b""
                )
            except OSError:
                continue
            if target:
                digest = hashlib.sha256(target).hexdigest().encode()
            elif not stat.S_ISREG(status.st_mode):
                continue
            elif status.st_ino in digests:
                digest = digests[status.st_ino]
            else:
                hashed += status.st_size
                in_full = hashed <= most_hashed
                digest = yield from _digest(child.path, status, in_full=in_full)
                digests[status.st_ino] = digest
            flags = b"l" if target else str(status.st_mode & 0o777).encode()
            yield [
                os.fsencode(path),
                str(status.st_size).encode(),
                digest,
                flags,
                target,
            ]
            count += 1
            if count >= most:
                return


def _digest(
    path: str, status: os.stat_result, *, in_full: bool
) -> Generator[list[bytes], None, bytes]:
    """The digest of a file; [] after each step."""
    import hashlib

    sha256 = hashlib.sha256()
    if in_full:
        for part in _parts(path):
            sha256.update(part)
            yield []
    else:
        # Files with holes: their content is mostly nothing
        sha256.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    return sha256.hexdigest().encode()


def _listed(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as children:
            return list(children)
    except PermissionError:  # nothing that an agent made is hidden
        os.chmod(folder, 0o700)
        with os.scandir(folder) as children:
            return list(children)


def _parts(path: str) -> Iterator[bytes]:
    try:
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except PermissionError:
            os.chmod(path, 0o600)
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        while part := os.read(file, 2**20):
            yield part
    finally:
        os.close(file)


def _shut() -> None:
    """Protect the memory, files and signals of this process from others of the
    sandbox.
    """
    import ctypes

    dumpable, ptracer = 4, 0x59616D61
    prctl = ctypes.CDLL(None).prctl
    prctl(dumpable, 0, 0, 0, 0)
    prctl(ptracer, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(channel: int) -> None:
    _shut()
    os.umask(0o022)
    Helper(channel).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
