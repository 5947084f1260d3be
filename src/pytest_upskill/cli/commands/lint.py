"""``pytest-upskill lint``: find problems in skills and their cases."""

import argparse
import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..._util.texts import counted, harmless, one_line
from ...errors import spelled
from ...lint import Finding, lint_plugin, lint_skill, listing_findings
from ...options import lift
from ...settings import Settings
from ...skills.bundle import covered_by, plugins_of
from ...skills.folder import CASES_NAME, EVALS_NAME, MANIFEST, skill_file
from ...skills.plugins import is_plugin
from ...skills.search import SkippedFolder, find_skills, left_out_lines
from ..command_table import add_options
from ..project import find_skill, ini_settings

_LONGEST_MESSAGE: Final = 1000


def add_lint_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="SKILL",
        help=(
            "a skill, by its name, its folder or one of its files, or a folder of"
            " skills (default: .)"
        ),
    )
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_options(parser, "lint", Settings)
    parser.add_argument(
        "--lift",
        type=lift(above_zero=True).parse,
        default=0.2,
        metavar="R",
        help=(
            "the lift the cases should be able to show: 20 points, or 0.2 (default: 20)"
        ),
    )


def run_lint(args: argparse.Namespace) -> tuple[str, int]:
    named = [find_skill(written, os.environ) for written in args.paths or ["."]]
    paths = [_skill_of(path) for path in named]
    skills, left_out = _skill_files(paths)
    judge = bool(args.judge) or _judge_is_set(Path.cwd())
    plugins = dict.fromkeys(
        plugin for path in paths for plugin in plugins_of(skills, path)
    )
    covered = frozenset[Path]().union(*map(covered_by, plugins))
    found = [
        *(
            f
            for file in plugins
            for f in lint_plugin(file, judge=judge, lift=args.lift)
        ),
        *(
            finding
            for file in skills
            for finding in lint_skill(
                file, judge=judge, lift=args.lift, needs_cases=file not in covered
            )
        ),
        *listing_findings(skills),
    ]
    findings = [
        dataclasses.replace(finding, hint=spelled(finding.hint, args.spell))
        for finding in found
    ]
    errors = sum(finding.level == "error" for finding in findings)
    if args.json:
        text = json.dumps(
            [dataclasses.asdict(finding) for finding in findings], indent=2
        )
    else:
        warnings = counted(len(findings) - errors, "warning")
        summary = (
            f"{counted(len(skills), 'skill')}: {counted(errors, 'error')}, {warnings}"
        )
        text = "\n".join([*map(_line, findings), *left_out_lines(left_out), summary])
    return text, 1 if errors or (args.strict and findings) else 0


def _skill_files(paths: Iterable[Path]) -> tuple[list[Path], list[SkippedFolder]]:
    """The SKILL.md of each skill, once, and what was left out.

    pre-commit passes every file that changed.
    """
    searches = [find_skills(path) for path in paths]
    files: dict[Path, Path] = {}
    for file in (file for search in searches for file in search.files):
        files.setdefault(file.resolve(), _by_real_path(file))
    return list(files.values()), [
        folder for search in searches for folder in search.left_out
    ]


def _by_real_path(file: Path) -> Path:
    """Not by a linked folder, if the real one is below the current folder as well."""
    folder = Path(os.path.realpath(file.parent))
    if folder != file.parent.absolute() and folder.is_relative_to(Path.cwd()):
        return folder.relative_to(Path.cwd()) / file.name
    return file


def _skill_of(path: Path) -> Path:
    """The SKILL.md or plugin that a file of cases or a manifest is of;
    other paths unchanged.
    """
    for name in (CASES_NAME, EVALS_NAME, MANIFEST):
        if path.is_file() and path.absolute().as_posix().endswith(f"/{name}"):
            folder = path.absolute().parents[name.count("/")]
            if is_plugin(folder):
                return folder
            return file if (file := skill_file(folder)).is_file() else path
    return path


def _judge_is_set(folder: Path) -> bool:
    _, settings = ini_settings(folder) or (folder, {})
    return bool(settings.get("skill_judge")) or "--skill-judge" in str(
        settings.get("addopts")
    )


def _line(finding: Finding) -> str:
    place = harmless(f"{finding.file}:{finding.line}").replace("\n", "\\n")
    message = f"{finding.message}. {finding.hint}" if finding.hint else finding.message
    return (
        f"{place}: {finding.level}: {one_line(message, _LONGEST_MESSAGE)}"
        f" ({finding.code})"
    )
