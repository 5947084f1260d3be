"""What a run needs before its first call: keys, models, a sandbox, an engine."""

from .._util.keys import shown_command, without_keys
from .._util.texts import harmless
from ..errors import NoKeyError
from ..measure.requirements import require, require_keys
from .display import download_bar, write_lines
from .next_command import recording
from .pytest_options import FLAGS, spell
from .run import Run
from .run_subjects import find_skills


def is_ready(run: Run, *, may_skip: bool) -> bool:
    """Whether anything will be asked; InputError if something is missing.

    Without a key, the tests are skipped if they ``may_skip``.
    """
    try:
        if run.asks and run.selected.sources:
            require_all(run)
        elif run.asks and may_skip:
            # Perhaps no model is needed at all.
            require_keys(run.subjects, download_bar(run.config))
    except NoKeyError as error:
        if not may_skip:
            raise
        sentence = harmless(without_keys(error.sentence(spell)))
        run.skip_reason = f"skills not tested: {sentence}"
        run.asks = run.subjects.asks = False
    return run.asks


def require_all(run: Run) -> None:
    """InputError if something is missing: a key, a package, a price, a sandbox, a file
    that can be written.
    """
    from ..measure.sandboxes import needs_sandbox, prepare_sandbox
    from .run_settings import require_outputs

    def say(line: str) -> None:
        write_lines(run.config, [f"upskill: {line}"])

    subjects = run.subjects
    settings = run.settings
    require_outputs(settings)
    skills = find_skills(run.selected.sources, settings)
    require(subjects, skills, say, download_bar(run.config))
    if subjects.remote:
        run.config.add_cleanup(subjects.remote.leave)
    if settings.replay_file is not None:  # a replay needs no sandbox
        return

    if needs_sandbox(subjects, skills):
        subjects.sandbox = prepare_sandbox(skills, settings, say)


def open_engine(run: Run) -> None:
    """The engine of a run, whose replies are counted from now on."""
    from ..measure.engine_of_run import open_engine as open_for
    from .spending import Spending

    models = run.subjects.models
    command = recording(run.config, run.settings.replay_file)
    run.asking.engine = engine = open_for(
        run.subjects,
        run.config.rootpath,
        run.note,
        spell=spell,
        budget_hint="raise it, or select fewer tests with -k",
        store_hint=f". {FLAGS['fresh']} asks all the same",
        how_to_record=shown_command(command),
    )
    run.spending = Spending(engine, models.price_of, run.settings, models.opening)
