"""Studies of neighbours and of parts: made-up values, and skills on disk that give such studies."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_upskill.results.effects import Effect, State
from pytest_upskill.results.neighbours import Alone, Matrix, Neighbour, Openings, pair_name
from pytest_upskill.results.part_effects import PartEffect, Parts, SavedTokens
from pytest_upskill.stats import Lift

from .kit import case, write_skill

MODEL = "scripted:model.py:answer"  # of both kinds of skills on disk

# Neighbours.

LONG = "a-skill-with-a-name-that-is-as-long-as-a-name-may-ever-be-really"
# Change in points, low, high, state, cases needed.
Change = tuple[int, int, int, State, int | None]
HURTS: Change = (-20, -35, -5, "shown", None)
HELPS: Change = (15, 3, 27, "shown", None)
UNKNOWN: Change = (3, -12, 18, "dropped", 120)
TINY: Change = (0, -26, 26, "none shown", None)
MISSING: Change = (-10, -40, 20, "incomplete", None)


def lift(points: int, low: int, high: int) -> Lift:
    return Lift(points / 100, low / 100, high / 100, 0.01)


def neighbour(
    skill: str, other: str | None, change: Change, openings: Openings | None = None
) -> Neighbour:
    points, low, high, state, needed = change
    effect = Effect(pair_name(skill, other), lift(points, low, high), 10, 4, state, needed)
    first = {other or "csv": 6, skill: 4} if points < 0 else {skill: 10}
    opened = Openings(10, {other or "csv": 6, skill: 9} if points < 0 else {skill: 10}, first)
    tell = 4 if high - low <= 10 else 68
    return Neighbour(skill, other, effect, lift(60 + points, 10, 90), openings or opened, tell)


def made_matrix(
    skills: Sequence[str] = ("pdf", "docs-writer", "csv"),
    changes: Sequence[Change] = (HURTS, UNKNOWN, HELPS, TINY, MISSING),
    bare: Sequence[str] = ("csv",),
    **more: Any,
) -> Matrix:
    """The changes are used in turn, pair by pair; ``bare`` skills have no cases."""
    tested = [one for one in skills if one not in bare]
    columns = [*skills, None] if len(skills) > 2 else [*skills]
    places = [(one, other) for one in tested for other in columns if other != one]
    values: dict[str, Any] = {
        "agent": "loop",
        "model": "haiku",
        "skills": tuple(skills),
        "alone": tuple(
            Alone(one, lift(60, 30, 90), 10, 4, Openings(10, {one: 9}, {one: 9})) for one in tested
        ),
        "pairs": tuple(
            neighbour(one, other, changes[number % len(changes)])
            for number, (one, other) in enumerate(places)
        ),
        "listing": {one: 40 + len(one) for one in skills},
        "listing_seen": {one: 50 + len(one) for one in skills},
        "not_measured": dict.fromkeys(bare, "no cases"),
        "trials": 480,
        "errored": 3,
        "error": "haiku: 529 overloaded",
        "most_runs": 8,
        "cost": 1.234,
    }
    return Matrix(**{**values, **more})


_NEIGHBOURS_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage


def answer(question):
    """Opens docs-writer for most forms, if it is there, and then gets them wrong."""
    asked, told = question.messages[-1][1], [r.text for s in question.steps for r in s.results]
    tokens = Usage(len(question.system) // 4, 5, 0)
    if told:
        words = [word for word in ("portable", "commas", "prose") if word in told[-1]]
        return Answer(words[0] if words else "No idea.", tokens)
    wanted = ["pdf"] if "form" in asked else ["csv"]
    if "form" in asked and int(asked[:-1].split()[-1]) % 4 != 3:
        wanted.insert(0, "docs-writer")
    for name in wanted:
        if f"<name>{name}</name>" in question.system:
            call = ToolCall("1", "skill", '{"name": "%s"}' % name)
            return Answer("", tokens, "tool_use", calls=(call,))
    return Answer("No idea.", tokens)
'''


def write_neighbours(folder: Path, cases: int = 12) -> None:
    """``pdf`` and ``csv`` with cases, and ``docs-writer``, which spoils the cases of ``pdf``."""
    forms = [case(f"Fill in form {n}.", "portable", id=f"form-{n}") for n in range(cases)]
    tables = [case(f"Sum table {n}.", "commas", id=f"table-{n}") for n in range(cases)]
    texts = {
        "pdf": ("Read and fill in PDF forms.", "Answer with the word portable.", forms),
        "csv": ("Work with tables of values.", "Answer with the word commas.", tables),
        "docs-writer": ("Write any document, form or text.", "Answer with the word prose.", []),
    }
    for name, (description, body, own) in texts.items():
        file = write_skill(folder / "skills" / name, own, body=body) / "SKILL.md"
        file.write_text(file.read_text().replace("About a gate.", description))
    (folder / "model.py").write_text(_NEIGHBOURS_MODEL, encoding="utf-8")


# Parts: a skill of which one section counts.

BODY = """# Pages

Read the page before you lay it out.

## Alignment

Turn it LEFT.

## Troubleshooting

If the printer stops, switch it off and on again:

- Paper is in the cupboard.
- Toner is beside it.

## Links

See [forms](references/forms.md).
"""
_PAGES_MODEL = '''
from pytest_upskill import Answer, ToolCall, Usage


def answer(question):
    """Right if the section about alignment was seen; it opens the skill, if it is an agent."""
    told = [result.text for step in question.steps for result in step.results]
    text = "\\n".join([question.system, *told])
    tokens = Usage(len(text) // 4, 5, 0)
    if question.tools and not told and "<name>pages</name>" in text:
        call = ToolCall("1", "skill", '{"name": "pages"}')
        return Answer("", tokens, "tool_use", calls=(call,))
    return Answer("left" if "LEFT" in text else "no idea", tokens)
'''


def write_pages(folder: Path, cases: int = 45, body: str = BODY) -> Path:
    """The skill ``pages`` in skills/, and model.py; the folder of the skill."""
    asked = [
        case(f"Lay out page {number}.", "left", id=f"page-{number}") for number in range(cases)
    ]
    skill = write_skill(folder / "skills/pages", asked, body=body)
    (skill / "references").mkdir()
    (skill / "references/forms.md").write_text("All forms are white. " * 10, encoding="utf-8")
    (folder / "model.py").write_text(_PAGES_MODEL, encoding="utf-8")
    return skill


def part(
    name: str,
    tokens: int,
    change: Lift | None,
    state: State = "none shown",
    needed: int | None = None,
    *,
    could_go: bool = False,
) -> PartEffect:
    cases = 20 if change else 0
    saved = SavedTokens(float(tokens), tokens - 2.0, tokens + 2.5)
    effect = Effect(name, change, cases, 2, state, needed)
    return PartEffect(name, "section", 6, tokens, effect, could_go, saved)


def made_parts(*parts: PartEffect) -> Parts:
    return Parts("pages", "m", 100, Lift(0.6, 0.4, 0.8, 0.0), parts, trials=120)
