"""What a run tells the CI that it runs in: a summary of the job, annotations of its files."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..reports.markdown import annotations
from ..results.regressions import AcceptedComparison, Compared
from .collect import relative


def tell_job(text: str) -> list[str]:
    """Add a text to what GitHub Actions shows on the page of the run; what went wrong."""
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return []
    try:
        with Path(file).open("a", encoding="utf-8", errors="backslashreplace") as summary:
            summary.write(f"{text}\n")
    except OSError as error:
        return [f"the summary of the job (GITHUB_STEP_SUMMARY) could not be written: {error}"]
    return []


def annotation_lines(
    compared: Sequence[AcceptedComparison], gate: Sequence[str], root: Path
) -> list[str]:
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return []
    # GitHub knows files by their paths in the repository, of which the rootdir may be a part.
    top = Path(os.environ.get("GITHUB_WORKSPACE") or root)

    def placed(case: Compared) -> Compared:
        return replace(case, info=replace(case.info, file=relative(root / case.info.file, top)))

    moved = [
        replace(
            comparison,
            cases=tuple(map(placed, comparison.cases)),
            worse=tuple(map(placed, comparison.worse)),
        )
        for comparison in compared
    ]
    return annotations(moved, gate)
