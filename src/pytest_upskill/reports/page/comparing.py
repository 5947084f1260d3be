"""What changed since an earlier run, studies and trends, as data of a page."""

from collections.abc import Sequence
from typing import Any

from ..._util.json_forms import json_values
from ...results.contrasts import Study
from ...results.history import KeptRow
from ...results.run_comparison import ChangedCase, Changes
from ..history_rows import row_data
from ..numbers import Number
from ..study_tables import arm_table, contrast_table, facts_of, legend_of


def changes_values(changed: Changes) -> dict[str, Any]:
    earlier, comparison = changed.earlier, changed.comparison
    commit = earlier.results.commit
    return {
        "id": earlier.id,
        "started": earlier.results.started.isoformat(timespec="seconds"),
        "commit": commit and json_values(commit),
        "compared": changed.compared,
        "cases": [
            {"skill": pair.skill, "model": pair.subject.label, "case": case, **_case(change)}
            for (pair, case), change in changed.cases.items()
        ],
        "gone": [[test.skill, test.label, test.case] for test in changed.gone],
        "differences": comparison.differences,
    }


def _case(change: ChangedCase) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "was": change.was,
        "now": change.now,
        "shown": change.shown,
        "records": [json_values(record) for record in change.records],
    }


def study_values(study: Study) -> dict[str, Any]:
    """Beside the study itself, which the results have: its tables in words."""
    return {
        "facts": facts_of(study),
        "legend": legend_of(study),
        "contrasts": json_values(contrast_table(study)),
        "arms": json_values(arm_table(study, every=True)),
    }


def trend_values(kept_rows: Sequence[KeptRow], metric: Number) -> dict[str, Any]:
    return {
        "trend": {
            "metric": metric.name,
            "title": metric.title,
            "entries": [row_data(kept) for kept in kept_rows],
        }
    }
