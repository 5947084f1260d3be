"""benchmark.md: what benchmark.json says, for people."""

from collections.abc import Mapping
from typing import Any, Final

from ..markdown.text import escaped

# What it is called, how its numbers are multiplied and written, and what stands behind them.
_METRICS: Final = {
    "pass_rate": ("Pass rate", 100, ".0f", "%"),
    "time_seconds": ("Time", 1, ".1f", " s"),
    "tokens": ("Tokens", 1, ",.0f", ""),
}


def benchmark_markdown(benchmark: Mapping[str, Any]) -> str:
    about, summary = benchmark["metadata"], benchmark["run_summary"]
    names = [name for name in summary if name != "delta"]
    titles = [name.replace("_", " ").capitalize() for name in names]
    lines = [
        f"# Benchmark of {escaped(about['skill_name'])}",
        "",
        f"{escaped(about['executor_model'])}, {about['timestamp']}, "
        f"{len(about['evals_run'])} evals, {about['runs_per_configuration']} runs at most.",
        "",
        f"| Metric | {' | '.join([*titles, 'Delta'])} |",
        f"|{' --- |' * (len(names) + 2)}",
    ]
    for metric, (title, times, form, unit) in _METRICS.items():
        cells = [_cell(summary[name].get(metric), times, form, unit) for name in names]
        lines.append(f"| {title} | {' | '.join([*cells, summary['delta'].get(metric, '–')])} |")
    notes = [f"- {escaped(note)}" for note in benchmark["notes"]]
    return "\n".join([*lines, "", *notes]) + "\n"


def _cell(stat: Mapping[str, float] | None, times: int, form: str, unit: str) -> str:
    if stat is None:
        return "–"
    mean, deviation = times * stat["mean"], times * stat["stddev"]
    return f"{mean:{form}}{unit} ± {deviation:{form}}{unit}"
