"""JSON files of cases: in our own form, in that of evals.json, in any of its
dialects.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..._util.json_forms import FormError
from ...errors import CasesError
from ..case import Case
from ..loaded_cases import LoadedCases, numbered
from .beside import is_entry_beside
from .eval_checks import REPO_STATE
from .evals import case_of_eval, entries_of_others, keys_of_file
from .json_files import Unknown, ignored_keys, is_for_others, lines_of, usable_id
from .ours import defaulted_in, entries_of, own_case, read_own_json, with_defaults
from .skill_checks import OwnSkill
from .suite import Suite, Written, read_cases

_OF_FILES: Final = f'"{REPO_STATE}" is about the files that an agent leaves'


def json_suite(path: Path, folder: Path) -> Suite | None:
    """A file of cases."""
    if path.is_dir() or path.suffix in (".yaml", ".yml"):
        return None
    return Suite(path, folder, (load_cases(path, folder),))


def json_folder(path: Path, folder: Path) -> Suite | None:
    """A folder of files with cases, by whatever names;
    results of earlier runs are left out.
    """
    files = list[LoadedCases[Case]]()
    for file in sorted(path.glob("*.json")) if path.is_dir() else ():
        try:
            loaded = None if is_for_others(file) else load_cases(file, folder)
        except CasesError:  # of another form
            continue
        if loaded and loaded.cases:
            files.append(loaded)
    ids = iter(numbered([case.id for loaded in files for case in loaded.cases]))
    named = [
        replace(
            loaded, cases=tuple(replace(case, id=next(ids)) for case in loaded.cases)
        )
        for loaded in files
    ]
    return Suite(path, folder, tuple(named)) if named else None


def load_cases(file: Path, folder: Path | None = None) -> LoadedCases[Case]:
    """The cases of a JSON file, in any of the known forms, in file order.

    Cases may name files in the skill's ``folder``; the default is the folder of the
    file. CasesError if the file as a whole can't be read.
    """
    text, data = read_own_json(file)
    case_folder, unknown = folder or file.parent, Unknown()
    foreign = entries_of_others(data)
    entries, defaults = entries_of(file, data, foreign, unknown)
    if foreign:
        keys_of_file(data, foreign, unknown)
    skill = OwnSkill.of(case_folder, data, entries.written)
    lines, translate = (
        lines_of(text, entries.places),
        case_of_eval if foreign else own_case,
    )

    def written() -> Iterator[Written]:
        for place, entry in zip(*entries, strict=True):
            if is_entry_beside(entry):  # read as such
                continue
            own_id = usable_id(entry, "id", "name") if isinstance(entry, dict) else None
            try:
                case = translate(entry, place, skill, unknown)
            except FormError as error:
                yield Written(place, lines[place], error, own_id)
                continue
            merged, of_defaults = (
                with_defaults(case, defaults),
                defaulted_in(case, defaults),
            )
            needs_agent = _OF_FILES if entry.get(REPO_STATE) else ""
            yield Written(place, lines[place], merged, own_id, of_defaults, needs_agent)

    loaded = read_cases(file, written(), case_folder, foreign=foreign is not None)
    warnings = sorted([*loaded.warnings, *ignored_keys(text, unknown), *skill.warnings])
    return replace(loaded, warnings=tuple(warnings))
