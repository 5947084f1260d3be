"""What a run refuses before it collects a test, without the run."""

import pytest

from pytest_upskill.plugin.collecting import Collecting
from pytest_upskill.plugin.run import start_run


def usage_error(pytester: pytest.Pytester, *args: str) -> str:
    """The error that pytest shows, with exit status 4,
    for these arguments and the ini file.
    """
    with pytest.raises(pytest.UsageError) as caught:
        _start_session(pytester, *args)
    return str(caught.value)


def _start_session(pytester: pytest.Pytester, *args: str) -> None:
    config = pytester.parseconfig(*args)
    run = start_run(config)
    collecting = config.pluginmanager.get_plugin("upskill-collecting")
    assert isinstance(collecting, Collecting)
    next(collecting.pytest_sessionstart(pytest.Session.from_config(config)))
    next(run.asking.pytest_sessionstart())
