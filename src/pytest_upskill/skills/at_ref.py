"""A skill at a git ref, read through git without touching the work tree."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from .._util.git import run_git
from .._util.texts import one_line
from ..errors import SettingsError
from .skill import SKILL_NAMES, Skill, body_of


def with_previous(skill: Skill, ref: str | None) -> Skill:
    """The skill with its body at ``ref``; unchanged if there is no ref or the skill is newer."""
    if ref is None:
        return skill
    folder = skill.file.resolve().parent
    commit = require_ref(ref, folder)
    listed = _git(ref, folder, "ls-tree", "-z", commit, "--", *SKILL_NAMES)
    if not listed:
        return skill
    blob = listed.split(b"\0")[0].split(b"\t")[0].split()[2].decode()
    return replace(skill, previous=body_of(_git(ref, folder, "cat-file", "blob", blob)))


@lru_cache(maxsize=256)
def require_ref(ref: str, folder: Path) -> str:
    """The commit of a ref in the repository of a folder."""
    if ref.startswith("-"):  # git would take it for an option
        raise _wrong(ref, "not a git ref", "Name a branch, a tag or a commit.")
    commit = _git(ref, folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", may_fail=1)
    if not commit:
        raise _wrong(
            ref,
            f"no such ref in the repository of {folder}",
            "Name a branch, a tag or a commit; in a shallow clone, fetch it first.",
        )
    return commit.decode().strip()


def _git(ref: str, folder: Path, *args: str, may_fail: int = 0) -> bytes:
    """The output of git; empty if it exits with ``may_fail``."""
    try:
        done = run_git(folder, *args)
    except OSError as error:
        raise _wrong(ref, f"can't run git: {error}", "Install git.") from None
    if done.returncode not in (0, may_fail):
        said = one_line(done.stderr.decode("utf-8", "replace").removeprefix("fatal: "), 300)
        raise _wrong(
            ref, f"git failed in {folder}: {said}", "The skill must be in a git repository."
        )
    return done.stdout if done.returncode == 0 else b""


def _wrong(ref: str, problem: str, hint: str) -> SettingsError:
    return SettingsError("against", problem, hint, value=one_line(ref, 100))
