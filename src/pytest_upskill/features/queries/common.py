"""What the queries of a run and those of a catalogue have in common."""

from collections.abc import Iterator
from typing import Final, Protocol

from ...results.gates import find_missed
from ...results.row import SampleShare
from ...settings import Gates

NO_QUERY: Final = "no query was tested"
# What numbers of chat are of
MODELS_CHOICE: Final = "the choice of the model, without an agent"


class Asked(Protocol):
    """What came of queries that should open a skill, or none."""

    @property
    def missing_words(self) -> str: ...
    @property
    def recall(self) -> SampleShare | None: ...
    @property
    def false_alarms(self) -> SampleShare | None: ...


def query_reasons(queries: Asked, gates: Gates) -> Iterator[str]:
    """Why queries fail the gates about them, if there are any."""
    if not gates.of_triggers:
        return
    if queries.missing_words:
        yield f"can't pass: {queries.missing_words}"
        return

    if gates.min_recall is not None:
        if queries.recall is None:
            yield "recall unknown: no query that needs a skill was asked"
        else:
            yield from find_missed(
                "recall",
                queries.recall.rate,
                bounds=queries.recall.interval,
                limit=gates.min_recall,
                gates=gates,
            )
    if gates.max_false_alarms is not None:
        if queries.false_alarms is None:
            yield "false alarms unknown: no query without need of one was asked"
        else:
            yield from find_missed(
                "share of false alarms",
                queries.false_alarms.rate,
                bounds=queries.false_alarms.interval,
                limit=gates.max_false_alarms,
                gates=gates,
                is_maximum=True,
            )
