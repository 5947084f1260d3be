"""A model that fails in several ways."""

from pytest_upskill import Answer, ModelError, Question


def answer(question: Question) -> Answer | str:
    asked = question.messages[-1][1]
    if "open" in asked:
        raise ModelError("the server burns", "Call the fire brigade")
    if "close" in asked:
        raise ZeroDivisionError("division by zero")
    if "Lock" in asked:
        return Answer("I can't help with that: gate bolt.", stop="refusal")
    if "Unlock" in asked:
        return ""  # an answer, which fails
    if "state" in asked:
        return Answer('{"command": "gate', stop="length")
    return "gate diary, gate wail, hello"
