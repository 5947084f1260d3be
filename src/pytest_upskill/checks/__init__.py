"""The checks of an answer: each says passed or not, with a reason that a person understands."""

from ..cases import Case
from ..records import Answer, Grade

__all__ = ["grade"]


def grade(case: Case, answer: Answer) -> tuple[Grade, ...]:
    """Hold an answer to every check of its case."""
    return (
        *(_grade("contains", answer, text, wanted=True) for text in case.contains),
        *(_grade("not_contains", answer, text, wanted=False) for text in case.not_contains),
    )


def _grade(check: str, answer: Answer, text: str, *, wanted: bool) -> Grade:
    found = text.casefold() in answer.text.casefold()
    reason = f'"{text}" is {"" if found else "not "}in the answer'
    if answer.stop == "length" and found != wanted:
        reason += ", which was cut off by --skill-max-output"
    return Grade(check, found == wanted, reason)
