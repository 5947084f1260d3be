"""The report for machines: schema 1, fixed, since others are built on it."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ..records import Record
from ..summary import Summary
from ..trials import SkillInfo


def json_report(
    *,
    started: datetime,
    seconds: float,
    skills: Sequence[SkillInfo],
    summaries: Sequence[Summary],
    records: Sequence[Record],
) -> str:
    """The whole run as JSON text. What is not known is null."""
    report = {
        "schema": 1,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "skills": [asdict(skill) for skill in skills],
        "summary": [_summary(summary) for summary in summaries],
        "records": [record.to_json() for record in records],
        "gate": {"passed": None, "reasons": []},
    }
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "skill": summary.skill,
        "model": summary.model,
        "model_id": summary.model_id,
        "cases": summary.cases,
        "runs": summary.runs,
        "baseline_rate": summary.baseline_rate,
        "skill_rate": summary.skill_rate,
        "lift": summary.lift,
        "lift_low": None,
        "lift_high": None,
        "p_value": None,
        "detectable_lift": None,
        "baseline_tokens": summary.baseline_tokens,
        "skill_tokens": summary.skill_tokens,
        "token_change": summary.token_change,
        "baseline_cost": summary.baseline_cost,
        "skill_cost": summary.skill_cost,
        "checks_passed": summary.checks_passed,
        "checks_total": summary.checks_total,
        "errored": summary.errored,
        "verdict": None,
        "baseline_score": summary.baseline_score,
        "skill_score": summary.skill_score,
    }
