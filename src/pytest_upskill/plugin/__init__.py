"""The pytest plugin: it does nothing until a skill or a model is given.

Every pytest run in an environment that has it imports this module, so it imports very
little: what its hooks need is imported once pytest has been told not to compile it.
"""

from collections.abc import Generator
from typing import Final

import pytest

_RUN: Final = "upskill-collecting"


def pytest_addoption(parser: pytest.Parser) -> None:
    from .pytest_options import add_options

    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    _load_from_bytecode(pluginmanager)
    from . import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def _load_from_bytecode(pluginmanager: pytest.PytestPluginManager) -> None:
    """Keep pytest from rewriting the asserts of this package, as of every plugin.

    Rewriting compiles each of its modules anew: 2 seconds in the first run on a machine
    and, where no bytecode may be written, in every process of every run.
    """
    # Private names: they may go, and --assert=plain has neither.
    hook = pluginmanager.rewrite_hook
    getattr(hook, "_must_rewrite", set()).discard("pytest_upskill")
    getattr(hook, "_marked_for_rewrite_cache", {}).clear()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """pytest imports the conftest.py beside any file it is given,
    but a skill must not run code.
    """
    from .pytest_options import require_known_flags
    from .skill_args import split_args
    from .skill_code import keep_code_of_skills_out

    keep_code_of_skills_out(early_config)
    arguments = early_config.known_args_namespace
    arguments.file_or_dir, _ = split_args(early_config, arguments.file_or_dir)
    result = yield
    if not arguments.help:
        # A conftest.py may have added some
        require_known_flags(parser, args)
    return result


def pytest_configure(config: pytest.Config) -> None:
    from .pytest_options import cli_gates, require_mark
    from .skill_args import is_asked_for

    config.addinivalue_line(
        "markers", "skill(path): test an Agent Skill on the models of the run."
    )
    config.addinivalue_line(
        "markers", "trigger: a query that should, or should not, open a skill."
    )
    if is_asked_for(config):
        from ..registry import run_plugins
        from .run import start_run

        require_mark(config)
        # Before the core: of hooks with tryfirst, those of the last plugin come first.
        for name, plugin in run_plugins().items():
            config.pluginmanager.register(plugin, name)
        start_run(config)
    elif gates := cli_gates(config):
        raise pytest.UsageError(f"{gates[0]}: no skill is tested. Add --skill PATH.")


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.pluginmanager.hasplugin(_RUN):
        return None

    from .pytest_options import cli_flags
    from .skill_args import task_hint

    if hint := task_hint(config):
        return hint
    flags = cli_flags(config)
    tasks = ", or name a folder of tasks" if "--skill-agent" in flags else ""
    return (
        f"upskill: {', '.join(flags)} ignored: add --skill PATH{tasks}"
        if flags
        else None
    )


@pytest.fixture
def ask() -> None:
    """Ask the model under test, with and without the skill of the mark:
    ``ask("…")``.
    """
    # A run that tests skills has another fixture of this name.
    pytest.skip("no model: add --model NAME, or skill_models to the ini file")
