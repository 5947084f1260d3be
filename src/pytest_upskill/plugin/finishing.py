"""The results of a run: made after the last report, and given to features."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from .._util.texts import one_line
from ..errors import InputError
from ..reports.writers import Writer, write_all
from ..results.run import RunResults
from ..settings import Gates
from .hooks import call, call_safely, describe_returned
from .ledger import Ledger
from .next_command import rerun_of
from .pytest_options import cli_gates, message_of
from .run import Run
from .spending import Spending


def finish(run: Run, ledger: Ledger, spending: Spending) -> None:
    """Judge the results, and give them to features, which write them."""
    try:
        run.results = results = _make_results(run, ledger, spending)
    except InputError as error:
        run.fail(message_of(error, run.config))
        return

    engine = run.asking.engine
    not_kept = engine and engine.not_kept
    if results.gate.reasons or results.lost or not_kept:
        run.fail()
    # Files are written even if nothing was asked: old ones would mislead.
    try:
        run.lines += _call_finished(
            run.config, results, features_only=not ledger.has_plan
        )
    except InputError as error:
        run.fail(message_of(error, run.config))


def _make_results(run: Run, ledger: Ledger, spending: Spending) -> RunResults:
    settings = run.settings
    if not ledger.concerns_skills and not cli_gates(run.config):
        # Those of an ini file are for its skills.
        settings = replace(settings, gates=Gates())

    interrupted = run.stopped
    stop = run.session.shouldfail or run.session.shouldstop
    if not interrupted and ledger.lost and stop:
        interrupted = str(stop)
    results = ledger.results(settings, run.config.rootpath, interrupted)

    bundled = {}
    for name in run.subjects.agents:
        if skills := run.subjects.roster.agent(name).bundled:
            bundled[name] = skills
    results = replace(
        results,
        bundled=bundled,
        logins=settings.logins,
        rerun=rerun_of(run.config),
        prompt_cache_saved=spending.saved,
    )
    return _with_results_of_hooks(run.config, results)


def _call_finished(
    config: pytest.Config, results: RunResults, *, features_only: bool
) -> list[str]:
    """The lines of pytest_upskill_finished, by all plugins or those of features."""
    manager = config.pluginmanager
    skipped = []
    for name, plugin in manager.list_name_plugin():
        if features_only and not name.startswith("upskill-"):
            skipped.append(plugin)
    hook = manager.subset_hook_caller("pytest_upskill_finished", skipped)
    lines = []
    for value in call(hook, config=config, results=results):
        if not isinstance(value, str | list):
            raise describe_returned(
                hook.name, value, "a text, a list of texts, or None"
            )
        texts = [value] if isinstance(value, str) else value
        lines += [one_line(str(text), 300) for text in texts]
    return lines


def _with_results_of_hooks(config: pytest.Config, results: RunResults) -> RunResults:
    """The results with the fields that pytest_upskill_results adds."""
    hook = config.hook.pytest_upskill_results

    def add_fields() -> RunResults:
        added = results
        for fields in hook(config=config, results=results):
            if not isinstance(fields, Mapping):
                raise describe_returned(hook.name, fields, "a dict of fields, or None")
            added = replace(added, **fields)
        return added

    whole: RunResults = call_safely(hook.name, add_fields)
    return whole


def write_files(run: Run, writers: Iterable[Writer]) -> None:
    """Write the files of a feature: the run fails if one can't be written."""
    written = write_all(writers)
    run.written += written.paths
    for problem in written.problems:
        run.fail(message_of(problem, run.config))
