"""Runs as upskill logs them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def logged(
    number: int,
    passed: int,
    *,
    total: int = 4,
    arm: str = "with_skill",
    model: str = "haiku",
    skill: str | None = "gate",
    tokens: int = 400,
) -> dict[str, Any]:
    """The content of a run_result.json."""
    return {
        "metadata": {
            "model": model,
            "task": "open the gate",
            "batch_id": "2026_01_21_15_30",
            "run_number": number,
            "timestamp": "2026-01-21T15:30:12.345678",
        },
        "stats": {"conversation_span_ms": 1500.5, "turns": 4, "total_tokens": tokens},
        "passed": passed == total,
        "assertions_passed": passed,
        "assertions_total": total,
        "error_message": None,
        "run_type": arm,
        "skill_name": skill,
    }


def write_batch(
    runs: Path, name: str, results: Sequence[dict[str, Any]], *, summary: bool = True
) -> Path:
    """The folder of one command of upskill, with its summary if the command ended."""
    for number, result in enumerate(results, start=1):
        folder = runs / name / f"run_{number}"
        folder.mkdir(parents=True)
        (folder / "run_metadata.json").write_text(json.dumps(result["metadata"]))
        (folder / "run_result.json").write_text(json.dumps(result))
    if summary:
        data = {"batch_id": name, "total_runs": len(results), "results": list(results)}
        (runs / name / "batch_summary.json").write_text(json.dumps(data))
    return runs / name
