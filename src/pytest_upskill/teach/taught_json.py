"""What came of a lesson as JSON, for scripts."""

import json
from typing import Any

from ..results.run import RunResults
from ..results.to_json import results_text
from .report import sentences
from .taught import Taught


def taught_data(taught: Taught) -> dict[str, Any]:
    """Rates are 0–1, costs in USD; what is not known is null."""
    return {
        "schema": 1,
        "name": taught.name,
        "folder": str(taught.folder) if taught.folder else None,
        "unsaved": taught.unsaved,
        "kept": str(taught.kept) if taught.kept else None,
        "tokens": taught.best.draft.tokens,
        "best": taught.best.number,
        "stop": taught.stop or None,
        "attempts": [
            {
                "number": attempt.number,
                "tokens": attempt.draft.tokens,
                "lift": attempt.lift if attempt.results else None,
                "problem": attempt.problem,
                "summary": _summary(attempt.results),
            }
            for attempt in taught.attempts
        ],
        "held_out": _summary(taught.held_out),
        "before": _summary(taught.before),
        "teacher": _summary(taught.teacher),
        "trace_tokens": taught.trace.tokens if taught.trace else None,
        "cases": [
            {"id": one.case.id, "part": "holdout" if one.case.id in taught.held else "learn"}
            for one in taught.cases
        ],
        "no_signal": list(taught.no_signal),
        "cost": taught.cost,
        "sentences": sentences(taught),
    }


def _summary(results: RunResults | None) -> list[dict[str, Any]] | None:
    if results is None:
        return None
    found: list[dict[str, Any]] = json.loads(results_text(results))["summary"]
    return found
