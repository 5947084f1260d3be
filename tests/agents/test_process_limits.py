import pytest

from pytest_upskill.agents.sandboxes import inside
from pytest_upskill.agents.sandboxes.inside import ProcessLimits

TOO_MANY = "it made more than 2000 files"


def test_files_that_a_stopped_command_made_last_are_not_those_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = 10
    monkeypatch.setattr(ProcessLimits, "_files", lambda _: files)
    monkeypatch.setattr(inside, "_pids", list)
    limits = ProcessLimits(
        [b"%d" % number for number in (10**12, 100, 10**9, 2000, 10**9, 10**9)]
    )
    files = 2500
    assert limits.broken() == (TOO_MANY, True)
    files = 2600  # while it is ended
    limits.accept_files()
    assert limits.broken() == ("", False)
    files = 2601
    assert limits.broken() == (TOO_MANY, True)
