"""The results of a run as JSON and back: schema 1, fixed, since others are built on it."""

import json
from dataclasses import asdict
from typing import Any

from ..stats import flakiness, pass_hat_k, wilson
from .run import AskedCase, RunResults
from .summary import CaseSummary
from .verdict import Verdict


def results_report(results: RunResults) -> dict[str, Any]:
    """The whole run as JSON's own values. What is not known is null."""
    gate = results.gate
    return {
        "schema": 1,
        "started": results.started.isoformat(timespec="seconds"),
        "seconds": round(results.seconds, 3),
        "skills": [asdict(skill) for skill in results.skills],
        "summary": [_summary(verdict) for verdict in results.verdicts],
        "records": [record.to_json() for record in results.records],
        "gate": {"passed": None if gate is None else not gate, "reasons": list(gate or ())},
        "cases": _cases(results),
        "tests": [_test(test) for test in results.tests],
        "gates": asdict(results.gates),
        "looks": list(results.looks),
        "commit": results.commit and asdict(results.commit),
        "versions": dict(results.versions),
    }


def results_text(results: RunResults) -> str:
    return json.dumps(results_report(results), indent=1, ensure_ascii=False) + "\n"


def results_bytes(results: RunResults) -> bytes:
    return in_bytes(results_text(results))


def in_bytes(text: str) -> bytes:
    # A lone surrogate in an answer becomes \udXXX, which JSON reads back as the same.
    return text.encode("utf-8", "backslashreplace")


def _cases(results: RunResults) -> list[dict[str, Any]]:
    """Each case once, on however many models it was asked."""
    once = {(test.skill, test.case): test for test in reversed(results.tests)}
    return [
        {
            "skill": test.skill,
            "case": test.case,
            "question": results.questions.get((test.skill, test.case)),
            "tags": list(test.info.tags),
            "file": test.info.file,
            "line": test.info.line,
            "digest": test.info.digest,
            "threshold": test.info.threshold,
            "compared": test.info.compared,
        }
        for test in reversed(once.values())
    ]


def _test(test: AskedCase) -> dict[str, Any]:
    known = test.expected
    return {
        "nodeid": test.nodeid,
        "skill": test.skill,
        "case": test.case,
        "model": test.model,
        "accepted": known
        and {
            "passes": known.was.passes,
            "runs": known.was.runs,
            "date": known.date,
            "among": known.among,
        },
        "new": test.new,
        "of": test.info.of,
    }


def _summary(verdict: Verdict) -> dict[str, Any]:
    summary, lift, tokens, since = verdict.summary, verdict.lift, verdict.tokens, verdict.since
    return {
        "skill": summary.skill,
        "model": summary.model,
        "model_id": summary.model_id,
        "cases": summary.cases,
        "runs": summary.runs,
        "baseline_rate": summary.baseline_rate,
        "skill_rate": summary.skill_rate,
        "lift": summary.lift,
        "lift_low": lift and lift.low,
        "lift_high": lift and lift.high,
        "p_value": verdict.p_value,
        "detectable_lift": verdict.detectable_lift,
        "baseline_tokens": summary.baseline_tokens,
        "skill_tokens": summary.skill_tokens,
        "token_change": summary.token_change,
        "baseline_cost": summary.baseline_cost,
        "skill_cost": summary.skill_cost,
        "checks_passed": summary.checks_passed,
        "checks_total": summary.checks_total,
        "errored": summary.errored,
        "verdict": verdict.word,
        "baseline_score": summary.baseline_score,
        "skill_score": summary.skill_score,
        "token_change_low": tokens and tokens.low,
        "token_change_high": tokens and tokens.high,
        "sentence": verdict.sentence,
        "previous_rate": summary.previous_rate,
        "previous_tokens": summary.previous_tokens,
        "previous_cost": summary.previous_cost,
        "change": since and since.lift.lift,
        "change_low": since and since.lift.low,
        "change_high": since and since.lift.high,
        "change_p_value": since and since.p_value,
        "change_verdict": since and since.word,
        **_interval("baseline_rate", summary.baseline_rate, len(summary.by_case)),
        **_interval("skill_rate", summary.skill_rate, len(summary.by_case)),
        "normalised_gain": verdict.gain,
        "score_lift": verdict.score and verdict.score.lift,
        "score_lift_low": verdict.score and verdict.score.low,
        "score_lift_high": verdict.score and verdict.score.high,
        "by_case": [_case(case) for case in summary.by_case],
    }


def _interval(name: str, rate: float | None, cases: int) -> dict[str, float | None]:
    low, high = (None, None) if rate is None or not cases else wilson(rate, cases)
    return {f"{name}_low": low, f"{name}_high": high}


def _case(case: CaseSummary) -> dict[str, Any]:
    """pass^k for 1 run, 2 runs and so on: the chance that all of so many pass."""
    passes = round(case.skill * case.runs)
    return {
        "case": case.case,
        "runs": case.runs,
        "baseline_rate": case.baseline,
        "skill_rate": case.skill,
        "pass_hat_k": [pass_hat_k(passes, case.runs, k + 1) for k in range(case.runs)],
        "flakiness": flakiness(passes, case.runs) if case.runs > 1 else None,
    }
