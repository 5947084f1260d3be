"""Environments below build/ that commands are measured in;
the project's own stays as it is.

One has pytest-upskill as users install it: the tools of developers bring plugins
of pytest that take time in every run. The other has the peers, with the same
version of the openai SDK.
"""

import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PEERS: Final = ("pydantic-evals", "inspect-ai")


@cache
def own() -> str:
    """The Python that has pytest-upskill, and nothing else."""
    return _made("bench-own", [str(ROOT)]) or sys.executable


@cache
def earlier() -> dict[str, str]:
    """The Python that has pytest-upskill as of the commit in $BESIDE, if it is set."""
    commit = os.environ.get("BESIDE", "")
    if not commit:
        return {}

    python = _made(f"bench-{commit}", [f"git+{ROOT.as_uri()}@{commit}"])
    return {commit: python} if python else {}


@cache
def peers() -> dict[str, str]:
    """The Python of each peer that can be installed."""
    found = {name: _made(f"bench-{name}", [name, *_sdk()]) for name in PEERS}
    return {name: python for name, python in found.items() if python}


def _sdk() -> list[str]:
    return [f"openai[aiohttp]=={version('openai')}", f"pydantic=={version('pydantic')}"]


def _made(name: str, packages: list[str]) -> str | None:
    folder = ROOT / "build" / name
    python = folder / "bin/python"
    again = [] if packages != [str(ROOT)] else ["--force-reinstall", "--no-deps"]
    try:
        if not python.exists():
            again = []
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [
            str(python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "-qq",
        ]
        subprocess.run([*pip, *again, *packages], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  {name} can't be installed: {error}", file=sys.stderr)
        return None
    return str(python)


def versions() -> str:
    """What was compared, in words."""
    code = (
        "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    )

    def of(python: str, name: str) -> str:
        said = subprocess.run(
            [python, "-c", code, name], capture_output=True, text=True, check=True
        )
        return f"{name} {said.stdout.strip()}"

    used = [
        f"Python {sys.version.split()[0]}",
        of(own(), "openai"),
        of(own(), "pytest"),
    ]
    return ", ".join([*used, *(of(python, name) for name, python in peers().items())])
