"""The real agents of this repository's tests: which packages, and where they are installed."""

import json
import os
import platform
from pathlib import Path
from typing import Any, Final

import pytest

FOLDER: Final = Path(__file__).parents[2] / "build/agents"
HOW: Final = "Install the real agents with: make agents"
_FILE: Final = json.loads((Path(__file__).parent / "packages.json").read_text(encoding="utf-8"))
PACKAGES: Final[dict[str, dict[str, Any]]] = _FILE["agents"]
NODE: Final[dict[str, str]] = _FILE["node"]


def version_there(name: str, package: str) -> str | None:
    """The version of a package that is installed for an agent."""
    try:
        text = (FOLDER / name / "node_modules" / package / "package.json").read_text("utf-8")
    except OSError:
        return None
    return str(json.loads(text)["version"])


def put_on_path(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let an agent be found by its name; returns why it can't be."""
    package = PACKAGES[name]
    if version_there(name, package["package"]) is None:
        return f"{name} is not installed. {HOW}"
    folders = [FOLDER / name / "node_modules/.bin"]
    if "node" in package:
        folders.insert(0, FOLDER / "node/node_modules" / NODE[platform.machine()] / "bin")
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    return ""
