"""Install the real agents: python tests/real_agents/install.py [NAME …]

Only what is missing, at the pinned versions; what can't be had is told,
and the others go on.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytest_upskill.agents.command_agent import CommandAgent
from pytest_upskill.agents.roster import AGENTS
from pytest_upskill.errors import SettingsError
from real_agents.packages import FOLDER, NODE, PACKAGES, is_there, path_for


def main(names: list[str]) -> None:
    if not shutil.which("npm"):
        print("The real agents are left out: they need npm, which is not installed.")
        return
    wanted = [name for name in names or PACKAGES if name in AGENTS]
    machine = platform.machine()
    if machine in NODE and any(PACKAGES[name].get("node") for name in wanted):
        install("node", [NODE[machine]])
    for name in wanted:
        install(name, PACKAGES[name]["npm"])


def install(name: str, packages: Sequence[str]) -> None:
    if is_there(name, packages):
        return
    folder = FOLDER / name
    print(f"{name}: npm install {' '.join(packages)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    problem = _installed(folder, packages)
    if not problem and name in AGENTS:
        problem = _started(name)
    if problem:
        shutil.rmtree(folder, ignore_errors=True)  # or it would be taken for installed
        print(f"{name} is left out: {problem}", flush=True)


def _installed(folder: Path, packages: Sequence[str]) -> str:
    """Install packages; returns why they can't be."""
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund"]
    command += ["--loglevel", "error", "--fetch-retries", "1", *packages]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, check=False
        )
    except subprocess.TimeoutExpired:
        return "npm took more than 10 minutes"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
    return (
        "; ".join(line.removeprefix("npm error").strip() for line in lines[:2])
        or "npm failed"
    )


def _started(name: str) -> str:
    """Ask an agent for its version: npm says nothing if there is
    no program for a machine.
    """
    before = os.environ["PATH"]
    os.environ["PATH"] = path_for(name)
    try:
        agent = AGENTS[name]()
        assert isinstance(agent, CommandAgent)
        agent.version()
    except SettingsError as error:
        return f"it does not start on {platform.machine()}: {error}"
    finally:
        os.environ["PATH"] = before
    return ""


if __name__ == "__main__":
    main(sys.argv[1:])
