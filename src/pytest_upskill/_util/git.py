"""Run git on a folder, read-only."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Set when pytest runs inside a git hook; they point at the hook's repository, not at the folder's.
_HOOK_VARIABLES: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})


@dataclass(frozen=True)
class Commit:
    """A checked-out commit; ``dirty`` if there are uncommitted changes."""

    id: str
    dirty: bool


def run_git(folder: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Raises OSError if git is not installed."""
    env = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    return subprocess.run(
        ["git", "-C", str(folder), *args],
        env={**env, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def commit_of(folder: Path, watched: Sequence[str] = ()) -> Commit | None:
    """The commit checked out in a folder; None outside a repository.

    Untracked files count as changes only in the ``watched`` folders, since the reports of a run
    are untracked too.
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
