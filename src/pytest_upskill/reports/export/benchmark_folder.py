"""The results of a run in the layout of skill-creator and the agentskills guide.

``eval-<slug>/{with_skill,without_skill}/run-N/`` for each case, arm and run, and one
``benchmark.json``. The layout has room for one skill and one model, so each pair of them is a
`Place` of its own.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from statistics import fmean, stdev
from typing import Any, Final

from ..._util.texts import one_line, percent, seconds, slug, whole
from ...results.run import Pair, RunResults
from ...results.verdict import Verdict, signal_lines
from ...trials.records import Record
from ...trials.trial import Arm
from ..markdown import escaped
from .transcripts import safe_names, transcript_text

# Their viewer compares the first with the second.
CONFIGURATIONS: Final[Mapping[Arm, str]] = {
    "skill": "with_skill",
    "baseline": "without_skill",
    "previous": "old_skill",
    "trace": "with_trace",
}
_MOST_ERRORS: Final = 10
_NOTE: Final = (
    "Pass rates of this benchmark are shares of passed checks; those of the first note are shares "
    "of answers that pass all required checks."
)


@dataclass(frozen=True)
class Place:
    """The folder of a skill on a model below that of the benchmarks, and its files by path."""

    folder: str  # empty if the run has one skill and one model
    files: Mapping[str, str]


def benchmark_places(results: RunResults) -> list[Place]:
    """One for each skill and model with records."""
    skills = folder_names(summary.skill for summary in results.summaries)
    models = folder_names(summary.model for summary in results.summaries)
    places = []
    for verdict in results.verdicts:
        skill, model = verdict.summary.skill, verdict.summary.model
        parts = [skills[skill]] if len(skills) > 1 else []
        parts += [models[model]] if len(models) > 1 else []
        places.append(Place("/".join(parts), _files(results, verdict)))
    return places


def folder_names(names: Iterable[str]) -> dict[str, str]:
    """A folder for each name, distinct on any file system."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        base = folder = slug(name) or "unnamed"
        number = 1
        while folder in found.values():
            number += 1
            folder = f"{base}-{number}"
        found[name] = folder
    return found


def _files(results: RunResults, verdict: Verdict) -> dict[str, str]:
    pair: Pair = (verdict.summary.skill, verdict.summary.model)
    own = [record for record in results.records if (record.skill, record.model) == pair]
    folders = folder_names(record.case for record in own)
    files: dict[str, str] = {}
    runs: list[dict[str, Any]] = []
    for number, (case, folder) in enumerate(folders.items(), start=1):
        records = [record for record in own if record.case == case]
        about = {
            "eval_id": number,  # their viewer sorts by it, as a number
            "eval_name": case,
            "prompt": results.questions.get((pair[0], case), ""),
            "assertions": list(dict.fromkeys(text for one in records for text in _texts(one))),
        }
        files[f"eval-{folder}/eval_metadata.json"] = _json(about)
        for record in _in_order(records):
            arm = f"eval-{folder}/{CONFIGURATIONS[record.arm]}"
            # Their aggregator looks for it next to the arms, their viewer next to the runs.
            files[f"{arm}/eval_metadata.json"] = _json(about)
            files |= {f"{arm}/run-{record.run}/{name}": text for name, text in _run_files(record)}
            if record.outcome != "errored":
                runs.append(_run(record, number))
    benchmark = _benchmark(results, verdict, own, runs)
    files["benchmark.json"] = _json(benchmark)
    files["benchmark.md"] = benchmark_markdown(benchmark)
    return files


def _in_order(records: Iterable[Record]) -> list[Record]:
    arms = list(CONFIGURATIONS)
    return sorted(records, key=lambda record: (arms.index(record.arm), record.run))


def _run_files(record: Record) -> Iterable[tuple[str, str]]:
    """A trial without a grade has no grading.json, so that their aggregator skips it."""
    if record.output is not None:
        yield "outputs/answer.md", record.output
    yield from _left_behind(record)
    if record.outcome == "errored":
        yield "outputs/error.txt", record.error or ""
        return
    results, done = _expectations(record), record.activity
    calls = Counter(turn.tool for turn in record.transcript if turn.kind == "call")
    metrics: dict[str, Any] = {
        "tool_calls": dict(calls),
        "total_tool_calls": done.tool_calls if done else 0,
        "total_steps": done.turns if done else 1,
    }
    if record.tokens is not None:  # else their aggregator counts these as tokens
        metrics["output_chars"] = len(record.output or "")
    grading = {
        "expectations": results,
        "assertion_results": results,
        "summary": _summary(record),
        # Without timing, their aggregator reads timing.json, which has the tokens.
        "execution_metrics": {**metrics, "errors_encountered": 0},
    }
    yield "grading.json", _json(grading)
    yield "timing.json", _json(_timing(record))


def _left_behind(record: Record) -> Iterable[tuple[str, str]]:
    """The texts that an agent wrote, side by side, as their viewer wants it, and its transcript."""
    texts = {file.path: file.text for file in record.files if file.text is not None}
    names = safe_names(texts, besides=("answer.md", "error.txt"))
    yield from ((f"outputs/{names[path]}", text) for path, text in texts.items())
    if record.transcript:
        yield "transcript.jsonl", transcript_text(record)


def _timing(record: Record) -> dict[str, Any]:
    known: dict[str, Any] = {}
    if record.tokens is not None:
        known["total_tokens"] = record.tokens
    if record.seconds is not None:
        known["duration_ms"] = round(1000 * record.seconds)
        known["total_duration_seconds"] = round(record.seconds, 3)
    return known


