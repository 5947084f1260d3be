"""Commands that results propose, ready to paste."""

import shlex
from typing import Final

from .._util.texts import one_line

# What a run had, and how `pytest-upskill describe` calls it.
DESCRIBE: Final = {
    "agent": "--eval-agent",
    "model": "--eval-model",
    "with_skills": "--with",
    "noise": "--noise",
}


def command(name: str, *words: str) -> str:
    return shlex.join(one_line(word, 200) for word in ("pytest-upskill", name, *words))
