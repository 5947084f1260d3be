"""Rows of a summary that nobody measured, and the lines that a terminal shows of them."""

from typing import Any

from pytest_upskill.reports.terminal.summary_text import Marks, summary_lines
from pytest_upskill.results.summary import Summary
from pytest_upskill.results.verdict import verdicts_of
from pytest_upskill.trials.trial import SkillInfo

PAID: dict[str, Any] = {"baseline_cost": 0.0142, "skill_cost": 1.2345}
LONG_MODEL = "unsloth/GLM-4.7-Flash-GGUF:Q4_0"
GATE = SkillInfo("gate", "skills/gate", "0" * 64, 1234)


def summary(model: str = "haiku", skill: str = "gate", **more: Any) -> Summary:
    values: dict[str, Any] = {
        "skill": skill,
        "model": model,
        "model_id": f"id-of-{model}",
        "cases": 12,
        "runs": 3,
        "baseline_rate": 0.42,
        "skill_rate": 0.83,
        "lift": 0.41,
        "baseline_score": 0.5,
        "skill_score": 0.9,
        "baseline_tokens": 12345.0,
        "skill_tokens": 23456.0,
        "token_change": 0.9,
        "baseline_cost": None,
        "skill_cost": None,
        "checks_passed": 90,
        "checks_total": 108,
        "errored": 0,
        "baseline_seconds": 12.3,
        "skill_seconds": 45.6,
        "graded": 36,
        "not_run": 0,
    }
    return Summary(**{**values, **more})


def plain(text: str, **_: bool) -> str:
    return text


def lines(*rows: Summary, width: int = 120, marks: Marks | None = None, **more: Any) -> list[str]:
    names = dict.fromkeys(row.skill for row in rows)
    skills = [GATE, *(SkillInfo(n, f"skills/{n}", "1" * 64, 99) for n in names if n != "gate")]
    verdicts = verdicts_of(rows)
    return summary_lines(skills, verdicts, width=width, marks=marks or Marks(), paint=plain, **more)
