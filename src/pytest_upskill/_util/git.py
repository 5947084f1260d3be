"""Run git on a repository, read-only, so that nothing the repository holds is
executed.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Set when pytest runs inside a git hook; they point at the hook's repository,
# not at the folder's.
_HOOK_VARIABLES: Final = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}
)

# A repository may come from a stranger, and its config can name commands. The
# user's own config stays: it has safe.directory, and what counts as a change (line
# endings, ignored files).
_GUARDED: Final = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "core.fsmonitor="),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.alternateRefsCommand="),
    *("-c", "protocol.allow=never"),
)
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_NO_LAZY_FETCH": "1",
    # Unlike protocol.allow, no protocol.NAME.allow overrides it
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
}
_EMPTY: Final = "PYTEST_UPSKILL_EMPTY"
_SECONDS: Final = 20.0  # git waits for ever for a pipe named .gitattributes


@dataclass(frozen=True)
class Commit:
    """A checked-out commit; ``dirty`` if there are uncommitted changes."""

    id: str
    dirty: bool


def repository_of(folder: Path) -> Path | None:
    """The top of the work tree that a folder is in.

    git itself would take any folder with the right names in it for a bare repository,
    so a skill could bring one; it must be found by its ``.git``.
    """
    ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
    for top in (folder, *folder.parents):
        if top != folder and str(top) in ceilings:
            return None
        dot_git = top / ".git"
        if os.path.isfile(dot_git) or os.path.lexists(dot_git / "HEAD"):  # noqa: PTH113 (never raises)
            return top
    return None


def run_git(top: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run git at the top of a work tree.

    Raises OSError if git is not installed, TimeoutError (which is
    one) if it takes too long.
    """
    env = {
        name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES
    }
    try:
        return subprocess.run(
            ["git", "-C", str(top), *_GUARDED, *args],
            env={
                **env,
                **_ENVIRONMENT,
                "GIT_CEILING_DIRECTORIES": str(top.parent),
                _EMPTY: "",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"git {args[0]} did not end within {_SECONDS:g} s") from None


def ignored_in(folder: Path) -> Callable[[Path], bool]:
    """Tells whether git ignores a file in a folder; never,
    if it ignores the whole folder.
    """
    folder = folder.resolve()
    top = repository_of(folder)
    paths = set[Path]()
    if top is not None:
        inside = folder.relative_to(top).as_posix()
        listed = [
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
            "-z",
        ]
        with suppress(OSError):
            out = run_git(top, *listed, "--", inside).stdout.decode(
                "utf-8", "surrogateescape"
            )
            paths = {top / path for path in out.split("\0") if path}
    if not paths.isdisjoint((folder, *folder.parents)):
        paths = set()

    def is_ignored(file: Path) -> bool:
        real = folder / file
        return not paths.isdisjoint((real, *real.parents))

    return is_ignored


def commit_of(folder: Path, watched: Sequence[str] = ()) -> Commit | None:
    """The commit checked out in a folder; None outside a repository,
    or if git can't tell.

    Untracked files count as changes only in the ``watched`` folders, since the reports
    of a run are untracked too.
    """
    folder = folder.resolve()
    top = repository_of(folder)
    if top is None:
        return None
    try:
        head = run_git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if head.returncode:
            return None
        dirty = _is_dirty(top, "--untracked-files=no")
        dirty = dirty or any(_is_changed((folder / path).resolve()) for path in watched)
    except OSError:
        return None
    return Commit(head.stdout.decode().strip(), dirty)


def _is_dirty(top: Path, *options: str) -> bool:
    """Whether git sees changes, except in submodules, whose filters it would run.

    A skill in a submodule is watched in its own repository.
    """
    status = ["status", "--porcelain", "--ignore-submodules=dirty"]
    return bool(run_git(top, *_without_filters(top), *status, *options).stdout)


def _is_changed(folder: Path) -> bool:
    top = repository_of(folder)
    return top is not None and _is_dirty(top, "--", folder.relative_to(top).as_posix())


def _without_filters(top: Path) -> Iterator[str]:
    """Options that turn off the content filters which the
    repository's own config defines.
    """
    pattern = r"^filter\..*\.(clean|smudge|process|required)$"
    listed = run_git(
        top, "config", "-z", "--show-scope", "--name-only", "--get-regexp", pattern
    )
    words = listed.stdout.decode("utf-8", "surrogateescape").split("\0")
    for scope, key in zip(words[::2], words[1::2], strict=False):
        if scope in ("local", "worktree"):
            yield f"--config-env={key}={_EMPTY}"
