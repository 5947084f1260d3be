"""The real agents of this repository's tests: which packages,
and where they are installed.
"""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "build/agents"
HOW: Final = "Install the real agents with: make agents"
_FILE: Final = json.loads(
    (Path(__file__).parent / "packages.json").read_text(encoding="utf-8")
)
PACKAGES: Final[dict[str, dict[str, Any]]] = _FILE["agents"]
NODE: Final[dict[str, str]] = _FILE["node"]


def is_there(name: str, packages: Sequence[str]) -> bool:
    """Whether these packages, at these versions, are installed for an agent."""
    for one in packages:
        package, _, version = one.rpartition("@")
        file = FOLDER / name / "node_modules" / package / "package.json"
        try:
            there = json.loads(file.read_text(encoding="utf-8"))["version"]
        except OSError:
            return False
        if there != version:
            return False
    return True


def path_for(name: str) -> str:
    """PATH, so that an agent is found by its name."""
    folders = [FOLDER / name / "node_modules/.bin"]
    if PACKAGES[name].get("node") and (node := NODE.get(platform.machine())):
        folders.insert(
            0, FOLDER / "node/node_modules" / node.rpartition("@")[0] / "bin"
        )
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])
