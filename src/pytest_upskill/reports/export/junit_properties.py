"""Skills in JUnit files: properties of each test case, and of the suite."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..._util.texts import one_line, plain
from ...results.run import RunResults
from ...results.summarizing import summarize
from ...results.summary import Summary
from ...results.triggers import MODELS_CHOICE, TriggerSummary
from ...results.verdict import Verdict
from ...settings import Score
from ...trials.records import Record
from ...trials.subject import CHAT

Property = tuple[str, str]
_LONGEST_NAME: Final = 200
_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")  # in addition to what one_line escapes


def case_properties(records: Sequence[Record], score: Score = "pass") -> Iterator[Property]:
    """Of one case on one model; unknown values are left out. The lift is of the ``score``."""
    first = records[0]
    row = summarize(records, first.skill, first.label, model_id="", not_run=0, score=score)
    yield "upskill_skill", first.skill
    yield "upskill_model", first.label
    if first.agent != CHAT:
        yield "upskill_agent", first.agent
    yield from _known(
        "upskill_",
        {
            **_of_agents(row),
            "baseline_rate": row.arm("baseline").rate,
            "skill_rate": row.arm("skill").rate,
            "lift": row.lift,
            "baseline_tokens": row.arm("baseline").tokens,
            "skill_tokens": row.arm("skill").tokens,
            "cost": _total_cost(records),
            "baseline_score": row.arm("baseline").score,
            "skill_score": row.arm("skill").score,
        },
    )


def suite_properties(results: RunResults) -> Iterator[Property]:
    """``upskill:SKILL:MODEL:name`` for each skill on each model, and the gate."""
    for verdict in results.verdicts:
        yield from _of_pair(results, verdict)
    for row in results.trigger_summaries:
        yield from _of_triggers(row)
    if results.interrupted is not None:
        yield "upskill_interrupted", one_line(results.interrupted, _LONGEST_NAME)
    if results.gate is not None:
        yield "upskill_gate", "not passed" if results.gate else "passed"
        for number, reason in enumerate(results.gate, start=1):
            yield f"upskill_gate_reason_{number}", reason


def _of_pair(results: RunResults, verdict: Verdict) -> Iterator[Property]:
    row, lift = verdict.summary, verdict.lift
    pair = (row.skill, row.model)
    own = [record for record in results.records if (record.skill, record.label) == pair]
    prefix = _prefix(row.skill, row.model)
    if verdict.word:
        yield f"{prefix}verdict", verdict.word
    yield f"{prefix}score", row.score
    yield from _known(
        prefix,
        {
            "baseline_rate": row.arm("baseline").rate,
            "skill_rate": row.arm("skill").rate,
            "lift": row.lift,
            "lift_low": lift and lift.low,
            "lift_high": lift and lift.high,
            "baseline_tokens": row.arm("baseline").tokens,
            "skill_tokens": row.arm("skill").tokens,
            "cost": _total_cost(own),
            "errored": row.errored,
            "baseline_score": row.arm("baseline").score,
            "skill_score": row.arm("skill").score,
            **_lifts(verdict),
            **_of_agents(row),
        },
    )


def _prefix(skill: str, model: str) -> str:
    return _NOT_IN_XML.sub("?", one_line(f"upskill:{skill}:{model}:", _LONGEST_NAME))


def _of_triggers(row: TriggerSummary) -> Iterator[Property]:
    prefix = f"{_prefix(row.skill, row.model)}triggers:"
    yield f"{prefix}decided_by", MODELS_CHOICE if row.agent == CHAT else row.agent
    if row.word:
        yield f"{prefix}verdict", row.word
    numbers: dict[str, float | None] = {}
    for name, share in (("recall", row.recall), ("false_alarms", row.false_alarms)):
        if share:
            numbers |= {name: share.rate, f"{name}_low": share.interval.low}
            numbers |= {f"{name}_high": share.interval.high, f"{name}_queries": share.queries}
    cost = None if row.cost is None else row.cost * (row.trials - row.errored)
    yield from _known(prefix, {**numbers, "errored": row.errored, "cost": cost})


def query_properties(records: Sequence[Record], should_trigger: bool) -> Iterator[Property]:
    """Of a query on a model."""
    first = records[0]
    yield "upskill_skill", first.skill
    yield "upskill_model", first.label
    if first.agent != CHAT:
        yield "upskill_agent", first.agent
    yield "upskill_should_trigger", str(should_trigger).lower()
    decided = [record for record in records if record.outcome != "errored"]
    opened = sum((record.outcome == "passed") == should_trigger for record in decided)
    counts = {"opened": opened, "runs": len(decided), "errored": len(records) - len(decided)}
    yield from _known("upskill_", {**counts, "cost": _total_cost(records)})


def _of_agents(row: Summary) -> dict[str, float | None]:
    used = row.activation
    return {
        "baseline_turns": row.arm("baseline").turns,
        "skill_turns": row.arm("skill").turns,
        "baseline_tool_calls": row.arm("baseline").tool_calls,
        "skill_tool_calls": row.arm("skill").tool_calls,
        "activated": used.count if used else None,
        "activated_trials": used.trials if used else None,
    }


def _lifts(verdict: Verdict) -> dict[str, float | None]:
    """Of pass rates and of shares of checks; ``lift`` is the one that the verdict is on."""
    over = verdict.over("baseline")
    names: dict[Score, str] = {"pass": "rate_lift", "checks": "score_lift"}
    return {
        name: value
        for score, found in (over.lifts.items() if over else ())
        for name, value in (
            (names[score], found.lift),
            (f"{names[score]}_low", found.low),
            (f"{names[score]}_high", found.high),
        )
    }


def _known(prefix: str, values: dict[str, float | None]) -> Iterator[Property]:
    for name, value in values.items():
        if value is not None:
            yield f"{prefix}{name}", plain(round(value, 6)) if value else "0"


def _total_cost(records: Sequence[Record]) -> float | None:
    """Of all answers; None if a price is not known."""
    costs = [record.cost for record in records if record.output is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