def _texts(record: Record) -> list[str]:
    """What each check asks: the same in every run, and different for each check."""
    texts: list[str] = []
    for grade in record.checks:
        text = base = f"{grade.check}: {grade.asks}" if grade.asks else grade.check
        number = 1
        while text in texts:
            number += 1
            text = f"{base} ({number})"
        texts.append(text)
    return texts


def _expectations(record: Record) -> list[dict[str, Any]]:
    return [
        {"text": text, "passed": grade.passed, "evidence": grade.reason}
        for text, grade in zip(_texts(record), record.checks, strict=True)
    ]


def _summary(record: Record) -> dict[str, Any]:
    passed, total = sum(grade.passed for grade in record.checks), len(record.checks)
    rate = passed / total if total else float(record.outcome == "passed")
    return {"passed": passed, "failed": total - passed, "total": total, "pass_rate": round(rate, 4)}


def _run(record: Record, number: int) -> dict[str, Any]:
    known = {"time_seconds": record.seconds, "tokens": record.tokens}
    return {
        "eval_id": number,
        "eval_name": record.case,
        "configuration": CONFIGURATIONS[record.arm],
        "run_number": record.run,
        "result": {
            **_summary(record),
            **{name: value for name, value in known.items() if value is not None},
            "tool_calls": 0,
            "errors": 0,
        },
        "expectations": _expectations(record),
        "notes": [],
    }


def _benchmark(
    results: RunResults, verdict: Verdict, own: Sequence[Record], runs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    row = verdict.summary
    skill = next(skill for skill in results.skills if skill.name == row.skill)
    return {
        "metadata": {
            "skill_name": skill.name,
            "skill_path": skill.path,
            "executor_model": row.model_id,
            "analyzer_model": "pytest-upskill",
            "timestamp": results.started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "evals_run": sorted({run["eval_id"] for run in runs}),
            "runs_per_configuration": row.runs,
        },
        "runs": list(runs),
        "run_summary": _run_summary(runs),
        "notes": _notes(verdict, own),
    }


def _run_summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for configuration in CONFIGURATIONS.values():
        own = [run["result"] for run in runs if run["configuration"] == configuration]
        known = {
            name: [result[name] for result in own if name in result]
            for name in ("pass_rate", "time_seconds", "tokens")
        }
        if own:
            summary[configuration] = {name: _spread(v) for name, v in known.items() if v}
    first, *others = summary.values() or [{}]
    summary["delta"] = _delta(first, others[0]) if others else {}
    return summary


def _spread(values: Sequence[float]) -> dict[str, float]:
    deviation = stdev(values) if len(values) > 1 else 0.0
    spread = {"mean": fmean(values), "stddev": deviation, "min": min(values), "max": max(values)}
    return {name: round(value, 4) for name, value in spread.items()}


def _delta(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, str]:
    """Their viewer shows these texts unchanged, with a colour for the sign."""
    forms = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
    return {
        name: format(one[name]["mean"] - other[name]["mean"] + 0.0, form)
        for name, form in forms.items()
        if name in one and name in other
    }


def _notes(verdict: Verdict, own: Sequence[Record]) -> list[str]:
    word = f"{verdict.word}: " if verdict.word else ""
    since = f"; {verdict.since}" if verdict.since else ""
    errored = [record for record in own if record.outcome == "errored"]
    texts = [
        f"{record.case}, {CONFIGURATIONS[record.arm]}, run {record.run}: "
        f"{one_line(record.error or '', 200)}"
        for record in errored[:_MOST_ERRORS]
    ]
    notes = [f"{word}{verdict.sentence}{since}.", _NOTE, *signal_lines(verdict)]
    if errored:
        more = len(errored) - len(texts)
        rest = f"; and {more} more" if more else ""
        notes.append(f"Not graded, and not counted here: {'; '.join(texts)}{rest}")
    return notes


def _json(value: Any) -> str:
    # ASCII, as their scripts read with the encoding of the system.
    return json.dumps(value, indent=2) + "\n"


_METRICS: Final[Mapping[str, tuple[str, Callable[[float], str]]]] = {
    "pass_rate": ("Pass rate", percent),
    "time_seconds": ("Time", lambda number: f"{seconds(number)} s"),
    "tokens": ("Tokens", whole),
}


def benchmark_markdown(benchmark: Mapping[str, Any]) -> str:
    """benchmark.md: the numbers of benchmark.json for people."""
    about, summary = benchmark["metadata"], benchmark["run_summary"]
    names = [name for name in summary if name != "delta"]
    titles = [name.replace("_", " ").capitalize() for name in names]
    lines = [
        f"# Benchmark of {escaped(about['skill_name'])}",
        "",
        f"{escaped(about['executor_model'])}, {about['timestamp']}, "
        f"{len(about['evals_run'])} evals, up to {about['runs_per_configuration']} runs each.",
        "",
        f"| Metric | {' | '.join([*titles, 'Delta'])} |",
        f"|{' --- |' * (len(names) + 2)}",
    ]
    for metric, (title, form) in _METRICS.items():
        cells = [_cell(summary[name].get(metric), form) for name in names]
        lines.append(f"| {title} | {' | '.join([*cells, summary['delta'].get(metric, '–')])} |")
    notes = [f"- {escaped(note)}" for note in benchmark["notes"]]
    return "\n".join([*lines, "", *notes]) + "\n"


def _cell(stat: Mapping[str, float] | None, form: Callable[[float], str]) -> str:
    return f"{form(stat['mean'])} ± {form(stat['stddev'])}" if stat else "–"
