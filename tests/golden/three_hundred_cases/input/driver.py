"""A model that guesses "stop", and with the skill knows all signs but every
fiftieth.
"""

import re

from pytest_upskill import Question


def answer(question: Question) -> str:
    (number,) = re.findall(r"sign (\d+)", question.messages[-1][1])
    meaning = re.search(rf"\b{number[-1]} (\w+)", question.system)
    if int(number) % 50 == 7 or not meaning:
        return "It means stop."
    return f"It means {meaning[1]}."
