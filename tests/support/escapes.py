"""Attempts to get out of a sandbox.

Each runs inside and says ESCAPED if it succeeds. As a program this makes all
of them, or those that are named, and prints what came of each as JSON: so
another user can try as well.
"""

import asyncio
import json
import os
import sys
from dataclasses import replace

from pytest_upskill.agents.sandboxes.sandbox import Sandbox
from support.escape_host import MB, SECONDS, SMALL, Attempt, Host, host

C = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True)\n"


async def _reads_by_helper(sandbox: Sandbox, host: Host) -> str:
    """The helper has rights that commands lack."""
    await sandbox.run(
        f"ln -s {host.values['secret']} link; ln -s /proc/1 one", timeout=SECONDS
    )
    paths = [
        "link",
        host.values["secret"],
        "/proc/self/environ",
        "/proc/1/maps",
        "one/mem",
    ]
    paths += [f"/proc/self/fd/{number}" for number in range(3, 20)] + [
        "/dev/tty",
        "/dev/zero",
    ]
    for path in paths:
        try:
            return f"{path} was read: {(await sandbox.read(path, 100))!r}"
        except OSError:
            continue
    return ""


async def _writes_by_helper(sandbox: Sandbox, host: Host) -> str:
    await sandbox.run("ln -s /proc/self/comm link", timeout=SECONDS)
    outside = f"{host.values['outside']}/x"
    paths = [
        "link",
        "/proc/1/oom_score_adj",
        "/skills/pdf/SKILL.md",
        "/usr/x",
        "/etc/passwd",
    ]
    for path in (*paths, outside, "/dev/x", "/x"):
        try:
            await sandbox.write(path, b"500")
        except OSError:
            continue
        return f"{path} was written"
    return ""


async def _floods(sandbox: Sandbox, _: Host) -> str:
    floods = [sandbox.run("yes | head -c 20000000", timeout=SECONDS) for _ in range(8)]
    ran = await asyncio.gather(*floods)
    sizes = {
        len(one.output) - len(f"\n[… {one.cut} bytes left out …]\n".encode())
        for one in ran
    }
    return "" if sizes == {SMALL.output} else f"kept: {sizes}"


async def _leaves_many_behind(sandbox: Sandbox, _: Host) -> str:
    """More pipes of background processes than the helper keeps."""
    waiting = "while [ ! -e stop ]; do sleep 0.1; done"
    ran = [
        await sandbox.run(f"({waiting}) & echo x", timeout=SECONDS) for _ in range(80)
    ]
    await sandbox.run("touch stop", timeout=SECONDS)
    return "" if {one.output for one in ran} == {b"x\n"} else f"{ran}"


async def _endless_output(sandbox: Sandbox, _: Host) -> str:
    """10 GB and more: whoever keeps it has no memory left."""
    ran = await sandbox.run("head -c 500M /dev/zero; echo end", timeout=SECONDS)
    return (
        "" if ran.output.endswith(b"end\n") and ran.cut > 400 * MB else f"cut {ran.cut}"
    )


async def _terminal(sandbox: Sandbox, _: Host) -> str:
    text = b"\x1b]0;title\x07\x1b[2J\x1b[?1049h\x9b31m\r\x00\xff"
    await sandbox.write("text", text)
    ran = await sandbox.run("cat text; tty; echo > /dev/tty", timeout=SECONDS)
    return "" if ran.output.startswith(text + b"not a tty\n") else f"{ran.output!r}"


async def _hides(sandbox: Sandbox, _: Host) -> str:
    """Files that nobody may read are listed all the same;
    deep and long names end nothing.
    """
    script = """
mkdir -p a/b && echo x > a/b/c && chmod 000 a/b/c a/b a
python3 -c "
import os
for _ in range(1500):
    os.mkdir('d' * 200); os.chdir('d' * 200)
"
truncate -s 8M holes; for n in $(seq 50); do ln holes link$n; cp --sparse=always holes own$n; done
ln -s loop loop; mkfifo pipe; python3 -c "import socket; socket.socket(1).bind('s')"
"""
    await sandbox.run(script, timeout=SECONDS)
    found = {entry.path for entry in await sandbox.tree()}
    return (
        ""
        if {"a/b/c", "holes", "link7", "own9", "loop"} <= found
        else f"{sorted(found)}"
    )


async def _fork_bomb(sandbox: Sandbox, _: Host) -> str:
    """It must end before it has taken the processes of the whole machine."""
    ran = await sandbox.run(":(){ :|:& };: ; sleep 1000", timeout=3)
    made = int(
        (await sandbox.run("cat /proc/loadavg", timeout=SECONDS)).output.split()[-1]
    )
    if os.getuid() == 0 and made > 5000:  # for others the kernel holds the limit
        return f"{made} processes were made"
    return "" if b"[" in ran.output else f"{ran}"


