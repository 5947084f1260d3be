"""Readers of a benchmark folder that look where skill-creator's programs look.

Its aggregator and viewer find runs by these names of folders and files and take these
keys; what they leave out is left out here, too.
"""

import json
from pathlib import Path
from typing import Any

METRICS = ("pass_rate", "time_seconds", "tokens")
_NOT_SHOWN = ("transcript.md", "user_notes.md", "metrics.json")
_TEXTS = (
    ".txt",
    ".md",
    ".json",
    ".csv",
    ".py",
    ".js",
    ".html",
    ".css",
    ".yaml",
    ".sh",
    ".toml",
)


def read(file: Path) -> Any:
    return json.loads(file.read_bytes().decode("ascii"))


def aggregated(iteration: Path) -> dict[str, dict[str, list[float]]]:
    """By configuration, the numbers of all runs that have a grade."""
    found: dict[str, dict[str, list[float]]] = {}
    for eval_folder in sorted(iteration.glob("eval-*")):
        assert isinstance(read(eval_folder / "eval_metadata.json")["eval_id"], int)
        for arm in sorted(
            path for path in eval_folder.iterdir() if list(path.glob("run-*"))
        ):
            for run in arm.glob("run-*"):
                int(run.name.split("-")[1])
                if not (run / "grading.json").exists():
                    continue
                grading = read(run / "grading.json")
                assert "timing" not in grading  # or the tokens are not looked for
                timing = read(run / "timing.json")
                of_arm = found.setdefault(arm.name, {name: [] for name in METRICS})
                of_arm["pass_rate"].append(grading["summary"]["pass_rate"])
                of_arm["time_seconds"].append(timing.get("total_duration_seconds", 0.0))
                metrics = grading["execution_metrics"]
                assert {"total_tool_calls", "errors_encountered"} <= set(metrics)
                tokens = timing.get("total_tokens", 0) or metrics.get("output_chars", 0)
                of_arm["tokens"].append(tokens)
                for expectation in grading["expectations"]:
                    assert {"text", "passed", "evidence"} <= set(expectation)
    return found


def viewed(iteration: Path) -> list[dict[str, Any]]:
    """The runs that the viewer shows: folders with outputs,
    described by files next to them.

    Outputs are texts or, where it offers a download, bytes.
    """
    runs = []
    for outputs in iteration.glob("**/outputs"):
        run = outputs.parent
        about = next(
            read(folder / "eval_metadata.json")
            for folder in (run, run.parent)
            if (folder / "eval_metadata.json").exists()
        )
        files = [file for file in outputs.iterdir() if file.is_file()]
        shown = {
            file.name: (
                file.read_text("utf-8") if file.suffix in _TEXTS else file.read_bytes()
            )
            for file in sorted(files)
            if file.name not in _NOT_SHOWN
        }
        runs.append({"id": str(run.relative_to(iteration)), "outputs": shown, **about})
    return sorted(runs, key=lambda run: (run["eval_id"], run["id"]))
