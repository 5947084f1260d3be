"""How tests of skills end, and what their reports carry for the ledger."""

from collections.abc import Sequence
from typing import Final

import pytest

from .._util.texts import harmless
from ..errors import InputError
from ..results.outcomes import count_passes, reaches
from ..results.standings import Standing, StandingKind
from ..settings import Settings
from ..trials.plan import PlannedCase
from ..trials.records import Record
from .hooks import call_for
from .pytest_options import FLAGS

BROKEN_PROPERTY: Final = "upskill_broken"  # why a skill or a case can't be tested
ASKED_PROPERTY: Final = "upskill_asked"  # what a test in Python asked
_PREFIX: Final = "upskill_"


class NotAnswered(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """No answer, or no grade for it: an error even where a failure is expected."""

    __module__ = "builtins"  # short where pytest shows its name


class WrongAnswer(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Answers that did not pass: the failure that an xfail of a case expects."""


def taken_properties(report: pytest.TestReport) -> dict[str, str]:
    """Take our properties off a report: JUnit and other plugins
    would write every answer.
    """
    properties = report.user_properties
    own = {name: str(value) for name, value in properties if name.startswith(_PREFIX)}
    properties[:] = [pair for pair in properties if pair[0] not in own]
    return own


def judge_present(
    item: pytest.Item,
    settings: Settings,
    planned: PlannedCase,
    records: Sequence[Record],
) -> Standing | None:
    """How a test ends that has its grades: None if it passes.

    It fails by its own runs, unless a hook expects that: then it is an xfail, by a
    mark, so that --runxfail and --xfail-tb work.
    """
    now = count_passes(records)
    assert now, "setup reports missing answers"
    try:
        hook = item.ihook.pytest_upskill_graded
        standing = call_for(Standing, hook, item=item, case=planned, records=records)
    except InputError as error:
        raise NotAnswered(str(error), pytrace=False) from None
    if standing is None:
        kind: StandingKind = "passed" if reaches(now, planned.threshold) else "failed"
        standing = Standing(kind)
    if standing.kind in ("passed", "better"):
        return None

    if settings.aa:
        reason = f"not judged with {FLAGS['aa']} ({now} passed)"
        standing = Standing("accepted as failing", reason)
    if standing.kind in ("accepted as failing", "could be chance"):
        item.add_marker(pytest.mark.xfail(reason=harmless(standing.reason)))
    return standing
