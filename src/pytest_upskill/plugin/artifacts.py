"""What a run writes besides the terminal: reports, recording, history, JUnit,
GitHub.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest
from _pytest.junitxml import xml_key

from .._util.files import reason_of, why_unwritable
from .._util.keys import without_keys
from .._util.texts import one_line
from ..engine import Engine
from ..engine.recording import load_recording, write_recording
from ..engine.store import FILE_NAME, FOLDER
from ..errors import ResultsError, Setting, SettingsError, shown
from ..reports import writers
from ..reports.junit_properties import case_properties, suite_properties
from ..reports.writers import Writer, report_paths
from ..results import history
from ..results.accepted import RESULTS_NAME
from ..results.case_changes import Earlier
from ..results.looking_back import look_back
from ..results.run import RunResults, without_oracle
from ..settings import Settings
from ..skills.suites.triggers import trigger_files
from .items import link_to
from .ledger import REFERENCE, Ledger
from .paths import SkillSource

# Files that pytest and its plugins write or read,
# by the name that argparse has for the option.
_OTHERS: Final = {
    "xmlpath": "--junitxml",
    "report_log": "--report-log",
    "log_file": "--log-file",
    "debug": "--debug",
    "htmlpath": "--html",
    "json_report_file": "--json-report-file",
    "cov_report": "--cov-report",
}


def require_own_paths(
    settings: Settings, skills: Iterable[SkillSource], config: pytest.Config
) -> None:
    """Every file of a run has a path of its own."""
    outputs = report_paths(settings) | {"record_file": settings.record_file}
    other_files = list[tuple[str, Path]]()
    for setting in ("replay_file", "tests_file", "runs_folder"):
        if path := getattr(settings, setting):
            other_files.append((Setting(setting), path))
    for name, flag in _OTHERS.items():
        value = getattr(config.option, name, None)
        for file in value.values() if isinstance(value, dict) else [value]:
            if file and isinstance(file, str | Path):
                other_files.append((flag, Path(os.path.expandvars(file)).expanduser()))
    for skill in skills:
        accepted = skill.folder / RESULTS_NAME
        skill_files = [
            skill.skill_file,
            accepted,
            *([skill.suites.path] if skill.suites.path else []),
        ]
        skill_files += trigger_files(skill.folder)
        other_files += [(f"the skill {skill.label}", path) for path in skill_files]
    other_files.append(("the store of answers", config.rootpath / FOLDER / FILE_NAME))
    writers.require_apart(outputs, other_files)


def require_outputs(settings: Settings) -> None:
    """Find out before the run, not after it, that a file can't be written."""
    files = report_paths(settings) | {"record_file": settings.record_file}
    for setting, file in files.items():
        folder = setting.endswith("_folder")
        if file and (problem := why_unwritable(file, folder=folder)):
            raise SettingsError(setting, problem, "Check the path.", value=shown(file))
    if settings.record_file and settings.record_file.is_file():
        # Nothing else is overwritten
        load_recording(settings.record_file, "record_file")


def recording_writer(
    settings: Settings, ledger: Ledger, engine: Engine, root: Path
) -> Iterator[Writer]:
    if file := settings.record_file:

        def write() -> list[Path]:
            write_recording(file, ledger.recorded(engine, root))
            return [file]

        yield "record_file", write


def keep_in_history(
    settings: Settings, results: RunResults, root: Path
) -> tuple[Path | None, list[str]]:
    """Keep the run in the history: its file, or the error if that fails."""
    results = without_oracle(results)
    if not settings.history or settings.aa or not history.worth_keeping(results):
        return None, []
    folder = settings.runs_folder or history.default_folder(root)
    try:
        return history.keep(results, folder, settings.history_mb * 1_000_000), []
    except (OSError, ValueError) as error:
        problem = reason_of(error) if isinstance(error, OSError) else str(error)
        return None, [
            f"could not keep this run in {shown(folder)}: {one_line(problem, 200)}"
        ]


def with_history(settings: Settings, results: RunResults, root: Path) -> RunResults:
    """The results with what earlier runs say about them."""
    if not settings.history or settings.aa:
        return results
    return look_back(results, settings.runs_folder or history.default_folder(root))


def run_before(
    settings: Settings, results: RunResults, root: Path
) -> tuple[Earlier | None, list[str]]:
    """The run of the history that a page compares this one with;
    the error if it is damaged.
    """
    compares = settings.html_file and settings.history and not settings.aa
    results = without_oracle(results)
    if not compares or results.selected_to_fail or not results.records:
        return None, []
    folder = settings.runs_folder or history.default_folder(root)
    entry = history.run_before(folder, results)
    if entry is None:
        return None, []
    from ..results.run_file import read_run  # slow to import, and seldom needed

    try:
        before = read_run(entry.path)
        return Earlier(entry.id, before, rates=history.last_rates(folder)), []
    except ResultsError as error:
        return None, [
            (
                "Not compared with the run before:"
                f" {one_line(f'{error.where}: {error.problem}', 300)}."
            )
        ]


def refer_to_records(
    report: pytest.TestReport, ledger: Ledger, config: pytest.Config, settings: Settings
) -> None:
    """Name the records, which the ledger took off the report; for JUnit, add
    numbers.
    """
    if not (records := ledger.records_of(report.nodeid)):
        return
    first = records[0]
    report.user_properties.append(
        (REFERENCE, f"{first.skill}::{first.case}[{first.label}]")
    )
    if xml_key not in config.stash:
        return
    test = ledger.test(report.nodeid)
    if test and (link := link_to(test, settings)):
        report.user_properties.append(("upskill_page", link))
    report.user_properties += case_properties(
        ledger.priced_records_of(report.nodeid),
        next(
            (skill.score for skill in ledger.skills if skill.name == first.skill),
            "pass",
        ),
        tags=test.tags if test else (),
        max_age=settings.max_age,
    )


def add_to_suite(
    results: RunResults, settings: Settings, kept: Path | None, config: pytest.Config
) -> None:
    """The numbers of the run, and where its records are."""
    if xml := config.stash.get(xml_key, None):
        files = {
            "upskill_json": settings.json_file and shown(settings.json_file),
            "upskill_page": settings.html_file and shown(settings.html_file),
            "upskill_run": kept and kept.name.partition(".")[0],
        }
        for name, value in (*suite_properties(results), *files.items()):
            if value:
                xml.add_global_property(name, value)


def write_job_summary(text: Callable[[], str]) -> list[str]:
    """Add a text to the summary of a GitHub Actions job; the error if that fails."""
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return []
    try:
        with Path(file).open(
            "a", encoding="utf-8", errors="backslashreplace"
        ) as summary:
            summary.write(without_keys(f"{text()}\n"))
    except OSError as error:
        return [f"could not write the job summary (GITHUB_STEP_SUMMARY): {error}"]
    return []
