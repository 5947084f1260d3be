"""Install the real agents: python tests/real_agents/install.py [NAME …]

Only what is missing, at the pinned versions; what can't be had is told, and the others go on.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytest_upskill.agents.names import AGENTS
from real_agents.packages import FOLDER, NODE, PACKAGES, version_there


def main(names: list[str]) -> None:
    if not shutil.which("npm"):
        print("The real agents need npm, which is not installed: they are left out.")
        return
    machine = platform.machine()
    wanted = [name for name in names or PACKAGES if name in AGENTS]
    if machine in NODE and any("node" in PACKAGES[name] for name in wanted):
        install("node", NODE[machine], NODE["version"])
    for name in wanted:
        package = PACKAGES[name]
        if machine in package.get("not_for", ()):
            print(f"{name}: there is no package for {machine}")
        else:
            install(name, package["package"], package["version"])


def install(name: str, package: str, version: str) -> None:
    if version_there(name, package) == version:
        return
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"{name}: {package} {version}", flush=True)
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund"]
    command += ["--loglevel", "error", "--fetch-retries", "1", f"{package}@{version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        problem = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        if done.returncode == 0:
            return
    except subprocess.TimeoutExpired:
        problem = "took more than 10 minutes"
    shutil.rmtree(folder, ignore_errors=True)  # or half of it would be taken for all
    print(f"{name}: not installed: {problem}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
