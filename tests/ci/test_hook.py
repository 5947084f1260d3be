"""The hook of pre-commit, called as pre-commit calls it."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import yaml

from support.kit import write_skill
from support.shell import COMMAND

ROOT = Path(__file__).parents[2]


def test_every_warning_is_printed_once(tmp_path: Path) -> None:
    """pre-commit splits the files over processes, unless the hook wants to be alone."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for name in ("gate", "door", "lock", "bolt"):
        write_skill(tmp_path / "skills" / name)
    files = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*"))
    files = [file for file in files if re.search(hook["files"], file)]
    assert len(files) == 8
    # As xargs of pre-commit: one process for each CPU, with at least four files, unless serial.
    groups = [files] if hook["require_serial"] else [files[::2], files[1::2]]
    shown = ""
    for group in groups:
        words = [COMMAND, *shlex.split(hook["entry"])[1:], *group]
        ran = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ}
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        shown += ran.stdout
    warnings = [line for line in shown.splitlines() if "few-cases" in line]
    assert len(warnings) == len(set(warnings)) == 4, shown
