"""Real agents: seconds to their first request, and the most
memory that they take (PSS).

python benchmarks/start_up.py [NAME …]   medians of 3,
of those that `make agents` installed
"""

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pytest_upskill.agents.probe import ScriptStep
from pytest_upskill.agents.roster import AGENTS
from real_agents.packages import PACKAGES, is_there, path_for
from real_agents.trying import SKILL, agent_named, plays, tried, write_gate
from support.loopback import Asked, Fault, Reply

RUNS = 3
STEPS = (
    ScriptStep("skill", SKILL),
    ScriptStep("shell", "true"),
    ScriptStep("say", "Done."),
)


class Memory(threading.Thread):
    """Looks at all processes below this one, again and again."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0  # kB
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            self.most = max(self.most, sum(map(_pss, _below(os.getpid()))))


def _below(top: int) -> set[int]:
    parents = dict[int, int]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found, size = {top}, 0
    while size != len(found):
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {top}


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measured(name: str, folder: Path) -> tuple[float, float]:
    """Seconds and megabytes of one trial."""
    first = list[float]()
    play = plays(*STEPS)

    def script(asked: Asked) -> Reply | Fault:
        first.append(time.monotonic())
        return play(asked)

    memory = Memory()
    memory.start()
    began = time.monotonic()
    done = tried(name, agent_named(name).protocols[0], script, skill=folder)
    memory.over.set()
    memory.join()
    assert done.answer, done.told
    return first[0] - began, memory.most / 1024


def main(names: list[str]) -> None:
    path = os.environ["PATH"]
    print("| agent | s | MB |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        skill = write_gate(Path(folder))
        for name in names or sorted(AGENTS):
            if name in PACKAGES and is_there(name, PACKAGES[name]["npm"]):
                os.environ["PATH"] = path_for(name)
                # Some unpack themselves at their first start
                agent_named(name).version()
                runs = [measured(name, skill) for _ in range(RUNS)]
                os.environ["PATH"] = path
                seconds, megabytes = map(statistics.median, zip(*runs, strict=True))
                print(f"| {name} | {seconds:.1f} | {megabytes:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
