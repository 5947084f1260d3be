"""The data of a run's page: the results as --skill-json writes them.

The viewer computes no verdict and no interval: it shows those of the results.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from ..._util.json_forms import json_values
from ..._util.texts import plural
from ...registry import view_of
from ...results.case_changes import Earlier
from ...results.chance import looks_words, many_skills_words
from ...results.outcomes import failure_words
from ...results.run import RunResults
from ...results.run_file import results_values
from ...results.run_notes import agent_lines
from ...skills.kinds import kinds_by_agent
from ..answers import answer_words, badness, count_words, words_of_tests
from ..study_tables import study_block
from .changes import changes_values

# Of all texts of the answers, so that a page stays small enough to be sent.
_MAX_CHARACTERS: Final = 8_000_000
_TEXT_LIMITS: Final = (500_000, 100_000, 20_000, 4_000, 1_000, 200, 0)
_MAX_IMAGE_CHARACTERS: Final = 1_000_000
# What a browser takes for a picture, by how it begins as base64.
_IMAGES: Final = {
    "iVBORw0KGgo": "png",
    "/9j/": "jpeg",
    "R0lGOD": "gif",
    "UklGR": "webp",
}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def case_anchor(skill: str, case: str, model: str) -> str:
    """The end of a link to a test, which stays valid for later runs."""
    return "case=" + quote(f"{skill}/{case}/{model}", safe="/:", errors="replace")


def run_values(
    results: RunResults, notes: Sequence[str], earlier: Earlier | None
) -> dict[str, Any]:
    """The results, and what only Python knows of them."""
    values = results_values(results, transcripts=True)
    _cut_texts(values["records"])

    answers = [
        {
            "skill": verdict.skill,
            "text": answer_words(verdict),
            "chance": looks_words(verdict.looks or 0),
        }
        for verdict in sorted(results.verdicts, key=badness)
    ]
    counts = failure_words(results.outcome_counts)
    problems = results.problems or results.withheld

    blocks = [study_block(study) for study in results.studies]
    for of_kind in results.kind_sections:
        if block := view_of(of_kind.feature).block(of_kind):
            blocks.append(block)
    for section in results.sections:
        blocks.append(view_of(section.feature).block(section))

    return {
        "results": values,
        "answers": answers,
        "counts": count_words(results.verdicts) if answers else "",
        "chance": many_skills_words(len(answers)),
        "tests": words_of_tests(results),
        "outcome": results.outcome(),
        "problems": [line for line in problems if line not in counts],
        "commands": [results.rerun.command(test.nodeid) for test in results.tests],
        "blocks": [json_values(block) for block in blocks],
        "changes": changes_values(earlier, results) if earlier else None,
        "images": dict(_images(results)),
        # What is said of rows of agents that ask no model
        "played": {
            agent: plural(kind.name) for agent, kind in kinds_by_agent().items()
        },
        "notes": [*agent_lines(results), *notes],
    }


def _cut_texts(records: list[dict[str, Any]]) -> None:
    """Cut the longest texts until all fit, those of passed answers first.

    They lose their end, so that places in what is left stay as they are.
    """
    for limit in _TEXT_LIMITS:
        places = list(_long_texts(records, limit))
        size = sum(min(len(values[key]), limit) for values, key, limit in places)
        if size <= _MAX_CHARACTERS:
            break

    for values, key, limit in places:
        text = values[key]
        if len(text) > limit:
            left_out = f"[… {len(text) - limit:,} characters left out …]"
            values[key] = f"{text[:limit]}\n{left_out}"


def _long_texts(
    records: list[dict[str, Any]], limit: int
) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Each text of an answer: its object, its key, and how long it may be."""
    for record in records:
        own = limit // 5 if record["outcome"] == "passed" else limit
        if record["output"]:
            yield record, "output", own
        for part in record["files"] + record["transcript"]:
            if part["text"]:
                yield part, "text", own


def _images(results: RunResults) -> Iterator[tuple[str, str]]:
    """Addresses of pictures that agents made, by the digest of the file."""
    room = _MAX_IMAGE_CHARACTERS
    for record in results.records:
        for file in record.files:
            kinds = [
                kind for start, kind in _IMAGES.items() if file.data.startswith(start)
            ]
            if kinds and len(file.data) <= room and _BASE64.fullmatch(file.data):
                room -= len(file.data)
                yield file.digest, f"data:image/{kinds[0]};base64,{file.data}"