async def _outlives_its_time(sandbox: Sandbox, host: Host) -> str:
    script = (
        f"setsid bash -c 'while :; do sleep 1; done' {host.name}.left & sleep 99 &"
        " sleep 99"
    )
    ran = await sandbox.run(script, timeout=0.3)
    return "" if ran.timed_out else f"{ran}"


ATTEMPTS = [
    # Files of the host
    Attempt("path", "cat <secret>"),
    Attempt("symlink", "ln -s <secret> l; cat l; ln -s / r; cat r<secret>"),
    Attempt("hard link", "ln <secret> l && cat l; ln /skills/pdf/SKILL.md s && echo ESCAPED"),
    Attempt("dots", "cat ../../../../../../..<secret>; cat <workdir>/../../..<secret>"),
    Attempt(
        "home",
        "cd <home> && for f in .bashrc .profile .ssh .netrc .cache .config .bash_history; do "
        "[ -e $f ] && echo ESCAPED; done",
    ),
    Attempt("tmp", "ls -A /tmp /var/tmp | grep -v : | grep . && echo ESCAPED"),
    Attempt("shared memory", "cat /dev/shm/<shm>"),
    Attempt("root of processes", "cat /proc/1/root<secret> /proc/*/root<secret> /proc/*/cwd/secret"),
    Attempt("environment", "env; set; cat /proc/*/environ"),
    Attempt("keys by name", "env | grep -i -E 'key|token|pytest|upskill' && echo ESCAPED"),
    Attempt(
        "open files",
        python="import glob, os\n"
        "for n in range(3, 1000):\n"
        "    try: print(os.pread(n, 100, 0))\n"
        "    except OSError: pass\n"
        "for path in glob.glob('/proc/*/fd/*'):\n"
        "    try: print(os.read(os.open(path, os.O_NONBLOCK), 100))\n"
        "    except OSError: pass\n",
    ),
    Attempt("inherited files", "test $(ls /proc/self/fd | wc -l) -gt 4 && echo ESCAPED"),
    Attempt("read by the helper", use=_reads_by_helper),
    Attempt("kernel memory", "head -c 1 /proc/kcore /dev/mem /dev/kmem && echo ESCAPED"),
    Attempt("kernel tables", "cat /proc/keys /proc/timer_list | grep -q . && echo ESCAPED"),
    Attempt("terminal's session", "test $(cut -d' ' -f6 /proc/self/stat) = 0 && echo ESCAPED"),
    Attempt("disks", "ls /dev/[svx]d* /dev/nvme* /dev/loop* && echo ESCAPED"),
    Attempt("mknod", "mknod d b 8 0 && echo ESCAPED; mknod c c 1 1 && echo ESCAPED"),
    # Writes
    Attempt(
        "skill",
        "cd /skills/pdf; echo x >> SKILL.md; chmod 777 . SKILL.md; rm -rf SKILL.md; touch new; "
        "mv /skills <workdir>; mv /skills/pdf /skills/x; cat /skills/pdf/SKILL.md",
        says="the skill",
    ),
    Attempt("system", "for d in /usr /usr/bin /bin /lib / /root; do touch $d/x && echo ESCAPED; done"),
    Attempt("outside", "echo x > <outside>/x; mkdir -p <outside> && echo ESCAPED; echo x > /x && echo ESCAPED"),
    Attempt("accounts", "echo e::0:0::/:/bin/sh >> /etc/passwd && echo ESCAPED; id -u", says="1000"),
    Attempt("devices", "touch /dev/x && echo ESCAPED; mkdir /dev/y && echo ESCAPED"),
    Attempt("sys", "ls /sys/kernel /sys/fs && echo ESCAPED"),
    Attempt(
        "kernel settings",  # each as it is: an escape must not harm the host
        "for f in /proc/sys/kernel/{core_pattern,panic,hostname,pid_max} /proc/sys/vm/swappiness "
        "/proc/sys/user/max_user_namespaces /proc/sys/fs/file-max /proc/self/oom_score_adj; do "
        'v=$(cat $f); (echo "$v" > $f) && echo ESCAPED; done; test -w /proc/sysrq-trigger && '
        "echo ESCAPED",
    ),
    Attempt("written by the helper", use=_writes_by_helper),
    Attempt(
        "remount",
        "mount -o remount,rw / && echo ESCAPED; mount -o remount,rw,bind /usr && echo ESCAPED; "
        "umount -l /usr /skills/pdf && echo ESCAPED; mount -t tmpfs x <workdir> && echo ESCAPED",
    ),
    # Network
    Attempt("TCP", "(echo x > /dev/tcp/127.0.0.1/<tcp>) && echo ESCAPED"),
    Attempt("UDP", "echo x > /dev/udp/127.0.0.1/<udp>"),
    Attempt(
        "other hosts",
        python="import socket\n"
        "for family, kind, to in ((2, 1, '192.0.2.1'), (2, 2, '192.0.2.53'), (10, 2, '2001:db8::1')):\n"
        "    try: s = socket.socket(family, kind); s.settimeout(2); s.connect((to, 53)); "
        "s.send(b'x'); print('ESCAPED')\n"
        "    except OSError as e: print(e)\n",
    ),
    Attempt("interfaces", "grep -v -E 'lo:|face|Inter' /proc/net/dev && echo ESCAPED"),
    Attempt(
        "unix socket",
        python="import socket\ns = socket.socket(1); s.connect('<socket>'); print('ESCAPED')",
        says="FileNotFoundError",
    ),
    Attempt(
        "abstract socket",
        python="import socket\ns = socket.socket(1); s.connect('\\0<abstract>'); print('ESCAPED')",
        says="ConnectionRefusedError",
    ),
    Attempt(
        "odd sockets",
        python="import socket\n"
        "for family, kind in ((40, 1), (38, 5), (17, 3), (31, 3), (2, 3), (16, 3), (44, 3)):\n"
        "    try: s = socket.socket(family, kind)\n"
        "    except OSError: continue\n"
        "    if family != 16: print('ESCAPED', family)\n",
    ),
    # Other processes
    Attempt("signal", "kill -9 <pid> && test -e /nonexistent && echo ESCAPED; kill -9 -1"),
    Attempt("processes", "test -e /proc/<pid>/status && grep sleep /proc/<pid>/comm && echo ESCAPED"),
    Attempt("see processes", "test $(ls -d /proc/[0-9]* | wc -l) -gt 6 && echo ESCAPED"),
    Attempt(
        "ptrace",
        python=C + "for pid in (<pid>, 1):\n"
        "    if c.ptrace(16, pid, 0, 0) == 0: print('ESCAPED')\n"
        "    if c.ptrace(0x4206, pid, 0, 0) == 0: print('ESCAPED')\n",
    ),
    # More rights
    Attempt(
        "user namespace",
        "unshare -U true && echo ESCAPED; unshare -r true && echo ESCAPED; "
        "unshare -m true && echo ESCAPED; unshare -n true && echo ESCAPED",
    ),
    Attempt(
        "clone",
        python=C + "for flag in (0x10000000, 0x20000000, 0x40000000, 0x20000, 0x2000000):\n"
        "    import platform; n = 56 if platform.machine() == 'x86_64' else 220\n"
        "    pid = c.syscall(n, flag | 17, 0, 0, 0, 0)\n"
        "    if pid == 0: os._exit(0)\n"
        "    if pid > 0: print('ESCAPED', hex(flag))\n",
    ),
    Attempt(
        "join namespaces",
        python=C + "for name in os.listdir('/proc/1/ns'):\n"
        "    try: print('ESCAPED', os.readlink('/proc/1/ns/' + name))\n"
        "    except OSError: pass\n",
    ),
    Attempt("chroot", "chroot / true && echo ESCAPED; mkdir n; pivot_root n n && echo ESCAPED"),
    Attempt(
        "setuid",
        python="import os\n"
        "for call in (os.setuid, os.setgid, lambda n: os.setgroups([n])):\n"
        "    try: call(0); print('ESCAPED')\n"
        "    except OSError: pass\n"
        "text = open('/proc/self/status').read()\n"
        "for row in text.splitlines():\n"
        "    if row.startswith('Cap') and int(row.split()[1], 16): print('ESCAPED', row)\n"
        "print('1' in [r.split()[1] for r in text.splitlines() if r.startswith('NoNewPrivs')])\n",
        says="True",
    ),
    Attempt("setuid programs", "su -c id; sudo -n id; mount; cp /bin/cat c; chmod 4755 c; id -u", says="1000"),
    Attempt(
        "keys of the kernel",
        python=C + "import platform; x = platform.machine() == 'x86_64'\n"
        "for number, args in ((250 if x else 219, (0, -3, 1)), (248 if x else 217, "
        "(b'user', b'a', b'b', 1, -3)), (250 if x else 219, (11, -3, 0, 0))):\n"
        "    if c.syscall(number, *args) >= 0: print('ESCAPED')\n",
    ),
    Attempt(
        "risky calls",
        python=C + "import platform; x = platform.machine() == 'x86_64'\n"
        "for number in ((321, 298, 323, 425, 272, 308, 165) if x else (280, 241, 282, 425, 97, 268, 40)):\n"
        "    if c.syscall(number, 0, 0, 0, 0, 0) >= 0: print('ESCAPED', number)\n",
    ),
    # Limits
    Attempt("fork bomb", use=_fork_bomb),
    Attempt(
        "threads",
        python="import threading, time\n"
        "threading.stack_size(65536)\n"
        "for _ in range(100): threading.Thread(target=time.sleep, args=(1,)).start()\n"
        "print('ESCAPED')",
    ),
    Attempt("endless output", use=_endless_output),
    Attempt("disk", "for d in . /tmp ~ /dev/shm; do for n in $(seq 9); do head -c 7M /dev/zero > $d/$n; "
            "done; done; du -xsm . /tmp ~ /dev/shm | awk '{s += $1} END {if (s > 33) print \"ESCAPED\"}'",
            says="No space left"),
    Attempt("file size", "head -c 10G /dev/zero > big; stat -c %s big; truncate -s 1T holes", says="8388608\n"),
    Attempt(
        "a million files",
        python="import os\nfor n in range(1000000): os.close(os.open(str(n), os.O_CREAT))\nprint('ESCAPED')",
        says="it made more than 2000 files",
    ),
    Attempt("memory", python="x = bytearray(10 << 30); print('ESCAPED')", says="MemoryError"),
    Attempt(
        "memory of many",
        "for n in $(seq 4); do python3 -c 'x = bytearray(b\"x\") * (100 << 20); input(); "
        "import time; time.sleep(1000)' < <(sleep 1000) & done; wait",
        says="more than 300 MB of memory",
    ),
    Attempt(
        "shared memory of many",
        python="import mmap, os, time\n"
        "for n in range(20):\n"
        "    m = mmap.mmap(-1, 50 << 20); m.write(b'x' * (50 << 20))\n"
        "    if not os.fork(): time.sleep(1000)\n"
        "print('ESCAPED')\n",
        says="more than 300 MB of memory",
    ),
    Attempt("memfd", python="import os\nos.memfd_create('x'); print('ESCAPED')", says="OSError"),
    Attempt("memory in tmpfs", "head -c 100M /dev/zero > /dev/shm/x; du -m /dev/shm/x | grep ^[3-9] && echo ESCAPED"),
    # What stays
    Attempt("daemon", "(setsid sh -c 'setsid sleep 1000.5 &' &) ; python3 -c \"import os, time\n"
            "if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
            "os.execvp('bash', ['bash', '-c', 'while :; do sleep 1; done', '<mark>.left'])\""),
    Attempt("outlives its time", use=_outlives_its_time),
    Attempt("deaf to signals", "trap '' TERM INT HUP QUIT; nohup bash -c 'while :; do sleep 1; done' "
            "<mark>.left & disown; echo started", says="started"),
    Attempt("terminal", use=_terminal),
    Attempt("type into the terminal", python="import fcntl, os\n"
            "for n in (0, 1, 2, os.open('/dev/ptmx', 2)):\n"
            "    try: fcntl.ioctl(n, 0x5412, b'x'); print('ESCAPED')\n"
            "    except OSError: pass\n"),
    Attempt("hidden files", use=_hides, limits=replace(SMALL, files=5000)),
    # The helper
    Attempt("end the helper", "for s in $(seq 1 31) 34 64; do kill -$s 1; done; sleep 0.2"),
    Attempt("memory of the helper", "cat /proc/1/maps /proc/1/mem && echo ESCAPED; "
            "(echo x > /proc/1/mem) && echo ESCAPED; gdb -p 1 -batch"),
    Attempt("files of the helper", "for f in /proc/1/fd/*; do (echo x > $f) && echo ESCAPED; "
            "readlink $f && echo ESCAPED; done"),
    Attempt("limits of the helper", python="import resource, os\n"
            "for what in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS):\n"
            "    try: resource.prlimit(1, what, (1, 1)); print('ESCAPED')\n"
            "    except OSError: pass\n"),
    Attempt("priority of the helper", python="import os\n"
            "calls = (lambda: os.setpriority(0, 1, 19), lambda: os.setpriority(2, 0, 19),\n"
            "    lambda: os.sched_setaffinity(1, {0}),\n"
            "    lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))\n"
            "for call in calls:\n"
            "    try: call(); print('ESCAPED')\n"
            "    except OSError: pass\n"),
    Attempt("flood the helper", use=_floods),
    Attempt("leave many behind", use=_leaves_many_behind, limits=replace(SMALL, processes=400)),
    Attempt("wake the helper", "for n in 1 2 3; do (while :; do kill -CHLD 1; done) & done; sleep 0.5; kill -9 -1"),
]  # fmt: skip


def main(names: list[str]) -> None:
    results = dict[str, str]()
    with host() as found:
        for attempt in ATTEMPTS:
            if not names or attempt.name in names:
                results[attempt.name] = asyncio.run(attempt.make(found))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
