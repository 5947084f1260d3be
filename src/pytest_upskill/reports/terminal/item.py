"""The numbers of one test, for its line with -v: ``5/5 · baseline 1/5 · 812 → 640 tokens``."""

from collections.abc import Sequence
from statistics import fmean

from ..._util.texts import one_line
from ...trials.records import Record
from .marks import Marks


def item_numbers(records: Sequence[Record], marks: Marks, against: str | None = None) -> str:
    """Runs that passed of those that there are, by arm, and the mean tokens of an answer."""
    arms = {
        arm: [record for record in records if record.arm == arm]
        for arm in ("skill", "baseline", "previous")
    }
    parts = [_passed(arms["skill"])] if arms["skill"] else []
    if arms["baseline"]:
        parts.append(f"baseline {_passed(arms['baseline'])}")
    if arms["previous"]:
        ref = one_line(against or "", 20).replace("…", marks.cut)
        parts.append(f"at {ref} {_passed(arms['previous'])}")
    means = [mean for arm in ("baseline", "skill") if (mean := _tokens(arms[arm])) is not None]
    if means:
        parts.append(f"{f' {marks.arrow} '.join(f'{mean:,.0f}' for mean in means)} tokens")
    return f" {marks.dot} ".join(parts)


def _passed(records: Sequence[Record]) -> str:
    return f"{sum(record.outcome == 'passed' for record in records)}/{len(records)}"


def _tokens(records: Sequence[Record]) -> float | None:
    known = [record.tokens for record in records if record.tokens is not None]
    return fmean(known) if known and len(known) == len(records) else None
