"""The pytest plugin: it does nothing until a skill or a model is given.

Every pytest run in an environment that has it imports this module, so it imports very little.
"""

import pytest

from . import hookspecs
from .options import add_options, is_asked_for, unused_flags


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("upskill", "pytest-upskill: test Agent Skills")
    add_options(group, parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "skill(path): test an Agent Skill on the models of the run.")
    if is_asked_for(config):
        from .session import UpskillRun

        config.pluginmanager.register(UpskillRun(config), "upskill-run")


def pytest_report_header(config: pytest.Config) -> str | None:
    if is_asked_for(config) or not (flags := unused_flags(config)):
        return None
    return f"upskill: {', '.join(flags)} ignored: add --skill PATH"


@pytest.fixture
def ask(request: pytest.FixtureRequest) -> object:
    """Ask the model under test, with and without the skill of the mark: ``ask("…")``."""
    if not is_asked_for(request.config):
        pytest.skip("no model: add --model NAME, or skill_models to the ini file")
    from .functions import asker_of

    asker = asker_of(request.node)
    if asker is None:
        pytest.fail('ask needs @pytest.mark.skill("path/to/skill")', pytrace=False)
    return asker
