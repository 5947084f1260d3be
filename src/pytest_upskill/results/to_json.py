"""The results of a run as JSON, schema 1. Others build on it: keys never change."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from .._util.json_forms import json_values
from .._util.keys import without_keys
from .._util.texts import shortened
from ..stats import flakiness, pass_hat_k
from ..trials.answer import AnswerFile
from ..trials.plan import PlannedCase, Unmatched
from ..trials.records import Record
from ..trials.subject import CHAT, Subject
from .run import RunResults
from .summary import CaseSummary, Summary
from .triggers import QueryRate, Share, TriggerSummary

_MOST_OF_A_FILE: Final = 20_000  # characters of what an agent made
_MOST_OF_FILES: Final = 100_000  # of all files of a trial


def results_report(results: RunResults) -> dict[str, Any]:
    """The whole run as JSON values; null means not known."""
    gate = results.gate
    return {
        "schema": 1,
        "started": results.started.isoformat(timespec="seconds"),
        "seconds": round(results.seconds, 3),
        "skills": [asdict(skill) for skill in results.skills],
        "summary": [asdict(row) for row in results.summary],
        "records": [_record(record) for record in results.records],
        "gate": {"passed": None if gate is None else not gate, "reasons": list(gate or ())},
        "by_case": [_case(row, case) for row in results.summaries for case in row.by_case],
        "cases": [_case_of_run(results.questions, test) for test in _each_case(results.tests)],
        "tests": [_own_test(test) for test in results.tests],
        "gates": asdict(results.gates),
        "looks": list(results.looks),
        "broken": dict(results.broken),
        "unmatched": list(map(_unmatched, results.unmatched)),
        "interrupted": results.interrupted,
        "lost": list(results.lost),
        "untested": dict(results.untested),
        "models": dict(results.model_ids),
        "commit": results.commit and asdict(results.commit),
        "versions": dict(results.versions),
        "agents": results.agents,
        "bundled_skills": {name: list(skills) for name, skills in results.bundled.items()},
        "matrix": _matrices(results),
        "parts": _parts(results),
        "triggers": [
            _trigger_summary(row, results.model_ids.get(row.model))
            for row in results.trigger_summaries
        ],
        "trigger_records": [_record(record) for record in results.trigger_records],
        "trigger_tests": [_trigger(test, results) for test in results.triggers],
        "with_skills": list(results.with_skills),
        "noise": results.noise,
        "rerun": asdict(results.rerun),
        "judge": results.judge,
        "prompt_cache_saved": results.prompt_cache_saved,
    }


def _matrices(results: RunResults) -> list[dict[str, Any]]:
    if not results.matrices:
        return []
    from .neighbours_json import matrix_report  # slow to import, and seldom needed

    return [matrix_report(one) for one in results.matrices]


def _parts(results: RunResults) -> list[dict[str, Any]]:
    if not results.parts:
        return []
    from .parts_json import parts_report

    return [parts_report(one) for one in results.parts]


def results_text(results: RunResults) -> str:
    return json.dumps(results_report(results), indent=1, ensure_ascii=False) + "\n"


def results_bytes(results: RunResults) -> bytes:
    return in_bytes(results_text(results))


def in_bytes(text: str) -> bytes:
    # A lone surrogate in an answer becomes \udXXX, which JSON reads back as the same.
    return without_keys(text).encode("utf-8", "backslashreplace")


def _plain(one: Summary | TriggerSummary) -> str:
    """The model without the agent, which has a key of its own."""
    return Subject.of(one.agent, one.model).model


def _record(record: Record) -> dict[str, Any]:
    """Without transcript and images, and with the beginnings of long files: transcripts are files
    of their own, on request.
    """
    files = tuple(_file(file, room) for file, room in _with_room(record.files))
    record = replace(record, files=files)
    data: dict[str, Any] = json_values(record, without={"transcript"})
    return data


def _with_room(files: Sequence[AnswerFile]) -> Iterator[tuple[AnswerFile, int]]:
    """Each file, and how many characters of it are kept."""
    left = _MOST_OF_FILES
    for file in files:
        room = min(left, _MOST_OF_A_FILE)
        left -= min(room, len(file.text or ""))
        yield file, room


def _file(file: AnswerFile, room: int) -> AnswerFile:
    return replace(file, text=file.text and shortened(file.text, room, saving=1), data="")


def _each_case(tests: Sequence[PlannedCase]) -> list[PlannedCase]:
    """Each case once, on any number of models."""
    once = {(test.skill, test.case): test for test in reversed(tests)}
    return [*reversed(once.values())]


def _case_of_run(questions: Mapping[tuple[str, str], str], test: PlannedCase) -> dict[str, Any]:
    return {
        "skill": test.skill,
        "case": test.case,
        "question": questions.get((test.skill, test.case)),
        "tags": list(test.tags),
        "file": test.file,
        "line": test.line,
        "digest": test.digest,
        "threshold": test.threshold,
        "compared": test.compared,
    }


def _own_test(test: PlannedCase) -> dict[str, Any]:
    return {**_test(test), "own_runs": test.own_runs}


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
            "agent_version": known.version or None,
        },
        "new": test.new,
        "sample": test.sample,
        "regression": test.regression,
        "of": test.of,
        "agent": test.agent,
    }


def _trigger(test: PlannedCase, results: RunResults) -> dict[str, Any]:
    """A query on a model, with all that a case has in ``cases``."""
    return {
        **_test(test),
        "query": results.questions.get((test.skill, test.case)),
        "should_trigger": test.should_trigger,
        "file": test.file,
        "line": test.line,
        "digest": test.digest,
        "threshold": test.threshold,
        "compared": test.compared,
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
        "agent": one.agent,
        "trigger": one.trigger,
    }


def _trigger_summary(row: TriggerSummary, model_id: str | None) -> dict[str, Any]:
    """How often the queries of a skill opened it."""
    return {
        "skill": row.skill,
        "model": _plain(row),
        "model_id": model_id,
        "agent": row.agent,
        "agent_version": row.agent_version or None,
        "decided_by": "model" if row.agent == CHAT else "agent",
        **_share("recall", row.recall),
        **_share("false_alarms", row.false_alarms),
        "instead": dict(row.instead),
        "runs": row.runs,
        "trials": row.trials,
        "errored": row.errored,
        "not_run": row.not_run,
        "tokens": row.tokens,
        "cost": row.cost,
        "verdict": row.word or None,
        "sentence": row.sentence,
        "queries": [_query(one) for one in row.queries],
    }


def _share(name: str, share: Share | None) -> dict[str, Any]:
    return {
        name: share and share.rate,
        f"{name}_low": share and share.interval.low,
        f"{name}_high": share and share.interval.high,
        f"{name}_opened": share.opened if share else 0,
        f"{name}_queries": share.queries if share else 0,
    }


def _query(one: QueryRate) -> dict[str, Any]:
    return {
        "case": one.case,
        "query": one.query or None,
        "should_trigger": one.should_trigger,
        "rate": one.rate,
        "opened": one.opened,
        "runs": one.runs,
        "errored": one.errored,
        "instead": dict(one.instead),
        "errors": list(one.errors),
    }


def _case(row: Summary, case: CaseSummary) -> dict[str, Any]:
    """With pass^k for k = 1, 2, …: the chance that k runs all pass."""
    rate = case.arm("skill").rate
    passes = round((rate or 0.0) * case.runs)
    return {
        "skill": row.skill,
        "model": _plain(row),
        "agent": row.agent,
        "case": case.case,
        "runs": case.runs,
        "baseline_rate": case.arm("baseline").rate,
        "skill_rate": rate,
        "pass_hat_k": [pass_hat_k(passes, case.runs, k + 1) for k in range(case.runs)],
        "flakiness": flakiness(passes, case.runs) if case.runs > 1 else None,
        "baseline_score": case.arm("baseline").score,
        "skill_score": case.arm("skill").score,
    }
