"""What scripts of tasks download at run time, prepared outside of the sandbox:
uv and wheels.

The folders are in the user's cache, and are mounted read-only. Only wheels are taken:
nothing of them runs outside of the sandbox.
"""

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from .._util.files import read_file, replace_file, user_cache
from .._util.keys import without_credentials
from .._util.texts import digest, one_line
from ..skills.verifier_script import VerifierDownloads, WheelSet
from .needs import why_no_requirement
from .package_cache import DAY, daily_versions, whole_folder
from .sandboxes.sandbox import Mount, SandboxError

INSIDE: Final = "/prepared"
BIN: Final = f"{INSIDE}/bin"
UV: Final = f"{INSIDE}/uv"
STAND_INS: Final = (
    "curl",
    "wget",
    "apt",
    "apt-get",
    "uv",
    "uvx",
    "pip",
    "pip3",
    "python",
)
_SECONDS: Final = 900.0
_PYTHON_SECONDS: Final = 120.0
_GLIBC: Final = 31  # wheels for glibc 2.31, which all images of the last years have
_PINNED: Final = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w.,-]+\])?==[\w.+!-]+(?: ;.*)?")
_lock: Final = threading.Lock()


@dataclass(frozen=True)
class PreparedFolder:
    """What is mounted for a script, and what it will miss."""

    mounts: tuple[Mount, ...] = ()
    wheels: tuple[str, ...] = ()  # folders, as inside
    pythons: tuple[str, ...] = ()  # folders of programs, as inside
    without: tuple[str, ...] = ()  # versions of Python that it asks for
    unmet: tuple[str, ...] = ()  # what it needs, and why that is not there
    size: int = 0  # bytes of the wheels
    packages: tuple[str, ...] = ()  # of the system, that it asks for and that are there


@dataclass(frozen=True)
class SandboxPythons:
    """The Pythons of a sandbox: versions such as 3.11, the default one first."""

    versions: tuple[str, ...]
    of_host: bool  # programs of the host run in it


def stand_ins() -> Mount:
    """What stands in for the programs by which verifiers download."""
    with _lock:
        return Mount(str(_stand_ins()), BIN)


def uv() -> Mount:
    """SandboxError if pip can't get it."""
    with _lock:
        return Mount(str(_uv()), UV)


def prepare(downloads: VerifierDownloads, pythons: SandboxPythons) -> PreparedFolder:
    """The wheels that a verifier asks for, for the Pythons of its sandbox.

    It may take a while: call it in a thread. Concurrent runs don't disturb each other.
    """
    mounts, without, unmet = [stand_ins()], list[str](), list[str]()
    try:
        mounts.append(uv())
    except SandboxError as error:
        return PreparedFolder(tuple(mounts), unmet=(f"uv: {error}",))
    bins, wheels, size = list[str](), list[str](), 0
    with _lock:
        provided = dict[str, Path | None]()
        for version in downloads.pythons:
            if version not in pythons.versions:
                provided[version] = _python_folder(version, pythons.of_host)
        if not pythons.versions and not any(provided.values()):
            unmet.append("a Python")
        for version, python in provided.items():
            if python is None:
                without.append(version)
            else:
                # Where it is on the host: some look for their libraries there.
                mounts.append(Mount(str(python), str(python)))
                bins.append(f"{python}/bin")
        default = (*pythons.versions, *(v for v, p in provided.items() if p), "3.13")[0]
        for wheel_set in downloads.wheels:
            version = wheel_set.python if wheel_set.python not in without else ""
            try:
                folder = _wheel_folder(
                    replace(wheel_set, python=version or default, by_pip=False)
                )
            except SandboxError as error:
                unmet.append(str(error))
                continue
            mount = Mount(str(folder), f"{INSIDE}/wheels/{folder.name}")
            if mount not in mounts:
                mounts.append(mount)
                wheels.append(mount.inside)
                size += sum(file.stat().st_size for file in folder.iterdir())
    inside = (tuple(wheels), tuple(bins), tuple(without), tuple(unmet))
    return PreparedFolder(tuple(mounts), *inside, size)


def _stand_ins() -> Path:
    script = read_file(Path(__file__).with_name("stand_ins.sh"))

    def write(new: Path) -> None:
        for name in STAND_INS:
            (new / name).write_bytes(script)
            (new / name).chmod(0o755)

    return _made(f"programs-{digest(script.decode(), *STAND_INS)[:16]}", write)


def _uv() -> Path:
    def download(new: Path) -> None:
        _pip("download", "--no-deps", "--dest", str(new), *_platforms(), "--", "uv")
        for wheel in new.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if (program := Path(name).name) in (
                        "uv",
                        "uvx",
                    ) and "/scripts/" in name:
                        (new / program).write_bytes(archive.read(name))
                        (new / program).chmod(0o755)
            wheel.unlink()

    return _made(f"uv-{platform.machine()}", download)


