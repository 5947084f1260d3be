"""git, asked for what it knows of a folder; the work tree is left alone."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# A git hook that runs pytest has these set for its own repository, relative to another folder.
_OF_A_HOOK: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})


@dataclass(frozen=True)
class Commit:
    """Where a work tree stands; ``dirty`` if it has changes that are not committed."""

    id: str
    dirty: bool


def run_git(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """OSError if there is no git."""
    env = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    return subprocess.run(
        ["git", "-C", str(folder), *args],
        env={**env, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def commit_of(folder: Path, watched: Sequence[str] = ()) -> Commit | None:
    """The commit of the work tree that a folder is in; None if it is in none.

    New files count as changes in the ``watched`` folders only: reports of a run are new files
    too.
    """
    try:
        head = run_git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if head.returncode:
            return None
        status = ["status", "--porcelain"]
        changes = [run_git(folder, *status, "--untracked-files=no").stdout]
        changes += [run_git(folder, *status, "--", *watched).stdout] if watched else []
    except OSError:
        return None
    return Commit(head.stdout.decode().strip(), any(changes))
