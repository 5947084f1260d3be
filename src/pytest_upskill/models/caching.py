"""From how many tokens on providers keep the start of a prompt in a cache of theirs.

What is read from it costs a tenth (of older models of OpenAI a quarter or half), what is written
to it a quarter more, or nothing. A shorter start is just not kept, so a number that is too low
does no harm.
"""

from typing import Final

OPENAI: Final = 1024
# By a part of the model's id; the first that is found counts.
_ANTHROPIC: Final = (
    ("opus-4-5", 4096),
    ("opus-4-6", 4096),
    ("opus-4-7", 2048),
    ("haiku-4-5", 4096),
    ("haiku-3", 2048),
    ("3-haiku", 2048),
    ("3-5-haiku", 2048),
    ("opus-5", 512),
    ("fable-5", 512),
    ("mythos-5", 512),
)
_OTHER_CLAUDE: Final = 1024


def least_of_claude(model_id: str) -> int:
    """Tokens of the shortest start that is kept for a Claude model."""
    found = (least for part, least in _ANTHROPIC if part in model_id.replace(".", "-"))
    return next(found, _OTHER_CLAUDE)
