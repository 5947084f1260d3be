"""The pytest plugin. Without --skill or skill_paths it does nothing but declare its options.

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
    if is_asked_for(config):
        from .run import UpskillRun

        config.addinivalue_line("markers", "skill: a case of an Agent Skill, asked of a model.")
        config.pluginmanager.register(UpskillRun(config), "upskill-run")


def pytest_report_header(config: pytest.Config) -> str | None:
    if is_asked_for(config) or not (flags := unused_flags(config)):
        return None
    return f"upskill: {', '.join(flags)} without --skill PATH, so no skill is tested"
