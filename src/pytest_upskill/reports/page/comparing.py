"""What changed since an earlier run, studies and trends, as data of a page."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ..._util.json_forms import json_values
from ..._util.texts import counted, one_line, percent, span
from ...registry import view_of
from ...results.arm_comparison import unit_of
from ...results.case_changes import ChangedCase, Changes, Place, same_answer
from ...results.contrasts import Study, span_words
from ...results.history import KeptRow
from ...results.run import RunResults
from ...results.run_comparison import NOTHING_SHARED, PairComparison
from ...results.sections import Section
from ...results.summary_row import SummaryRow
from ...results.trigger_summary import TriggerSummary
from ...trials.records import Record
from ..history_rows import short_commit
from ..numbers import LIFT, Number, metrics, shown_numbers
from ..study_tables import arm_table, study_block

_MOST_CHARACTERS: Final = 3_000_000  # of the earlier answers
_RECORD_SIZE: Final = 1_000  # of a record beside its texts


def changes_values(changed: Changes, later: RunResults) -> dict[str, Any]:
    """``later`` is the run of the page."""
    earlier = changed.earlier
    records = dict(_earlier_records(changed, later))
    return {
        "id": earlier.id,
        "later_id": earlier.later_id,
        "started": earlier.results.started.isoformat(timespec="seconds"),
        "commit": earlier.results.commit and json_values(earlier.results.commit),
        "compared": changed.compared,
        "pairs": [_pair(pair) for pair in changed.comparison.pairs],
        "cases": [
            {
                "skill": pair.skill,
                "model": pair.subject.label,
                "case": case,
                **_case(change),
                "records": records.get((pair, case), []),
                "left_out": bool(change.records) and (pair, case) not in records,
            }
            for (pair, case), change in changed.cases.items()
        ],
        "gone": [[test.skill, test.label, test.case] for test in changed.gone],
        "notes": list(_notes(changed)),
    }


def _pair(pair: PairComparison) -> dict[str, Any]:
    text = span_words(pair.change.lift) if pair.change else None
    about = list(_about_pair(pair))
    return {**json_values(pair), "label": pair.label, "text": text, "about": about}


def _about_pair(pair: PairComparison) -> Iterator[str]:
    yield "the same skill" if pair.same_skill else "the skill was edited"
    if pair.change and pair.change.worse:
        yield f"worse: {pair.change.worse}"
    yield from pair.differences
    counts = {
        "edited, so not compared": pair.left_out.edited,
        "not answered in both": pair.left_out.unanswered,
    }
    for reason, number in counts.items():
        if number:
            yield f"{counted(number, pair.noun)} {reason}"


def _case(change: ChangedCase) -> dict[str, Any]:
    old, new = change.thresholds
    return {
        "kind": change.kind,
        "was": change.was,
        "now": change.now,
        "scores": change.scores,
        "shown": change.shown,
        "other_threshold": old != new and change.kind not in ("new", "edited"),
    }


def _earlier_records(
    changed: Changes, later: RunResults
) -> Iterator[tuple[Place, list[Any]]]:
    """As many as fit, those of cases that broke or were fixed first.

    An answer that is still the same has none of its texts, and ``same``.
    """
    characters_left = _MOST_CHARACTERS
    telling = sorted(
        changed.cases.items(), key=lambda item: item[1].kind not in ("broke", "fixed")
    )
    for place, change in telling:
        now = {(r.arm, r.run): r for r in later.by_test.get(place, [])}
        records = [
            _earlier_record(record, now.get((record.arm, record.run)))
            for record in change.records
        ]
        characters_left -= sum(map(_size, records))
        if characters_left < 0:
            return
        yield place, records


def _earlier_record(record: Record, now: Record | None) -> dict[str, Any]:
    same = now is not None and record.outcome != "errored" and same_answer(record, now)
    output, files = (None, ()) if same else (record.output, record.files)
    files = tuple(replace(file, data="") for file in files)
    kept = replace(record, output=output, files=files, transcript=())
    return {**json_values(kept), "same": same}


def _size(record: dict[str, Any]) -> int:
    texts = [record["output"], *(file["text"] for file in record["files"])]
    return _RECORD_SIZE + sum(len(text) for text in texts if text)


def _notes(changed: Changes) -> Iterator[str]:
    """What can't be compared, and why."""
    if not changed.comparison.pairs:
        yield NOTHING_SHARED
    for group, number in changed.not_asked.items():
        yield (
            f"{group.pair}: {counted(number, group.noun)} asked in only one of the runs"
        )
    yield from changed.comparison.differences
    both = (
        ("this run", changed.comparison.only_after),
        ("the run before", changed.comparison.only_before),
    )
    for place, pairs in both:
        if pairs:
            yield f"only in {place}: {one_line(', '.join(map(str, pairs)), 300)}"


def study_values(study: Study) -> dict[str, Any]:
    """Beside the study itself, which the results have: its tables in words."""
    arms = json_values(arm_table(study, every=True))
    return {**json_values(study_block(study)), "arms": arms}


def section_values(section: Section) -> dict[str, Any]:
    """Beside the section itself, which the results have: its tables in words."""
    view = view_of(section.feature)
    return {**json_values(view.block(section)), **view.page_values(section)}


def trigger_values(summary: TriggerSummary) -> dict[str, Any]:
    """Beside the summary itself, which the results have."""
    return {
        "word": summary.word,
        "advice": summary.advice,
        "texts": {
            name: [percent(share.rate), span(*share.interval, percent)]
            for name, share in summary.shares.items()
        },
    }


def trend_values(kept_rows: Sequence[KeptRow], metric: Number) -> dict[str, Any]:
    """All metrics that are known of a run, and which of them is asked for."""
    rows = [kept.row for kept in kept_rows]
    columns = shown_numbers(rows, details=False)
    known = [m for m in metrics().values() if any(_is_known(m, row) for row in rows)]
    return {
        "metric": metric.name,
        "metrics": [
            # The viewer has a format of the same name.
            {
                "name": m.name,
                "title": m.title,
                "unit": m.unit.text.__name__,
                "top": m.unit.top,
            }
            for m in known
        ],
        "columns": [[number.name, number.header] for number in columns],
        "rows": [_trend_row(kept, known, columns) for kept in kept_rows],
    }


def _is_known(metric: Number, row: SummaryRow) -> bool:
    amount = metric.amount(row)
    return amount is not None and metric.column_needed_if(amount)


def _trend_row(
    kept: KeptRow, known: Sequence[Number], columns: Sequence[Number]
) -> dict[str, Any]:
    row, head = kept.row, kept.run.head
    return {
        "run": kept.run.id,
        "short": kept.run.short,
        "started": head.started.isoformat(timespec="seconds"),
        "commit": short_commit(head.commit),
        "skill": row.skill,
        "label": row.label,
        "cases": f"{row.cases} of {row.all_cases}" if row.subset else f"{row.cases}",
        "subset": row.subset,
        "verdict": row.verdict,
        "values": {
            m.name: [amount, *(m.bounds_of(row) or (None, None))]
            for m in known
            if (amount := m.amount(row)) is not None
        },
        "texts": {number.name: _trend_text(number, row) for number in columns},
    }


def _trend_text(number: Number, row: SummaryRow) -> list[str | None]:
    """With the skill, and its interval."""
    text = number.skill_text(row)
    unit = unit_of(row.score) if number is LIFT and text else ""
    bounds = number.bounds_text(row) if number.interval_priority else None
    return [f"{text}{unit}" if text else None, bounds]
