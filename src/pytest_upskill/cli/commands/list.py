"""``pytest-upskill list``: skills with their size, cases and last results."""

import argparse
import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

from ..._util.json_forms import json_values
from ..._util.texts import counted, one_line, percent
from ...errors import InputError, NoCasesError, SkillError, shown
from ...lint import runnable_cases
from ...registry import keeping
from ...reports.terminal.layout import TerminalLook
from ...results.comparison import unit_of
from ...results.history import KeptRow, newest
from ...results.planned_cases import DIGITS
from ...settings import Score, Settings
from ...skills.bundle import (
    bundle_root,
    covered_by,
    entry_name,
    folder_of,
    load_entry,
    plugins_of,
)
from ...skills.case import Case
from ...skills.context import FilesOnDisk
from ...skills.folder import SKILL_NAMES, contents_of
from ...skills.references import files_named
from ...skills.search import SkippedFolder, find_skills, labels_of, left_out_lines
from ...skills.skill import Skill, estimated_tokens, load_skill
from ...skills.suites.reading import read_suites
from ...skills.upskill_config import read_config
from ...trials.arm import BASELINE, SKILL
from ..output import stdout_look
from ..project import find_skill, ini_paths, runs_folder

_MODELS_SHOWN: Final = 3
_FILES_SHOWN: Final = 12
_LINES_SHOWN: Final = 12
_CASES_SHOWN: Final = 5
_INDENT: Final = "  "
_SCHEMA: Final = re.compile(
    r"(?:.*/)?(?:schemas/.*|[^/]*\.(?:xsd|dtd|rng|schema\.json))", re.I
)
_LEGEND: Final = (
    "Tokens, estimated: always in context (name and description) + when the skill is"
    " used (SKILL.md) + on demand (text files that it refers to)."
)


@dataclass(frozen=True)
class ListedFile:
    """A file of a skill; ``tokens`` is None if it is not a text.

    ``on_demand`` says that SKILL.md sends an agent to it: no licence and no schema.
    """

    path: str
    tokens: int | None
    bytes: int
    on_demand: bool = False


@dataclass(frozen=True)
class LastResult:
    """The last results of a skill on a model."""

    model: str
    rate: float
    baseline_rate: float | None
    date: str
    edited_since: bool  # the skill has changed
    kind: str = "accepted"
    cases: int = 0  # that ran
    of: int = 0  # cases that the skill had; 0 is not known
    score: Score = "pass"  # what its verdict is on
    # The share of checks passed; accepted results have none
    checks: float | None = None
    baseline_checks: float | None = None

    def __str__(self) -> str:
        rate, baseline, unit = self.rate, self.baseline_rate, ""
        if self.score == "checks" and self.checks is not None:
            rate, baseline, unit = self.checks, self.baseline_checks, unit_of("checks")
        without = "" if baseline is None else f", {percent(baseline)} without"
        subset = [f"{self.cases} of {self.of} cases"] if self.cases < self.of else []
        edited = ["edited since"] if self.edited_since else []
        about = ", ".join([*subset, self.date, *edited])
        return f"{self.kind} {self.model} {percent(rate)}{unit}{without} ({about})"


@dataclass(frozen=True)
class ListedCase:
    id: str
    input: str


@dataclass(frozen=True)
class ListedError:
    where: str
    problem: str
    hint: str


@dataclass(frozen=True)
class ListedSkill:
    """A skill as ``--json`` has it; a broken one has errors and lacks the rest."""

    name: str
    path: str
    description: str | None = None
    digest: str | None = None
    tokens_always: int = 0  # its name and description, in every session
    tokens_used: int = 0  # the body of SKILL.md, when the skill is used
    tokens_on_demand: int = 0  # the text files that it refers to
    # The skills of a bundle, which has no tokens but theirs
    members: tuple[str, ...] = ()
    preview: tuple[str, ...] = ()  # the first lines of SKILL.md
    files: tuple[ListedFile, ...] = ()
    cases_file: str | None = None
    cases: tuple[ListedCase, ...] = ()
    queries: int = 0  # of triggers
    results: tuple[LastResult, ...] = ()
    errors: tuple[ListedError, ...] = ()


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        nargs="*",
        metavar="DIR",
        help=(
            "a folder of skills, or a skill or its name (default: skill_paths of"
            " pytest's ini file, else skills_dir of upskill.config.yaml, else the"
            " current folder)"
        ),
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="also show the start of SKILL.md and some cases",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_list(args: argparse.Namespace) -> tuple[str, int]:
    named = [
        find_skill(written, os.environ) for written in args.folders
    ] or default_folders()
    last_runs = newest(runs_folder(None, Path.cwd()))
    skills, left_out = list[ListedSkill](), list[SkippedFolder]()
    for folder in (Path(os.path.abspath(folder)) for folder in named):  # noqa: PTH100
        search = find_skills(folder)
        bundles = [
            plugin for plugin in plugins_of(search.files, folder) if covered_by(plugin)
        ]
        files = [*bundles, *search.files]
        labels = labels_of(files, entry_name)
        skills += [_listed(file, last_runs.get(labels[file], {})) for file in files]
        left_out += search.left_out
    status = 1 if any(skill.errors for skill in skills) else 0
    if not args.json:
        return (
            "\n".join(_lines(skills, left_out, stdout_look(int(args.verbose)))),
            status,
        )
    data = {
        "schema": 1,
        "skills": [json_values(skill) for skill in skills],
        "left_out": [
            {"path": shown(path), "reason": reason} for path, reason in left_out
        ],
    }
    return json.dumps(data, indent=2), status


