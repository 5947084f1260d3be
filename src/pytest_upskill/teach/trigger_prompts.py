"""The prompts for queries of a trigger set, and for descriptions. Foreign text is fenced."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .prompts import DATA, fenced, joined

QUERY_AUTHOR: Final = (
    "You write queries that test when an agent opens a skill. A skill is a folder with "
    "instructions; the agent sees its name and its description, and opens it if a query needs it. "
    f"A query is a message that a user types to an agent.\n\n{DATA}"
)
DESCRIBER: Final = (
    "You write descriptions of Agent Skills. An agent sees the names and the descriptions of many "
    "skills, and nothing else of them, and opens the one that a user's query needs. A good "
    "description makes it open this skill when it is needed, and only then: it says what the skill "
    f"does and when to use it, in the words of those who ask.\n\n{DATA}"
)
_FORM: Final = (
    'Reply with JSON only: {"queries": [{"query": "what the user types", "should_trigger": true}]}.'
)
_RULES: Final = (
    "- Write as users do: what they want and why, with details such as file names, numbers, "
    "places and what they tried. Vary length and tone; some are casual, in lower case, with a "
    "typo.\n"
    "- No query names the skill, or copies its description. A user does not know that there is "
    "a skill.\n"
    "- should_trigger true: a task that this skill is for and that an agent can't do well "
    "without. Cover all that the skill does, also in words that its description does not have.\n"
    "- should_trigger false: a near miss. It has words or topics in common with the description, "
    "but needs something else. Nothing that is obviously about another topic."
)


def queries_prompt(
    name: str,
    skill: str,
    messages: Sequence[str],
    known: Sequence[tuple[str, bool]],
    wanted: tuple[int, int],
    rejected: Sequence[tuple[str, str]],
) -> str:
    """``wanted``: how many that should open the skill, and that should not."""
    asked = "\n".join(f"- {'yes' if should else 'no'}: {query}" for query, should in known)
    heard = "\n".join(f"- {text}" for text in messages)
    reasons = "\n".join(f"- {query}\n  rejected because {why}" for query, why in rejected)
    parts = [
        f"The skill is called {name}. This is its SKILL.md:\n{fenced('skill', skill)}",
        "What users of this project asked. Take their tone and their tasks; a message that fits "
        f"may become a query as it is:\n{fenced('messages', heard)}"
        if heard
        else "",
        f"In the set already (yes: should open the skill), so write others:\n"
        f"{fenced('queries', asked)}"
        if asked
        else "",
        f"You wrote these before. They were rejected:\n{fenced('rejected', reasons)}"
        if reasons
        else "",
        f"Write {wanted[0]} with should_trigger true and {wanted[1]} with should_trigger false.\n"
        f"{_RULES}",
        _FORM,
    ]
    return joined(parts)


class Tried(NamedTuple):
    """A version as its teacher sees it: the share of learning queries that it gets right."""

    description: str
    right: str


def description_prompt(
    name: str,
    body: str,
    best: Tried,
    report: str,
    others: str,
    former: Sequence[Tried],
    most_characters: int,
) -> str:
    """``report``: what students did with the queries; ``others``: skills that are installed."""
    tried = [
        f"This version was tried too and did no better ({one.right}):\n"
        f"{fenced('version', one.description)}"
        for one in former
    ]
    return joined(
        [
            f"The skill is called {name}. This is its text, which the agent sees only after it "
            f"opened the skill:\n{fenced('skill', body)}",
            f"This is its description ({best.right}):\n{fenced('description', best.description)}",
            f"Skills that are installed beside it:\n{fenced('others', others)}" if others else "",
            f"What happened with some queries:\n\n{report}",
            *tried,
            "Write a better description. Find out what the queries have in common that are "
            "decided wrong, and describe that kind of task, or say what the skill is not for. Do "
            "not list these queries or their details: others will be asked, and a description "
            "that only knows these is worth nothing. Promise nothing that the skill does not do.",
            f'Reply with JSON only: {{"description": "…"}}. It has at most {most_characters:,} '
            "characters, on one line, without markup; half of that is often enough.",
        ]
    )
