"""The pytest plugin. Without a skill or a model it does nothing but declare what it has.

Every pytest run of whoever has this installed imports this module, so it imports nothing more
until it is asked for.
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
    config.addinivalue_line("markers", "skill(path): a test of an Agent Skill, asked of models.")
    if is_asked_for(config):
        from .session import UpskillRun

        config.pluginmanager.register(UpskillRun(config), "upskill-run")


def pytest_report_header(config: pytest.Config) -> str | None:
    if is_asked_for(config) or not (flags := unused_flags(config)):
        return None
    return f"upskill: {', '.join(flags)} without --skill PATH, so no skill is tested"


@pytest.fixture
def ask(request: pytest.FixtureRequest) -> object:
    """Ask the model of this test, with and without the skill of its mark: ``ask("…")``."""
    if not is_asked_for(request.config):
        pytest.skip("no model is asked: add --model NAME, or skill_models to the ini file")
    from .functions import asker_of

    asker = asker_of(request.node)
    if asker is None:
        pytest.fail('ask needs a skill: @pytest.mark.skill("path/of/it")', pytrace=False)
    return asker