def default_folders() -> list[Path]:
    """skill_paths of pytest's ini file, else skills_dir of upskill's,
    else the current folder.
    """
    here = Path.cwd()
    if paths := ini_paths(here, "skill_paths"):
        return paths
    config = read_config(here, os.environ)
    if config.file and config.skills_dir and not config.skills_dir.exists():
        key = f"{shown(config.file)}: skills_dir: {shown(config.skills_dir)}"
        raise InputError(
            key, "no such folder", "Name another: pytest-upskill list DIR."
        )
    return [config.skills_dir or here]


# What is known of a skill without asking a model.


def _listed(file: Path, rows: Mapping[str, KeptRow]) -> ListedSkill:
    """The skill of a SKILL.md; a broken part does not hide the others."""
    folder, errors = folder_of(file), list[InputError]()
    broken = ListedSkill(entry_name(file), shown(folder))
    try:
        skill = load_entry(file, Settings()) if bundle_root(file) else load_skill(file)
        members = tuple(member.name for member in skill.members if member is not skill)
        files = () if members else tuple(_files(skill))
    except SkillError as error:
        return replace(broken, errors=_listed_errors([error]))
    except OSError as error:
        unreadable = SkillError(file, f"unreadable: {error}")
        return replace(broken, errors=_listed_errors([unreadable]))
    suites, cases = read_suites(folder), list[Case]()
    cases_file = suites.path
    try:
        for loaded in runnable_cases(suites.cases) if suites.cases else ():
            cases += [case for case, _ in loaded.cases]
            errors += [case.error for case in loaded.broken]
    except NoCasesError:
        cases_file = None
    except InputError as error:
        errors.append(error)
    results = list(_last_runs(skill, rows))
    try:
        results += _accepted(skill, {result.model for result in results})
    except InputError as error:
        errors.append(error)
    return ListedSkill(
        skill.name,
        shown(folder),
        skill.description,
        skill.digest,
        tokens_always=(
            0 if members else estimated_tokens(f"{skill.name}: {skill.description}")
        ),
        tokens_used=0 if members else skill.tokens,
        tokens_on_demand=sum(file.tokens or 0 for file in files if file.on_demand),
        members=members,
        preview=tuple(skill.body.split("\n")[:_LINES_SHOWN]),
        files=files,
        cases_file=shown(cases_file) if cases_file else None,
        cases=tuple(ListedCase(case.id, case.input) for case in cases),
        queries=len(suites.all_triggers),
        results=tuple(results),
        errors=_listed_errors(errors),
    )


def _listed_errors(errors: Sequence[InputError]) -> tuple[ListedError, ...]:
    return tuple(
        ListedError(error.where, error.problem, error.hint) for error in errors
    )


def _files(skill: Skill) -> Iterator[ListedFile]:
    """SKILL.md first, with the tokens a model reads; then what it refers to,
    then the rest.
    """
    root = skill.file.parent
    on_disk = FilesOnDisk(root)
    yield ListedFile(skill.file.name, skill.tokens, skill.file.stat().st_size)
    others = {
        path.relative_to(root).as_posix(): None for path in contents_of(root).files
    }
    named = [
        path for path in files_named(on_disk, skill.body.split("\n")) if path in others
    ]
    for path in dict.fromkeys([*named, *others]):
        if path != skill.file.name:
            tokens = _tokens(on_disk, path)
            on_demand = (
                path in named and tokens is not None and not _SCHEMA.fullmatch(path)
            )
            yield ListedFile(path, tokens, (root / path).stat().st_size, on_demand)


def _tokens(files: FilesOnDisk, path: str) -> int | None:
    try:
        text = files.text(path)
    except ValueError:
        return None
    return estimated_tokens(text) if text else 0


