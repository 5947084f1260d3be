"""How students fail with a version: part of a prompt,
with all foreign text fenced and masked.
"""

from collections.abc import Sequence
from typing import Final

from .._util.secrets import masked
from .._util.texts import counted, one_line, shortened
from ..results.row import Row
from ..results.run import RunResults
from ..trials.answer import AnswerFile
from ..trials.records import Record
from ..trials.subject import CHAT
from .prompts import fenced
from .traces import condensed, teaching_turns

# Characters of the skill, where only its description is at stake
MOST_BODY: Final = 8_000
MOST_TRACES: Final = 12_000  # tokens of what agents did, in all
_MOST_FAILURES: Final = 10  # that the teacher is shown
_MOST_TRACE: Final = 3_000  # tokens of one trace
_MOST_ANSWER: Final = 1_500  # characters
_MOST_FILES: Final = 5
_MOST_FILE: Final = 1_000  # characters
_MOST_MASKED: Final = 20_000  # characters: masking a large file may take a second
_NOT_OPENED: Final = (
    "It did not open the skill: it saw the name and the description, and no word of the"
    " body. So the body is not the cause. Change the description: say when to use the"
    " skill, in words that such questions use."
)


def report_for_teacher(results: RunResults) -> str:
    """Pass rates, and failed answers with their questions and reasons:
    part of a prompt.
    """
    skill, score = results.skills[0].name, results.skills[0].score
    failing = _failing(results)
    examples = failing[:_MOST_FAILURES]
    by_agents = sum(record.agent != CHAT for record in examples)
    most_tokens = min(_MOST_TRACE, MOST_TRACES // max(1, by_agents))
    rates = "; ".join(map(_rates, results.rows))
    failed = {record.case for record in failing}
    passing = [case.case for case in results.rows[0].by_case if case.case not in failed]
    share = "The share that passes" if score == "pass" else "The share of checks"
    parts = [f"{share}: {rates}."]
    parts += (
        [f"These pass with every student: {', '.join(passing)}."] if passing else []
    )
    if failing:
        parts.append(f"{counted(len(failing), 'answer')} fail; these are some of them.")
    parts += [
        _failure(results.questions[skill, record.case], record, most_tokens)
        for record in examples
    ]
    return "\n\n".join(parts)


def _rates(row: Row) -> str:
    bare, skilled = row.scored("baseline") or 0.0, row.scored("skill") or 0.0
    text = f"{row.label} {bare:.0%} without the skill, {skilled:.0%} with it"
    return f"{text}, {row.activation.opened}" if row.activation else text


def _failing(results: RunResults) -> list[Record]:
    """A failed answer of each case and student; every case comes
    once before any comes twice.
    """
    first: dict[tuple[str, str], Record] = {}
    for record in results.records:
        if record.arm == "skill" and record.outcome == "failed":
            first.setdefault((record.case, record.label), record)
    by_case = dict[str, int]()
    ranked = []
    for record in first.values():
        by_case[record.case] = by_case.get(record.case, 0) + 1
        ranked.append((by_case[record.case], record))
    return [record for _, record in sorted(ranked, key=lambda pair: pair[0])]


def _failure(question: str, record: Record, most_tokens: int) -> str:
    """A failed answer, or what an agent did."""
    wrong = [grade.reason for grade in record.checks if not grade.passed]
    right = [grade.reason for grade in record.checks if grade.passed]
    parts = [f"Question:\n{fenced('question', question)}"]
    if record.agent == CHAT:
        answer = shortened(record.output or "", _MOST_ANSWER)
        parts.append(f"{record.label} answered:\n{fenced('answer', answer)}")
    else:
        parts += _agent_failure(record, most_tokens)
    parts.append("What is wrong: " + "; ".join(wrong) + ".")
    parts += ["What is right: " + "; ".join(right) + "."] if right else []
    return "\n".join(parts)


def _agent_failure(record: Record, most_tokens: int) -> list[str]:
    """What an agent did, in numbered steps, and the files it left."""
    # Not what it was asked
    replies = (turn for turn in record.transcript if turn.reply)
    trace = condensed(teaching_turns(replies), most_tokens)
    parts = [f"{record.label}, an agent, did this:\n{fenced('trial', trace.text)}"]
    parts += [trace.left_out] if trace.left_out else []
    return [*parts, _opened(record), _files(record.files)]


def _opened(record: Record) -> str:
    activity = record.activity
    if activity is None or activity.activated is None:
        return ""
    if not activity.activated:
        return _NOT_OPENED
    actions = [f"read {', '.join(activity.read)}"] if activity.read else []
    actions += [f"ran {', '.join(activity.scripts)}"] if activity.scripts else []
    also = (
        f", and {' and '.join(actions)}" if actions else " and none of its other files"
    )
    return masked(one_line(f"It opened the skill{also}.", 500))


def _files(files: Sequence[AnswerFile]) -> str:
    """The files that it made, changed or deleted, with the text of the first ones."""
    if not files:
        return "It left no file behind and changed none."
    names = [f"{one_line(file.path, 100)} ({file.change})" for file in files]
    omitted = f", and {len(files) - 20:,} more" if len(files) > 20 else ""
    parts = [
        (
            "Files that it"
            f" left:\n{fenced('names', masked(', '.join(names[:20]) + omitted))}"
        )
    ]
    for file in [file for file in files if file.text is not None][:_MOST_FILES]:
        text, start = (
            file.text or "",
            masked((file.text or "")[:_MOST_MASKED])[:_MOST_FILE],
        )
        start += "…" if len(text) > _MOST_FILE else ""
        parts.append(fenced("file", f"{one_line(file.path, 100)}:\n{start}"))
    return "\n".join(parts)
