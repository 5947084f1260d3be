"""The results of a run in the layout of skill-creator and the agentskills guide.

``eval-<slug>/{with_skill,without_skill}/run-N/`` for each case, arm and run, and one
``benchmark.json``. The layout has room for one skill and one model, so each pair of
them is a `BenchmarkPlace` of its own.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from posixpath import splitext
from statistics import fmean, stdev
from typing import Any, Final

from .._util.loaded_names import is_loaded_by_name
from .._util.texts import one_line, slug
from ..checks.judging import JUDGE
from ..results.run import RunResults
from ..results.verdict import Verdict, signal_lines
from ..trials.records import Record
from ..trials.subject import CHAT
from .markdown import escaped
from .record_files import safe_name

File = tuple[str, str]  # path and content

# Their viewer compares the first with the second.
CONFIGURATIONS: Final[Mapping[str, str]] = {
    "skill": "with_skill",
    "baseline": "without_skill",
    "previous": "old_skill",
    "again": "with_skill_again",
    "trace": "with_trace",
}
_MOST_ERRORS: Final = 10
# Their viewer inlines texts into a script, which these would end or hide.
_BREAKING: Final = re.compile(r"<(?=/?script|!--)", re.IGNORECASE)
_LONGEST_SUFFIX: Final = 20
_NOTE: Final = (
    "Pass rates of this benchmark are shares of passed checks; those of the first note"
    " are shares of answers that pass all required checks."
)


@dataclass(frozen=True)
class BenchmarkPlace:
    """The folder of a skill on a model below that of the benchmarks,
    and its files by path.
    """

    folder: str  # empty if the run has one skill and one model
    files: Iterator[File]


def benchmark_places(results: RunResults) -> Iterator[BenchmarkPlace]:
    """One for each skill and model with records."""
    skills = folder_names(summary.skill for summary in results.summaries)
    models = folder_names(summary.label for summary in results.summaries)
    for verdict in results.verdicts:
        skill, model = verdict.summary.skill, verdict.summary.label
        parts = [skills[skill]] if len(skills) > 1 else []
        parts += [models[model]] if len(models) > 1 else []
        yield BenchmarkPlace("/".join(parts), _files(results, verdict))


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


def _files(results: RunResults, verdict: Verdict) -> Iterator[File]:
    pair = verdict.summary.pair
    records = [record for record in results.case_records if record.pair == pair]
    folders, ids = folder_names(record.case for record in records), _eval_ids(records)
    names = _configurations(records)
    runs: list[dict[str, Any]] = []
    for case, folder in folders.items():
        case_records = [record for record in records if record.case == case]
        prompt = results.questions.get((pair[0], case), "")
        about = {
            "eval_id": ids[case],  # their viewer sorts by it, as a number
            "eval_name": (
                f"{case}: {one_line(prompt, 60)}" if case.isdecimal() else case
            ),
            "prompt": prompt,
            "assertions": list(
                dict.fromkeys(
                    text for record in case_records for text in _asked_of(record)
                )
            ),
        }
        yield f"eval-{folder}/eval_metadata.json", _json_text(about)
        for arm, name in names.items():
            of_arm = [record for record in case_records if record.arm == arm]
            if of_arm:
                # Their aggregator looks for it next to the arms, their
                # viewer next to the runs.
                yield f"eval-{folder}/{name}/eval_metadata.json", _json_text(about)
            for record in sorted(of_arm, key=lambda record: record.run):
                for path, content in _run_files(record):
                    yield f"eval-{folder}/{name}/run-{record.run}/{path}", content
                if record.outcome != "errored":
                    runs.append(_run(record, about, name))
    benchmark = _benchmark(results, verdict, records, runs)
    yield "benchmark.json", _json_text(benchmark)
    yield "benchmark.md", _markdown(benchmark)


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
        names = {
            "skill": "new_skill",
            **{arm: names[arm] for arm in ("previous", "baseline")},
        }
    return {arm: name for arm, name in names.items() if arm in there}


def _run(
    record: Record, about: Mapping[str, Any], configuration: str
) -> dict[str, Any]:
    measured = {"time_seconds": record.seconds, "tokens": record.tokens}
    return {
        "eval_id": about["eval_id"],
        "eval_name": about["eval_name"],
        "configuration": configuration,
        "run_number": record.run,
        "result": {
            **_summary(record),
            **{name: value for name, value in measured.items() if value is not None},
            "tool_calls": record.activity.tool_calls if record.activity else 0,
            "errors": 0,  # those of tools are in transcripts, which results do not have
        },
        "expectations": _expectations(record),
        "notes": list(record.activity.findings) if record.activity else [],
    }


def _benchmark(
    results: RunResults,
    verdict: Verdict,
    records: Sequence[Record],
    runs: Sequence[dict[str, Any]],
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


def _run_summary(
    runs: Sequence[dict[str, Any]], names: Iterable[str]
) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for configuration in names:
        run_results = [
            run["result"] for run in runs if run["configuration"] == configuration
        ]
        values = {
            name: [result[name] for result in run_results if name in result]
            for name in ("pass_rate", "time_seconds", "tokens")
        }
        if run_results:
            summary[configuration] = {
                name: _spread(v) for name, v in values.items() if v
            }
    first, *further = summary.values() or [{}]
    summary["delta"] = _delta(first, further[0]) if further else {}
    return summary


def _spread(values: Sequence[float]) -> dict[str, float]:
    deviation = stdev(values) if len(values) > 1 else 0.0
    spread = {
        "mean": fmean(values),
        "stddev": deviation,
        "min": min(values),
        "max": max(values),
    }
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
        f"{record.case}, {names.get(record.arm, record.arm)}, run {record.run}: "
        f"{one_line(record.error or '', 200)}"
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


def _markdown(benchmark: Mapping[str, Any]) -> str:
    """benchmark.md: the numbers of benchmark.json for people."""
    about, summary = benchmark["metadata"], benchmark["run_summary"]
    names = [name for name in summary if name != "delta"]
    rows = [["", *names, "delta"], ["---"] * (len(names) + 2)]
    for metric in ("pass_rate", "time_seconds", "tokens"):
        spreads = [summary[name].get(metric) for name in names]
        cells = [
            f"{s['mean']:,.4g} ± {s['stddev']:,.4g}" if s else "–" for s in spreads
        ]
        rows.append([metric, *cells, summary["delta"].get(metric, "–")])
    table = [f"| {' | '.join(row)} |" for row in rows]
    title = f"# {escaped(about['skill_name'])} on {escaped(about['executor_model'])}"
    notes = [f"- {escaped(note)}" for note in benchmark["notes"]]
    return "\n".join([title, "", *table, "", *notes]) + "\n"


# The folder of a trial.


def _run_files(record: Record) -> Iterator[File]:
    """A trial without a grade has no grading.json, so that their aggregator skips
    it.
    """
    if record.output is not None:
        yield "outputs/answer.md", _unbroken(record.output)
    texts = {file.path: file.text for file in record.files if file.text is not None}
    for path, name in output_names(texts).items():
        yield f"outputs/{name}", texts[path]
    if record.outcome == "errored":
        yield "outputs/error.txt", _unbroken(record.error or "")
        return
    expectations, activity = _expectations(record), record.activity
    grading = {
        "expectations": expectations,
        "assertion_results": expectations,
        "summary": _summary(record),
        # Without timing, their aggregator reads timing.json, which has the tokens.
        "execution_metrics": {
            "total_tool_calls": activity.tool_calls if activity else 0,
            "total_steps": activity.turns if activity else 1,
            "errors_encountered": 0,
        },
    }
    yield "grading.json", _json_text(grading)
    yield "timing.json", _json_text(_timing(record))


def _json_text(value: Any) -> str:
    """ASCII, as their scripts read with the encoding of the system."""
    return _BREAKING.sub(r"<\\\\", json.dumps(value, indent=2)) + "\n"


def _unbroken(text: str) -> str:
    """A text that their viewer can show."""
    return _BREAKING.sub(r"<\\", text)


def output_names(texts: Mapping[str, str]) -> dict[str, str]:
    """A name for each path, side by side, since their viewer shows no folders.

    The suffix stays, by which the viewer tells how to show a file, unless that would
    break it, or something would load the file by its name.
    """
    names: dict[str, str] = {}
    taken = {"answer.md", "error.txt", "metrics.json", "transcript.md", "user_notes.md"}
    for path, text in texts.items():
        stem, suffix = splitext(path)
        if len(suffix) > _LONGEST_SUFFIX or not re.fullmatch(
            r"\.[A-Za-z0-9_]+", suffix
        ):
            stem, suffix = path, ""
        if _BREAKING.search(text):
            suffix += ".htm" if suffix == ".html" else ".bin"
        base = safe_name(stem).strip("-. ") or "unnamed"
        if is_loaded_by_name(f"{base}{suffix}"):
            base, suffix = f"left-{base}", f"{suffix}.txt"
        name, number = f"{base}{suffix}", 1
        while name.casefold() in taken:
            number += 1
            name = f"{base}-{number}{suffix}"
        taken.add(name.casefold())
        names[path] = name
    return names


def _timing(record: Record) -> dict[str, Any]:
    times: dict[str, Any] = {}
    if record.tokens is not None:
        times["total_tokens"] = record.tokens
    if record.seconds is not None:
        times["duration_ms"] = round(1000 * record.seconds)
        times["total_duration_seconds"] = round(record.seconds, 3)
        times["executor_duration_seconds"] = times["total_duration_seconds"]
    return times


def _asked_of(record: Record) -> list[str]:
    """What each check asks: the same in every run, and different for each check."""
    texts: list[str] = []
    for grade in record.checks:
        text = f"{grade.check}: {grade.asks}" if grade.asks else grade.check
        if grade.check == JUDGE.name and grade.asks:
            text = grade.asks
        base, number = text, 1
        while text in texts:
            number += 1
            text = f"{base} ({number})"
        texts.append(text)
    return texts


def _expectations(record: Record) -> list[dict[str, Any]]:
    # Their viewer puts the evidence into an attribute, which a double quote would end.
    return [
        {
            "text": text,
            "passed": grade.passed,
            "evidence": grade.reason.replace('"', "'"),
        }
        for text, grade in zip(_asked_of(record), record.checks, strict=True)
    ]


def _summary(record: Record) -> dict[str, Any]:
    passed, total = sum(grade.passed for grade in record.checks), len(record.checks)
    rate = passed / total if total else float(record.outcome == "passed")
    return {
        "passed": passed,
        "failed": total - passed,
        "total": total,
        "pass_rate": round(rate, 4),
    }