@functools.cache
def _wheel_folder(wheels: WheelSet) -> Path:
    """Cached, so that all trials of a run have the same wheels."""
    for text in wheels.requirements:
        if problem := why_no_requirement(text):
            raise SandboxError(problem)
    stored = _cache() / f"{digest(repr(wheels), platform.machine())[:32]}.json"
    resolution = daily_versions(stored, lambda: _resolved(wheels))
    here = [line for line in resolution if ";" not in line]
    elsewhere = [line.partition(";")[0].strip() for line in resolution if ";" in line]
    version = ("--python-version", wheels.python, "--implementation", "cp")
    options = ("download", "--no-deps", *version, *_platforms())

    def download(new: Path) -> None:
        _pip(*options, "--dest", str(new), "--", *here)
        for requirement in elsewhere:
            # It has no wheel for this system, and needs none
            with suppress(SandboxError):
                _pip(*options, "--dest", str(new), "--", requirement)

    return _made(digest(wheels.python, platform.machine(), *resolution)[:32], download)


def _resolved(wheels: WheelSet) -> list[str]:
    """NAME==VERSION, perhaps with a marker. By uv: pip can't
    resolve for another Python.
    """
    here = ("--python-platform", f"{platform.machine()}-manylinux_2_{_GLIBC}")
    target = ("--universal",) if wheels.locked else here
    options = ("--only-binary", ":all:", "--python-version", wheels.python, *target)
    call = (
        str(_uv() / "uv"),
        "pip",
        "compile",
        "--no-config",
        "--quiet",
        "--no-header",
        *options,
    )
    lines = _ran(
        (*call, "--no-annotate", "-"), "\n".join(wheels.requirements), _index()
    )
    return [line for line in lines.splitlines() if _PINNED.fullmatch(line)]


@functools.cache
def _index() -> dict[str, str]:
    """pip's settings of where packages are, for uv."""
    listed = _ran((sys.executable, "-P", "-m", "pip", "config", "list"), "", {})
    settings = dict[str, str]()
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = value.strip("'\"")
    extra = [
        url
        for url in settings.get("extra-index-url", "").split()
        if url.startswith("http")
    ]
    env = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1", "UV_INDEX": " ".join(extra)}
    env |= {"UV_DEFAULT_INDEX": url} if (url := settings.get("index-url")) else {}
    return env | ({"SSL_CERT_FILE": cert} if (cert := settings.get("cert")) else {})


def _python_folder(version: str, of_host: bool) -> Path | None:
    """A Python of this version, with all of its files in one folder;
    None if there is none.
    """
    return (_host_python(version) if of_host else None) or _portable_python(version)


@functools.cache
def _host_python(version: str) -> Path | None:
    name, print_prefix = (
        f"python{version}",
        "import sys; print(sys.base_prefix, sys.version[:4])",
    )
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}"))
    for program in filter(None, (shutil.which(name), *map(str, pyenv))):
        with suppress(SandboxError):
            prefix, _, found = (
                _ran((program, "-I", "-c", print_prefix), "", {})
                .strip()
                .rpartition(" ")
            )
            if (
                found == version
                and (Path(prefix) / "bin" / name).exists()
                and prefix != "/usr"
            ):
                return Path(prefix)
    return None


@functools.cache
def _portable_python(version: str) -> Path | None:
    """One that uv downloads, which runs in most images."""
    failed = _cache() / f"no-python{version}"
    with suppress(OSError):
        if time.time() - failed.stat().st_mtime < DAY:
            return None

    def install(new: Path) -> None:
        call = (
            str(_uv() / "uv"),
            "python",
            "install",
            "--no-config",
            "--no-bin",
            "--install-dir",
        )
        _ran((*call, str(new), version), "", _index(), _PYTHON_SECONDS)

    try:
        folder = _made(f"python{version}-{platform.machine()}", install)
    except SandboxError:
        with suppress(OSError):
            replace_file(failed, "")
        return None
    return next(
        (path.parent.parent for path in folder.glob(f"cpython*/bin/python{version}")),
        None,
    )


def _made(name: str, make: Callable[[Path], None]) -> Path:
    return whole_folder(_cache() / name, make)


def _platforms() -> list[str]:
    machine = platform.machine()
    names = [f"manylinux_2_{minor}_{machine}" for minor in range(_GLIBC, 4, -1)]
    names += [f"manylinux{name}_{machine}" for name in ("2014", "2010", "1")] + [
        f"linux_{machine}"
    ]
    return [option for name in names for option in ("--platform", name)]


def _pip(action: str, *arguments: str) -> None:
    options = ("--disable-pip-version-check", "--no-input", action, "--quiet")
    call = (
        sys.executable,
        "-P",
        "-m",
        "pip",
        *options,
        "--only-binary",
        ":all:",
        *arguments,
    )
    _ran(call, "", {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"})


def _ran(
    call: Sequence[str], stdin: str, env: dict[str, str], seconds: float = _SECONDS
) -> str:
    """What a command prints; SandboxError if it fails."""
    try:
        ran = subprocess.run(
            call,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            cwd="/",
            env={**os.environ, **env},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"{Path(call[0]).name} failed: {error}") from None
    if ran.returncode:
        raise SandboxError(_reason(ran.stderr) or f"{Path(call[0]).name} failed")
    return ran.stdout


def _reason(errors: str) -> str:
    lines = [line.strip(" ×╰─▶│") for line in errors.splitlines()]
    lines = [line for line in lines if line and not line.startswith("WARNING")]
    start = next((n for n, line in enumerate(lines) if line.startswith("ERROR:")), 0)
    reason = " ".join(lines[start:]).partition(" hint: ")[0]
    return one_line(without_credentials(reason.removeprefix("error: ")), 300)


def _cache() -> Path:
    return user_cache() / "verifiers"
