"""``pytest-upskill list``: a tree of skills with their size, cases and last results."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...errors import InputError, shown
from ...reports.terminal.skill_tree import total_lines, tree_lines
from ...results.history import KeptRow, newest
from ...results.overview import LastResult, SkillOverview, overview
from ...skills.search import SkippedFolder, find_skills, labels_of
from ...skills.upskill_config import read_config
from ..ini_file import ini_paths
from ..output import stdout_look
from ..project import runs_folder


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        type=Path,
        nargs="*",
        metavar="DIR",
        help="a folder of skills, or a skill (default: skill_paths of pytest's ini file, else "
        "skills_dir of upskill.config.yaml, else the current folder)",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also show the start of SKILL.md and some cases",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_list(args: argparse.Namespace) -> tuple[str, int]:
    named = args.folders or default_folders()
    folders = [Path(os.path.abspath(folder)) for folder in named]  # noqa: PTH100
    last_runs = newest(runs_folder(None, Path.cwd()))
    groups, left_out = list[tuple[Path, list[SkillOverview]]](), list[SkippedFolder]()
    for folder in folders:
        search = find_skills(folder)
        labels = labels_of(search.files)
        rows = {file: last_runs.get(labels[file], {}) for file in search.files}
        groups.append((folder, [_with_history(overview(file), rows[file]) for file in rows]))
        left_out += search.left_out
    skills = [skill for _, group in groups for skill in group]
    text = _json(skills, left_out) if args.json else _text(groups, left_out, args.verbose)
    return text, 1 if any(skill.errors for skill in skills) else 0


def _with_history(entry: SkillOverview, rows: Mapping[str, KeptRow]) -> SkillOverview:
    """With its last run on each model; accepted results only for models without a run."""
    if not entry.skill:
        return entry
    digest = entry.skill.digest
    results = [
        LastResult(
            model=model,
            rate=row.skill_rate,
            baseline_rate=row.baseline_rate,
            date=f"{kept_row.run.head.started.astimezone():%Y-%m-%d %H:%M}",
            edited_since=row.skill_digest != digest,
            kind="last run",
            cases=row.cases,
            of=row.all_cases,
            score=row.score,
            checks=row.skill_score,
            baseline_checks=row.baseline_score,
        )
        for model, kept_row in rows.items()
        if (row := kept_row.row).skill_rate is not None
    ]
    models = {result.model for result in results}
    accepted = [result for result in entry.results if result.model not in models]
    return replace(entry, results=(*results, *accepted))


def default_folders() -> list[Path]:
    """skill_paths of pytest's ini file, else skills_dir of upskill's, else the current folder."""
    here = Path.cwd()
    if paths := ini_paths(here, "skill_paths"):
        return paths
    config = read_config(here, os.environ)
    if config.file and config.skills_dir and not config.skills_dir.exists():
        key = f"{shown(config.file)}: skills_dir: {shown(config.skills_dir)}"
        raise InputError(key, "no such folder", "Name another: pytest-upskill list DIR.")
    return [config.skills_dir or here]


def _text(
    groups: Sequence[tuple[Path, Sequence[SkillOverview]]],
    left_out: Sequence[SkippedFolder],
    preview: bool,
) -> str:
    look = stdout_look(verbosity=int(preview))
    lines = []
    for folder, skills in groups:
        # A skill that was named directly is shown below its parent folder.
        named = folder in (skills[0].folder, skills[0].folder / folder.name)
        root = skills[0].folder.parent if named else folder
        lines += [*tree_lines(root, shown(root), skills, look), ""]
    skills = [skill for _, group in groups for skill in group]
    return "\n".join([*lines, *total_lines(skills, left_out, look)])


def _json(skills: Sequence[SkillOverview], left_out: Sequence[SkippedFolder]) -> str:
    data = {
        "schema": 1,
        "skills": [_skill_data(skill) for skill in skills],
        "left_out": [{"path": shown(path), "reason": reason} for path, reason in left_out],
    }
    return json.dumps(data, indent=2)


def _skill_data(entry: SkillOverview) -> dict[str, Any]:
    skill, tokens = entry.skill, entry.tokens
    return {
        "name": entry.name,
        "path": shown(entry.folder),
        "description": skill.description if skill else None,
        "digest": skill.digest if skill else None,
        "tokens": sum(tokens),
        "tokens_always": tokens.always,
        "tokens_used": tokens.used,
        "tokens_on_demand": tokens.on_demand,
        "files": [
            {
                "path": file.path,
                "tokens": file.tokens,
                "bytes": file.size,
                "on_demand": file.on_demand,
            }
            for file in entry.files
        ],
        "cases_file": shown(entry.cases_file) if entry.cases_file else None,
        "cases": [{"id": case.id, "input": case.input} for case in entry.cases],
        "results": [asdict(result) for result in entry.results],
        "errors": [
            {"where": error.where, "problem": error.problem, "hint": error.hint}
            for error in entry.errors
        ],
    }
