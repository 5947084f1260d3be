"""What a run by batch tells: in its header, and at the end if it only submits."""

import time
from collections.abc import Sequence
from typing import Final

import pytest

from .._util.texts import counted, harmless, one_line
from ..engine import Engine
from ..engine.batches import Waiting
from ..engine.lane import GOES_ON, STOPPED
from ..measure.assembly import Assembly
from ..reports.terminal.closing_lines import Spent, spent_words
from ..reports.terminal.layout import wrapped
from ..settings import Settings
from ..trials.answer import NoAnswer
from .display import screen_of

TRY_LATER: Final = 75  # the exit status of a run whose batches have not ended: EX_TEMPFAIL
_MOST: Final = 3  # reasons that are told


def batch_lines(models: Assembly, settings: Settings) -> list[str]:
    """Which models are asked by batch, and which are not."""
    batched = models.batched(settings)
    if not batched:
        return []
    others = [name for name in models.specs if name not in batched]
    rest = f"; not by batch: {', '.join(map(harmless, others))}" if others else ""
    return [f"upskill: by batch, at half the price: {', '.join(map(harmless, batched))}{rest}"]


def batches_of(waiting: Waiting) -> str:
    """``120 questions in 2 batches, 45 done, since 14:05``."""
    when = time.localtime(waiting.since)
    today = when[:3] == time.localtime()[:3]
    since = time.strftime("%H:%M" if today else "%Y-%m-%d %H:%M", when)
    many = "a batch" if waiting.batches == 1 else f"{waiting.batches:,} batches"
    asked = f"{counted(waiting.questions, 'question')} in {many}"
    trouble = f" ({one_line(waiting.trouble, 100)})" if waiting.trouble else ""
    return f"{asked}, {waiting.done:,} done, since {since}{trouble}"


def write_submitted(
    config: pytest.Config,
    waiting: Waiting,
    engine: Engine,
    spent: Spent | None,
    problems: Sequence[str],
) -> None:
    """The last lines of a run that only submits: there is nothing to report so far."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if not reporter:
        return
    failed = [one.reason for _, one in engine.settled() if isinstance(one, NoAnswer)]
    reasons = dict.fromkeys(one for one in failed if one not in (STOPPED, GOES_ON))
    for reason in [*problems, *list(reasons)[:_MOST]]:
        reporter.write_line(f"upskill: {one_line(harmless(reason), 500)}", red=True)
    if spent and spent.calls:
        reporter.write_line(spent_words(spent))
    said = f"upskill: {batches_of(waiting)}: nothing is tested yet, and the same command collects "
    said += f"the answers (exit status {TRY_LATER})"
    for line in wrapped(harmless(said), screen_of(config).width, rest="  "):
        reporter.write_line(line)
