"""Two cases to start from, made from a skill's own text without a model.

A sentence of SKILL.md that names something in `code` becomes a question with a gap: a
model can fill it if it has read the skill. A skill without such sentences gets cases
that are skipped until somebody writes them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .._util.texts import harmless, one_line
from .case import EDIT_ME
from .skill import Skill

_CASES: Final = 2
_MOST_COMPARED: Final = 200  # sentences
_ALIKE: Final = 0.6  # share of words in common: lint may call it a duplicate
_GAP: Final = "____"
_ASKED: Final = "Complete this sentence about"
_LONGEST_SENTENCE: Final = 250
_FEWEST_WORDS: Final = 3  # before the gap
_MOST_READ: Final = 200_000  # characters of a body
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
# Lines that are no prose
_STARTS: Final = re.compile(r"\s*(?:#{1,6}\s|[|>]|<!--)|\s*$")
_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_SENTENCES: Final = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\d])")
_WORD: Final = re.compile(r"\w{2,}")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]{3,60})`(?!`)")


@dataclass(frozen=True)
class _Gap:
    """A question about a sentence with a gap, and what belongs there."""

    question: str
    missing: str


def example_file(skill: Skill, schema: str) -> str:
    """The text of a skill_meta.json with example cases;
    ``schema`` is the path of its schema.
    """
    cases = ",\n    ".join(map(_case_text, example_cases(skill)))
    return f'{{\n  "$schema": {_json(schema)},\n  "cases": [\n    {cases}\n  ]\n}}\n'


def _case_text(case: dict[str, Any]) -> str:
    """A line for each key, as people write cases."""
    lines = ",\n      ".join(
        f"{_json(key)}: {_json(value)}" for key, value in case.items()
    )
    return f"{{\n      {lines}\n    }}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def example_cases(skill: Skill) -> list[dict[str, Any]]:
    chosen = _two_of(list(_gaps(skill)))
    cases = [_gap_case(gap) for gap in chosen]
    cases += [_empty_case(skill, number) for number in range(len(cases), _CASES)]
    return [{"id": f"example-{number}", **case} for number, case in enumerate(cases, 1)]


def _gap_case(gap: _Gap) -> dict[str, Any]:
    return {
        "input": gap.question,
        "expected": {"contains": gap.missing},
        "tags": [EDIT_ME],
    }


def _empty_case(skill: Skill, number: int) -> dict[str, Any]:
    about = one_line(skill.description, 200)
    questions = (
        (
            "Write here what a user would ask who needs this skill. It says of itself:"
            f" {about}"
        ),
        "Write here another question, one that a model gets wrong without the skill.",
    )
    return {
        "input": questions[number],
        "expected": {"contains": "a text that only a good answer has"},
        "tags": [EDIT_ME],
        "skip": (
            "an example: write the question and what its answer must contain, then"
            " remove this line and the tag"
        ),
    }


def _two_of(gaps: Sequence[_Gap]) -> list[_Gap]:
    """The first sentence, and the next that asks for something else in other words."""
    for gap in gaps[1:_MOST_COMPARED]:
        words, first_words = (
            _WORD.findall(one.question.casefold()) for one in (gap, gaps[0])
        )
        shared = len({*words} & {*first_words}) / len({*words} | {*first_words})
        if gap.missing.casefold() != gaps[0].missing.casefold() and shared < _ALIKE:
            return [gaps[0], gap]
    return list(gaps[:1])


def _gaps(skill: Skill) -> Iterator[_Gap]:
    for sentence in _sentences(skill.body[:_MOST_READ]):
        if len(sentence) > _LONGEST_SENTENCE or harmless(sentence) != sentence:
            continue
        codes = list(_CODE.finditer(sentence))
        if len(codes) != 1:  # with several, it is not clear which is meant
            continue
        before, missing = sentence[: codes[0].start()], codes[0][1].strip()
        question = f"{_ASKED} {skill.name}: {before}{_GAP}{sentence[codes[0].end() :]}"
        is_given_away = missing.casefold() in question.casefold()
        if (
            len(missing) > 2
            and not is_given_away
            and len(_WORD.findall(before)) >= _FEWEST_WORDS
        ):
            yield _Gap(question, missing)


def _sentences(body: str) -> Iterator[str]:
    """The sentences of prose and of lists, not those of code, tables and headings."""
    lines, fence = list[str](), ""
    for line in [*body.splitlines(), ""]:
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        item = _ITEM.match(line)
        if mark or fence or item or _STARTS.match(line):
            yield from _SENTENCES.split(" ".join(lines)) if lines else ()
            lines = [line[item.end() :].strip()] if item and not fence else []
        else:
            lines.append(line.strip())
