"""Why there is no answer, in words."""

from typing import Final

from .._util.keys import without_keys
from .._util.texts import one_line

STOPPED: Final = "not asked: the run was stopped"
GOES_ON: Final = "not answered yet: the run was stopped, and its batch goes on"


def minutes(seconds: float) -> str:
    hours = seconds / 3600
    return (
        f"{round(60 * hours)} min" if hours < 2 else f"{round(hours)} h" if hours < 48 else "days"
    )


def unexpected(bug: BaseException) -> str:
    return f"unexpected error: {_told(bug)}. Please report it"


def adapter_error(model: str, bug: BaseException) -> str:
    """An adapter raised something other than ModelError: report it and carry on."""
    return f"{model}: the adapter raised {_told(bug)}"


def _told(bug: BaseException) -> str:
    try:
        return one_line(without_keys(repr(bug)), 200)
    except Exception:  # foreign code may raise what can't even be shown
        return type(bug).__name__
