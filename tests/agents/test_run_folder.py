"""The folder of a run: private, removed at its end, and cleared if it was killed."""

import os
import subprocess
import sys
from pathlib import Path

RUN = """
import os, sys, time
from pytest_upskill.agents.run_folder import run_folder
folder = run_folder()
(folder / "skill").mkdir()
(folder / "skill" / "SKILL.md").write_text("text")
(folder / "skill").chmod(0o555)
print(folder, flush=True)
if sys.argv[1] == "wait":
    sys.stdin.read()
if sys.argv[1] == "die":
    os.kill(os.getpid(), 9)
"""


def start(top: Path, what: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RUN, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(top)},
    )


def folder_of(process: "subprocess.Popen[str]") -> Path:
    assert process.stdout
    return Path(process.stdout.readline().strip())


def test_a_folder_is_removed_at_the_end(tmp_path: Path) -> None:
    with start(tmp_path, "end") as run:
        folder = folder_of(run)
    assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_the_next_run_clears_that_of_a_dead_one_only(tmp_path: Path) -> None:
    other = tmp_path / "pytest-upskill-run-link"
    other.symlink_to(tmp_path)
    with start(tmp_path, "wait") as alive:
        kept = folder_of(alive)
        with start(tmp_path, "die") as dead:
            left = folder_of(dead)
        assert left.is_dir()
        assert left.stat().st_mode & 0o77 == 0
        with start(tmp_path, "end"):
            pass
        assert not left.exists()
        assert (kept / "skill" / "SKILL.md").exists()
        assert other.is_symlink()
    assert not kept.exists()
