"""Whole-file reads and writes, and whether a path can be written at all."""

import os
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

import pytest_upskill
from pytest_upskill._util.files import (
    is_stream,
    open_file,
    read_file,
    replace_file,
    save_file,
    why_unwritable,
)
from pytest_upskill.errors import InputError


@pytest.mark.parametrize("kind", ["new", "old", "link", "pipe"])
def test_a_file_is_replaced_and_a_pipe_is_written_to(tmp_path: Path, kind: str) -> None:
    file, target = tmp_path / "r.csv", tmp_path / "there.csv"
    if kind == "old":
        file.write_text("longer than what comes")
    if kind == "link":
        file.symlink_to(target)
    if kind != "pipe":
        replace_file(file, b"short")
        assert file.read_bytes() == b"short"
        assert file.is_symlink() == (kind == "link")
        assert not list(tmp_path.glob(".*"))
        return
    os.mkfifo(file)
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(file, b"short")
    assert os.read(reader, 99) == b"short"
    os.close(reader)


def test_text_is_written_as_utf_8_whatever_it_holds(tmp_path: Path) -> None:
    replace_file(tmp_path / "new/folder/a.txt", "ä\n\ud800")
    assert (tmp_path / "new/folder/a.txt").read_bytes() == "ä\n\\ud800".encode()


def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")

    def full(number: int, *_: Any) -> Any:
        os.close(number)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/a.txt'"):
        replace_file(file, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert file.read_text() == "old"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"^a\.txt: can't be written: no space left on device"
    ):
        save_file(file, "new")


def test_a_file_below_dev_is_replaced_too() -> None:
    """/dev/shm is a file system like any other."""
    assert not is_stream(Path("/dev/shm/new/a.jsonl"))
    assert not is_stream(Path("out/dev/fd/a.jsonl"))
    streams = ["/dev/stdout", "/dev/fd/3", "/dev/null", "/proc/self/fd/1"]
    assert all(is_stream(Path(stream)) for stream in streams)


def test_drafts_of_killed_runs_are_removed(tmp_path: Path) -> None:
    file = tmp_path / f"{'long' * 60}.json"
    drafts = list[Path]()

    def kill(self: Path, _: Path) -> None:
        drafts.append(self)
        self.rename(tmp_path / "kept")
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        with pytest.raises(KeyboardInterrupt):
            replace_file(file, "new")
    (tmp_path / "kept").rename(drafts[0])
    replace_file(file, "one")
    replace_file(file, "two")
    assert drafts[0].exists()  # perhaps another run is writing it
    long_ago = time.time() - 9999
    os.utime(drafts[0], (long_ago, long_ago))
    replace_file(file, "three")
    assert list(tmp_path.iterdir()) == [file]


def test_the_mode_of_a_file_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_text("old")
    file.chmod(0o750)
    replace_file(file, "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o750)


@pytest.mark.parametrize(
    ("path", "folder", "problem"),
    [
        ("new/a.json", False, ""),
        ("there/a.json", False, ""),
        ("there/old.json", False, ""),
        ("link.json", False, ""),
        ("there", False, "can't be written: is a directory"),
        ("there/old.json/a.json", False, "there/old.json is a file, not a folder"),
        ("new/folder", True, ""),
        ("there", True, ""),
        ("there/old.json", True, "there/old.json is a file, not a folder"),
        ("there/old.json/new", True, "there/old.json is a file, not a folder"),
        ("link.json", True, "link.json is a broken link"),
        ("/proc/new", True, "/proc is not writable: no such file or folder"),
        ("/proc/new.json", False, "/proc is not writable: no such file or folder"),
    ],
)
def test_what_can_not_be_written_is_found_without_a_trace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    folder: bool,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("there/old.json").write_text("old")
    Path("link.json").symlink_to("nowhere.json")
    before = sorted(tmp_path.rglob("*"))
    assert why_unwritable(tmp_path / path, folder=folder) == problem
    assert sorted(tmp_path.rglob("*")) == before
    assert Path("there/old.json").read_text() == "old"


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder", "link"])
def test_only_regular_files_are_read_and_nothing_waits(
    tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "f"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.path.relpath(file))  # a path may have about 100 characters
        server.close()
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "device" else "f")
    wanted = {"folder": "Is a directory", "link": "Too many levels of symbolic links"}
    for read in (read_file, open_file):
        with pytest.raises(OSError, match=wanted.get(kind, "not a regular file")):
            read(file)


def test_a_file_that_becomes_a_pipe_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    status = (tmp_path / "file").stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: status)
    with pytest.raises(OSError, match="not a regular file"):
        read_file(tmp_path / "pipe")


def test_a_file_has_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"12345")
    assert read_file(file, 5) == b"12345"
    with pytest.raises(OSError, match=r"5 bytes \(limit 4\)"):
        read_file(file, 4)
    with file.open("wb") as sparse:
        sparse.truncate(10**12)
    with pytest.raises(OSError, match=r"1,000,000,000,000 bytes \(limit"):
        read_file(file)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc")
def test_a_file_without_a_size_has_a_limit() -> None:
    assert Path("/proc/self/maps").stat().st_size == 0
    with pytest.raises(OSError, match=r"11 bytes \(limit 10\)"):
        read_file(Path("/proc/self/maps"), 10)


def test_every_file_is_read_through_the_one_function() -> None:
    """Files of others may be pipes or endless; these are our own."""
    own = {"registry.py", "reports/page/page.py"}
    own |= {"models/local.py", "_util/launcher.py"}
    source = Path(pytest_upskill.__file__).parent
    elsewhere = re.compile(r"\.read_(?:bytes|text)\(|\.open\(\"rb\"\)")
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if elsewhere.search(file.read_text("utf-8"))
    }
    assert found <= own


def test_a_link_to_itself_can_not_be_written(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    assert "too many levels of symbolic links" in why_unwritable(loop)
    assert why_unwritable(loop / "folder", folder=True)
    with pytest.raises(OSError, match=r"loop\.json"):
        replace_file(loop / "file", "text")
