"""What changed since an earlier run, as data of a page."""

from typing import Any, Final

from ..._util.json_forms import json_values
from ...results.case_changes import Earlier, find_changes
from ...results.run import RunResults
from ...results.run_comparison import NOTHING_SHARED, PairComparison
from ...trials.records import Record

_MAX_CHARACTERS: Final = 3_000_000  # of the earlier answers


def changes_values(earlier: Earlier, later: RunResults) -> dict[str, Any]:
    """``later`` is the run of the page."""
    changed = find_changes(earlier, later)
    cases = []
    room = _MAX_CHARACTERS
    for (pair, case), change in changed.cases.items():
        records = [_brief_values(record) for record in change.records]
        room -= sum(len(record["output"] or "") for record in records)
        cases.append(
            {
                "skill": pair.skill,
                "model": pair.subject.label,
                "case": case,
                "kind": change.kind,
                "was": change.was,
                "now": change.now,
                "shown": change.shown,
                # Without room for its answers, a case is only listed.
                "records": records if room >= 0 else [],
            }
        )

    sentences = list(changed.comparison.differences)
    for compared in sorted(changed.comparison.pairs, key=_shows_nothing):
        words = [compared.words, *compared.differences]
        sentences.append(f"{compared.skill} on {compared.title}: {'; '.join(words)}")

    return {
        "id": earlier.id,
        "started": earlier.results.started.isoformat(timespec="seconds"),
        "compared": changed.compared,
        "sentences": sentences or [NOTHING_SHARED],
        "rates": earlier.rates,
        "cases": cases,
        "gone": [[test.skill, test.label, test.case] for test in changed.gone],
    }


def _shows_nothing(pair: PairComparison) -> bool:
    return pair.change is not None and pair.change.word == "no change shown"


def _brief_values(record: Record) -> dict[str, Any]:
    values: dict[str, Any] = json_values(record)
    for file in values["files"]:
        file["data"] = ""
    return {**values, "transcript": []}
