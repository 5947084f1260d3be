"""Why a case failed: the question, what each arm answered, and what the checks say of it."""

from collections.abc import Sequence
from typing import Final

from ..records import Record
from ..texts import counted, harmless, one_line, shortened

_QUESTION_LIMIT: Final = 600
_ANSWER_LIMIT: Final = 1600


def failure_text(
    question: str, records: Sequence[Record], *, whole: bool = False, against: str | None = None
) -> str:
    """The text of one failed item; ``whole`` leaves nothing out."""
    asked = _quoted(question, None if whole else _QUESTION_LIMIT, "  | ")
    blocks = [_headline(records), f"Question:\n{asked}"]
    titles = {
        "skill": "With the skill",
        "previous": f"With the skill at {one_line(against or '', 60)}",
        "baseline": "Without it",
    }
    for arm, title in titles.items():
        own = [record for record in records if record.arm == arm]
        if own:
            blocks.append(_arm(title, own, None if whole else _ANSWER_LIMIT))
    return "\n\n".join(blocks)


def _headline(records: Sequence[Record]) -> str:
    """One line for pytest's short summary."""
    grades = [grade for record in records if record.arm == "skill" for grade in record.checks]
    reasons = [grade.reason for grade in grades if grade.required and not grade.passed]
    return one_line("; ".join(dict.fromkeys(reasons)), 200)


def _arm(title: str, records: Sequence[Record], limit: int | None) -> str:
    passed = [record.outcome == "passed" for record in records]
    # Of several runs the first that failed tells most; where all passed, any does.
    number = passed.index(False) if False in passed else 0
    record = records[number]
    if len(records) > 1:
        verdict = f"passed {sum(passed)} of {len(records)} runs; this is run {record.run}"
    else:
        verdict = "passed" if passed[0] else "failed"
    lines = [f"{title}: {verdict}"]
    for grade in record.checks:
        mark = "ok  " if grade.passed else "FAIL" if grade.required else "miss"
        lines.append(f"  {mark} {grade.check}: {harmless(grade.reason)}")
    lines.append(f"  Answer{_details(record)}:")
    lines.append(_quoted(record.output or "", limit, "  | "))
    return "\n".join(lines)


def _details(record: Record) -> str:
    parts = []
    if record.output_tokens is not None:
        parts.append(counted(record.output_tokens, "token"))
    if record.seconds is not None:
        parts.append(f"{record.seconds:.1f} s")
    return f" ({', '.join(parts)})" if parts else ""


def _quoted(text: str, limit: int | None, prefix: str) -> str:
    shown = text if limit is None else shortened(text, limit)
    return "\n".join(prefix + line for line in harmless(shown).split("\n"))
