"""How the list of skills in an agent's first request shows each of them to its model.

Agents have a budget for this list: beyond it they cut descriptions, or leave them out.
"""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

from ..trials.transcript import Sent
from .staging import InstalledSkill

_LONGEST: Final = 2_000_000  # characters that are searched
_LONGEST_NAME: Final = 64  # a longer prompt is no name, so each repetition of it goes
_START: Final = 12  # letters of a description that show that there is one
_BETWEEN: Final = 300  # characters of paths and tags before a description
_NOT_WORD: Final = re.compile(r"[\W_]+")
# What stands around an entry of a list, not around a word in a sentence.
_BEFORE: Final = r"(?:^|[\n>\"'`,:\[(*•/]|(?<!\w)-)\s*"
_AFTER: Final = r"(?=\s*(?:$|[\n<\"'`,:;.)\](/]|-\s|–|—))"


def sent_in(
    texts: Iterable[str], skills: Sequence[InstalledSkill], prompts: Iterable[str] = ()
) -> dict[str, Sent]:
    """How each skill is listed in the texts of a request,
    which ``prompts`` are no part of.
    """
    text = _without("\n".join(texts)[:_LONGEST], prompts)
    if "&" in text:
        text = f"{text}\n{html.unescape(text)}"
    letters = _letters(text)
    entries = _entries(text, [skill.name for skill in skills])
    sent: dict[str, Sent] = {}
    for skill in skills:
        description = _letters(skill.description)
        if description and description in letters:
            sent[skill.name] = "whole"
        elif skill.name not in entries:
            sent[skill.name] = "not listed"
        else:
            longest = 2 * len(skill.description) + _BETWEEN
            start = description[:_START]
            parts = (_letters(part[:longest]) for part in entries[skill.name])
            sent[skill.name] = (
                "cut" if any(start and start in part for part in parts) else "name"
            )
    return sent


def names_in(text: str, names: Iterable[str]) -> list[str]:
    """The names that a text has as words of their own."""
    text = text[:_LONGEST]
    return [
        name
        for name in names
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    ]


def _entries(text: str, names: Sequence[str]) -> dict[str, list[str]]:
    """What follows each entry with the name of a skill, up to the next entry."""
    if not names:
        return {}
    any_name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    places = list(re.finditer(rf"{_BEFORE}(?:[\w.-]+:)?({any_name}){_AFTER}", text))
    ends = [*(place.start(1) for place in places), len(text)][1:]
    entries: dict[str, list[str]] = {}
    for place, end in zip(places, ends, strict=True):
        entries.setdefault(place[1], []).append(text[place.end() : end])
    return entries


def _without(text: str, prompts: Iterable[str]) -> str:
    """A prompt may name a skill, or quote it, but lists nothing. It comes last."""
    for prompt in filter(None, map(str.strip, prompts)):
        if len(prompt) > _LONGEST_NAME:
            text = text.replace(prompt, " ")
        else:
            before, _, after = text.rpartition(prompt)
            text = f"{before} {after}"
    return text


def _letters(text: str) -> str:
    return _NOT_WORD.sub("", text)
