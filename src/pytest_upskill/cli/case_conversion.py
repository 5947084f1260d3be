"""``cases --from``: a suite in any form as a file of ours."""

import argparse
import json
import os
from pathlib import Path
from typing import Any, Final

from .._util.files import save_file
from .._util.texts import counted, one_line
from ..errors import InputError, shown
from ..skills.case import Case
from ..skills.folder import CASES_NAME, MANIFEST, SKILL_NAMES
from ..skills.suites.reading import Suites, read_suites
from .output import write
from .project import find_skill

# Keys by which cases name files
_FILES: Final = ("context", "workspace", "scaffold", "mocks")
_EVALS: Final = "evals"


def convert_cases(args: argparse.Namespace) -> tuple[str, int]:
    """Write the cases of a suite to skill_meta.json, or to the file that is named."""
    path = Path(os.path.abspath(args.suite))  # noqa: PTH100
    if not path.exists():
        raise InputError(
            shown(path), "no such file or folder", "Name a suite, such as evals/."
        )
    named = find_skill(args.skill, os.environ) if args.skill else _folder_around(path)
    folder = named if named.is_dir() else named.parent
    suites = read_suites(folder, None if path == folder else path)
    if suites.cases:
        suites.cases.require()
    written = [case for of_file in suites.files for case in of_file.written]
    cases = [{"id": case["id"], **_without_empty(case)} for case in written]
    triggers = [_trigger(case) for case in suites.all_triggers]
    broken = [case.message for of_file in suites.files for case in of_file.broken]
    warnings = [message for of_file in suites.files for _, message in of_file.warnings]
    if not cases and not triggers:
        problem = broken[0] if broken else "no cases in a form that is known"
        raise InputError(
            shown(suites.path or path), problem, "See docs/suites.md for the forms."
        )
    file = Path(args.output or folder / CASES_NAME)
    _require_writable(file, folder, suites, cases, overwrite=args.overwrite)
    content = {"cases": cases, **({"triggers": triggers} if triggers else {})}
    save_file(file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    if args.json:
        numbers = {
            "cases": len(cases),
            "triggers": len(triggers),
            "left_out": [*warnings, *broken],
        }
        write(json.dumps({"schema": 1, "file": str(file), **numbers}))
        return "", 0
    queries = f" and {counted(len(triggers), 'query')}" if triggers else ""
    lines = [f"Written: {shown(file)}, with {counted(len(cases), 'case')}{queries}."]
    lines += [f"Note: {one_line(message, 600)}" for message in warnings]
    lines += [f"Left out: {one_line(message, 600)}" for message in broken]
    if file == folder / CASES_NAME:
        lines.append(
            f"From now on it is read in place of {shown(suites.path or path)}."
        )
    return "\n".join(lines), 0


def _folder_around(path: Path) -> Path:
    """The skill or plugin that a suite belongs to, whose files its cases name."""
    for folder in (path, *path.parents):
        if any((folder / name).is_file() for name in (*SKILL_NAMES, MANIFEST)):
            return folder
    inside = [folder for folder in (path, *path.parents) if folder.name == _EVALS]
    return inside[-1].parent if inside else path if path.is_dir() else path.parent


def _without_empty(case: dict[str, Any]) -> dict[str, Any]:
    """A case without keys that say nothing."""
    empty: tuple[object, ...] = (None, [], {}, {"files": {}}, {"files": []})
    return {key: value for key, value in case.items() if value not in empty}


def _trigger(case: Case) -> dict[str, Any]:
    return {"query": case.input, "should_trigger": case.should_open}


def _require_writable(
    file: Path,
    folder: Path,
    suites: Suites,
    cases: list[dict[str, Any]],
    *,
    overwrite: bool,
) -> None:
    read = {of_file.file.resolve() for of_file in suites.files}
    if file.resolve() in read:
        raise InputError(
            shown(file), "these cases are in our form already", "Name another suite."
        )
    if os.path.lexists(file) and not overwrite:
        hint = "Name another file with --output, or replace it with --overwrite."
        raise InputError(shown(file), "there is such a file already", hint)
    names_files = any(key in case for case in cases for key in _FILES)
    if names_files and not file.resolve().is_relative_to(folder.resolve()):
        problem = f"its cases name files of {shown(folder)}"
        raise InputError(shown(file), problem, "Write it to a file in that folder.")