def _last_runs(skill: Skill, rows: Mapping[str, KeptRow]) -> Iterator[LastResult]:
    """Its last run on each model."""
    for model, kept in rows.items():
        row = kept.row
        if row.skill_rate is not None:
            yield LastResult(
                model=model,
                rate=row.skill_rate,
                baseline_rate=row.baseline_rate,
                date=f"{kept.run.head.started.astimezone():%Y-%m-%d %H:%M}",
                edited_since=row.skill_digest != skill.digest,
                kind="last run",
                cases=row.cases,
                of=row.all_cases,
                score=row.score,
                checks=row.arm(SKILL).score,
                baseline_checks=row.arm(BASELINE).score,
            )


def _accepted(skill: Skill, models_with_run: set[str]) -> Iterator[LastResult]:
    """Its accepted results on other models."""
    for read in keeping():
        for model, results in read(skill.folder).items():
            if model in models_with_run:
                continue

            cases = results.values()
            digests = {case.skill_digest for case in cases}
            baselines = [case.baseline.share for case in cases if case.baseline]
            has_all = len(baselines) == len(cases)
            yield LastResult(
                model=model,
                rate=fmean(case.was.share for case in cases),
                baseline_rate=fmean(baselines) if has_all else None,
                date=max(case.date for case in cases),
                cases=len(cases),
                edited_since=digests != {skill.digest[:DIGITS]},
            )


# On the terminal.


def _lines(
    skills: Sequence[ListedSkill], left_out: Sequence[SkippedFolder], look: TerminalLook
) -> Iterator[str]:
    for skill in skills:
        yield from _skill_lines(skill, look)
        yield ""
    number = counted(sum(not skill.members for skill in skills), "skill")
    broken = sum(bool(skill.errors) for skill in skills)
    cases = counted(sum(len(skill.cases) for skill in skills), "case")
    ending = f", {broken} broken" if broken else ""
    yield f"{number}, about {_tokens_of(*skills)}, {cases}{ending}"
    for text in (_LEGEND, *left_out_lines(left_out)):
        yield from textwrap.wrap(text, look.width, break_on_hyphens=False)


def _skill_lines(skill: ListedSkill, look: TerminalLook) -> Iterator[str]:
    named = (
        "" if Path(skill.path).name == skill.name else f" ({one_line(skill.name, 200)})"
    )
    title = look.paint(f"{skill.path}{named}", bold=True)
    if skill.digest is None:
        yield title
    else:
        cases = counted(len(skill.cases), "case") if skill.cases_file else "no cases"
        queries = f", {counted(skill.queries, 'query')}" if skill.queries else ""
        members = counted(len(skill.members), "skill")
        size = f"{members} tested as one" if skill.members else _tokens_of(skill)
        yield f"{title}  {size}, {cases}{queries}"
        yield from _wrapped(skill.description or "", look, most=2)
    most_files, most_models = (
        (None, None) if look.verbosity else (_FILES_SHOWN, _MODELS_SHOWN)
    )
    yield from _first(map(_file_line, skill.files), most_files, "file", look)
    yield from _first(map(str, skill.results), most_models, "model", look)
    if look.verbosity:
        yield from _first(skill.preview, None, "line", look)
        questions = (f"{case.id}: {case.input}" for case in skill.cases)
        yield from _first(questions, _CASES_SHOWN, "case", look)
    for error in skill.errors:
        lines = _wrapped(f"error: {error.where}: {error.problem}", look)
        yield from (look.paint(line, red=True) for line in lines)


def _file_line(file: ListedFile) -> str:
    """What an agent reads of it; other files only have a size."""
    is_read = file.on_demand or file.path in SKILL_NAMES
    size = (
        counted(file.tokens or 0, "token") if is_read else counted(file.bytes, "byte")
    )
    return f"{file.path}: {size}"


def _first(
    lines: Iterable[str], most: int | None, noun: str, look: TerminalLook
) -> Iterator[str]:
    """The first texts, and how many there are besides."""
    listed = list(lines)
    for line in listed[:most]:
        yield from _wrapped(line, look, most=2)
    if most and len(listed) > most:
        yield f"{_INDENT}and {counted(len(listed) - most, f'more {noun}')}"


def _tokens_of(*skills: ListedSkill) -> str:
    parts = (
        sum(skill.tokens_always for skill in skills),
        sum(skill.tokens_used for skill in skills),
        sum(skill.tokens_on_demand for skill in skills),
    )
    return " + ".join(f"{number:,}" for number in parts) + " tokens"


def _wrapped(text: str, look: TerminalLook, most: int | None = None) -> list[str]:
    return textwrap.wrap(
        one_line(text, 2000),
        look.width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        max_lines=most,
        placeholder=f" {look.marks.cut}",
        break_on_hyphens=False,
    )
