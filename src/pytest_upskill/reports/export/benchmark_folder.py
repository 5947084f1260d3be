"""The results of a run in the layout of skill-creator and the agentskills guide.

``eval-<slug>/{with_skill,without_skill}/run-N/`` for each case, arm and run, and one
``benchmark.json``. The layout has room for one skill and one model, so each pair of them is a
`BenchmarkPlace` of its own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from statistics import fmean, stdev
from typing import Any, Final

from ..._util.texts import one_line, percent, seconds, slug, whole
from ...results.run import RunResults
from ...results.verdict import Verdict, signal_lines
from ...trials.records import Record
from ...trials.subject import CHAT
from ..markdown import escaped
from .benchmark_run import (
    File,
    asked_of,
    errors,
    expectations,
    json_text,
    run_files,
    summary,
    tool_calls,
)

WorkspaceOf = Callable[[Record], bytes]  # what an agent left in a trial, packed

# Their viewer compares the first with the second.
CONFIGURATIONS: Final[Mapping[str, str]] = {
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
class BenchmarkPlace:
    """The folder of a skill on a model below that of the benchmarks, and its files by path."""

    folder: str  # empty if the run has one skill and one model
    files: Iterator[File]


def no_workspace(_: Record) -> bytes:
    return b""


def benchmark_places(
    results: RunResults, workspace_of: WorkspaceOf = no_workspace
) -> Iterator[BenchmarkPlace]:
    """One for each skill and model with records."""
    skills = folder_names(summary.skill for summary in results.summaries)
    models = folder_names(summary.label for summary in results.summaries)
    for verdict in results.verdicts:
        skill, model = verdict.summary.skill, verdict.summary.label
        parts = [skills[skill]] if len(skills) > 1 else []
        parts += [models[model]] if len(models) > 1 else []
        yield BenchmarkPlace("/".join(parts), _files(results, verdict, workspace_of))


def folder_names(names: Iterable[str]) -> dict[str, str]:
    """A folder for each name, distinct on any file system."""
    folders: dict[str, str] = {}
    for name in dict.fromkeys(names):
        base = folder = slug(name) or "unnamed"
        number = 1
        while folder in folders.values():
            number += 1
            folder = f"{base}-{number}"
        folders[name] = folder
    return folders


def _files(results: RunResults, verdict: Verdict, workspace_of: WorkspaceOf) -> Iterator[File]:
    """Lazily: all outputs of a run may not fit into memory."""
    pair = verdict.summary.pair
    records = [record for record in results.records if record.pair == pair]
    folders, ids = folder_names(record.case for record in records), _eval_ids(records)
    names = _configurations(records)
    runs: list[dict[str, Any]] = []
    for case, folder in folders.items():
        case_records = [record for record in records if record.case == case]
        prompt = results.questions.get((pair[0], case), "")
        about = {
            "eval_id": ids[case],  # their viewer sorts by it, as a number
            "eval_name": f"{case}: {one_line(prompt, 60)}" if case.isdecimal() else case,
            "prompt": prompt,
            "assertions": list(
                dict.fromkeys(text for record in case_records for text in asked_of(record))
            ),
        }
        yield f"eval-{folder}/eval_metadata.json", json_text(about)
        for arm, name in names.items():
            of_arm = [record for record in case_records if record.arm == arm]
            if of_arm:
                # Their aggregator looks for it next to the arms, their viewer next to the runs.
                yield f"eval-{folder}/{name}/eval_metadata.json", json_text(about)
            for record in sorted(of_arm, key=lambda record: record.run):
                for path, content in run_files(record, prompt, workspace_of(record)):
                    yield f"eval-{folder}/{name}/run-{record.run}/{path}", content
                if record.outcome != "errored":
                    runs.append(_run(record, about, name))
    benchmark = _benchmark(results, verdict, records, runs)
    yield "benchmark.json", json_text(benchmark)
    yield "benchmark.md", benchmark_markdown(benchmark)


def _eval_ids(records: Iterable[Record]) -> dict[str, int]:
    """The ids of evals.json if they are numbers, else positions."""
    cases = list(dict.fromkeys(record.case for record in records))
    numbers = {case: int(case) for case in cases if re.fullmatch("[0-9]{1,9}", case)}
    if len({*numbers.values()}) == len(cases):
        return numbers
    return {case: number for number, case in enumerate(cases, start=1)}


def _configurations(records: Iterable[Record]) -> dict[str, str]:
    """Arms and their names, in an order in which the first is compared with the second.

    Their aggregator sorts by name, so beside ``old_skill`` the skill is ``new_skill``.
    """
    there = {record.arm for record in records}
    names = CONFIGURATIONS
    if "previous" in there:
        names = {"skill": "new_skill", **{arm: names[arm] for arm in ("previous", "baseline")}}
    return {arm: name for arm, name in names.items() if arm in there}


def _run(record: Record, about: Mapping[str, Any], configuration: str) -> dict[str, Any]:
    measured = {"time_seconds": record.seconds, "tokens": record.tokens}
    return {
        "eval_id": about["eval_id"],
        "eval_name": about["eval_name"],
        "configuration": configuration,
        "run_number": record.run,
        "result": {
            **summary(record),
            **{name: value for name, value in measured.items() if value is not None},
            "tool_calls": tool_calls(record),
            "errors": errors(record),
        },
        "expectations": expectations(record),
        "notes": list(record.activity.findings) if record.activity else [],
    }


def _benchmark(
    results: RunResults, verdict: Verdict, records: Sequence[Record], runs: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    row = verdict.summary
    skill = next(skill for skill in results.skills if skill.name == row.skill)
    agent = f"{row.agent} {row.agent_version}".rstrip()
    model = row.model_id if row.agent == CHAT else f"{agent} on {row.model_id}"
    return {
        "metadata": {
            "skill_name": skill.name,
            "skill_path": skill.path,
            "executor_model": model,
            "analyzer_model": "pytest-upskill",
            "timestamp": results.started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "evals_run": sorted({run["eval_id"] for run in runs}),
            "runs_per_configuration": row.runs,
        },
        "runs": list(runs),
        "run_summary": _run_summary(runs, _configurations(records).values()),
        "notes": _notes(verdict, records),
    }


def _run_summary(runs: Sequence[dict[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for configuration in names:
        run_results = [run["result"] for run in runs if run["configuration"] == configuration]
        values = {
            name: [result[name] for result in run_results if name in result]
            for name in ("pass_rate", "time_seconds", "tokens")
        }
        if run_results:
            summary[configuration] = {name: _spread(v) for name, v in values.items() if v}
    first, *further = summary.values() or [{}]
    summary["delta"] = _delta(first, further[0]) if further else {}
    return summary


def _spread(values: Sequence[float]) -> dict[str, float]:
    deviation = stdev(values) if len(values) > 1 else 0.0
    spread = {"mean": fmean(values), "stddev": deviation, "min": min(values), "max": max(values)}
    return {name: round(value, 4) for name, value in spread.items()}


def _delta(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, str]:
    """Their viewer shows these texts unchanged, with a colour for the sign."""
    forms = {"pass_rate": "+.2f", "time_seconds": "+.1f", "tokens": "+.0f"}
    return {
        name: format(first[name]["mean"] - second[name]["mean"] + 0.0, form)
        for name, form in forms.items()
        if name in first and name in second
    }


def _notes(verdict: Verdict, records: Sequence[Record]) -> list[str]:
    word = f"{verdict.word}: " if verdict.word else ""
    since = f"; {verdict.since}" if verdict.since else ""
    errored = [record for record in records if record.outcome == "errored"]
    names = _configurations(records)
    texts = [
        f"{record.case}, {names[record.arm]}, run {record.run}: {one_line(record.error or '', 200)}"
        for record in errored[:_MOST_ERRORS]
    ]
    notes = [f"{word}{verdict.sentence}{since}."]
    if verdict.summary.score != "checks":
        notes.append(_NOTE)
    notes += signal_lines(verdict)
    if errored:
        hidden = len(errored) - len(texts)
        end = f"; and {hidden} more" if hidden else ""
        notes.append(f"Not graded, and not counted here: {'; '.join(texts)}{end}")
    return notes


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
