"""Read and write whole files, load Python files,
and check whether a path can be written.
"""

import errno
import hashlib
import os
import secrets
import stat
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Final

from ..errors import InputError, shown
from .keys import without_keys
from .texts import digest

LARGEST: Final = 256_000_000  # bytes of a file that a run has written
PLAIN: Final = 0o644  # the mode of a file that is no program
EXECUTABLE: Final = 0o755
_WITHOUT_WAITING: Final = (  # these are 0 where a system lacks them
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_HOUR: Final = 3600.0


def user_cache() -> Path:
    """The folder for what may be deleted at any time."""
    if sys.platform == "darwin":
        top = Path.home() / "Library" / "Caches"
    else:
        top = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return top / "pytest-upskill"


def open_file(file: Path) -> BinaryIO:
    """A file to read. OSError if it is a folder, pipe, socket or device,
    which might never end.
    """
    require_regular(file)  # opening a device may have side effects
    stream = os.fdopen(os.open(file, os.O_RDONLY | _WITHOUT_WAITING), "rb")
    try:
        _require_regular(os.fstat(stream.fileno()))
    except OSError:
        stream.close()
        raise
    return stream


def read_file(file: Path, limit: int = LARGEST) -> bytes:
    """The content of a file; OSError if it has more bytes than the limit,
    or can't be read.
    """
    with open_file(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        # Files in /proc have a size of 0 and may be endless;
        # reading one may return None.
        data = b"" if size > limit else stream.read(limit + 1) or b""
    if max(size, len(data)) > limit:
        raise OSError(
            errno.EFBIG, f"{max(size, len(data)):,} bytes (limit {limit:,})", str(file)
        )
    return data


def inflated(data: bytes, limit: int = LARGEST) -> bytes:
    """Unpack zlib or gzip; OSError if there is more than the limit,
    ValueError if it is broken.
    """
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # it detects which
    try:
        content = unpacking.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from None
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes, unpacked")
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("damaged: not one whole compressed text")
    return content


def require_regular(file: Path) -> None:
    """OSError if a file is missing, or is something that might never end."""
    _require_regular(file.stat())


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")


def resolved(path: Path) -> Path:
    """The path without links. A link to itself stays; Path.resolve would raise."""
    return Path(os.path.realpath(path))


def is_stream(file: Path) -> bool:
    """Whether it is a pipe, a device, or a standard stream, even one that is a file."""
    is_standard = str(file) in ("/dev/stdout", "/dev/stderr") or file.parts[:3] == (
        "/",
        "dev",
        "fd",
    )
    return (
        is_standard
        or file.parts[:2] == ("/", "proc")
        or (file.exists() and not file.is_file())
    )


def open_stream(file: Path) -> BinaryIO:
    """A pipe or device to write to; OSError if it is a pipe that nobody reads."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _WITHOUT_WAITING
    stream = os.fdopen(os.open(file, flags, 0o666), "ab")
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(stream.fileno(), True)  # a reader may be slow
    return stream


def replace_file(file: Path, content: str | bytes) -> None:
    """Write a file atomically, and create its folder: an interrupt leaves the old
    file.
    """
    if isinstance(content, str):
        content = without_keys(content).encode("utf-8", "backslashreplace")
    if is_stream(file):
        with open_stream(file) as stream:
            stream.write(content)
        return
    target = resolved(file)  # a link stays a link
    start = f".upskill-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"
    draft = target.with_name(f"{start}{secrets.token_hex(6)}.draft")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o7777 if target.exists() else None
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _WITHOUT_WAITING
        # Never readable by more people than the file that it replaces.
        with os.fdopen(
            os.open(draft, flags, 0o666 if mode is None else mode), "wb"
        ) as new:
            new.write(content)
        if mode is not None:
            with suppress(OSError):
                draft.chmod(mode)
        draft.replace(target)
        _remove_drafts(target.parent, start)
    except OSError as error:  # it names the draft
        raise OSError(error.errno, error.strerror, str(file)) from None
    finally:
        with suppress(OSError):  # it would hide the first error
            draft.unlink()


def _remove_drafts(folder: Path, start: str) -> None:
    """Remove drafts of runs that were killed while they wrote the same file."""
    with suppress(OSError):
        for draft in folder.iterdir():
            if (
                draft.name.startswith(start)
                and time.time() - draft.stat().st_mtime > _HOUR
            ):
                draft.unlink()


def exchange(new: Path, target: Path, old: Path) -> None:
    """Replace a folder by a new one; the replaced one becomes ``old``."""
    if os.path.lexists(target):
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if os.path.lexists(old):
            old.rename(target)
        raise


def save_file(file: Path, content: str | bytes) -> None:
    """Write a file atomically; InputError if that fails."""
    try:
        replace_file(file, content)
    except OSError as error:
        raise InputError(
            file, f"can't be written: {reason_of(error)}", "Check the path."
        ) from None


def why_unwritable(path: Path, *, folder: bool = False) -> str:
    """Why a file (or a folder) can't be written; empty if it can. Leaves no trace."""
    there = path if folder else resolved(path)
    while not os.path.lexists(there):
        there = there.parent
    try:
        if not folder and there == resolved(path):
            # Opening a pipe could end its reader
            if is_stream(path) and not path.is_dir():
                return (
                    ""
                    if os.access(path, os.W_OK)
                    else "can't be written: permission denied"
                )
            with path.open("ab"):
                return ""
        if not there.is_dir():
            kind = "a broken link" if there.is_symlink() else "a file, not a folder"
            return f"{shown(there)} is {kind}"
        with tempfile.TemporaryDirectory(prefix=".upskill-", dir=there):
            return ""
    except OSError as error:
        same = there in (path, resolved(path))
        problem = "can't be written" if same else f"{shown(there)} is not writable"
        return f"{problem}: {reason_of(error)}"


def reason_of(error: OSError) -> str:
    """The message of an OSError as part of a sentence, without its number."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    if error.errno == errno.ENXIO:
        return "a pipe that nobody reads, or a socket"
    return (error.strerror or str(error)).lower()


_LONGEST: Final = 10_000_000  # bytes


def load_python_file(file: Path) -> ModuleType:
    """Raises OSError if the file can't be read, ImportError for
    anything it raises itself.
    """
    source = read_file(file, _LONGEST)
    module = ModuleType(f"_pytest_upskill_{digest(str(file))[:12]}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up there
    try:
        # An importer would write __pycache__ into the skill's folder.
        exec(compile(source, str(file), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise ImportError(f"{type(error).__name__}: {error}") from error
    return module
