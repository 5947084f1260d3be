"""A model that knows a little, and not each time."""

from pytest_upskill import Question


def answer(question: Question) -> str:
    asked = question.messages[-1][1]
    if "`gate up`" not in question.system:
        return "Hello! I do not know."
    if "open" in asked:
        return "Type gate up."
    if "close" in asked:
        return "Type gate down." if question.run != 2 else "Type gate up."
    if "Lock" in asked:
        return "Type gate bolt." if question.run == 2 else "Type gate lock."
    return "Hello! I do not know."
