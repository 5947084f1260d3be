"""What earlier runs say about the results of a run, and the run kept for later ones."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._util.files import reason_of
from ..._util.texts import one_line
from ...errors import ResultsError, shown
from ...plugin.run import Run
from ...results import history
from ...results.run import RunResults
from ...trials.subject import asks_model
from .looking_back import look_back

if TYPE_CHECKING:
    from ...results.case_changes import Earlier


def look_at_earlier_runs(run: Run, results: RunResults) -> dict[str, Any] | None:
    """Fields of the results that follow from earlier runs."""
    folder = _find_folder(run)
    if not folder:
        return None

    if run.settings.html_file:
        run.earlier = _read_run_before(run, folder, _only_of_models(results))
    return look_back(results, folder)


def keep_run(run: Run, results: RunResults) -> str:
    """The id of the run, once it is kept; empty if it is not."""
    folder = _find_folder(run)
    kept = _only_of_models(results)
    if not folder or not history.worth_keeping(kept):
        return ""

    try:
        file = history.keep(kept, folder, run.settings.history_mb * 1_000_000)
    except (OSError, ValueError) as error:
        problem = reason_of(error) if isinstance(error, OSError) else str(error)
        place = shown(folder)
        run.note(f"could not keep this run in {place}: {one_line(problem, 200)}")
        return ""
    return file.name.partition(".")[0]


def _only_of_models(results: RunResults) -> RunResults:
    """What no model was asked says nothing about a skill."""
    tests = [test for test in results.tests if asks_model(test.agent)]
    if len(tests) == len(results.tests):
        return results
    records = [record for record in results.records if asks_model(record.agent)]
    labels = {test.label for test in tests}
    model_ids = {name: of for name, of in results.model_ids.items() if name in labels}
    return replace(
        results, tests=tuple(tests), records=tuple(records), model_ids=model_ids
    )


def _find_folder(run: Run) -> Path | None:
    """Where runs are kept, unless the history is off."""
    if not run.settings.history or run.settings.aa:
        return None
    return run.settings.runs_folder or history.default_folder(run.config.rootpath)


def _read_run_before(run: Run, folder: Path, results: RunResults) -> "Earlier | None":
    """The run that the page compares this one with."""
    if results.selected_to_fail or not results.records:
        return None
    entry = history.run_before(folder, results)
    if entry is None:
        return None

    from ...results.case_changes import Earlier
    from ...results.run_file import read_run  # slow to import, and seldom needed

    try:
        before = read_run(entry.path)
    except ResultsError as error:
        problem = one_line(f"{error.where}: {error.problem}", 300)
        run.note(f"Not compared with the run before: {problem}.")
        return None
    return Earlier(entry.id, before, rates=history.last_rates(folder))
