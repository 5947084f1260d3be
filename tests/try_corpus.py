"""Try skills that nobody here wrote (``make corpus DIR=…``).

Lints, lists and collects every repository in a folder, without asking a model, and
prints how many skills loaded, how many of them with faults of form, and which were
refused and why. Fails only if a command crashed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOOLS = Path(sys.executable).parent
CRASH = re.compile(r"Traceback \(most recent call last\)|INTERNALERROR")
COLLECTED = re.compile(r"^(\d+) tests? collected", re.MULTILINE)
# Good, findings or broken files; then no skills, which is a usage error, and no tests.
STATUS = {"pytest-upskill": (0, 1, 2), "pytest": (0, 1, 4, 5)}
SECONDS = 600


@dataclass
class Tried:
    """What became of the skills of a repository."""

    name: str
    loaded: int = 0
    with_findings: int = 0
    cases: int = 0
    collected: int = 0
    refused: list[str] = field(default_factory=list)  # skills, and why
    broken: list[str] = field(default_factory=list)  # files of cases, and why
    left_out: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # level and code of each
    crashes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.loaded:,} skills loaded, {self.with_findings:,} of"
            f" them with faults of form, {len(self.refused):,} refused,"
            f" {len(self.left_out):,} left out; {self.cases:,} cases,"
            f" {len(self.broken):,} broken; {self.collected:,} tests"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of repositories")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="name all that has no test"
    )
    given = parser.parse_args()
    repositories = sorted(path for path in given.folder.iterdir() if path.is_dir())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(tried, repositories))
    for line in report(results, every=given.verbose):
        print(line)  # noqa: T201
    return 1 if any(one.crashes for one in results) else 0


def tried(repository: Path) -> Tried:
    found = Tried(repository.name)
    listed = run(found, "pytest-upskill", "list", "--json", repository)
    linted = run(found, "pytest-upskill", "lint", "--json", repository)
    with tempfile.TemporaryDirectory() as root:
        shown = run(
            found,
            *("pytest", "--collect-only", "-q", "-c", os.devnull, "--rootdir", root),
            *("-p", "no:cacheprovider", "--model", "haiku", "--skill-judge", "haiku"),
            *("--skill", repository),
        )
    # A folder without skills is a usage error, and prints no JSON.
    skills = json.loads(listed or '{"skills": [], "left_out": []}')
    for skill in skills["skills"]:
        add_skill(found, skill)
    found.left_out = [f"{one['path']}: {one['reason']}" for one in skills["left_out"]]
    findings = json.loads(linted or "[]")
    found.findings = [f"{one['level']} {one['code']}" for one in findings]
    of_form = {one["file"] for one in findings if one["code"].startswith("skill-")}
    found.with_findings = len(of_form) - len(found.refused)
    found.collected = sum(map(int, COLLECTED.findall(shown)))
    return found


def add_skill(found: Tried, skill: dict[str, Any]) -> None:
    errors = [f"{error['where']}: {error['problem']}" for error in skill["errors"]]
    found.cases += len(skill["cases"])
    if skill["digest"] is None:
        found.refused += errors
    else:
        found.loaded += 1
        found.broken += errors


def run(found: Tried, tool: str, *args: str | Path) -> str:
    command = [str(TOOLS / tool), *map(str, args)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        found.crashes.append(f"{' '.join(command)}: no end after {SECONDS} seconds")
        return ""
    if CRASH.search(done.stdout + done.stderr) or done.returncode not in STATUS[tool]:
        last = (done.stdout + done.stderr)[-2000:]
        found.crashes.append(f"{' '.join(command)}: status {done.returncode}\n{last}")
    return done.stdout


def report(results: Sequence[Tried], *, every: bool) -> Iterator[str]:
    for one in results:
        yield str(one)
        if every:
            lists = (
                ("refused", one.refused),
                ("broken", one.broken),
                ("left out", one.left_out),
            )
            yield from (f"  {what}: {line}" for what, lines in lists for line in lines)
    total = Tried(f"All {len(results):,} repositories")
    for one in results:
        for name, value in vars(one).items():
            if name != "name":
                setattr(total, name, getattr(total, name) + value)
    yield ""
    yield from counted("refused skills", map(reason, total.refused))
    yield from counted("broken cases", map(reason, total.broken))
    yield from counted("left out", map(reason, total.left_out))
    yield from counted("findings", total.findings)
    yield from (f"CRASHED: {crash}" for crash in total.crashes)
    yield f"{total}; {len(total.crashes):,} crashes"


def counted(title: str, things: Any) -> Iterator[str]:
    if counter := Counter(things):
        yield f"{title}:"
        yield from (
            f"  {number:6,}  {what}" for what, number in counter.most_common(30)
        )


def reason(line: str) -> str:
    """Why, without the place, and alike whatever the values are."""
    why = re.split(r": (?=[^:]*$)", line)[-1]
    return re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", re.sub(r"\d[\d,.]*", "N", why))[:150]


if __name__ == "__main__":
    sys.exit(main())
