"""The results of a run as JSON, schema 1. Others build on it: keys never change."""

import json
from dataclasses import asdict
from typing import Any

from .._util.keys import without_keys
from ..stats import flakiness, pass_hat_k
from ..trials.plan import PlannedCase, Unmatched
from ..trials.trial import Arm
from .run import RunResults
from .summary import CaseSummary
from .verdict import Verdict


def results_report(results: RunResults) -> dict[str, Any]:
    """The whole run as JSON values; null means not known."""
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
        "broken": dict(results.broken),
        "unmatched": [_unmatched(one) for one in results.unmatched],
        "interrupted": results.interrupted,
        "lost": list(results.lost),
        "untested": dict(results.untested),
        "models": dict(results.model_ids),
        "commit": results.commit and asdict(results.commit),
        "versions": dict(results.versions),
    }


def results_text(results: RunResults) -> str:
    return json.dumps(results_report(results), indent=1, ensure_ascii=False) + "\n"


def results_bytes(results: RunResults) -> bytes:
    return in_bytes(results_text(results))


def in_bytes(text: str) -> bytes:
    # A lone surrogate in an answer becomes \udXXX, which JSON reads back as the same.
    return without_keys(text).encode("utf-8", "backslashreplace")


def _cases(results: RunResults) -> list[dict[str, Any]]:
    """Each case once, on any number of models."""
    once = {(test.skill, test.case): test for test in reversed(results.tests)}
    return [
        {
            "skill": test.skill,
            "case": test.case,
            "question": results.questions.get((test.skill, test.case)),
            "tags": list(test.tags),
            "file": test.file,
            "line": test.line,
            "digest": test.digest,
            "threshold": test.threshold,
            "compared": test.compared,
        }
        for test in reversed(once.values())
    ]


def _test(test: PlannedCase) -> dict[str, Any]:
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
        "sample": test.sample,
        "regression": test.regression,
        "of": test.of,
    }


def _unmatched(one: Unmatched) -> dict[str, Any]:
    """An accepted result that no test was compared with."""
    return {
        "skill": one.skill,
        "case": one.case,
        "model": one.model,
        "accepted": {"passes": one.was.passes, "runs": one.was.runs, "date": one.date},
        "why": one.why,
        "of": one.of,
    }


def _summary(verdict: Verdict) -> dict[str, Any]:
    """The flat keys of schema 1."""
    summary, over = verdict.summary, verdict.over("baseline")
    baseline, skill = summary.arm("baseline"), summary.arm("skill")
    # The schema has one place for a third arm, and a run never has two.
    third: Arm = "trace" if "trace" in summary.arms else "previous"
    previous, since = summary.arm(third), verdict.over(third)
    tokens, lifts = over and over.tokens, over.lifts if over else {}
    rate, checks = lifts.get("pass"), lifts.get("checks")
    return {
        "skill": summary.skill,
        "model": summary.model,
        "model_id": summary.model_id,
        "cases": summary.cases,
        "runs": summary.runs,
        "baseline_rate": baseline.rate,
        "skill_rate": skill.rate,
        "lift": summary.lift,
        "lift_low": over and over.lift.low,
        "lift_high": over and over.lift.high,
        "p_value": over and over.lift.p_value,
        "detectable_lift": verdict.detectable_lift,
        "baseline_tokens": baseline.tokens,
        "skill_tokens": skill.tokens,
        "token_change": summary.token_change,
        "baseline_cost": baseline.cost,
        "skill_cost": skill.cost,
        "checks_passed": skill.checks_passed,
        "checks_total": skill.checks_total,
        "errored": summary.errored,
        "verdict": verdict.word,
        "baseline_score": baseline.score,
        "skill_score": skill.score,
        "token_change_low": tokens and tokens.low,
        "token_change_high": tokens and tokens.high,
        "sentence": verdict.sentence,
        "previous_rate": previous.rate,
        "previous_tokens": previous.tokens,
        "previous_cost": previous.cost,
        "change": since and since.lift.lift,
        "change_low": since and since.lift.low,
        "change_high": since and since.lift.high,
        "change_p_value": since and since.lift.p_value,
        "change_verdict": since and since.word,
        "baseline_rate_low": baseline.interval and baseline.interval.low,
        "baseline_rate_high": baseline.interval and baseline.interval.high,
        "skill_rate_low": skill.interval and skill.interval.low,
        "skill_rate_high": skill.interval and skill.interval.high,
        "normalised_gain": verdict.gain,
        "score_lift": checks and checks.lift,
        "score_lift_low": checks and checks.low,
        "score_lift_high": checks and checks.high,
        "by_case": [_case(case) for case in summary.by_case],
        "score": summary.score,
        "rate_lift": rate and rate.lift,
        "rate_lift_low": rate and rate.low,
        "rate_lift_high": rate and rate.high,
        "baseline_checks_passed": baseline.checks_passed,
        "baseline_checks_total": baseline.checks_total,
        "previous_score": previous.score,
        "samples": summary.samples,
    }


def _case(case: CaseSummary) -> dict[str, Any]:
    """With pass^k for k = 1, 2, …: the chance that k runs all pass."""
    rate = case.arm("skill").rate
    passes = round((rate or 0.0) * case.runs)
    return {
        "case": case.case,
        "runs": case.runs,
        "baseline_rate": case.arm("baseline").rate,
        "skill_rate": rate,
        "pass_hat_k": [pass_hat_k(passes, case.runs, k + 1) for k in range(case.runs)],
        "flakiness": flakiness(passes, case.runs) if case.runs > 1 else None,
        "baseline_score": case.arm("baseline").score,
        "skill_score": case.arm("skill").score,
    }
