"""Why a query of a trigger failed: what was wanted, what was opened, and what to do."""

from collections.abc import Sequence
from typing import Final

from ..._util.texts import one_line
from ...errors import without_commands
from ...results.triggers import QueryRate
from ...trials.records import Record

_QUERY: Final = 600
_REASON: Final = 200


def trigger_failure(
    rate: QueryRate, records: Sequence[Record], *, standing: str, where: str
) -> str:
    """A few lines; the first one is for pytest's short summary."""
    wanted = "should be at least half" if rate.should_trigger else "should be less than half"
    headline = f"opened in {rate.count}, {wanted}"
    lines = [f"{standing}: {headline}" if standing else headline]
    kind = "should open the skill" if rate.should_trigger else "should not open the skill"
    lines += [f"Query ({where}, {kind}):", f"  {one_line(rate.query, _QUERY)}"]
    decided: dict[str, list[int]] = {}
    for record in records:
        for grade in record.checks:
            decided.setdefault(one_line(grade.reason, _REASON), []).append(record.run)
    for reason, runs in decided.items():
        word = "run" if len(runs) == 1 else "runs"
        lines.append(f"  {word} {', '.join(map(str, runs))}: {reason}")
    return without_commands("\n".join(lines))
